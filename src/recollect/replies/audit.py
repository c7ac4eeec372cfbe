"""What was done, by whom and when, and whether the audit's chain holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from recollect.replies._shape import Shape, Timestamp, iso

if TYPE_CHECKING:
    from recollect.model.audit import AuditBreak, AuditChain, AuditRecord


class AuditRecordJson(Shape):
    """Something that was done."""

    audit_id: int
    number: int
    """1, 2, … within the tenant's chain."""
    at: Timestamp
    action: str
    """What was done, in one word."""
    actor: str
    """Who asked for it."""
    details: dict[str, Any]
    """Ids, numbers and hashes; nothing of any content."""
    hash: str
    """SHA-256 of the hash before it followed by the entry's content, in hexadecimal digits."""


class AuditListJson(Shape):
    """What was done, newest first."""

    entries: list[AuditRecordJson]
    next_before: int | None
    """Where the next page begins; null: there is none."""


class AuditBreakJson(Shape):
    """The first entry of a chain that does not follow from what is before it."""

    number: int
    """Of the entry within the chain."""
    audit_id: int | None
    """Of the entry, or of the next one that is there; null: there is none behind it."""
    at: Timestamp | None
    """When that was written."""
    problem: str
    """What is wrong with it, in words."""


class AuditChainJson(Shape):
    """A tenant's audit, verified."""

    tenant_id: int
    """Whose; the tenant may be erased."""
    entries: int
    """How many there are, those that were dropped included."""
    dropped: int
    """How many were dropped, by retention or with their tenant; the chain begins behind them."""
    hash: str
    """Of the newest entry: kept elsewhere, it tells later whether the past was rewritten."""
    intact: bool
    """Whether every entry follows from the one before it."""
    broken: AuditBreakJson | None
    """The first one that does not."""


class AuditVerificationJson(Shape):
    """The chains of every tenant, or of one."""

    intact: bool
    """Whether all of them are."""
    chains: list[AuditChainJson]


def audit_record_json(record: AuditRecord) -> AuditRecordJson:
    """Something that was done."""
    return {
        "audit_id": record.audit_id,
        "number": record.number,
        "at": iso(record.at),
        "action": record.action,
        "actor": record.actor,
        "details": dict(record.details),
        "hash": record.hash,
    }


def audit_list_json(records: Sequence[AuditRecord], *, more: bool) -> AuditListJson:
    """A page of the audit.

    Args:
        records: Of the page, newest first.
        more: Whether another page follows.
    """
    return {
        "entries": [audit_record_json(one) for one in records],
        "next_before": records[-1].audit_id if records and more else None,
    }


def audit_verification_json(chains: Sequence[AuditChain]) -> AuditVerificationJson:
    """The chains of every tenant, or of one."""
    return {
        "intact": all(chain.intact for chain in chains),
        "chains": [
            {
                "tenant_id": chain.tenant_id,
                "entries": chain.number,
                "dropped": chain.dropped,
                "hash": chain.hash,
                "intact": chain.intact,
                "broken": None if chain.broken is None else _break(chain.broken),
            }
            for chain in chains
        ],
    }


def _break(broken: AuditBreak) -> AuditBreakJson:
    return {
        "number": broken.number,
        "audit_id": broken.audit_id,
        "at": iso(broken.at),
        "problem": broken.problem,
    }
