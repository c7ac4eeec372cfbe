"""Tenants: whose knowledge it is, and how much of it there may be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NotRequired

from recollect.model.tenant import PersonalDataPolicy, TenantStatus
from recollect.replies._shape import Shape, Timestamp, iso

if TYPE_CHECKING:
    from recollect.model.tenant import SharedCollection, Tenant, TenantErasure, TenantExport


class TenantQuotaJson(Shape):
    """How much a tenant may store; null: any amount."""

    max_documents: int | None
    """Current documents."""
    max_chunks: int | None
    """Chunks of current documents."""
    max_bytes: int | None
    """Bytes of text, in every version that is kept, and of kept originals."""


class TenantJson(Shape):
    """Somebody whose knowledge no other tenant sees."""

    tenant_id: int
    """Its number, which is never given to another one."""
    name: str
    status: TenantStatus
    """A suspended tenant can neither be searched nor written to."""
    created_at: Timestamp
    quota: TenantQuotaJson
    documents: int
    """Current ones."""
    chunks: int
    """Of these."""
    pii: PersonalDataPolicy | None
    """What becomes of personal data in what it stores; null: what is configured."""
    bytes: NotRequired[int]
    """Of text, in every version that is kept, and of kept originals; absent where tenants are listed."""


class SharedCollectionJson(Shape):
    """A collection that another tenant lets this one read."""

    tenant: str
    """Whose it is, by name."""
    collection: str
    active: bool
    """Whether it can be searched: not while its tenant is suspended."""


class SharingJson(Shape):
    """Whether another tenant reads a collection."""

    tenant: str
    """Whose it is, as it was named."""
    collection: str
    reader: str
    """The other one, as it was named."""
    shared: bool


class TenantDetailsJson(TenantJson):
    """A tenant with what others let it read."""

    shared_with_it: list[SharedCollectionJson]


class TenantListJson(Shape):
    """Tenants, by name."""

    tenants: list[TenantJson]
    next_after: str | None
    """Where the next page begins; null: there is none."""


class TenantExportJson(Shape):
    """What was written of a tenant."""

    tenant_id: int
    name: str
    folder: str
    """Where it was written."""
    collections: dict[str, int]
    """Documents, by collection."""
    conversations: dict[str, int]
    """Turns, by conversation."""
    tables: dict[str, int]
    """Rows, by table, of what is written as it is stored."""


class TenantErasureJson(Shape):
    """The receipt of a tenant that was erased."""

    receipt_id: int
    """Of the record in the audit, the one row that is left of the tenant."""
    tenant_id: int
    name: str
    erased_at: Timestamp
    erased_by: str
    """Who asked for it."""
    reason: str | None
    rows: dict[str, int]
    """How many rows went, by table."""
    indexes: int
    """Vector indexes dropped."""
    remains: list[str]
    """What is not in the database any more but may still be found, and until when, in words."""


def tenant_json(tenant: Tenant) -> TenantJson:
    """A tenant."""
    quota = tenant.quota
    shown: TenantJson = {
        "tenant_id": tenant.tenant_id,
        "name": tenant.name,
        "status": tenant.status,
        "created_at": iso(tenant.created_at),
        "quota": {
            "max_documents": quota.max_documents,
            "max_chunks": quota.max_chunks,
            "max_bytes": quota.max_bytes,
        },
        "documents": tenant.documents,
        "chunks": tenant.chunks,
        "pii": tenant.pii,
    }
    if tenant.bytes is not None:
        shown["bytes"] = tenant.bytes
    return shown


def tenant_details_json(tenant: Tenant, shared: Sequence[SharedCollection]) -> TenantDetailsJson:
    """A tenant with what others let it read."""
    return {
        **tenant_json(tenant),
        "shared_with_it": [
            {"tenant": one.tenant_name, "collection": one.collection, "active": one.active} for one in shared
        ],
    }


def sharing_json(tenant: str, collection: str, reader: str, *, shared: bool) -> SharingJson:
    """Whether another tenant reads a collection.

    Args:
        tenant: Whose it is.
        collection: By name.
        reader: The other one.
        shared: Whether it does from now on.
    """
    return {"tenant": tenant, "collection": collection, "reader": reader, "shared": shared}


def tenant_list_json(tenants: Sequence[Tenant], *, more: bool) -> TenantListJson:
    """A page of tenants.

    Args:
        tenants: Of the page.
        more: Whether another page follows.
    """
    return {
        "tenants": [tenant_json(tenant) for tenant in tenants],
        "next_after": tenants[-1].name if tenants and more else None,
    }


def tenant_export_json(done: TenantExport) -> TenantExportJson:
    """What was written of a tenant."""
    return {
        "tenant_id": done.tenant_id,
        "name": done.name,
        "folder": str(done.folder),
        "collections": dict(done.documents),
        "conversations": dict(done.turns),
        "tables": dict(done.rows),
    }


def tenant_erasure_json(receipt: TenantErasure) -> TenantErasureJson:
    """The receipt of a tenant that was erased."""
    return {
        "receipt_id": receipt.receipt_id,
        "tenant_id": receipt.tenant_id,
        "name": receipt.name,
        "erased_at": iso(receipt.erased_at),
        "erased_by": receipt.erased_by,
        "reason": receipt.reason,
        "rows": dict(receipt.rows),
        "indexes": receipt.indexes,
        "remains": list(receipt.remains),
    }
