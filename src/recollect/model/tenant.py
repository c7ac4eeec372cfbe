"""Tenants: whose knowledge it is, how much of it there may be, and what is left of one that was erased."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

TenantStatus = Literal["active", "suspended"]
PersonalDataPolicy = Literal["off", "tag", "redact", "refuse"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantQuota:
    """How much a tenant may store; None: any amount.

    Attributes:
        max_documents: Current documents, those of its sessions included.
        max_chunks: Chunks of current documents.
        max_bytes: Bytes of text, in every version that is kept, and of kept originals.
    """

    max_documents: int | None = None
    max_chunks: int | None = None
    max_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class TenantIdentity:
    """Which tenant, by number and by name."""

    tenant_id: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """Somebody whose knowledge no other tenant sees.

    Attributes:
        tenant_id: Its number, which is never given to another one.
        name: By which it is called; of one tenant alone.
        status: A suspended tenant can neither be searched nor written to.
        created_at: When it was made.
        quota: How much it may store.
        documents: Current documents, those of its sessions included.
        chunks: Their chunks.
        pii: What becomes of personal data in what it stores; None: what is configured.
        bytes: Of text, in every version that is kept, and of kept originals; None where many tenants are listed and it
            was not counted.
    """

    tenant_id: int
    name: str
    status: TenantStatus
    created_at: datetime
    quota: TenantQuota
    documents: int
    chunks: int
    pii: PersonalDataPolicy | None = None
    bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantErasure:
    """The receipt of a tenant that was erased.

    Attributes:
        receipt_id: Of the record in the audit, the one row that is left of the tenant; it holds these counts.
        erased_by: Who asked for it.
        reason: Why; None: nothing was said.
        rows: How many rows went, by table; every table that has a tenant is named.
        indexes: Vector indexes dropped.
        remains: What is not in the database any more but may still be found, and until when.
    """

    receipt_id: int
    tenant_id: int
    name: str
    erased_at: datetime
    erased_by: str
    reason: str | None
    rows: Mapping[str, int]
    indexes: int
    remains: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantExport:
    """What was written of a tenant.

    Attributes:
        folder: Where it was written.
        documents: By collection.
        turns: By conversation.
        rows: By table, of what is written as it is stored.
    """

    tenant_id: int
    name: str
    folder: Path
    documents: Mapping[str, int]
    turns: Mapping[str, int]
    rows: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedCollection:
    """A collection that another tenant lets this one read.

    Attributes:
        tenant_id: Whose it is.
        tenant_name: Likewise.
        collection: Its name.
        active: False while its tenant is suspended: then it cannot be searched.
    """

    tenant_id: int
    tenant_name: str
    collection: str
    active: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolation:
    """Whether the database itself keeps tenants apart, or its clients' statements alone.

    Attributes:
        role: That the program's statements run as.
        login: That it logged in as; where it is another one, a statement could go back to it.
        unguarded: Tables with tenants' rows that no policy guards from that role; none where isolation is in force.
        remedy: What an administrator has to run, statement by statement, where it is not. Until then the store serves
            one tenant.
    """

    role: str
    login: str
    unguarded: tuple[str, ...]
    remedy: tuple[str, ...] = ()

    @property
    def in_force(self) -> bool:
        """Whether a statement that forgets its tenant sees nothing."""
        return not self.unguarded
