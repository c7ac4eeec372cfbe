"""Who asked what, and which documents were shown to whom: by tenant and time, hashed into the audit's chain."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from psycopg.types.json import Jsonb

from recollect.model.activity import Access, ShownDocument
from recollect.store.database import records, rows
from recollect.store.logs import LogRepository, record
from recollect.store.sql import queries
from recollect.store.tenants import TenantDirectory

if TYPE_CHECKING:
    from recollect.model import Scope

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


def _access(documents: Sequence[int], versions: Sequence[int], **columns: Any) -> Access:  # noqa: ANN401 - columns
    pairs = zip(documents, versions, strict=True)
    return Access(documents=tuple(ShownDocument(document, version or None) for document, version in pairs), **columns)


class AccessLogRepository(LogRepository[Access]):
    """Appends to the log of accesses, and reads it.

    Filters of a page: ``document``, where the document of this id was shown, and ``actor``, for instance ``user:ann``,
    with whatever credential.
    """

    _table = "access_log"
    _page = _SQL["page"]
    _filters: ClassVar[Mapping[str, object]] = {"document": None, "actor": None}
    _entry = _access

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

    def verify(self, scope: Scope) -> list[AccessBatch]:
        """Compare what is stored with the hashes in the audit's chain, batch by batch, oldest first."""
        checked = []
        with self._database.transaction(scope) as connection:
            for audit_id, at, details in rows(connection, _SQL["batches"], {"tenant_id": scope.tenant_id}):
                ids = details["access_ids"]
                found = records(connection, _SQL["batch"], {"tenant_id": scope.tenant_id, "ids": ids}, _access)
                # Partitions are dropped whole: of a batch either all is there or nothing.
                intact = _digest(found) == details["sha256"] if found else None
                checked.append(AccessBatch(audit_id=audit_id, at=at, count=len(ids), intact=intact))
        return checked

    def forget_questions(self, scope: Scope, *, retention_days: int | None) -> None:
        """Remove questions that are past their retention; None: none is."""
        if retention_days is not None:
            self._database.run(scope, _SQL["forget_questions"], {"tenant_id": scope.tenant_id, "days": retention_days})


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
        "documents": [one.document_id for one in access.documents],
        "versions": [one.version_id or 0 for one in access.documents],
    }


def _digest(accesses: Sequence[Access]) -> str:
    lines = [json.dumps(_content(one), ensure_ascii=False, sort_keys=True) for one in accesses]
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()
