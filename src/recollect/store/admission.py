"""Requests: how many each credential may still send, which writes were made, and what was replied to them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from recollect.errors import RequestUnderWayError
from recollect.model import Scope
from recollect.model.once import current_once
from recollect.store.database import Connection, Repository, rows
from recollect.store.job_queue import has_ended, machine
from recollect.store.sql import queries

_SQL = queries("idempotency")


#: A request without a reply is abandoned when its process has not said for so long that it makes it (`beat`).
LEASE_SECONDS = 15.0


#: How long a reply is kept.
KEEP_SECONDS = 24 * 3600.0


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


class IdempotencyRepository(Repository):
    """Keeps which requests were made."""

    def begin(self, scope: Scope, credential: str, key: str, request_hash: bytes, run: UUID) -> MadeRequest | None:
        """Begin a request; whoever does says that it lives (`beat`) until it is ended or given up.

        Args:
            scope: Whose.
            credential: Who asks; others may use the same key for something else.
            key: The client's.
            request_hash: Of what is asked.
            run: A new number of this attempt.

        Returns:
            The request that was made with the key before; None: there is none, and this one is begun.
        """
        params: dict[str, Any] = {
            **_of(scope, credential, key),
            "request_hash": request_hash,
            "run": run,
            "maker": Jsonb({"machine": machine(), "process": os.getpid()}),
            "ended": None,
            "seconds": KEEP_SECONDS,
            "lease": LEASE_SECONDS,
        }
        with self._database.transaction(scope) as connection:
            while True:
                if rows(connection, _SQL["begin"], params):
                    return None
                made = rows(connection, _SQL["made"], params)
                # It may have been given up between the two statements.
                if not made:
                    continue
                found_hash, status, headers, body, found_run, took_effect, lapsed = made[0]
                ended = status is None and (lapsed or _has_ended(headers))
                if ended and not took_effect and bytes(found_hash) == request_hash and params["ended"] != found_run:
                    params["ended"] = found_run
                    continue
                return MadeRequest(
                    request_hash=bytes(found_hash),
                    status=status,
                    headers=headers or {},
                    body=None if body is None else bytes(body),
                    broken_off=ended and took_effect,
                )

    def beat(self, scope: Scope, credential: str, key: str, run: UUID) -> None:
        """Say that the process which makes a request lives."""
        self._database.run(scope, _SQL["beat"], {**_of(scope, credential, key), "run": run})

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
        self._database.run(scope, _SQL["end"], {**_of(scope, credential, key), **reply})

    def give_up(self, scope: Scope, credential: str, key: str, run: UUID) -> None:
        """Let a request that came to nothing be made again; one that took effect has no reply from now on."""
        params = {**_of(scope, credential, key), "run": run}
        self._database.run(scope, _SQL["give_up"], params)
        self._database.run(scope, _SQL["leave"], params)

    def forget(self, scope: Scope) -> None:
        """Remove what is past its time."""
        self._database.run(scope, _SQL["forget"], {"tenant_id": scope.tenant_id})


def note_effect(connection: Connection, scope: Scope) -> None:
    """Note that the current request has taken effect, in the transaction that stores what a repetition would double.

    Of a request without an idempotency key there is nothing to note.

    Raises:
        RequestUnderWayError: The request was taken for abandoned, and is made by another attempt: store nothing.
    """
    once = current_once()
    if once is None:
        return
    attempt = {"run": once.run, "request_hash": once.request_hash, "seconds": KEEP_SECONDS}
    if not rows(connection, _SQL["took_effect"], {**_of(scope, once.credential, once.key), **attempt}):
        raise RequestUnderWayError(
            f"The request with the idempotency key {once.key!r} was sent again meanwhile, and this attempt stored "
            "nothing. Send it again in a moment for the reply of the other one."
        )


def forget_replies(connection: Connection, scope: Scope) -> None:
    """Remove what replies said, in the transaction that erases something: they may have named it."""
    connection.execute(_SQL["forget_replies"], {"tenant_id": scope.tenant_id})


def _has_ended(maker: Mapping[str, Any] | None) -> bool:
    """Whether a process is seen to have ended, which only its own machine can see."""
    return maker is not None and maker.get("machine") == machine() and has_ended(maker["process"])


def _of(scope: Scope, credential: str, key: str) -> dict[str, Any]:
    return {"tenant_id": scope.tenant_id, "credential": credential, "key": key}


# What each credential may still ask for, and a tenant still upload: counted for all processes.


_LIMITS = queries("limits")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """So many requests in a time, refilled as it passes.

    Attributes:
        name: Of what is counted.
        size: How many there are at most, and at first.
        seconds: After how many of them one more comes.
    """

    name: str
    size: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What came of asking for tokens.

    Attributes:
        granted: From each of the buckets; 0: one of them is empty.
        remaining: What each has left.
        waits: Seconds until an empty one has one again, until any other is full.
    """

    granted: int
    remaining: tuple[int, ...]
    waits: tuple[float, ...]


class LimitRepository(Repository):
    """Counts what tenants and their credentials ask for."""

    def take(self, scope: Scope, buckets: Sequence[Bucket], *, wanted: int) -> Taken:
        """Take tokens from all of several buckets, or from none.

        Args:
            scope: Whose.
            buckets: In the order in which everybody names them.
            wanted: How many; fewer are granted where there are no more.
        """
        params = {
            "tenant_id": scope.tenant_id,
            "buckets": [bucket.name for bucket in buckets],
            "seconds": [bucket.seconds for bucket in buckets],
            "sizes": [bucket.size for bucket in buckets],
            "wanted": wanted,
        }
        # One statement, which is a transaction of its own: BEGIN and COMMIT would take longer than it does.
        granted, remaining, waits = self._database.read(scope, _LIMITS["take"], params)[0]
        return Taken(granted=granted, remaining=tuple(remaining), waits=tuple(waits))

    def upload(self, scope: Scope, byte_count: int, *, limit: int) -> int | None:
        """Count bytes as uploaded today (UTC); returns how many there are now, None where they would be too many."""
        params = {"tenant_id": scope.tenant_id, "bytes": byte_count, "limit": limit}
        found = self._database.run(scope, _LIMITS["upload"], params)
        return int(found[0][0]) if found else None

    def uploaded(self, scope: Scope) -> int:
        """How many bytes were uploaded today."""
        return int(self._database.read(scope, _LIMITS["uploaded"], {"tenant_id": scope.tenant_id})[0][0])

    def give_back(self, scope: Scope, byte_count: int) -> None:
        """Count bytes as not uploaded after all."""
        self._database.run(scope, _LIMITS["give_back"], {"tenant_id": scope.tenant_id, "bytes": byte_count})

    def forget(self, scope: Scope) -> None:
        """Remove what says nothing any more: buckets that are full again, and days that are over."""
        with self._database.transaction(scope) as connection:
            for statement in ("forget", "forget_uploads"):
                connection.execute(_LIMITS[statement], {"tenant_id": scope.tenant_id})
