"""Tenants: whose knowledge it is, how much of it there may be, and what is left of one that was erased."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

from recollect.model.record import Public, PublicIfKnown, Record, public_as

TenantStatus = Literal["active", "suspended"]
PersonalDataPolicy = Literal["off", "tag", "redact", "refuse"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantQuota(Record):
    """How much a tenant may store; None: any amount.

    Attributes:
        max_documents: Current documents, those of its sessions included.
        max_chunks: Chunks of current documents.
        max_bytes: Bytes of text, in every version that is kept, and of kept originals.
    """

    max_documents: Public[int | None] = None
    max_chunks: Public[int | None] = None
    max_bytes: Public[int | None] = None


@dataclass(frozen=True, slots=True)
class TenantIdentity:
    """Which tenant, by number and by name."""

    tenant_id: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant(Record):
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
        shared_with_it: The collections that other tenants let it read; None where many tenants are listed.
    """

    tenant_id: Public[int]
    name: Public[str]
    status: Public[TenantStatus]
    created_at: Public[datetime]
    quota: Public[TenantQuota]
    documents: Public[int]
    chunks: Public[int]
    pii: Public[PersonalDataPolicy | None] = None
    bytes: PublicIfKnown[int | None] = None
    shared_with_it: PublicIfKnown[tuple[SharedCollection, ...] | None] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantErasure(Record):
    """The receipt of a tenant that was erased.

    Attributes:
        receipt_id: Of the record in the audit, the one row that is left of the tenant; it holds these counts.
        erased_by: Who asked for it.
        reason: Why; None: nothing was said.
        rows: How many rows went, by table; every table that has a tenant is named.
        indexes: Vector indexes dropped.
        remains: What is not in the database any more but may still be found, and until when.
    """

    receipt_id: Public[int]
    tenant_id: Public[int]
    name: Public[str]
    erased_at: Public[datetime]
    erased_by: Public[str]
    reason: Public[str | None]
    rows: Public[Mapping[str, int]]
    indexes: Public[int]
    remains: Public[tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantExport(Record):
    """What was written of a tenant.

    Attributes:
        folder: Where it was written.
        documents: By collection.
        turns: By conversation.
        rows: By table, of what is written as it is stored.
    """

    tenant_id: Public[int]
    name: Public[str]
    folder: Public[Path]
    documents: Annotated[Mapping[str, int], public_as("collections")]
    turns: Annotated[Mapping[str, int], public_as("conversations")]
    rows: Annotated[Mapping[str, int], public_as("tables")]


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedCollection(Record):
    """A collection that another tenant lets this one read.

    Attributes:
        tenant_id: Whose it is, by number; 0: a server does not say.
        tenant_name: Whose it is, by name.
        collection: Its name.
        active: False while its tenant is suspended: then it cannot be searched.
    """

    tenant_id: int = 0
    tenant_name: Annotated[str, public_as("tenant")]
    collection: Public[str]
    active: Public[bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing(Record):
    """Whether another tenant reads a collection.

    Attributes:
        tenant: Whose it is, as it was named.
        collection: Its name.
        reader: The other tenant, as it was named.
        shared: Whether that reads it from now on.
    """

    tenant: Public[str]
    collection: Public[str]
    reader: Public[str]
    shared: Public[bool]


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
