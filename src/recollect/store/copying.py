"""Binary COPY into tables that row-level security guards, which refuse it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, LiteralString

from psycopg import sql

from recollect.store.session_state import is_pooled

if TYPE_CHECKING:
    from psycopg import Copy

    from recollect.store.database import Connection

_TARGET = re.compile(r"COPY (\w+) \(([\w\s,]+)\)\s+FROM STDIN \(FORMAT BINARY\)")

# No constraints and no indexes: the rows meet those on their way on.
_STAGE = sql.SQL(
    "CREATE TEMP TABLE {stage} WITH (toast_tuple_target = 8160) ON COMMIT {end} "
    "AS SELECT {columns} FROM {table} WITH NO DATA"
)
_COPY = sql.SQL("COPY pg_temp.{stage} ({columns}) FROM STDIN (FORMAT BINARY)")
_MOVE = sql.SQL(
    "INSERT INTO {table} ({columns}) SELECT {columns} FROM pg_temp.{stage} {ending}; DELETE FROM pg_temp.{stage}"
)
_STAGED = "SELECT to_regclass('pg_temp.' || %s) IS NOT NULL"


@contextmanager
def copy_into(connection: Connection, statement: LiteralString, ending: LiteralString = "") -> Iterator[Copy]:
    """Copy rows into a table, by way of a temporary one of the connection's own.

    PostgreSQL has no COPY into a table whose policies bind the role; INSERT, which checks them, it has.

    Args:
        connection: In a transaction.
        statement: ``COPY table (columns) FROM STDIN (FORMAT BINARY)``.
        ending: Of the statement that moves them on: in which order, and what becomes of those that are there already.
    """
    target = _TARGET.fullmatch(statement)
    if target is None:
        raise ValueError(f"Not a binary COPY into a table: {statement}")
    table, names = target.groups()
    stage = f"staged_{table}"
    parts = {
        "table": sql.Identifier(table),
        "stage": sql.Identifier(stage),
        # Behind a pooler, somebody else has the session next.
        "end": sql.SQL("DROP" if is_pooled(connection) else "DELETE ROWS"),
        "ending": sql.SQL(ending),
        "columns": sql.SQL(", ").join(sql.Identifier(name.strip()) for name in names.split(",")),
    }
    staged = connection.execute(_STAGED, (stage,)).fetchone()
    if not (staged and staged[0]):
        connection.execute(_STAGE.format(**parts))
    with connection.cursor().copy(_COPY.format(**parts)) as copy:
        yield copy
    connection.execute(_MOVE.format(**parts))
