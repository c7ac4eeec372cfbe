"""What a request says of who asks, before anybody is believed: its headers, and where it comes from."""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.concurrency import run_in_threadpool

from recollect.errors import AuthenticationError
from recollect.model.key import SECRET_PATTERN
from recollect.server.origin import is_loopback, name_of

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection

    from recollect.server.authentication import Authenticator
    from recollect.server.caller import Caller
    from recollect.server.login.browsers import BrowserLogins

_FORWARDING = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")
_QUERY_NAMES = frozenset({"access_token", "api_key", "apikey", "x-api-key", "authorization"})
_KEY = re.compile(SECRET_PATTERN, re.ASCII)


async def caller_of(request: HTTPConnection, authenticator: Authenticator) -> Caller:
    """Who makes a request. What the database must be asked for is asked in a thread.

    Raises:
        AuthenticationError: There is no credential where one is needed, there are two, or it is not taken.
        PermissionDeniedError: A browser that is logged in does not say that a page of this server asks.
        RateLimitedError: Too many credentials from there were not taken.
        TenantSuspendedError: It is a key of a tenant that is suspended.
        FetchError: The keys of the tokens' issuer cannot be fetched now.
    """
    caller = await _known_caller(request, authenticator)
    # For the line of the log, also of what is refused from here on.
    request.state.caller = caller
    return caller


async def _known_caller(request: HTTPConnection, authenticator: Authenticator) -> Caller:
    require_no_credential_in_url(request)
    authorization, api_key = _single(request, "authorization"), _single(request, "x-api-key")
    known = authenticator.known(authorization, api_key=api_key)
    if known is not None:
        return known
    if authorization is None and api_key is None:
        cookie = authenticator.logins.cookies.login(request)
        if cookie is not None:
            return await _logged_in(request, authenticator.logins, cookie)
        return authenticator.authenticate(None, local=is_of_this_machine(request))
    return await run_in_threadpool(
        authenticator.authenticate,
        authorization,
        api_key=api_key,
        local=is_of_this_machine(request),
        address=address_of(request),
    )


async def _logged_in(request: HTTPConnection, logins: BrowserLogins, cookie: str) -> Caller:
    """Who is logged in with a browser. Its cookie comes along whichever page asks, so that has to be seen to."""
    caller = logins.known(cookie)
    if caller is None:
        try:
            caller = await run_in_threadpool(logins.authenticate, cookie, address=address_of(request))
        except AuthenticationError:
            # The reply has the browser forget it: otherwise it would be refused for as long as it sends that.
            request.state.login_refused = True
            raise
    logins.cookies.require_own_page(request)
    return caller


def address_of(request: HTTPConnection) -> str | None:
    """Where a request comes from: the caller's address, or that of a proxy that is not trusted to tell it."""
    return None if request.client is None else request.client.host


def is_of_this_machine(request: HTTPConnection) -> bool:
    """Whether a request without a credential can be nobody's but the user's of this machine.

    A server that listens on loopback alone is still reached by whom a proxy lets in, by pages of the web whose name was
    made to mean this machine (DNS rebinding), and by any page that this machine's browser shows. So nothing may have
    forwarded the request, its Host must mean this machine, and where a browser says which page makes it, that page must
    be this server's.
    """
    headers = request.headers
    if any(name in headers for name in _FORWARDING):
        return False
    if request.client is not None and _is_elsewhere(request.client.host):
        return False
    host = headers.get("host", "")
    if not is_loopback(name_of(host)):
        return False
    if headers.get("sec-fetch-site", "none") not in {"same-origin", "none"}:
        return False
    origin = headers.get("origin")
    return origin is None or urlsplit(origin).netloc == host


def _is_elsewhere(address: str) -> bool:
    try:
        return not ip_address(address).is_loopback
    except ValueError:  # a socket of this machine's file system has none
        return False


def require_no_credential_in_url(request: HTTPConnection) -> None:
    """Refuse a credential in the URL, which logs, histories and proxies keep.

    Raises:
        AuthenticationError: There is one.
    """
    if not request.scope["query_string"]:
        return
    query = request.url.query
    names = {name.lower() for name in request.query_params}
    if names & _QUERY_NAMES or _KEY.search(query):
        raise AuthenticationError(
            "A credential in a URL stays in logs: send it as a header (Authorization: Bearer …), and revoke this one."
        )


def _single(request: HTTPConnection, name: str) -> str | None:
    found = request.headers.getlist(name)
    if len(found) > 1:
        raise AuthenticationError(f"The request has {len(found)} headers {name.title()!r}: send one.")
    return found[0] if found else None
