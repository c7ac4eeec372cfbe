"""The tables' files and the schema: what cannot be read, what is missing, and what can be made again."""

from __future__ import annotations

import re
from collections.abc import Iterator

import psycopg
from psycopg import sql

from recollect.errors import StoreError
from recollect.store.catalogue import lacking
from recollect.store.database import Connection, Database, rows
from recollect.store.sql import queries

_SQL = queries("verify")

_COPY = sql.SQL("COPY recollect.{} TO STDOUT (FORMAT binary)")

# Foreign keys need the keys that they refer to, and what is unique comes before what may be slow.
_ORDER = ("PRIMARY KEY", "UNIQUE", "CREATE UNIQUE INDEX", "CREATE INDEX", "CHECK", "FOREIGN KEY")
_PART = re.compile(r"(constraint|index) (\S+) on (\S+): (.*)", re.DOTALL)
# Made of others, row by row: of doubles one is kept, and made anew where it is wrong.
_DERIVED = ("chunk_vectors", "chunk_lexical", "chunk_token_vectors", "embedding_cache", "term_stats")
_DROP_DOUBLES = sql.SQL(
    "DELETE FROM recollect.{} WHERE (tableoid, ctid) IN (SELECT tableoid, ctid FROM (SELECT t.tableoid, t.ctid, "
    "row_number() OVER (PARTITION BY {} ORDER BY t.ctid) AS number FROM recollect.{} t) n WHERE number > 1)"
)
_RESTORE = "recollect cannot make it again: restore a backup (recollect db restore)"
# Classes of errors that say nothing of a table: the connection broke, the server has no room or ends.
_ELSEWHERE = ("08", "53", "57")


def unreadable_tables(database: Database) -> Iterator[tuple[str, str]]:
    """Read every table whole, and yield those that cannot be read, each with the database's reason.

    Raises:
        StoreUnavailableError: The database cannot be reached.
    """
    with database.autocommit() as connection:
        tables = [row[0] for row in rows(connection, _SQL["tables"])]
    for table in tables:
        try:
            with (
                database.autocommit() as connection,
                connection.transaction(),
                connection.cursor().copy(_COPY.format(sql.Identifier(table))) as blocks,
            ):
                for _ in blocks:
                    pass
        except StoreError as exc:
            cause = exc.__cause__
            state = cause.sqlstate if isinstance(cause, psycopg.Error) else None
            if state is None or state.startswith(_ELSEWHERE):
                raise
            if not isinstance(cause, psycopg.errors.UndefinedTable):  # a partition may have gone meanwhile
                yield table, str(cause).strip().splitlines()[0]


def damaged_index(database: Database, error: StoreError) -> str | None:
    """Return the name of the index whose file a statement could not read; None: it failed for another reason."""
    if not isinstance(error.__cause__, psycopg.errors.DataCorrupted | psycopg.errors.IndexCorrupted):
        return None
    told = re.search(r'relation "base/\d+/(\d+)|index "([^"]+)"', str(error.__cause__))
    if told is None:
        return None
    with database.autocommit() as connection:
        found = rows(connection, _SQL["index_of"], {"file": told[1] and int(told[1]), "name": told[2]})
    return str(found[0][0]) if found else None


def rebuild_index(database: Database, name: str) -> None:
    """Build an index anew; writers of its table wait."""
    with database.autocommit() as connection:
        connection.execute(sql.SQL("REINDEX INDEX recollect.{}").format(sql.Identifier(name)))


def missing_parts(database: Database) -> dict[str, str]:
    """Return what the schema lacks or has otherwise than it should, each with its definition."""
    with database.autocommit() as connection:
        return dict(line.partition(": ")[::2] for line in lacking(connection))


def mend_schema(database: Database) -> dict[str, str]:
    """Make dropped and changed indexes and constraints again.

    Opening a store puts functions, triggers, policies and grants back; tables and columns are lost with their rows. Of
    rows that a key allows once, all but one go: where they are equal, or in tables that are made of others.

    Returns:
        What is missing still, each with the reason.
    """
    parts = [match for subject, what in missing_parts(database).items() if (match := _PART.match(f"{subject}: {what}"))]
    reasons: dict[str, str] = {}
    for part in sorted(parts, key=lambda one: next(n for n, word in enumerate(_ORDER) if word in one[4])):
        with database.autocommit() as connection:
            try:
                try:
                    _make(connection, *part.groups())
                except psycopg.errors.UniqueViolation:
                    _make(connection, *part.groups(), without_doubles=True)
            except psycopg.Error as exc:
                told = " ".join(filter(None, (exc.diag.message_primary, exc.diag.message_detail)))
                reasons[f"{part[1]} {part[2]} on {part[3]}"] = f"it cannot be made again: {told}"
    return {subject: reasons.get(subject, _RESTORE) for subject in missing_parts(database)}


def _make(
    connection: Connection, kind: str, name: str, table: str, definition: str, *, without_doubles: bool = False
) -> None:
    named, owner, made = sql.Identifier(name), sql.Identifier(table), sql.SQL(definition)
    with connection.transaction():
        connection.execute("SET LOCAL search_path = pg_catalog, public")
        connection.execute("SET LOCAL lock_timeout = '30s'")
        if kind == "constraint":
            drop = sql.SQL("ALTER TABLE recollect.{} DROP CONSTRAINT IF EXISTS {}").format(owner, named)
            make = sql.SQL("ALTER TABLE recollect.{} ADD CONSTRAINT {} {}").format(owner, named, made)
        else:
            drop = sql.SQL("DROP INDEX IF EXISTS recollect.{}").format(named)
            # With ONLY, the partitions would be left without it.
            make = sql.SQL(definition.replace(" ON ONLY ", " ON ")).format()
        connection.execute(drop)
        if without_doubles:
            key = definition[definition.rindex("(") + 1 : definition.rindex(")")] if table in _DERIVED else "t::text"
            connection.execute(_DROP_DOUBLES.format(owner, sql.SQL(key), owner))
        connection.execute(make)
