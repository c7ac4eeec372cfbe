"""What was done, as the audit tells it, and whether the audit's chain holds."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from recollect.errors import UsageError
from recollect.model.record import Public, Record, public, public_as

#: Who is named in the audit where nobody else is.
LIBRARY = "library"


def require_actor(actor: object) -> None:
    """Check the name of a caller, as the audit log shows it.

    Raises:
        UsageError: It is empty, no text, or has unprintable characters.
    """
    if not isinstance(actor, str) or not actor or not actor.isprintable():
        raise UsageError(f"actor must be a name, not {reprlib.repr(actor)}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """Something to be written into the audit; its number, time and hash are the database's.

    Attributes:
        action: What was done, in one word.
        actor: Who asked for it.
        details: JSON values by name: ids, numbers and hashes, nothing of any content.
    """

    action: str
    actor: str
    details: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRecord(Record):
    """Something that was done.

    Attributes:
        action: What was done, in one word.
        actor: Who asked for it.
        details: JSON values by name: ids, numbers and hashes; nothing of any content.
        number: 1, 2, … within the tenant's chain.
        hash: SHA-256 of the hash before it followed by the entry's content, in hexadecimal digits.
    """

    audit_id: Public[int]
    at: Public[datetime]
    action: Public[str]
    actor: Public[str]
    details: Public[Mapping[str, Any]]
    number: Public[int]
    hash: Public[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditBreak(Record):
    """The first entry of a chain that does not follow from what is before it.

    Attributes:
        number: Of the entry within the chain.
        audit_id: Of the entry, or of the next one that is there; None: there is none behind it.
        at: When that was written.
        problem: What is wrong with it, in words.
    """

    number: Public[int]
    audit_id: Public[int | None]
    at: Public[datetime | None]
    problem: Public[str]

    def __str__(self) -> str:
        where = "" if self.audit_id is None else f" (id {self.audit_id} of {self.at:%Y-%m-%d %H:%M:%S})"
        return f"the first broken entry is number {self.number:,}{where}: {self.problem}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditChain(Record):
    """A tenant's audit, verified.

    Attributes:
        tenant_id: Whose; the tenant may be erased.
        dropped: How many entries were dropped, by retention or with their tenant; the chain begins behind them.
        number: How many entries there are, those that were dropped included: the number of the newest one.
        hash: Of the newest entry, in hexadecimal digits: kept elsewhere, it tells later whether the past was rewritten.
        broken: The first entry that does not follow from the one before it; None: every one does.
    """

    tenant_id: Public[int]
    dropped: Public[int]
    number: Annotated[int, public_as("entries")]
    hash: Public[str]
    broken: Public[AuditBreak | None]

    @property
    @public
    def intact(self) -> bool:
        """Whether every entry follows from the one before it."""
        return self.broken is None


@dataclass(frozen=True, slots=True)
class AuditVerification(Record):
    """The chains of every tenant, or of one, verified.

    Attributes:
        chains: One a tenant.
    """

    chains: Public[tuple[AuditChain, ...]]

    @property
    @public
    def intact(self) -> bool:
        """Whether all of them are."""
        return all(chain.intact for chain in self.chains)
