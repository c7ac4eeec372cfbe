"""The pages put together: their routes, and the files that they load."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from fastapi import APIRouter, FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Mount

from recollect.ui.assets import Assets, version
from recollect.ui.languages import language_of
from recollect.ui.page_route import error_page
from recollect.ui.routes import AREA_ROUTERS
from recollect.ui.templates import compile_all, rendered
from recollect.ui.visit import PAGE_HEADERS, base_of, theme_of

if TYPE_CHECKING:
    from recollect.server.login.page import LoginPage


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
    for area in AREA_ROUTERS:
        router.include_router(area)
    return tuple(router.routes)
