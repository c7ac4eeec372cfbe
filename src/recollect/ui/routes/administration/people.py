"""People: the keys and logins that name them, and what roles open."""

from __future__ import annotations

from typing import Annotated

from fastapi import Form, Query
from starlette.responses import Response

from recollect.model import Principal
from recollect.model.key import ACCESS_SCOPES
from recollect.ui.page_route import page_router
from recollect.ui.routes.administration.asking import (
    KEYS,
    LOGINS,
    PAGE_SIZE,
    PEOPLE,
    Administering,
    Cursor,
    address_of,
    names,
    page_of,
    position,
    shown,
    somebody,
)
from recollect.ui.visit import Visit

# Keys: made, shown once, given another secret, revoked.


router = page_router()

_Text = Annotated[str, Form(max_length=2_000)]


@router.get(KEYS.path)
async def keys(visit: Administering, cursor: Cursor = None) -> Response:
    """Newest first."""
    begin = cursor or None
    page = await visit.run(lambda: visit.administration.keys.list(cursor=begin, limit=PAGE_SIZE))
    following = address_of(visit, page.next_cursor)
    return shown(visit, KEYS, "keys.html", keys=page, following=following)


@router.get(f"{KEYS.path}/new")
async def new(visit: Administering) -> Response:
    """The form of a new key."""
    return shown(visit, KEYS, "key_new.html", scopes=_scopes(visit))


@router.post(KEYS.path)
async def create(
    visit: Administering,
    name: _Text = "",
    scopes: Annotated[list[str] | None, Form()] = None,
    expires: _Text = "",
    whose: _Text = "owner",
    user: _Text = "",
    roles: _Text = "",
    department: _Text = "",
    groups: _Text = "",
) -> Response:
    """Make a key; the reply is the one page that shows its secret."""
    who: Principal | None = None
    if whose == "person":
        who = somebody(user, roles, department, groups)
    # As the caller, whom no key of theirs goes beyond.
    view, maker = visit.caller.view(visit.service.rag), visit.caller.maker
    made = await visit.run(
        lambda: view.keys.create(name, scopes=scopes or (), principal=who, expires=expires.strip() or None, maker=maker)
    )
    return shown(visit, KEYS, "key_made.html", made=made, rotated=False, address="")


@router.get(f"{KEYS.path}/widget")
async def new_widget(visit: Administering) -> Response:
    """The form of a key for a widget."""
    found = await visit.run(visit.administration.collections.list)
    return shown(visit, KEYS, "key_widget.html", collections=[one.name for one in found])


@router.post(f"{KEYS.path}/widget")
async def create_widget(
    visit: Administering, name: _Text = "", collection: _Text = "", origins: _Text = "", expires: _Text = ""
) -> Response:
    """Make a key for a widget; the reply shows it, with what its pages embed."""
    made = await visit.run(
        lambda: visit.administration.keys.create_widget(
            name,
            collection=collection,
            origins=names(origins),
            expires=expires.strip() or None,
            maker=visit.caller.maker,
        )
    )
    address = visit.service.authenticator.logins.cookies.base(visit.request)
    return shown(visit, KEYS, "key_made.html", made=made, rotated=False, address=address)


@router.get(f"{KEYS.path}/{{key_id}}")
async def key(visit: Administering, key_id: str) -> Response:
    """What is kept of one."""
    found = await visit.run(lambda: visit.administration.keys.get(key_id))
    return shown(visit, KEYS, "key.html", key=found)


@router.post(f"{KEYS.path}/{{key_id}}/rotate")
async def rotate(visit: Administering, key_id: str, grace: _Text = "1d", expires: _Text = "") -> Response:
    """Give it another secret; the reply is the one page that shows it."""
    view, maker = visit.caller.view(visit.service.rag), visit.caller.maker
    rotated = await visit.run(
        lambda: view.keys.rotate(
            key_id, grace=0 if grace.strip() in {"", "0"} else grace, expires=expires.strip() or None, maker=maker
        )
    )
    visit.service.authenticator.forget()
    return shown(visit, KEYS, "key_made.html", made=rotated, rotated=True, address="")


@router.post(f"{KEYS.path}/{{key_id}}/revoke")
async def revoke(visit: Administering, key_id: str) -> Response:
    """Refuse it from now on."""
    await visit.run(lambda: visit.administration.keys.revoke(key_id))
    visit.service.authenticator.forget()
    return visit.go_to(f"{KEYS.path}/{key_id}?told=revoked")


def _scopes(visit: Visit) -> list[str]:
    return [scope for scope in ACCESS_SCOPES if visit.may(scope)]


@router.get(PEOPLE.path)
async def people(visit: Administering, cursor: Cursor = None) -> Response:
    """By name."""
    after = position(cursor, str) or ""
    found = await visit.run(lambda: visit.administration.keys.users(after=after, limit=PAGE_SIZE + 1))
    page, following = page_of(found, visit, lambda one: one.principal.user_id or "")
    config = visit.service.rag.config
    return shown(
        visit,
        PEOPLE,
        "people.html",
        people=page,
        following=following,
        access=config.access,
        role_scopes=config.server.jwt.role_scopes,
        tokens_taken=config.server.jwt.configured or config.server.login.oidc.configured,
    )


# Browsers that are logged in: listed and logged out.


@router.get(LOGINS.path)
async def logins(
    visit: Administering, user: Annotated[str | None, Query(max_length=500)] = None, cursor: Cursor = None
) -> Response:
    """Newest first, those that have ended in the last month among them."""
    wanted, begin = (user or "").strip() or None, cursor or None
    page = await visit.run(lambda: visit.administration.logins.list(user=wanted, cursor=begin, limit=PAGE_SIZE))
    following = address_of(visit, page.next_cursor)
    return shown(visit, LOGINS, "logins.html", logins=page, following=following, user=wanted or "")


@router.post(f"{LOGINS.path}/{{login_id}}/end")
async def end(visit: Administering, login_id: str) -> Response:
    """Log a browser out."""
    await visit.run(lambda: visit.administration.logins.revoke(login_id))
    visit.service.authenticator.logins.forget()
    return visit.go_to(f"{LOGINS.path}?told=ended")


@router.post(f"{LOGINS.path}/end")
async def end_all(visit: Administering, user: Annotated[str, Form(max_length=500)] = "") -> Response:
    """Log out every browser of a user, or of everybody."""
    await visit.run(lambda: visit.administration.logins.revoke_all(user=user.strip() or None))
    visit.service.authenticator.logins.forget()
    return visit.go_to(f"{LOGINS.path}?told=ended")
