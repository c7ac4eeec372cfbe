"""``/v1/tenants``: whose knowledge the store holds; for whoever runs it."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Query, Response

from recollect.model.page import cursor_at
from recollect.model.tenant import Tenant, TenantQuota
from recollect.operations.values import Name, Text
from recollect.pipeline import View
from recollect.replies.tenants import (
    SharingJson,
    TenantDetailsJson,
    TenantErasureJson,
    TenantJson,
    sharing_json,
    tenant_details_json,
    tenant_erasure_json,
    tenant_json,
)
from recollect.server.dependencies import Operator
from recollect.server.etags import IfMatch, require_match, tagged
from recollect.server.pages import Paging, shown
from recollect.server.problems import documented
from recollect.server.schemas.administration import ShareBody, TenantBody, TenantChanges, TenantPage

router = APIRouter(prefix="/tenants", tags=["people and rights"])


@router.get("", summary="List the tenants")
def tenants(caller: Operator, page: Paging) -> TenantPage:
    """By name."""
    found, more = shown(caller.tenants.list(after=page.name() or "", limit=page.asked), page)
    return {
        "tenants": [tenant_json(one) for one in found],
        "next_cursor": cursor_at(found[-1].name) if more else None,
    }


@router.post("", status_code=201, summary="Make a tenant", responses=documented(409))
def create(body: TenantBody, caller: Operator) -> TenantJson:
    """Its knowledge is kept apart from that of all others."""
    return tenant_json(caller.tenants.create(body.name, quota=body.quota.changed(TenantQuota())))


@router.get("/{tenant:named}", summary="Show a tenant", responses=documented(404))
def show(tenant: Name, caller: Operator, response: Response) -> TenantDetailsJson:
    """By name or number: what it stores, how much it may, and what others let it read."""
    return tagged(response, _details(caller, tenant))


@router.patch("/{tenant:named}", summary="Suspend, resume or limit a tenant", responses=documented(404, 412))
def change(
    tenant: Name, body: TenantChanges, caller: Operator, response: Response, if_match: IfMatch = None
) -> TenantDetailsJson:
    """What is left out stays as it is."""
    shared = caller.view(tenant=caller.tenants.get(tenant).tenant_id).collections.shared()

    def decide(now: Tenant) -> Tenant:
        require_match(if_match, tenant_details_json(now, shared))
        return replace(
            now,
            quota=now.quota if body.quota is None else body.quota.changed(now.quota),
            pii=body.pii if "pii" in body.model_fields_set else now.pii,
            status=body.status or now.status,
        )

    caller.tenants.change(tenant, decide)
    return tagged(response, _details(caller, tenant))


@router.delete("/{tenant:named}", summary="Erase a tenant", responses=documented(404))
def erase(
    tenant: Name,
    caller: Operator,
    reason: Annotated[Text | None, Query(max_length=1_000, description="Why, for the receipt.")] = None,
) -> TenantErasureJson:
    """With everything that belongs to it, for good. What is left is the receipt."""
    return tenant_erasure_json(caller.tenants.erase(tenant, reason=reason))


@router.post("/{tenant:named}/shares", summary="Let another tenant read a collection", responses=documented(404))
def share(tenant: Name, body: ShareBody, caller: Operator) -> SharingJson:
    """As `recollect tenants share --json`, where tenants may read one another's collections at all."""
    _of(caller, tenant).collections.share(body.collection, body.reader)
    return sharing_json(tenant, body.collection, body.reader, shared=True)


@router.delete("/{tenant:named}/shares", summary="Keep another tenant from a collection", responses=documented(404))
def unshare(
    tenant: Name,
    caller: Operator,
    collection: Annotated[Name, Query(description="Of that tenant.")],
    reader: Annotated[Name, Query(description="The tenant that reads it, by name or number.")],
) -> SharingJson:
    """As `recollect tenants unshare --json`."""
    _of(caller, tenant).collections.unshare(collection, reader)
    return sharing_json(tenant, collection, reader, shared=False)


def _of(caller: View, tenant: str) -> View:
    return caller.view(tenant=caller.tenants.get(tenant).tenant_id)


def _details(view: View, tenant: str) -> TenantDetailsJson:
    found = view.tenants.get(tenant)
    return tenant_details_json(found, view.view(tenant=found.tenant_id).collections.shared())
