"""One request for a page: who asks, in which language, how the reply is made, and the areas that its bar names."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from fastapi import APIRouter, Depends, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, RedirectResponse, Response

from recollect.errors import AuthenticationError, RecollectError
from recollect.model import Principal
from recollect.model.key import AccessScope
from recollect.pipeline import View
from recollect.server.admission import Service, admit
from recollect.server.authentication import caller_of
from recollect.server.caller import Caller
from recollect.server.dependencies import service_of
from recollect.server.login.issuer import safe_path
from recollect.server.problems import problem_of, title_of
from recollect.ui.languages import Language, _, language_of, languages
from recollect.ui.templates import rendered

if TYPE_CHECKING:
    from recollect.server.limits import LimitKind


# The areas of the interface, as the bar at its top names them.


@dataclass(frozen=True, slots=True)
class Area:
    """A part of the interface.

    Attributes:
        name: Its text's key, translated where it is shown.
        path: Its first page.
        icon: Its picture's name in ``templates/icons.svg``.
        scope: What a credential must open to see it.
    """

    name: str
    path: str
    icon: str
    scope: AccessScope


CHAT = Area(_("Chat"), "/chat", "chat", "read")


LIBRARY = Area(_("Library"), "/library", "library", "read")


BENCH = Area(_("Search bench"), "/bench", "bench", "read")


DASHBOARD = Area(_("Dashboard"), "/dashboard", "chart", "read")


ADMINISTRATION = Area(_("Administration"), "/administration", "administration", "admin")


AREAS = (CHAT, LIBRARY, BENCH, DASHBOARD, ADMINISTRATION)


T = TypeVar("T")


#: Nothing is loaded from elsewhere, no script or style stands in a page, and no other site shows ours in a frame.
PAGE_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
        "connect-src 'self'; worker-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    # With `no-referrer` browsers would send forms with ``Origin: null``, which tells nothing of where they come from.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    # Who goes back after a logout sees nothing of what was there.
    "Cache-Control": "no-store",
}


THEME_COOKIE = "recollect-theme"


THEMES = ("auto", "light", "dark")


@dataclass(kw_only=True)
class Visit:
    """One request for a page.

    Attributes:
        request: As it came.
        caller: Who asks.
        service: What answers.
    """

    request: Request
    caller: Caller
    service: Service

    @cached_property
    def view(self) -> View:
        """What the caller sees, in every collection that they may read."""
        return self.caller.view(self.service.rag).view(collections="*")

    def view_of(self, collection: str) -> View:
        """What the caller sees of one collection."""
        return self.caller.view(self.service.rag).view(collections=collection)

    def own_view(self, user: str | None = None) -> View:
        """What the caller sees, with the conversations that are theirs.

        Args:
            user: Whose, where the caller is nobody in particular; None: everybody's.
        """
        principal = self.caller.principal
        return self.view.view(user=user if principal is None else principal.user_id)

    @property
    def administration(self) -> View:
        """What whoever administers the tenant sees.

        Raises:
            PermissionDeniedError: The caller does not.
        """
        return self.caller.administration(self.service.rag)

    @property
    def language(self) -> Language:
        """The texts' language."""
        return language_of(self.request)

    @property
    def languages(self) -> list[Language]:
        """The languages that there are."""
        return [Language.named(code) for code in languages()]

    @property
    def name(self) -> str:
        """What the visitor is called at the top of the page; nobody has a name on a server for this machine."""
        user = None if self.caller.principal is None else self.caller.principal.user_id
        return user or ("" if self.caller.credential.kind == "local" else self.caller.credential.id)

    @property
    def base(self) -> str:
        """What paths of this server begin with in the browser."""
        return base_of(self.request)

    @property
    def here(self) -> str:
        """The path of this page."""
        query = self.request.url.query
        return self.request.url.path + (f"?{query}" if query else "")

    @property
    def is_fragment(self) -> bool:
        """Whether a page asks for a part of itself, which it puts into its place."""
        return "hx-request" in self.request.headers and "hx-boosted" not in self.request.headers

    def may(self, scope: str) -> bool:
        """Whether the credential opens that: ``read``, ``write``, ``admin``, ``operator``."""
        return scope in self.caller.scopes

    async def require(self, scope: str, kind: LimitKind = "search") -> None:
        """Count the request, and refuse it where the credential is not for that.

        Raises:
            PermissionDeniedError: It is not.
            RateLimitedError: The caller has asked too much.
        """
        self.caller.require(scope)  # type: ignore[arg-type]
        await admit(self.request, self.caller, self.service, kind=kind)

    async def run(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:  # noqa: ANN401 - the function's own
        """Call what waits for the database, in a thread."""
        return await run_in_threadpool(function, *args, **kwargs)

    def page(self, template: str, area: Area | None = None, *, status: int = 200, **context: Any) -> Response:  # noqa: ANN401
        """A page of a template; where a part was asked for, templates extend a bare one in its place.

        Args:
            template: Below ``templates``.
            area: Where in the interface that is.
            status: Of the reply.
            context: What the template shows besides the `Visit` itself, which is ``visit``.
        """
        return _reply(self._rendered(template, {**self._frame(area), **context}), status)

    def fragment(self, template: str, *, status: int = 200, **context: Any) -> Response:  # noqa: ANN401
        """A part of a page."""
        return _reply(self._rendered(template, {"visit": self, **context}), status)

    def text(self, template: str, **context: Any) -> str:  # noqa: ANN401
        """A part of a page, for what is sent as events."""
        return self._rendered(template, {"visit": self, **context})

    def go_to(self, path: str) -> Response:
        """Send the browser to another page of this server."""
        path = self.base + path
        if self.is_fragment:
            return Response(status_code=204, headers={"HX-Redirect": path})
        return RedirectResponse(path, status_code=303)

    def _rendered(self, template: str, context: Mapping[str, Any]) -> str:
        return rendered(template, self.language, context, base=self.base)

    def _frame(self, area: Area | None) -> Mapping[str, Any]:
        return {
            "visit": self,
            "area": area,
            "areas": [one for one in AREAS if one.scope in self.caller.scopes],
            "theme": theme_of(self.request),
        }


def link(path: str, **query: object) -> str:
    """A path with a query; what is None or empty stands in no address."""
    told = urlencode({name: value for name, value in query.items() if value is not None and value != ""})
    return f"{path}?{told}" if told else path


def base_of(request: Request) -> str:
    """What paths of this server begin with in the browser: nothing, or what a proxy puts before them."""
    return service_of(request).authenticator.logins.cookies.path(request, "")


def theme_of(request: Request) -> str:
    """The colours that the visitor has chosen: ``auto``, ``light`` or ``dark``."""
    theme = request.cookies.get(THEME_COOKIE, "auto")
    return theme if theme in THEMES else "auto"


def _reply(html: str, status: int) -> HTMLResponse:
    # What documents hold may not be UTF-8: half of a pair of surrogates is shown as a question mark.
    return HTMLResponse(html.encode("utf-8", "replace"), status_code=status, headers=PAGE_HEADERS)


async def _visit(request: Request) -> Visit:
    service = service_of(request)
    caller = await caller_of(request, service.authenticator)
    return Visit(request=request, caller=caller.require("read"), service=service)


#: The visit of whoever may read, not counted yet: what is a question, or whose scope depends, says so itself.
Visiting = Annotated[Visit, Depends(_visit)]


def _counted(scope: str) -> Callable[[Visit], Awaitable[Visit]]:
    """What gives a route a visit whose credential opens a scope, counted as a search or, where it changes, a write."""

    async def counted(visit: Visiting) -> Visit:
        await visit.require(scope, "search" if visit.request.method == "GET" else "ingest")
        return visit

    return counted


#: The visit of whoever may read.
Reading = Annotated[Visit, Depends(_counted("read"))]
#: The visit of whoever may write.
Writing = Annotated[Visit, Depends(_counted("write"))]
#: The visit of whoever administers the tenant.
Administering = Annotated[Visit, Depends(_counted("admin"))]
#: The visit of whoever looks after the tenants.
Operating = Annotated[Visit, Depends(_counted("operator"))]


def names(text: str | None) -> tuple[str, ...]:
    """Names that somebody has typed, with commas or line breaks between them."""
    return tuple(part.strip() for part in (text or "").replace("\r", "").replace("\n", ",").split(",") if part.strip())


def somebody(user: str | None, roles: str | None, department: str | None, groups: str | None) -> Principal:
    """Whom the fields of a form mean."""
    return Principal(
        user_id=(user or "").strip() or None,
        roles=names(roles),
        department=(department or "").strip() or None,
        groups=names(groups),
    )


def path_to_login(request: Request) -> str:
    """Where to log in, and come back from."""
    base = base_of(request)
    return f"{base}/login?return_to={quote(_page_of(request, base), safe='/')}"


def _page_of(request: Request, base: str) -> str:
    """The path of the page that the visitor sees: of a part of one, or of what a form sends, the page that has it."""
    headers = request.headers
    shown = headers.get("hx-current-url") or (headers.get("referer") if request.method != "GET" else None)
    if shown is None and request.method == "GET" and "hx-request" not in headers:
        return base + request.url.path + (f"?{request.url.query}" if request.url.query else "")
    try:
        parts = urlsplit(shown or "")
    except ValueError:
        parts = urlsplit("")
    return safe_path(parts.path + (f"?{parts.query}" if parts.query else ""), otherwise=f"{base}/")


# Routes of pages: their errors are pages too, and links from elsewhere lead to them.


_Handler = Callable[[Request], Coroutine[Any, Any, Response]]


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
