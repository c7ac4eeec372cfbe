"""``/v1/tenants``: whose knowledge the store holds; for whoever runs it."""

from __future__ import annotations

from dataclasses import replace

from fastapi import APIRouter, Response

from recollect.model.tenant import Tenant, TenantQuota
from recollect.operations.tenants import TenantOperations
from recollect.operations.values import Name
from recollect.server.bound import bind
from recollect.server.dependencies import Operator
from recollect.server.etags import IfMatch, require_match, tagged
from recollect.server.problems import documented
from recollect.server.schemas.administration import TenantBody, TenantChanges

router = APIRouter(prefix="/tenants", tags=["people and rights"])
bind(router, TenantOperations, lambda view: view.tenants)


@router.post("", status_code=201, summary="Make a tenant", responses=documented(409))
def create(body: TenantBody, caller: Operator) -> Tenant:
    """Its knowledge is kept apart from that of all others."""
    return caller.tenants.create(body.name, quota=body.quota.changed(TenantQuota()))


@router.patch("/{tenant:named}", summary="Suspend, resume or limit a tenant", responses=documented(404, 412))
def change(tenant: Name, body: TenantChanges, caller: Operator, response: Response, if_match: IfMatch = None) -> Tenant:
    """What is left out stays as it is."""
    shared = caller.tenants.get(tenant).shared_with_it

    def decide(now: Tenant) -> Tenant:
        require_match(if_match, replace(now, shared_with_it=shared))
        return replace(
            now,
            quota=now.quota if body.quota is None else body.quota.changed(now.quota),
            pii=body.pii if "pii" in body.model_fields_set else now.pii,
            status=body.status or now.status,
        )

    return tagged(response, caller.tenants.change(tenant, decide))
