"""Who asked what, and which documents were shown to whom: by tenant and time, hashed into the audit's chain."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from psycopg.types.json import Jsonb

from recollect.model.shown import Access
from recollect.store.audit import PARTITION_UNITS, PARTITIONS_AHEAD, record
from recollect.store.database import Database, rows
from recollect.store.sql import queries
from recollect.store.tenants import TenantDirectory

if TYPE_CHECKING:
    from recollect.model import Scope
    from recollect.store.audit import TimePartitions

_SQL = queries("access_log")

QuestionPolicy = Literal["keep", "hash", "off"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessBatch:
    """Accesses that were stored together, as the audit's chain holds them.

    Attributes:
        audit_id: Of the chain's entry.
        at: When they were stored.
        count: How many there were.
        intact: Whether they are what was stored; None: they are past their retention.
    """

    audit_id: int
    at: datetime
    count: int
    intact: bool | None


class AccessLogRepository:
    """Appends to the log of accesses, and reads it.

    Args:
        database: The store's connections.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def append(self, scope: Scope, accesses: Sequence[Access], *, questions: QuestionPolicy) -> None:
        """Store accesses of the scope's tenant, and their hash in its chain, in one transaction.

        Args:
            scope: Whose.
            accesses: Without ids and hashes, which are made here.
            questions: Whether they are kept, or a hash of each, keyed with the tenant's salt, or neither.

        Raises:
            NotFoundError: There is no such tenant.
        """
        _, salt = TenantDirectory(self._database).privacy(scope)
        with self._database.transaction(scope) as connection:
            ids = sorted(row[0] for row in rows(connection, _SQL["numbers"], {"count": len(accesses)}))
            made = [
                replace(
                    one,
                    access_id=number,
                    question=one.question if questions == "keep" else None,
                    question_hash=None if questions == "off" else _keyed(one.question, salt),
                )
                for one, number in zip(accesses, ids, strict=True)
            ]
            entries = [{**_content(one), "question": one.question, "outcome": one.outcome} for one in made]
            connection.execute(_SQL["append"], {"tenant_id": scope.tenant_id, "entries": Jsonb(entries)})
            details = {"access_ids": ids, "sha256": _digest(made)}
            record(connection, scope, action="access", actor="server", details=details)

    def page(
        self,
        scope: Scope,
        *,
        document: int | None = None,
        actor: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> list[Access]:
        """Accesses of the scope's tenant, newest first.

        Args:
            scope: Whose.
            document: Only where this document was shown.
            actor: Only of this one, for instance ``user:ann``, with whatever credential.
            since: Only of this time or later.
            until: Only before this time.
            before: Only those older than the one of this id: the next page.
            limit: Accesses at most.
        """
        params = {"document": document, "actor": actor, "since": since, "until": until, "before": before}
        with self._database.transaction(scope) as connection:
            found = rows(connection, _SQL["page"], {"tenant_id": scope.tenant_id, "limit": limit, **params})
        return [_access(row) for row in found]

    def verify(self, scope: Scope) -> list[AccessBatch]:
        """Compare what is stored with the hashes in the audit's chain, batch by batch, oldest first."""
        checked = []
        with self._database.transaction(scope) as connection:
            for audit_id, at, details in rows(connection, _SQL["batches"], {"tenant_id": scope.tenant_id}):
                ids = details["access_ids"]
                found = rows(connection, _SQL["batch"], {"tenant_id": scope.tenant_id, "ids": ids})
                # Partitions are dropped whole: of a batch either all is there or nothing.
                intact = _digest([_access(row) for row in found]) == details["sha256"] if found else None
                checked.append(AccessBatch(audit_id=audit_id, at=at, count=len(ids), intact=intact))
        return checked

    def forget_questions(self, scope: Scope, *, retention_days: int | None) -> None:
        """Remove questions that are past their retention; None: none is."""
        if retention_days is not None:
            with self._database.transaction(scope) as connection:
                connection.execute(_SQL["forget_questions"], {"tenant_id": scope.tenant_id, "days": retention_days})

    def maintain(
        self,
        scope: Scope,  # noqa: ARG002 - partitions hold the accesses of all tenants
        *,
        partitions: TimePartitions,
        retention_days: int | None,
    ) -> tuple[str, ...]:
        """Drop the partitions that are past their retention, and make those of the time to come.

        Args:
            scope: Of whoever asks.
            partitions: How long a new one is.
            retention_days: Days after whose end a partition is dropped; None: none is.

        Returns:
            The names of the partitions dropped.
        """
        with self._database.autocommit() as connection, connection.transaction():
            dropped = [] if retention_days is None else rows(connection, _SQL["drop_old"], {"days": retention_days})
            unit = PARTITION_UNITS[partitions]
            connection.execute(_SQL["make_partitions"], {"unit": unit, "ahead": PARTITIONS_AHEAD})
        return tuple(row[0] for row in dropped)


def _keyed(question: str | None, salt: bytes) -> str | None:
    return None if question is None else hmac.new(salt, question.encode("utf-8", "replace"), hashlib.sha256).hexdigest()


def _content(access: Access) -> dict[str, Any]:
    """What is hashed of an access: all but its question, which ends before it does, and what became of that."""
    return {
        "access_id": access.access_id,
        "at": access.at.astimezone(UTC).isoformat(timespec="microseconds"),
        "actor": access.actor,
        "action": access.action,
        "request_id": access.request_id,
        "question_hash": access.question_hash,
        "documents": list(access.documents),
        "versions": list(access.versions),
    }


def _digest(accesses: Sequence[Access]) -> str:
    lines = [json.dumps(_content(one), ensure_ascii=False, sort_keys=True) for one in accesses]
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()


def _access(row: Sequence[Any]) -> Access:
    access_id, at, actor, action, request_id, question, question_hash, documents, versions = row
    return Access(
        access_id=access_id,
        at=at,
        actor=actor,
        action=action,
        request_id=request_id,
        question=question,
        question_hash=question_hash,
        documents=tuple(documents),
        versions=tuple(versions),
    )
