"""What a tenant has, table by table, as plain lines; the tables are found in the catalogue."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, LiteralString

from psycopg import sql
from psycopg.rows import TupleRow

from recollect.model import Scope
from recollect.model.original import Original
from recollect.store.database import Database, rows
from recollect.store.originals import stored_pieces
from recollect.store.sql import queries
from recollect.store.tenants import tables_in_order

_SQL = queries("tenants")
_ORIGINALS = queries("originals")

#: Tables whose rows follow from others: they are made anew wherever documents and turns are stored.
DERIVED = frozenset(
    {
        "chunk_lexical",
        "chunk_token_vectors",
        "chunk_vectors",
        "embedding_cache",
        "episode_lexical",
        "session_terms",
        "term_stats",
        "version_bands",
    }
)

#: Tables that are exported as files, not as lines.
IN_FILES = frozenset({"original_pieces"})

#: Columns that are not exported: credentials of jobs, with contents that are on their way, and hashes of keys.
WITHHELD = ("withheld", "secret_hash", "previous_hash")

_PAGE_ROWS = 500


class TenantRowRepository:
    """Reads everything of a tenant.

    Args:
        database: The store's connections; those of a caretaker read what a suspended tenant has too.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def tables(self, scope: Scope) -> list[str]:
        """Every table that may hold something of the tenant, but those that follow from others and `IN_FILES`."""
        with self._database.transaction(scope) as connection:
            return sorted(set(tables_in_order(connection)) - DERIVED - IN_FILES)

    def lines(self, scope: Scope, table: str) -> Iterator[str]:
        """The tenant's rows of a table, each as a JSON object, all of one moment, in bounded memory."""
        statement = sql.SQL("SELECT (to_jsonb(t) - %s::text[])::text FROM {} t WHERE tenant_id = %s").format(
            sql.Identifier(table)
        )
        with self._database.transaction(scope) as connection, connection.cursor(name="export") as cursor:
            cursor.itersize = _PAGE_ROWS
            cursor.execute(statement, (list(WITHHELD), scope.tenant_id))
            for row in cursor:
                yield row[0]

    def conversations(self, scope: Scope) -> list[tuple[int, str, str | None]]:
        """The numbers, names and users of the tenant's conversations, in order."""
        return [(row[0], row[1], row[2]) for row in self._found(scope, _SQL["sessions"], {})]

    def turns(self, scope: Scope, session_id: int) -> Iterator[str]:
        """The turns of a conversation, in order, as lines that `recollect.memory.turn_files.read_turns` reads."""
        for external_id, role, content, at, metadata in self._found(scope, _SQL["turns"], {"session_id": session_id}):
            turn = {"id": external_id, "role": role, "content": content, "at": at and at.isoformat()}
            yield json.dumps({**turn, "metadata": metadata}, ensure_ascii=False)

    def originals(self, scope: Scope) -> Iterator[Original]:
        """The kept originals of the tenant's documents, each once, by the name that it has first."""
        after = b""
        while page := self._found(scope, _ORIGINALS["named_page"], {"after": after, "limit": _PAGE_ROWS}):
            for file_hash, byte_count, name, mime_type in page:
                opened = stored_pieces(self._database, scope, bytes(file_hash), byte_count)
                yield Original(
                    name=name, mime_type=mime_type, byte_count=byte_count, file_hash=bytes(file_hash), opened=opened
                )
            after = page[-1][0]

    def _found(self, scope: Scope, statement: LiteralString, params: dict[str, Any]) -> list[TupleRow]:
        with self._database.transaction(scope) as connection:
            return rows(connection, statement, {"tenant_id": scope.tenant_id, **params})
