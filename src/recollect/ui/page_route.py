"""Routes of pages: their errors are pages too, and links from elsewhere lead to them."""

from __future__ import annotations

import math
from collections.abc import Callable, Coroutine
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, RedirectResponse, Response

from recollect.errors import AuthenticationError, RecollectError
from recollect.server.dependencies import service_of
from recollect.server.problems import problem_of, title_of
from recollect.ui.languages import language_of
from recollect.ui.templates import rendered
from recollect.ui.visit import PAGE_HEADERS, base_of, path_to_login, theme_of

_Handler = Callable[[Request], Coroutine[Any, Any, Response]]


def _(text: str) -> str:
    """Marks a text for the catalogues."""
    return text


# What pages of errors are called, by their status. Problems of the API are called more finely, in English alone.
_HEADINGS = {
    400: _("This cannot be done as it is"),
    403: _("Not allowed"),
    404: _("There is no such thing"),
    405: _("This cannot be done as it is"),
    409: _("It exists already, or was changed meanwhile"),
    410: _("Its time is over"),
    412: _("It was changed meanwhile"),
    413: _("Too large"),
    415: _("This kind of file cannot be read"),
    422: _("Something in it is not valid"),
    429: _("Too much in too short a time"),
    500: _("It failed"),
    502: _("Something that the server asks has failed"),
    503: _("The server cannot do this at the moment"),
}
_NO_PAGE = _("There is no page at this address.")


def page_router() -> APIRouter:
    """A router for the pages of one area."""
    return APIRouter(route_class=PageRoute, include_in_schema=False, default_response_class=HTMLResponse)


class PageRoute(APIRoute):
    """A route whose errors are pages, and which a link from elsewhere may lead to."""

    def get_route_handler(self) -> _Handler:
        """What answers."""
        answer = super().get_route_handler()

        async def page(request: Request) -> Response:
            if _comes_from_elsewhere(request):
                return _once_more(request)
            try:
                return await answer(request)
            except AuthenticationError:
                return _to_login(request)
            except (RecollectError, RequestValidationError, HTTPException) as exc:
                return error_page(request, exc)

        return page


def error_page(request: Request, exc: Exception) -> Response:
    """What happened and what to do, as a page or, where a page has asked, as a part of one."""
    headers = dict(PAGE_HEADERS)
    if isinstance(exc, HTTPException):
        status, title, detail = exc.status_code, title_of(exc.status_code), str(exc.detail)
        if status == 404 and detail == HTTPStatus.NOT_FOUND.phrase:
            detail = language_of(request).gettext(_NO_PAGE)
        headers |= exc.headers or {}
    elif isinstance(exc, RequestValidationError):
        status, title = 422, title_of(422)
        # Without what was given: it may be a secret, or very long.
        detail = "; ".join(f"{one['loc'][-1]}: {one['msg']}" for one in exc.errors()[:5])
    else:
        told = problem_of(exc)
        status, title, detail = told["status"], told["title"], told["detail"]
        wait = told.get("retry_after_seconds")
        if wait:
            headers["Retry-After"] = str(math.ceil(wait))
    template = "error_part.html" if "hx-request" in request.headers else "error.html"
    context = {"title": _HEADINGS.get(status, title), "detail": detail, "status": status, "theme": theme_of(request)}
    html = rendered(template, language_of(request), context, base=base_of(request))
    return HTMLResponse(html.encode("utf-8", "replace"), status_code=status, headers=headers)


def _comes_from_elsewhere(request: Request) -> bool:
    """Whether somebody has followed a link of another site to a page."""
    headers = request.headers
    return (
        request.method == "GET"
        and headers.get("sec-fetch-site") in {"cross-site", "same-site"}
        and headers.get("sec-fetch-mode") == "navigate"
        and headers.get("sec-fetch-dest") == "document"
    )


def _once_more(request: Request) -> Response:
    """A page that leads to itself: then it is this server's page that asks, and no other site has a hand in it.

    Where nobody needs a credential, requests that another site brings about are nobody's. It shows nothing.
    """
    context = {"theme": theme_of(request)}
    html = rendered("once_more.html", language_of(request), context, base=base_of(request))
    return HTMLResponse(html, headers=PAGE_HEADERS)


def _to_login(request: Request) -> Response:
    path = path_to_login(request)
    response: Response
    if "hx-request" in request.headers:
        response = Response(status_code=401, headers={**PAGE_HEADERS, "HX-Redirect": path})
    else:
        response = RedirectResponse(path, status_code=303)
    if getattr(request.state, "login_refused", False):
        service_of(request).authenticator.logins.cookies.clear_login(request, response)
    return response
