"""The pages of a login in the look of all others. They run no script, and need nobody to be known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import HTMLResponse, Response

from recollect.ui.languages import language_of
from recollect.ui.templates import rendered
from recollect.ui.visit import PAGE_HEADERS, base_of, theme_of

if TYPE_CHECKING:
    from starlette.requests import Request

    from recollect.server.login.page import LoginPage

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
