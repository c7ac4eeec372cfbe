"""A backup into a store: rows into tables that this program's own migrations make, and nothing else of the file.

A backup may come from a stranger. Its rows are data; a statement, a function or an expression has no place in it. What
is in the file and in the schema of its version must be the same, name by name, before anything is written.
"""

from __future__ import annotations

import contextlib
import graphlib
from collections.abc import Iterator
from pathlib import Path

import psycopg
from psycopg import sql

from recollect.errors import (
    ConflictError,
    NotFoundError,
    SchemaVersionError,
    StoreError,
    StoreUnavailableError,
    TenantSuspendedError,
    UsageError,
)
from recollect.model import Scope
from recollect.store.backup import Manifest, OpenedArchive, TableEntry
from recollect.store.connections import translated_errors
from recollect.store.database import Connection, connect, rows
from recollect.store.migrate import code_schema_version, complete_schema, replace_schema, schema_digest
from recollect.store.sql import queries
from recollect.store.store import Store

_SQL = queries("backup")

_COPY = sql.SQL("COPY recollect.{table} ({columns}) FROM STDIN (FORMAT binary)")
_SET_SEQUENCE = sql.SQL("SELECT setval({name}, greatest(%s, (SELECT max({column}) FROM recollect.{table}), 1))")
_SET_FREE_SEQUENCE = sql.SQL("SELECT setval({name}, greatest(%s, 1))")
_LARGEST_NUMBER = 2**62

# Who restores need not wait for ever behind somebody who uses the store. Plans must fit tables that are growing.
_SETTINGS = """
    SET LOCAL lock_timeout = '30s';
    SET LOCAL client_min_messages = 'warning';
    SET LOCAL row_security = off;
    SET LOCAL search_path = recollect, public
"""


def restore(dsn: str, file: Path, *, force: bool = False) -> None:
    """Put a backup in place of an empty store.

    It happens in one transaction: if anything fails, the store is as it was.

    Args:
        dsn: The connection string of the store to fill; the database must exist.
        file: A file written by `recollect.store.backup.backup`.
        force: Replace a store that is in use; what it holds is lost. Default: refuse.

    Raises:
        NotFoundError: The file does not exist.
        UsageError: The file is not a backup, is cut off or damaged, or holds what recollect's schema has no place for.
        SchemaVersionError: It was written by a newer recollect, or by one from before the first release.
        ConflictError: The store is in use and ``force`` is not set.
        StoreUnavailableError: The server cannot be reached, or others are using the store.
        StoreError: The restore failed; the store is as it was.
    """
    source = file.expanduser().absolute()
    try:
        opened = source.open("rb")
    except FileNotFoundError as exc:
        raise NotFoundError(f"There is no backup {str(source)!r}.") from exc
    except OSError as exc:
        raise UsageError(f"The backup {str(source)!r} cannot be read: {exc.strerror}.") from exc
    with opened:
        archive = OpenedArchive(opened, source)
        _require_version(archive.manifest, source)
        with connect(dsn, autocommit=False) as connection, _explained(source):
            if not force:
                _require_unused(connection)
            archive.verify()
            connection.execute(_SETTINGS)
            _replace(connection, archive, source, force=force)
            connection.commit()


def _replace(connection: Connection, archive: OpenedArchive, source: Path, *, force: bool) -> None:
    if not force:
        # Again, now that nobody can write any more.
        if _has_store(connection):
            connection.execute("LOCK TABLE recollect.documents, recollect.sessions, recollect.tenants")
        _require_unused(connection)
    replace_schema(connection, archive.manifest.schema_version)
    order = _tables_in_order(connection, archive.manifest, source)
    indexes = rows(connection, _SQL["secondary_indexes"])
    for name, _ in indexes:
        connection.execute(sql.SQL("DROP INDEX recollect.{}").format(sql.Identifier(name)))
    # Migrations put rows into some tables: those of the backup stand in their place.
    everything = sql.SQL(", ").join(sql.Identifier("recollect", table) for table in order)
    connection.execute(sql.SQL("TRUNCATE {}").format(everything))
    for table in order:
        _fill(connection, archive, table, archive.manifest.tables[table], source)
    # Its rows describe indexes, which a backup does not hold: they are made anew.
    if "closed_row_segments" in order:
        connection.execute("TRUNCATE recollect.closed_row_segments")
    _set_sequences(connection, archive.manifest, source)
    for _, definition in indexes:
        connection.execute(definition)
    complete_schema(connection)
    _requeue(connection)
    # Without statistics the planner would misjudge every query until autovacuum comes round.
    for table in order:
        connection.execute(sql.SQL("ANALYZE recollect.{}").format(sql.Identifier(table)))


def _requeue(connection: Connection) -> None:
    """Put the jobs that have not ended into the queue again, which is no part of a backup."""
    for tenant_id, job_ids in rows(connection, _SQL["unqueue"]):
        connection.execute("SELECT set_config('recollect.tenant_id', %s, true)", (str(tenant_id),))
        connection.execute("SELECT recollect.enqueue_jobs(%s, %s)", (tenant_id, job_ids))


def build_indexes(store: Store) -> None:
    """Build the approximate indexes of every collection that is large enough for them."""
    after = ""
    while tenants := store.tenants.page(after=after):
        for tenant in tenants:
            scope = Scope(tenant_id=tenant.tenant_id)
            # Of a suspended tenant nothing can be read; its next ingest builds them.
            with contextlib.suppress(TenantSuspendedError):
                for place in store.collections.list_all(scope):
                    for indexer in (store.dense_indexer, store.history_indexer):
                        if indexer.due(scope, place.name):
                            indexer.build(scope, place.name)
        after = tenants[-1].name


def _require_version(manifest: Manifest, source: Path) -> None:
    if manifest.schema_version > code_schema_version():
        raise SchemaVersionError(
            f"{str(source)!r} has schema version {manifest.schema_version}, this recollect knows versions up to "
            f"{code_schema_version()}: it was written by recollect {manifest.recollect_version}, a newer one, or one "
            "from before the first release. Restore it with that recollect."
        )
    if manifest.schema_digest != schema_digest(manifest.schema_version):
        raise UsageError(
            f"{str(source)!r} comes from a store whose migrations are not this recollect's. Restore it with the "
            f"recollect that wrote it ({manifest.recollect_version})."
        )


def _has_store(connection: Connection) -> bool:
    return connection.execute("SELECT to_regclass('recollect.documents')").fetchone() != (None,)


def _require_unused(connection: Connection) -> None:
    if not _has_store(connection):
        return
    # Rows that a policy hides must not make a store look empty.
    connection.execute("SET LOCAL row_security = off")
    if rows(connection, _SQL["in_use"])[0][0]:
        raise ConflictError(
            "The store has documents, conversations or tenants, and a restore would replace them all. Restore into "
            "another store (a new --data-dir or database), or replace this one (--force)."
        )


def _tables_in_order(connection: Connection, manifest: Manifest, source: Path) -> list[str]:
    """The tables, each behind those that it refers to; the file's and the schema's are the same."""
    wanted = {table: (columns, refers_to) for table, columns, refers_to in rows(connection, _SQL["tables"])}
    for table, entry in manifest.tables.items():
        strange = set(entry.columns) - set(wanted[table][0]) if table in wanted else {""}
        if strange:
            column = min(strange)
            what = f"the column {column!r} of the table {table!r}" if column else f"the table {table!r}"
            raise UsageError(
                f"{str(source)!r} holds {what}, which recollect's schema (version {manifest.schema_version}) does not "
                "have: nothing of it is restored."
            )
    for table, (columns, _) in wanted.items():
        if table not in manifest.tables or len(manifest.tables[table].columns) != len(columns):
            raise UsageError(f"{str(source)!r} is no whole backup: of the table {table!r} something is missing.")
    sorter = graphlib.TopologicalSorter({table: refers_to for table, (_, refers_to) in wanted.items()})
    return list(sorter.static_order())


def _fill(connection: Connection, archive: OpenedArchive, table: str, entry: TableEntry, source: Path) -> None:
    statement = _COPY.format(
        table=sql.Identifier(table), columns=sql.SQL(", ").join(map(sql.Identifier, entry.columns))
    )
    cursor = connection.cursor()
    try:
        with cursor.copy(statement) as copy:
            for block in archive.blocks(table):
                copy.write(block)
    except (psycopg.errors.DataError, psycopg.errors.IntegrityError) as exc:
        reason = (exc.diag.message_primary or str(exc)).strip()
        raise UsageError(
            f"{str(source)!r} holds rows of {table!r} that the schema refuses ({reason}). The store is as it was."
        ) from exc
    if cursor.rowcount != entry.rows:
        raise UsageError(
            f"{str(source)!r} holds {cursor.rowcount:,} rows of {table!r} instead of {entry.rows:,}. The store is as "
            "it was."
        )


def _set_sequences(connection: Connection, manifest: Manifest, source: Path) -> None:
    known = {name: (table, column) for name, table, column in rows(connection, _SQL["sequences"])}
    if strange := sorted(set(manifest.sequences) - set(known)):
        raise UsageError(f"{str(source)!r} holds the sequence {strange[0]!r}, which recollect's schema does not have.")
    for name, (table, column) in known.items():
        last = manifest.sequences.get(name, 0)
        if not 0 <= last < _LARGEST_NUMBER:
            raise UsageError(f"{str(source)!r} holds a sequence {name!r} that has come to its end.")
        literal = sql.Literal(f"recollect.{name}")
        if table is None:
            statement = _SET_FREE_SEQUENCE.format(name=literal)
        else:
            statement = _SET_SEQUENCE.format(name=literal, table=sql.Identifier(table), column=sql.Identifier(column))
        connection.execute(statement, (last,))


@contextlib.contextmanager
def _explained(source: Path) -> Iterator[None]:
    try:
        with translated_errors():
            yield
    except StoreUnavailableError:
        raise
    except StoreError as exc:
        cause: BaseException | None = exc.__cause__
        if isinstance(cause, psycopg.errors.LockNotAvailable):
            raise StoreUnavailableError(
                "Others are using the store. It is as it was; stop them and restore again."
            ) from exc
        if isinstance(cause, psycopg.errors.DataError | psycopg.errors.IntegrityError):
            raise UsageError(
                f"{str(source)!r} holds rows that the schema refuses ({exc}). The store is as it was."
            ) from exc
        if type(exc) is StoreError:
            raise StoreError(f"Restoring {str(source)!r} failed, and the store is as it was: {exc}") from exc
        raise
