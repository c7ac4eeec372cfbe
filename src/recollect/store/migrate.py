"""Forward-only migrations, applied when a store is opened."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import LiteralString

import psycopg
from psycopg.sql import SQL

from recollect.errors import IsolationError, SchemaVersionError, StoreCorruptError, StoreError
from recollect.store import sql
from recollect.store.catalogue import (
    DIGEST,
    differences,
    free_routines,
    serious,
    some_of,
    sound_digests,
    unknown_routines,
)
from recollect.store.connections import APPLICATION_ROLE, translated_errors
from recollect.store.database import Connection, connect

logger = logging.getLogger(__name__)

MINIMUM_SERVER_VERSION = 150000
MINIMUM_VECTOR_VERSION = (0, 8)

# Any number will do, as long as every version of recollect takes the same one.
_LOCK_KEY = 7_316_094_501

_BOOTSTRAP: LiteralString = """
    CREATE SCHEMA IF NOT EXISTS recollect;
    CREATE TABLE IF NOT EXISTS recollect.schema_migrations (
        version    int         PRIMARY KEY,
        name       text        NOT NULL,
        checksum   text        NOT NULL,
        applied_at timestamptz NOT NULL DEFAULT now()
    );
    CREATE TABLE IF NOT EXISTS recollect.schema_routines (
        only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row), checksum text NOT NULL
    )
"""

# The third column: the application's role has what the routines granted it (a restored backup has no grants), and the
# owner may take it, or cannot give themselves that right: the routines would do what they can.
_STATE: LiteralString = """
    BEGIN; SET LOCAL search_path = pg_catalog, public;
    SELECT array_agg(checksum ORDER BY version), (SELECT checksum FROM recollect.schema_routines),
           (SELECT coalesce(bool_and(has_table_privilege(r.oid, 'recollect.tenants', 'SELECT')
                                     AND (pg_has_role(r.oid, CASE WHEN v.number < 160000 THEN 'MEMBER' ELSE 'SET' END)
                                          OR NOT pg_has_role(r.oid, 'MEMBER WITH ADMIN OPTION'))
                                     AND r.rolcanlogin >= %(own)s AND p.proleakproof >= %(own)s), NOT %(own)s)
            FROM pg_roles r, pg_proc p, (SELECT current_setting('server_version_num')::int) v (number)
            WHERE r.rolname = %(role)s AND p.oid = 'pg_catalog.arrayoverlap(anyarray,anyarray)'::regprocedure),
           EXISTS (SELECT FROM recollect.tenants OFFSET 1), (DIGEST)
    FROM recollect.schema_migrations;
    COMMIT
""".replace("DIGEST", DIGEST)

# Without the second part, PostgreSQL would not use the indexes on lexemes, tags and metadata below row-level security:
# it takes these operators to tell of rows that a policy hides. They do not; only a superuser may say so, which the
# embedded server's owner is, in a database that is the store's alone.
_OWN_SERVER: LiteralString = """
    ALTER ROLE recollect_app LOGIN;
    ALTER FUNCTION pg_catalog.arrayoverlap(anyarray, anyarray) LEAKPROOF;
    ALTER FUNCTION pg_catalog.arraycontains(anyarray, anyarray) LEAKPROOF;
    ALTER FUNCTION pg_catalog.jsonb_contains(jsonb, jsonb) LEAKPROOF
"""


@dataclass(frozen=True, slots=True)
class MigrationReport:
    """What `migrate` found and did.

    Attributes:
        schema_version: Of the store, now.
        applied: The names of the migrations that were missing.
        several_tenants: Whether the store has more than the default tenant.
        put_back: What had been changed of what keeps tenants apart, in words.
    """

    schema_version: int
    applied: tuple[str, ...]
    several_tenants: bool = False
    put_back: tuple[str, ...] = ()


def code_schema_version() -> int:
    """The newest schema version that this code knows."""
    return sql.migrations()[-1][0]


def migrate(dsn: str, *, own_server: bool = False) -> MigrationReport:
    """Bring the store's schema up to this code's version; several processes may call it at once.

    Args:
        dsn: Of the schema's owner, or of whoever may make it.
        own_server: Whether it is the embedded server: then the role that the program works as may log in there.

    Raises:
        SchemaVersionError: The store was written by a newer recollect, or by one from before the first release.
        StoreCorruptError: A migration that was applied differs from this code's.
        StoreError: The server is too old, or pgvector is missing or too old.
        IsolationError: There are several tenants, and what keeps them apart was changed and cannot be put back.
    """
    with connect(dsn) as connection, translated_errors():
        state = _read_state(connection, own_server=own_server)
        tampered: list[str] = []
        if state is not None and state.up_to_date:
            tampered = [] if state.sound else serious(differences(connection, structure=False))
            if not tampered:
                return MigrationReport(code_schema_version(), (), state.several_tenants)
        # A transaction's lock, which no pooler loses; over a connection of its own: migrations commit one by one.
        with connect(dsn, autocommit=False) as holder:
            holder.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK_KEY,))
            _require_server(connection)
            report = _apply(connection)
            if own_server:
                connection.execute(_OWN_SERVER)
            state = _read_state(connection, own_server=own_server)
            several = state is not None and state.several_tenants
            left = [] if state is None or state.sound else serious(differences(connection, structure=False))
            put_back = tuple(one for one in tampered if one not in left)
            _tell(put_back, left, several_tenants=several)
            return replace(report, several_tenants=several, put_back=put_back)


def _tell(put_back: Sequence[str], left: Sequence[str], *, several_tenants: bool) -> None:
    if put_back:
        logger.warning("What keeps tenants apart had been changed, and was put back:%s", some_of(put_back))
    if left and several_tenants:
        raise IsolationError(
            "What keeps tenants apart in this database was changed, and could not be put back; with several tenants "
            f"the store is not opened. Have an administrator undo it:{some_of(left)}"
        )
    if left:
        logger.warning("What keeps tenants apart was changed:%s", some_of(left))


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _routines_checksum() -> str:
    return _checksum("\n".join(sql.routines()))


@dataclass(frozen=True, slots=True)
class _State:
    up_to_date: bool
    several_tenants: bool
    sound: bool


def _read_state(connection: Connection, *, own_server: bool) -> _State | None:
    """One cheap query for the usual case, so that opening a store costs no lock; None: no store, or an old one."""
    cursor = psycopg.ClientCursor(connection)
    try:
        cursor.execute(_STATE, {"role": APPLICATION_ROLE, "own": own_server})
    except psycopg.errors.UndefinedTable:
        connection.rollback()
        return None
    for _ in range(2):
        cursor.nextset()
    row = cursor.fetchone()
    if row is None:
        return None
    wanted = ([_checksum(text) for _, _, text in sql.migrations()], _routines_checksum(), True)
    return _State(row[:3] == wanted, several_tenants=row[3], sound=row[4] in sound_digests())


def _require_server(connection: Connection) -> None:
    if connection.info.server_version < MINIMUM_SERVER_VERSION:
        raise StoreError(
            f"PostgreSQL {connection.info.server_version // 10000} is too old: recollect needs 15 or newer."
        )
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise StoreError(
            f"The database {connection.info.dbname!r} has the encoding {encoding}, which cannot hold every text. Make "
            "another one: CREATE DATABASE recollect ENCODING 'UTF8' TEMPLATE template0"
        )
    row = connection.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'").fetchone()
    if row is None:
        row = _create_extension(connection)
    version = tuple(int(part) for part in row[0].split(".")[:2])
    if version < MINIMUM_VECTOR_VERSION:
        raise StoreError(
            f"The extension vector is version {row[0]}, recollect needs 0.8 or newer: install a newer pgvector on the "
            "server, then run ALTER EXTENSION vector UPDATE."
        )


def _create_extension(connection: Connection) -> tuple[str]:
    try:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public")
    except psycopg.errors.InsufficientPrivilege as exc:
        raise StoreError(
            "The extension vector is not enabled in this database and this role may not enable it: "
            "have an administrator run CREATE EXTENSION vector."
        ) from exc
    except (psycopg.errors.FeatureNotSupported, psycopg.errors.UndefinedFile) as exc:
        raise StoreError(
            "This PostgreSQL server has no pgvector: install it there (https://github.com/pgvector/pgvector), "
            "or leave out --dsn to use the embedded server, which has it."
        ) from exc
    row = connection.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'").fetchone()
    if row is None:
        raise StoreError("CREATE EXTENSION vector had no effect.")
    return (str(row[0]),)


def applied_schema(connection: Connection) -> tuple[int, str]:
    """The version of a store's schema, and a digest of the migrations that made it.

    Raises:
        SchemaVersionError: The store was written by a newer recollect, or by one from before the first release.
        StoreCorruptError: A migration that was applied differs from this code's.
    """
    done = _applied(connection)
    _require_compatible(done, sql.migrations())
    return max(done, default=0), _checksum("\n".join(checksum for _, checksum in done.values()))


def stored_schema_version(dsn: str) -> int | None:
    """The version of a store's schema, which is left as it is; None: there is no store in that database.

    Raises:
        StoreUnavailableError: The server cannot be reached.
        SchemaVersionError: The store was written by a newer recollect, or by one from before the first release.
    """
    with connect(dsn) as connection:
        _require_server(connection)
        try:
            return applied_schema(connection)[0]
        except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
            return None


def schema_digest(version: int) -> str:
    """What `applied_schema` gives of a store that this code has brought to a version."""
    return _checksum("\n".join(_checksum(text) for number, _, text in sql.migrations() if number <= version))


def replace_schema(connection: Connection, version: int) -> None:
    """Make the empty tables of a version in place of whatever store there is, within the caller's transaction."""
    connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK_KEY,))
    connection.execute("DROP SCHEMA IF EXISTS recollect, recollect_jobs CASCADE")
    _require_server(connection)
    _apply(connection, until=version)


def complete_schema(connection: Connection) -> None:
    """Bring a schema up to this code's version, within the caller's transaction."""
    _apply(connection)


def _apply(connection: Connection, *, until: int | None = None) -> MigrationReport:
    _bootstrap(connection)
    known = [one for one in sql.migrations() if until is None or one[0] <= until]
    done = _applied(connection)
    _require_compatible(done, known)
    applied: list[str] = []
    for version, name, text in known:
        if version in done:
            continue
        with connection.transaction():
            connection.execute("SET LOCAL search_path = recollect, public")
            connection.execute(sql.with_includes(text))
            connection.execute(
                "INSERT INTO recollect.schema_migrations (version, name, checksum) VALUES (%s, %s, %s)",
                (version, name, _checksum(text)),
            )
        applied.append(name)
    # Routines are this code's: they may name what a migration after ``until`` makes.
    if until is None:
        _replace_routines(connection)
    return MigrationReport(known[-1][0], tuple(applied))


def _bootstrap(connection: Connection) -> None:
    try:
        with connection.transaction():
            connection.execute(_BOOTSTRAP)
    except psycopg.errors.InsufficientPrivilege as exc:
        who, where = connection.info.user, connection.info.dbname
        raise StoreError(
            f"The role {who!r} may not make the schema recollect in the database {where!r} "
            f"({exc.diag.message_primary}). Have the database's owner run: "
            f'GRANT CREATE ON DATABASE "{where}" TO "{who}"'
        ) from exc


def _applied(connection: Connection) -> dict[int, tuple[str, str]]:
    """The name and checksum of every migration that was applied, by version, ascending."""
    found = connection.execute("SELECT version, name, checksum FROM recollect.schema_migrations ORDER BY version")
    return {version: (name, checksum) for version, name, checksum in found}


def _require_compatible(done: dict[int, tuple[str, str]], known: list[tuple[int, str, LiteralString]]) -> None:
    first, newest = known[0][1], known[-1][0]
    if done and 1 in done and done[1][0] != first:
        raise SchemaVersionError(
            "This store was made by a recollect from before the first release, whose schema is not upgraded; it was "
            "left as it is. Either export its documents and conversations with the recollect that made it (recollect "
            "tenants export default FOLDER, and the same for each other tenant), and import the files of these folders "
            "into a new store with this one (recollect import, recollect remember --file); or begin with a new "
            "--data-dir or database. An import leaves behind: the history of documents, deleted and expired documents, "
            "documents of sessions, keys, settings, the audit, and every tenant that you do not export."
        )
    if done and max(done) > newest:
        raise SchemaVersionError(
            f"This store has schema version {max(done)}, this recollect knows versions up to {newest}: "
            "it was written by a newer recollect. Upgrade recollect to open it."
        )
    for version, name, text in known:
        if version in done and done[version][1] != _checksum(text):
            raise StoreCorruptError(
                f"Migration {name} was applied with another content than this recollect's. Restore a backup, or use "
                "the recollect that made this store."
            )


def _replace_routines(connection: Connection) -> None:
    checksum = _routines_checksum()
    with connection.transaction():
        row = connection.execute("SELECT checksum FROM recollect.schema_routines").fetchone()
        # What another version made and this one does not. Where this one's were in force, it is somebody else's.
        outdated = [] if row is None or row[0] == checksum else unknown_routines(connection)
        # Another version's are not always replaced: names of parameters and what is returned cannot change.
        free = [] if row is None or row[0] == checksum else free_routines(connection)
        for routine in free:
            connection.execute(SQL("DROP ROUTINE {}").format(SQL(routine)))
        connection.execute("SET LOCAL search_path = recollect, public")
        for text in sql.routines():
            connection.execute(text)
        for routine in outdated:
            if routine not in free:
                connection.execute(SQL("DROP ROUTINE {}").format(SQL(routine)))
        connection.execute(
            "INSERT INTO schema_routines (checksum) VALUES (%s) "
            "ON CONFLICT (only_row) DO UPDATE SET checksum = excluded.checksum",
            (checksum,),
        )
