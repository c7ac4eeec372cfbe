"""Browsers that are logged in: listed and logged out."""

from __future__ import annotations

from typing import Annotated

from fastapi import Form, Query
from starlette.responses import Response

from recollect.ui.page_route import page_router
from recollect.ui.routes.administration.asking import (
    LOGINS,
    PAGE_SIZE,
    Administering,
    Cursor,
    page_of,
    position,
    shown,
)

router = page_router()


@router.get(LOGINS.path)
async def logins(
    visit: Administering, user: Annotated[str | None, Query(max_length=500)] = None, cursor: Cursor = None
) -> Response:
    """Newest first, those that have ended in the last month among them."""
    wanted, before = (user or "").strip() or None, position(cursor, str)
    found = await visit.run(lambda: visit.administration.logins.list(user=wanted, before=before, limit=PAGE_SIZE + 1))
    page, following = page_of(found, visit, lambda login: login.login_id)
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
