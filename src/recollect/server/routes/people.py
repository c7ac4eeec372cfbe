"""``/v1/me``, ``/v1/keys``, ``/v1/grants``, ``/v1/tenants``, ``/v1/logins`` and ``/v1/audit``: people and rights."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import Field

from recollect.errors import UsageError
from recollect.model import Principal
from recollect.model.access import CollectionAccess, GrantsReply
from recollect.model.key import ACCESS_SCOPES, AccessScope, NewApiKey
from recollect.model.tenant import PersonalDataPolicy, Tenant, TenantQuota
from recollect.operations.people import AuditOperations, KeyOperations, LoginOperations, TenantOperations
from recollect.operations.values import Name, Text, Time
from recollect.pipeline import View
from recollect.replies._shape import iso
from recollect.replies.me import MeJson, server_settings_json
from recollect.server.bodies import Asker, Body, acting_as
from recollect.server.bound import bind
from recollect.server.dependencies import (
    EITHER_SCOPE,
    Administrator,
    AdministratorCaller,
    Asking,
    Granter,
    Operator,
    Somebody,
)
from recollect.server.downloads import LinesResponse
from recollect.server.etags import IfMatch, require_match, tagged
from recollect.server.problems import documented

# A secret is in one reply, and in nobody's cache: neither a proxy's nor that of replies to requests with a key.
_SHOWN_ONCE = {"Cache-Control": "no-store"}


_Limit = Annotated[int, Field(ge=0, le=2**62)]


_MAX_DOCUMENTS = 10_000


class QuotaBody(Body):
    """How much a tenant may store; null: any amount. What is left out stays as it is."""

    max_documents: _Limit | None = None
    max_chunks: _Limit | None = None
    max_bytes: _Limit | None = None

    def changed(self, quota: TenantQuota) -> TenantQuota:
        """A quota with what is given."""
        return replace(quota, **self.model_dump(exclude_unset=True))


class TenantBody(Body):
    """A new tenant."""

    name: Name = Field(description="Its name, which is not a number.")
    quota: QuotaBody = QuotaBody()


class TenantChanges(Body):
    """What becomes of a tenant; what is left out stays as it is."""

    status: Literal["active", "suspended"] | None = Field(
        None, description="A suspended tenant can neither be searched nor written to."
    )
    quota: QuotaBody | None = None
    pii: PersonalDataPolicy | None = Field(
        None, description="What becomes of personal data in what it stores; null: what is configured."
    )


class _Permissions(Body):
    """Whose rights, and as whom they are changed."""

    collection: Name | None = Field(None, description="The collection; left out: the configured one.")
    as_: Asker | None = Field(None, alias="as", description="For whom the owner of the store does it.")

    def of(self, view: View) -> View:
        """The view that does it."""
        return acting_as(view, self.as_).view(collections=self.collection)


class GrantChange(_Permissions):
    """A change of who may read documents: those that are named, those of a source, or the collection's default."""

    change: Literal["add", "remove", "deny"] = Field(
        description="add: they may read; remove: takes grants away, and with ! before them denials; deny: they may "
        "not, whatever grants include them."
    )
    who: tuple[Name, ...] = Field(
        min_length=1, max_length=1_000, description="user:NAME, role:NAME, department:NAME, group:NAME, or *."
    )
    documents: tuple[int | Name, ...] = Field((), max_length=_MAX_DOCUMENTS, description="By id or by source.")
    source: Text | None = Field(
        None, max_length=10_000, description="Every document that came from there: a folder, a domain."
    )
    default: bool = Field(False, description="The collection's documents that have no permissions of their own.")
    only: bool = Field(False, description="With add: take away every other grant; denials stay.")

    def target(self, view: View) -> dict[str, Any]:
        """What is changed, as the library takes it.

        Raises:
            UsageError: That is not one of the three, or ``only`` goes with another change than ``add``.
            NotFoundError: There is no such document.
        """
        if sum((bool(self.documents), self.source is not None, self.default)) != 1:
            raise UsageError("Name documents, or a source, or default for the collection: one of them.")
        if self.only and self.change != "add":
            raise UsageError("only goes with the change add.")
        if self.documents:
            # By their ids: afterwards, somebody in particular may not be able to name them any more.
            return {"documents": view.documents.resolve(self.documents)}
        return {"default": True} if self.source is None else {"source": self.source}


class CollectionRights(_Permissions):
    """Who owns, reads and writes a collection. What is given replaces what was; the rest stays."""

    owner: tuple[Name, ...] | None = Field(
        None, max_length=1_000, description="Grants: they read everything in it, and write."
    )
    reader: tuple[Name, ...] | None = Field(
        None, max_length=1_000, description="Grants: for anybody else it does not exist."
    )
    writer: tuple[Name, ...] | None = Field(None, max_length=1_000, description="Grants: they put documents into it.")


class WidgetBody(Body):
    """What a key of a widget is for, and opens alone."""

    collection: Name = Field(description="Whose documents answer.")
    origins: tuple[Name, ...] = Field(
        min_length=1, max_length=100, description="The sites that may show it: https://intranet.example.com."
    )


class KeyBody(Body):
    """A new key."""

    name: Name
    scopes: tuple[AccessScope, ...] = Field(("read",), min_length=1, description="What it opens.")
    expires: Text | None = Field(
        None, max_length=100, description="After how long it ends: 90d, 12h; left out: when the one that makes it does."
    )
    as_: Asker | None = Field(
        None,
        alias="as",
        description="As whom; left out: as whoever makes it, the owner of the store among them; of a widget: nobody.",
    )
    widget: WidgetBody | None = Field(
        None, description="For a widget on pages of other sites: the key opens it there and nothing else."
    )


class KeyRotationBody(Body):
    """Another secret for a key."""

    grace: Text = Field(
        "1d", max_length=100, description="How long the secret that it has is still taken; 0: no longer."
    )
    expires: Text | None = Field(
        None, max_length=100, description="After how long from now it ends; left out: when it would have."
    )


router = APIRouter(tags=["people and rights"])


bind(router, KeyOperations, lambda view: view.keys)


@router.get("/me", summary="Who asks, and what they may")
def me(caller: Somebody, service: Asking) -> MeJson:
    """For any credential."""
    tenant = service.rag.standpoint.store.tenants.identity(caller.tenant)
    credential = caller.credential
    return {
        "tenant": {"tenant_id": tenant.tenant_id, "name": tenant.name},
        "principal": caller.principal,
        "scopes": [scope for scope in ACCESS_SCOPES if scope in caller.scopes],
        "credential": {"kind": credential.kind, "id": credential.id, "expires_at": iso(credential.expires_at)},
        "login": caller.login,
        "settings": server_settings_json(service.rag.config),
    }


@router.post("/keys", status_code=201, summary="Make a key")
def create(body: KeyBody, caller: AdministratorCaller, service: Asking, response: Response) -> NewApiKey:
    """Its secret is in this reply and nowhere else. It opens nothing that the caller's own credential does not."""
    response.headers.update(_SHOWN_ONCE)
    who = body.as_
    principal = (
        None
        if who is None
        else Principal(user_id=who.user, roles=who.roles, department=who.department, groups=who.groups)
    )
    said: dict[str, Any] = {"principal": principal, "expires": body.expires, "maker": caller.maker}
    keys = caller.view(service.rag).keys
    if body.widget is None:
        return keys.create(body.name, scopes=body.scopes, **said)
    if body.scopes != ("read",):
        raise UsageError("A key of a widget opens the widget alone: leave scopes out.")
    return keys.create_widget(body.name, collection=body.widget.collection, origins=body.widget.origins, **said)


@router.post("/keys/{key_id}/rotate", summary="Give a key another secret", responses=documented(404, 409))
def rotate(
    key_id: Name, body: KeyRotationBody, caller: AdministratorCaller, service: Asking, response: Response
) -> NewApiKey:
    """The present one is taken beside it for the grace time."""
    response.headers.update(_SHOWN_ONCE)
    rotated = caller.view(service.rag).keys.rotate(
        key_id,
        grace=0 if body.grace.strip() == "0" else body.grace,
        expires=body.expires,
        maker=caller.maker,
    )
    service.authenticator.forget()
    return rotated


# `/v1/grants`: who may read documents, and who may do what in a collection.
#
# Administrators see and change all of it; whoever may write, what is theirs (`Caller.rights`).


@router.get("/grants", summary="Who may do what in a collection", responses=documented(404), openapi_extra=EITHER_SCOPE)
def collection(
    caller: Granter,
    response: Response,
    collection: Annotated[Name | None, Query(description="The collection; left out: the configured one.")] = None,
) -> CollectionAccess:
    """Its owners, readers and writers, and who may read documents that have no permissions of their own."""
    return tagged(response, caller.view(collections=collection).grants.of_collection())


@router.get(
    "/grants/documents", summary="Who may read documents", responses=documented(404), openapi_extra=EITHER_SCOPE
)
def documents(
    caller: Granter,
    document: Annotated[list[Name], Query(min_length=1, max_length=1_000, description="By id or by source.")],
    collection: Annotated[
        Name | None, Query(description="Their collection; * means any; left out: the configured one.")
    ] = None,
) -> GrantsReply:
    """Of each document what it is granted and denied, and whether that is the collection's default."""
    view = caller.view(collections=collection)
    return GrantsReply(documents=tuple(view.grants.of_documents(view.documents.resolve(document))))


@router.post("/grants", summary="Change who may read documents", responses=documented(404), openapi_extra=EITHER_SCOPE)
def change(body: GrantChange, caller: Granter) -> GrantsReply:
    """It counts from the next search on.

    The reply shows the documents that were named, or the collection whose default was changed, as they are now.
    """
    view = body.of(caller)
    target = body.target(view)
    match body.change:
        case "add":
            changed = view.grants.add(body.who, only=body.only, **target)
        case "remove":
            changed = view.grants.remove(body.who, **target)
        case "deny":
            changed = view.grants.deny(body.who, **target)
    now = view.view(principal=None).grants
    if "documents" in target:
        return GrantsReply(changed=changed, documents=tuple(now.of_documents(target["documents"])))
    return GrantsReply(changed=changed, collection=now.of_collection() if "default" in target else None)


@router.patch(
    "/grants",
    summary="Say who owns, reads and writes a collection",
    responses=documented(404, 412),
    openapi_extra=EITHER_SCOPE,
)
def set_collection(
    body: CollectionRights, caller: Granter, response: Response, if_match: IfMatch = None
) -> CollectionAccess:
    """What is given replaces what was; the rest stays."""
    view = body.of(caller)

    def check(before: CollectionAccess) -> None:
        require_match(if_match, before)

    view.grants.set_collection(owners=body.owner, readers=body.reader, writers=body.writer, check=check)
    return tagged(response, caller.view(collections=body.collection).grants.of_collection())


# `/v1/tenants`: whose knowledge the store holds; for whoever runs it.

bind(router, TenantOperations, lambda view: view.tenants)


@router.post("/tenants", name="create", status_code=201, summary="Make a tenant", responses=documented(409))
def create_tenant(body: TenantBody, caller: Operator) -> Tenant:
    """Its knowledge is kept apart from that of all others."""
    return caller.tenants.create(body.name, quota=body.quota.changed(TenantQuota()))


@router.patch(
    "/tenants/{tenant:named}",
    name="change",
    summary="Suspend, resume or limit a tenant",
    responses=documented(404, 412),
)
def change_tenant(
    tenant: Name, body: TenantChanges, caller: Operator, response: Response, if_match: IfMatch = None
) -> Tenant:
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


# `/v1/logins`: who is logged in with a browser.

bind(router, LoginOperations, lambda view: view.logins)


# `/v1/audit`: what was done, by whom and when, in a chain that shows whether it was changed.

bind(router, AuditOperations, lambda view: view.audit)


@router.get(
    "/audit/export",
    summary="Export the audit",
    response_class=StreamingResponse,
    responses={200: {"content": {"application/jsonl": {"schema": {"type": "string"}}}}},
)
def export(
    caller: Administrator,
    action: Annotated[Name | None, Query(description="Only of this kind: erase, restore, forget, …")] = None,
    since: Annotated[Time | None, Query(description="Only of this time or later.")] = None,
    until: Annotated[Time | None, Query(description="Only before this time.")] = None,
) -> StreamingResponse:
    """As JSON Lines with its hashes, oldest first, so that others can verify it without the store."""
    return LinesResponse(caller.audit.export(action=action, since=since, until=until))
