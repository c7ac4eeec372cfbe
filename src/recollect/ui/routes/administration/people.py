"""People whom keys and logins name, and what roles open."""

from __future__ import annotations

from starlette.responses import Response

from recollect.ui.page_route import page_router
from recollect.ui.routes.administration.asking import (
    PAGE_SIZE,
    PEOPLE,
    Administering,
    Cursor,
    page_of,
    position,
    shown,
)

router = page_router()


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
