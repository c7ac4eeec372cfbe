"""``/v1/keys``, and ``/v1/me``: who asks."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response

from recollect.errors import UsageError
from recollect.model import Principal
from recollect.model.key import ACCESS_SCOPES, NewApiKey
from recollect.operations.keys import KeyOperations
from recollect.operations.values import Name
from recollect.replies._shape import iso
from recollect.replies.me import BrowserLoginJson, MeJson, server_settings_json
from recollect.server.bound import bind
from recollect.server.caller import BrowserLogin
from recollect.server.dependencies import AdministratorCaller, Asking, Somebody
from recollect.server.problems import documented
from recollect.server.schemas.keys import KeyBody, KeyRotationBody

router = APIRouter(tags=["people and rights"])
bind(router, KeyOperations, lambda view: view.keys)

# A secret is in one reply, and in nobody's cache: neither a proxy's nor that of replies to requests with a key.
_SHOWN_ONCE = {"Cache-Control": "no-store"}


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
        "login": _login_json(caller.login),
        "settings": server_settings_json(service.rag.config),
    }


def _login_json(login: BrowserLogin | None) -> BrowserLoginJson | None:
    if login is None:
        return None
    return {
        "login_id": login.login_id,
        "created_at": iso(login.created_at),
        "idle_until": iso(login.idle_until),
        "expires_at": iso(login.expires_at),
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
