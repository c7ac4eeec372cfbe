"""The pages put together: their routes, and the files that they load."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, cast

from fastapi import APIRouter, FastAPI, Form, Request
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount

from recollect.server.dependencies import service_of
from recollect.server.login.issuer import safe_path
from recollect.ui.languages import COOKIE, language_of, languages
from recollect.ui.routes import AREA_ROUTERS
from recollect.ui.templates import Assets, compile_all, rendered, version
from recollect.ui.visit import (
    AREAS,
    PAGE_HEADERS,
    THEME_COOKIE,
    THEMES,
    Visiting,
    base_of,
    error_page,
    page_router,
    theme_of,
)

if TYPE_CHECKING:
    from recollect.server.login.routes import LoginPage


# The pages of a login in the look of all others. They run no script, and need nobody to be known.

_HEADERS = PAGE_HEADERS | {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    ),
}


def login_look(request: Request, page: LoginPage, status: int) -> Response:
    """A page of the login, in the visitor's language and colours."""
    context = {"page": page, "theme": theme_of(request)}
    html = rendered("login.html", language_of(request), context, base=base_of(request))
    return HTMLResponse(html.encode("utf-8", "replace"), status_code=status, headers=_HEADERS)


_Handler = Callable[[Request, HTTPException], Awaitable[Response]]


def install(app: FastAPI) -> None:
    """Add the pages to a server's application."""
    # First: every page has several, and all other paths would be compared before.
    app.router.routes.insert(0, Mount("/static", Assets()))
    app.router.routes.extend(_routes())
    app.state.login_look = login_look
    app.state.warm_up = _warm_up
    otherwise = cast("_Handler", app.exception_handlers[HTTPException])

    async def refused(request: Request, exc: HTTPException) -> Response:
        # Whoever asks for a page that does not exist is a person with a browser: programs do not ask for HTML.
        if exc.status_code == 404 and "text/html" in request.headers.get("accept", ""):
            return error_page(request, exc)
        return await otherwise(request, exc)

    app.add_exception_handler(HTTPException, cast("Any", refused))


def _warm_up() -> None:
    """What the first visitor would wait for otherwise: templates, and the name of the static files."""
    version()
    compile_all()


@cache
def _routes() -> tuple[BaseRoute, ...]:
    """Every route, made once a process."""
    router = APIRouter()
    for area in (_first, *AREA_ROUTERS):
        router.include_router(area)
    return tuple(router.routes)


# The first page, and what a visitor chooses for all of them.


_first = page_router()


_YEAR_SECONDS = 365 * 86_400


@_first.get("/")
async def first_page(visit: Visiting) -> Response:
    """To where the interface begins."""
    return visit.go_to(AREAS[0].path)


@_first.post("/preferences")
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
