"""What was done to documents, by whom and when; never what they said.

Each tenant's entries are a chain: every one holds the SHA-256 of the hash before it and of its own content. The role
that the program works as may append and read, nothing else (``sql/routines/audit.sql``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar

from psycopg.types.json import Jsonb

from recollect.model import Scope
from recollect.model.audit import AuditBreak, AuditChain, AuditEntry, AuditRecord
from recollect.store.database import Connection, rows
from recollect.store.logs import LogRepository
from recollect.store.sql import queries

_SQL = queries("audit")

_PAGE_ROWS = 500


class AuditRepository(LogRepository[AuditRecord]):
    """Reads the audit and keeps its partitions; those who do something record it themselves (`record`).

    Filter of a page: ``action``, for instance ``erase``.
    """

    _table = "audit"
    _page = _SQL["page"]
    _filters: ClassVar[Mapping[str, object]] = {"action": None}
    _entry = AuditRecord
    _drop_old = _SQL["drop_old"]

    def lines(
        self,
        scope: Scope,
        *,
        action: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Iterator[str]:
        """The scope's tenant's records as JSON, oldest first, with the very text that was hashed; in bounded memory."""
        params = {"tenant_id": scope.tenant_id, "action": action, "since": since, "until": until}
        with self._database.transaction(scope) as connection, connection.cursor(name="audit") as cursor:
            cursor.itersize = _PAGE_ROWS
            cursor.execute(_SQL["entries"], params)
            for content, own, previous in cursor:
                hashed = {"content": content, "previous_hash": previous.hex(), "hash": own.hex()}
                yield json.dumps({**json.loads(content), **hashed}, ensure_ascii=False) + "\n"

    def append(self, scope: Scope, entries: Sequence[AuditEntry]) -> None:
        """Write entries in a transaction of their own; many at once cost little more than one."""
        with self._database.transaction(scope) as connection:
            record_all(connection, scope, entries)

    def verify(self, scope: Scope) -> AuditChain:
        """Follow the chain of the scope's tenant from end to end."""
        with self._database.transaction(scope) as connection:
            return follow(connection, scope.tenant_id)

    def verify_all(self, scope: Scope) -> list[AuditChain]:  # noqa: ARG002 - a store's chains are those of all tenants
        """Follow the chain of every tenant that has one, or had one, as the schema's owner."""
        with self._database.autocommit() as connection:
            tenants = [row[0] for row in rows(connection, _SQL["chains"])]
            return [follow(connection, tenant) for tenant in tenants]


def record(
    connection: Connection, scope: Scope, *, action: str, actor: str, details: Mapping[str, Any]
) -> tuple[int, datetime]:
    """Write a record in the transaction of what it tells, as its last statement; returns its id and time.

    Until the transaction ends, whoever else appends for the tenant waits: nothing that takes time may follow, and no
    lock be asked for.

    Args:
        connection: In that transaction.
        scope: Whose records.
        action: What was done, in one word.
        actor: Who asked for it.
        details: JSON values by name: ids, numbers and hashes, nothing of any content.
    """
    return record_all(connection, scope, [AuditEntry(action=action, actor=actor, details=details)])[0]


def record_all(connection: Connection, scope: Scope, entries: Sequence[AuditEntry]) -> list[tuple[int, datetime]]:
    """As `record`, for many at once; returns their ids and times in their order."""
    params = {
        "tenant_id": scope.tenant_id,
        "actions": [entry.action for entry in entries],
        "actors": [entry.actor for entry in entries],
        "details": [Jsonb(dict(entry.details)) for entry in entries],
    }
    return [(int(audit_id), at) for audit_id, at in rows(connection, _SQL["record"], params)]


def begin_anew(connection: Connection, scope: Scope) -> None:
    """Let the chain of a tenant whose entries the owner has removed go on behind them, in the same transaction."""
    connection.execute("SELECT set_config('recollect.tenant_id', %s, true)", [str(scope.tenant_id)])
    connection.execute(_SQL["go_on"], {"tenant_id": scope.tenant_id})


def follow(connection: Connection, tenant_id: int) -> AuditChain:
    """Follow the chain of a tenant from end to end."""
    (found,) = rows(connection, _SQL["verify"], {"tenant_id": tenant_id})
    dropped, number, head, *newest, broken_number, broken_id, broken_at, missing = found
    if broken_number is None:
        broken = _broken_end(dropped, number, head, newest)
    else:
        problem = "it is missing" if missing else "it is not what was written, or what is before it is not"
        broken = AuditBreak(number=broken_number, audit_id=broken_id, at=broken_at, problem=problem)
    return AuditChain(
        tenant_id=tenant_id, dropped=dropped, number=number, hash="" if head is None else head.hex(), broken=broken
    )


def _broken_end(dropped: int, number: int, head: bytes | None, newest: Sequence[Any]) -> AuditBreak | None:
    """What is wrong with the end of a chain whose entries follow from one another."""
    last, last_id, last_at, last_hash = newest
    at_end = dropped if last is None else last
    if at_end < number:
        return AuditBreak(number=at_end + 1, audit_id=None, at=None, problem="it is missing, with all behind it")
    if last is not None and (at_end > number or last_hash != head):
        problem = "the head of the chain, kept apart, is not of this entry"
        return AuditBreak(number=at_end, audit_id=last_id, at=last_at, problem=problem)
    return None
