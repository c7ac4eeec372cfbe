"""Writes that may be sent again: which were made, and what was replied."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from recollect.model import Scope
from recollect.model.once import current_once
from recollect.store.database import Connection, Database, rows
from recollect.store.sql import queries

_SQL = queries("idempotency")

#: A request that was begun so long ago, and has no reply, died with its process.
ABANDONED_SECONDS = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeRequest:
    """A request of a key that was made before.

    Attributes:
        request_hash: Of what was asked.
        status: Of the reply; None: it is under way, or broken off.
        headers: Of the reply.
        body: Of the reply; None: it was not kept.
        broken_off: It took effect, and nobody is left who would reply.
    """

    request_hash: bytes
    status: int | None
    headers: Mapping[str, str]
    body: bytes | None
    broken_off: bool


class IdempotencyRepository:
    """Keeps which requests were made.

    Args:
        database: The store's connections.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(
        self, scope: Scope, credential: str, key: str, request_hash: bytes, *, keep_seconds: float
    ) -> UUID | MadeRequest:
        """Begin a request.

        Args:
            scope: Whose.
            credential: Who asks; others may use the same key for something else.
            key: The client's.
            request_hash: Of what is asked.
            keep_seconds: How long the reply is kept.

        Returns:
            What to `end` it with, or the request that was made with the key before.
        """
        params = {
            **_of(scope, credential, key),
            "request_hash": request_hash,
            "seconds": keep_seconds,
            "abandoned": ABANDONED_SECONDS,
        }
        with self._database.transaction(scope) as connection:
            while True:
                begun = rows(connection, _SQL["begin"], params)
                if begun:
                    return UUID(str(begun[0][0]))
                made = rows(connection, _SQL["made"], params)
                # It may have been given up between the two statements.
                if made:
                    found_hash, status, headers, body, broken_off = made[0]
                    return MadeRequest(
                        request_hash=bytes(found_hash),
                        status=status,
                        headers=headers or {},
                        body=None if body is None else bytes(body),
                        broken_off=broken_off,
                    )

    def end(
        self,
        scope: Scope,
        credential: str,
        key: str,
        run: UUID,
        *,
        status: int,
        headers: Mapping[str, str],
        body: bytes | None,
    ) -> None:
        """Keep the reply to a request; None: without its body."""
        reply = {"run": run, "status": status, "headers": Jsonb(dict(headers)), "body": body}
        self._execute(scope, "end", {**_of(scope, credential, key), **reply})

    def give_up(self, scope: Scope, credential: str, key: str, run: UUID) -> None:
        """Let a request that came to nothing be made again; one that took effect has no reply from now on."""
        params = {**_of(scope, credential, key), "run": run}
        self._execute(scope, "give_up", params)
        self._execute(scope, "leave", params)

    def forget(self, scope: Scope) -> None:
        """Remove what is past its time."""
        self._execute(scope, "forget", {"tenant_id": scope.tenant_id})

    def _execute(self, scope: Scope, query: str, params: Mapping[str, Any]) -> None:
        with self._database.transaction(scope) as connection:
            connection.execute(_SQL[query], params)


def note_effect(connection: Connection, scope: Scope) -> None:
    """Note that the current request has taken effect, in the transaction that stores what a repetition would double.

    Of a request without an idempotency key there is nothing to note.
    """
    once = current_once()
    if once is not None:
        connection.execute(_SQL["took_effect"], {**_of(scope, once.credential, once.key), "run": once.run})


def forget_replies(connection: Connection, scope: Scope) -> None:
    """Remove what replies said, in the transaction that erases something: they may have named it."""
    connection.execute(_SQL["forget_replies"], {"tenant_id": scope.tenant_id})


def _of(scope: Scope, credential: str, key: str) -> dict[str, Any]:
    return {"tenant_id": scope.tenant_id, "credential": credential, "key": key}
