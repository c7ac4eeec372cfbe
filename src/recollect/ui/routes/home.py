"""The first page, and what a visitor chooses for all of them."""

from __future__ import annotations

from typing import Annotated

from fastapi import Form
from starlette.responses import RedirectResponse, Response

from recollect.server.dependencies import service_of
from recollect.server.login.attempt import safe_path
from recollect.ui.languages import COOKIE, languages
from recollect.ui.page_route import page_router
from recollect.ui.visit import AREAS, THEME_COOKIE, THEMES, Visiting

router = page_router()

_YEAR_SECONDS = 365 * 86_400


@router.get("/")
async def first_page(visit: Visiting) -> Response:
    """To where the interface begins."""
    return visit.go_to(AREAS[0].path)


@router.post("/preferences")
async def choose(
    visit: Visiting,
    return_to: Annotated[str, Form()] = "/",
    theme: Annotated[str | None, Form()] = None,
    language: Annotated[str | None, Form()] = None,
) -> Response:
    """Keep the theme or the language in the browser, and show the page again."""
    response = RedirectResponse(visit.base + safe_path(return_to, otherwise="/"), status_code=303)
    for cookie, chosen, known in ((THEME_COOKIE, theme, THEMES), (COOKIE, language, languages())):
        if chosen in known:
            secure = service_of(visit.request).authenticator.logins.cookies.is_encrypted(visit.request)
            response.set_cookie(
                cookie, chosen, max_age=_YEAR_SECONDS, path="/", httponly=True, samesite="lax", secure=secure
            )
    return response
