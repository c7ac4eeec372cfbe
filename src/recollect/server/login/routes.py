"""The routes of a login. They are for browsers: pages and redirects, and no part of the API."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Annotated, ParamSpec, TypeVar
from urllib.parse import quote

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Form, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from recollect.errors import AuthenticationError, NotFoundError, RecollectError
from recollect.server import problems
from recollect.server.authentication import address_of, caller_of
from recollect.server.dependencies import service_of
from recollect.server.login.issuer import (
    COOKIE_PREFIX,
    LIFETIME_SECONDS,
    MOST_ATTEMPTS,
    LoginAttempt,
    cookie_name,
    safe_path,
)

if TYPE_CHECKING:
    from recollect.model.key import NewLogin
    from recollect.server.authentication import Authenticator
    from recollect.server.caller import Caller
    from recollect.server.login.issuer import Issuer


# The pages of a login: plain, without script, and everything that they show escaped.


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginPage:
    """What a page of the login says.

    Attributes:
        login_path: Where the form is sent to, and where the page is.
        issuer_path: Where a login with the issuer begins; None: there is no issuer.
        logout_path: Where a logout is sent to.
        return_to: The path to go to afterwards.
        issuer_name: What the issuer is called.
        takes_keys: Whether there is a form for a key.
        user: Who is logged in; None: nobody.
        message: What has happened; None: nothing.
        is_error: Whether that is something that went wrong.
        further: Where to go on from here, with what the link says.
    """

    login_path: str
    issuer_path: str | None
    logout_path: str
    return_to: str
    issuer_name: str
    takes_keys: bool
    user: str | None = None
    message: str | None = None
    is_error: bool = False
    further: tuple[str, str] | None = None

    @property
    def html(self) -> str:
        """The page."""
        parts = [self._message(), self._further()]
        if self.user is not None:
            parts.append(_form(self.logout_path, "", f"<p>Logged in as <b>{escape(self.user)}</b>.</p>", "Log out"))
        else:
            parts += [self._issuer(), self._keys()]
        title = "Log in" if self.user is None else "Logged in"
        return _template().substitute(title=title, style=_style(), body="\n".join(part for part in parts if part))

    def _message(self) -> str:
        if self.message is None:
            return ""
        return f'<p role="{"alert" if self.is_error else "status"}">{escape(self.message)}</p>'

    def _further(self) -> str:
        if self.further is None:
            return ""
        url, words = self.further
        return f'<p><a href="{escape(url)}">{escape(words)}</a></p>'

    def _issuer(self) -> str:
        if self.issuer_path is None:
            return ""
        url = f"{self.issuer_path}?return_to={quote(self.return_to, safe='/')}"
        return f'<p><a class="button" href="{escape(url)}">Log in with {escape(self.issuer_name)}</a></p>'

    def _keys(self) -> str:
        if not self.takes_keys:
            return ""
        field = (
            '<label for="key">API key</label>'
            '<input id="key" name="key" type="password" required autocomplete="current-password" spellcheck="false"'
            ' autocapitalize="none">'
        )
        return _form(self.login_path, self.return_to, field, "Log in")


def security_headers() -> dict[str, str]:
    """What the pages are allowed: their one style sheet and a form for this server.

    With `no-referrer` browsers would send forms with ``Origin: null``, which tells nothing of where they come from.
    """
    digest = base64.b64encode(hashlib.sha256(_style().encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )
    return {"Content-Security-Policy": policy, "Referrer-Policy": "same-origin"}


def _form(path: str, return_to: str, inner: str, button: str) -> str:
    hidden = f'<input type="hidden" name="return_to" value="{escape(return_to)}">' if return_to else ""
    return f'<form method="post" action="{escape(path)}">{hidden}{inner}<button>{button}</button></form>'


@cache
def _template() -> Template:
    return Template((files(__package__) / "login.html").read_text(encoding="utf-8"))


@cache
def _style() -> str:
    return (files(__package__) / "login.css").read_text(encoding="utf-8")


P = ParamSpec("P")


R = TypeVar("R")


router = APIRouter(include_in_schema=False)


LOGIN = "/login"


_WITH_ISSUER = "/login/oidc"


_CALLBACK = "/login/callback"


_LOGOUT = "/logout"


#: Shows a page of the login with a status, where somebody has a look for it.
Look = Callable[[Request, LoginPage, int], Response]


# An issuer that answers slowly keeps so many threads waiting, and none that answer other requests.
_MOST_WAITING = 8


_MOST_KEY_CHARACTERS = 200


@router.get(LOGIN)
async def login_page(request: Request, return_to: str | None = None) -> Response:
    """Who is logged in, or how to log in."""
    try:
        caller = await _logged_in(request)
    except RecollectError as exc:
        return _refused(request, exc, return_to)
    return _shown(request, _page(request, return_to, user=None if caller is None else _named(caller)))


@router.post(LOGIN)
async def log_in(
    request: Request, key: Annotated[str, Form()] = "", return_to: Annotated[str | None, Form()] = None
) -> Response:
    """Log in with an API key."""
    authenticator = _authenticator(request)
    try:
        authenticator.logins.cookies.require_no_other_page(request)
        made = await _run(
            request,
            authenticator.log_in_with_key,
            key.strip()[:_MOST_KEY_CHARACTERS],
            address=address_of(request),
            admit=lambda caller: service_of(request).limits.check(caller, "ingest"),
        )
    except RecollectError as exc:
        return _refused(request, exc, return_to)
    return await _begun(request, made, return_to)


@router.get(_WITH_ISSUER)
async def log_in_with_issuer(request: Request, return_to: str | None = None) -> Response:
    """Send the browser to the issuer."""
    cookies = _authenticator(request).logins.cookies
    attempt = LoginAttempt.begin(_safe(request, return_to))
    try:
        issuer = _issuer(request)
        url = await _run(request, issuer.authorization_url, attempt, redirect_uri=_redirect_uri(request))
    except RecollectError as exc:
        return _refused(request, exc, return_to)
    response = RedirectResponse(url, status_code=303)
    for name in cookies.names(request, COOKIE_PREFIX)[: -MOST_ATTEMPTS + 1]:
        cookies.clear(request, response, name)
    cookies.set(request, response, attempt.cookie_name, attempt.cookie, seconds=LIFETIME_SECONDS)
    return response


@router.get(_CALLBACK)
async def come_back_from_issuer(
    request: Request, state: str = "", code: str = "", error: str = "", iss: str | None = None
) -> Response:
    """Log in whoever the issuer has sent back."""
    authenticator = _authenticator(request)
    cookies, name = authenticator.logins.cookies, cookie_name(state)
    attempt = LoginAttempt.read(cookies.get(request, name), state=state)
    return_to = None if attempt is None else attempt.return_to
    address = address_of(request)
    try:
        issuer = _issuer(request)
        if attempt is None:
            raise AuthenticationError("This browser has begun no login that the answer belongs to: log in again.")
        await _run(request, issuer.require_itself, iss)
        if error or not code:
            raise AuthenticationError("Nobody has logged in there, or the issuer has refused it.")
        made = await _run(
            request,
            authenticator.log_in_with_code,
            code,
            attempt,
            redirect_uri=_redirect_uri(request),
            address=address,
        )
    except RecollectError as exc:
        response = _refused(request, exc, return_to)
    else:
        response = await _begun(request, made, return_to)
    # Whatever came of it: an answer is taken once.
    cookies.clear(request, response, name)
    return response


@router.post(_LOGOUT)
async def log_out(request: Request) -> Response:
    """End the browser's login, and where there is an issuer, offer to be logged out there."""
    logins = _authenticator(request).logins
    further = None
    try:
        caller = await _logged_in(request)
        text = logins.cookies.login(request)
        if caller is not None and caller.login is not None and text is not None:
            id_token = await _run(request, logins.end, caller, text)
            if caller.credential.kind == "oidc":
                further = await _elsewhere(request, id_token)
    except RecollectError as exc:
        return _refused(request, exc, None)
    page = _page(request, None, message="You are logged out.", further=further)
    response = _shown(request, page)
    if further is not None:
        # A redirect of a form is held against `form-action`, which pages would have to name the issuer in.
        response.headers["Refresh"] = f"0; url={further[0]}"
    logins.cookies.clear_login(request, response)
    return response


async def _elsewhere(request: Request, id_token: str | None) -> tuple[str, str] | None:
    """Where the issuer logs its users out, where it says."""
    issuer = _issuer(request)
    back = _authenticator(request).logins.cookies.base(request) + LOGIN
    try:
        url = await _run(request, issuer.logout_url, id_token, return_to=back)
    except RecollectError:
        return None  # the login has ended here all the same
    return None if url is None else (url, f"Log out of {issuer.name} too")


async def _begun(request: Request, made: NewLogin, return_to: str | None) -> Response:
    """The reply to a login: a new cookie, whatever the browser had before, and on to the page that was asked for."""
    logins = _authenticator(request).logins
    before = logins.cookies.login(request)
    if before is not None:
        await _run(request, logins.replace, before)
    response = RedirectResponse(_safe(request, return_to), status_code=303)
    logins.cookies.set_login(request, response, made.secret, seconds=logins.lifetime_seconds)
    return response


def _refused(request: Request, exc: RecollectError, return_to: str | None) -> Response:
    """What went wrong: as a page for people, as a problem for programs."""
    told = problems.problem_of(exc)
    if "text/html" not in request.headers.get("accept", ""):
        response = problems.respond(told)
    else:
        page = _page(request, return_to, message=told["detail"], is_error=True)
        response = _shown(request, page, status=told["status"])
        response.headers.update({k: v for k, v in problems.headers_of(told).items() if k != "WWW-Authenticate"})
    if getattr(request.state, "login_refused", False):
        _authenticator(request).logins.cookies.clear_login(request, response)
    return response


def _shown(request: Request, page: LoginPage, *, status: int = 200) -> Response:
    look = _look(request)
    if look is not None:
        return look(request, page, status)
    return HTMLResponse(page.html, status_code=status, headers=security_headers())


def _page(
    request: Request,
    return_to: str | None,
    *,
    user: str | None = None,
    message: str | None = None,
    is_error: bool = False,
    further: tuple[str, str] | None = None,
) -> LoginPage:
    authenticator = _authenticator(request)
    path = authenticator.logins.cookies.path
    issuer = authenticator.issuer
    return LoginPage(
        login_path=path(request, LOGIN),
        issuer_path=None if issuer is None else path(request, _WITH_ISSUER),
        logout_path=path(request, _LOGOUT),
        return_to=_safe(request, return_to),
        issuer_name="" if issuer is None else issuer.name,
        takes_keys=authenticator.takes_keys_of_browsers,
        user=user,
        message=message,
        is_error=is_error,
        further=further,
    )


async def _logged_in(request: Request) -> Caller | None:
    """Who is logged in; None: nobody, or nobody any more."""
    if _authenticator(request).logins.cookies.login(request) is None:
        return None
    try:
        return await caller_of(request, _authenticator(request))
    except AuthenticationError:
        return None


def _named(caller: Caller) -> str:
    user = None if caller.principal is None else caller.principal.user_id
    return user or f"the owner of the store (key {caller.credential.id})"


def _look(request: Request) -> Look | None:
    """How the pages look where the server has others beside them; None: they stand alone."""
    return getattr(request.app.state, "login_look", None)


def _safe(request: Request, return_to: str | None) -> str:
    # Where a login leads that nobody has asked for a page before.
    home = LOGIN if _look(request) is None else "/"
    return safe_path(return_to, otherwise=_authenticator(request).logins.cookies.path(request, home))


def _redirect_uri(request: Request) -> str:
    return _authenticator(request).logins.cookies.base(request) + _CALLBACK


def _issuer(request: Request) -> Issuer:
    authenticator = _authenticator(request)
    if authenticator.issuer is None:
        raise NotFoundError("This server has no issuer that people log in with ([rag.server.login.oidc]).")
    return authenticator.issuer


def _authenticator(request: Request) -> Authenticator:
    return service_of(request).authenticator


async def _run(request: Request, call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run what waits for the database or for the issuer, in one of a few threads."""
    limiter = getattr(request.app.state, "login_threads", None)
    if limiter is None:
        limiter = request.app.state.login_threads = CapacityLimiter(_MOST_WAITING)
    return await to_thread.run_sync(lambda: call(*args, **kwargs), limiter=limiter)
