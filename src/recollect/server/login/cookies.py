"""The cookies of a login, and what a browser has to say for a request with one to be believed."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.requests import cookie_parser

from recollect.errors import PermissionDeniedError

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection
    from starlette.responses import Response

_NAME = "recollect_login"
# A browser takes a cookie of this name from the host itself, over an encrypted connection, for all of its paths, or not
# at all: no other name below the same domain can set it.
_HOST_ONLY = "__Host-"

_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
_OWN_PAGES = frozenset({"same-origin", "none"})


class Cookies:
    """Reads and sets the cookies of one server.

    Args:
        public_url: How browsers reach the server; None: as each request came.
    """

    def __init__(self, public_url: str | None) -> None:
        self._public = None if public_url is None else urlsplit(public_url)

    def is_encrypted(self, request: HTTPConnection) -> bool:
        """Whether the browser's connection is encrypted: to the server, or to the proxy before it."""
        return (request.scope["scheme"] if self._public is None else self._public.scheme) == "https"

    def base(self, request: HTTPConnection) -> str:
        """How the browser reaches the server, without a slash at the end."""
        return (str(request.base_url) if self._public is None else self._public.geturl()).rstrip("/")

    def path(self, request: HTTPConnection, path: str) -> str:
        """A path of the server as the browser sees it, below the one that a proxy gives it."""
        return urlsplit(self.base(request)).path + path

    def login(self, request: HTTPConnection) -> str | None:
        """What the cookie of a login holds; None: the browser sends none."""
        return self.get(request, _NAME)

    def get(self, request: HTTPConnection, name: str) -> str | None:
        """What a cookie holds; None: the browser sends none."""
        sent = request.headers.get("cookie")
        if sent is None or name not in sent:
            return None
        return cookie_parser(sent).get(self._full(request, name)) or None

    def names(self, request: HTTPConnection, beginning: str) -> list[str]:
        """The names of the cookies that the browser sends and whose names begin like this."""
        prefix = self._full(request, "")
        sent = [name.removeprefix(prefix) for name in request.cookies if name.startswith(prefix)]
        return [name for name in sent if name.startswith(beginning)]

    def set_login(self, request: HTTPConnection, response: Response, text: str, *, seconds: float) -> None:
        """Have the browser keep a login."""
        self.set(request, response, _NAME, text, seconds=seconds)

    def clear_login(self, request: HTTPConnection, response: Response) -> None:
        """Have the browser forget its login."""
        self.clear(request, response, _NAME)

    def set(self, request: HTTPConnection, response: Response, name: str, text: str, *, seconds: float) -> None:
        """Have the browser keep a cookie.

        ``Lax``, because a link from elsewhere is to open as whoever is logged in, and because the issuer sends the
        browser back by one; with ``Strict`` both would come without the cookie. Requests that change something do not
        rely on it (`require_own_page`).
        """
        response.set_cookie(
            self._full(request, name),
            text,
            max_age=int(seconds),
            path="/",
            secure=self.is_encrypted(request),
            httponly=True,
            samesite="lax",
        )

    def clear(self, request: HTTPConnection, response: Response, name: str) -> None:
        """Have the browser forget a cookie."""
        self.set(request, response, name, "", seconds=0)

    def require_own_page(self, request: HTTPConnection) -> None:
        """Refuse a request that could change something, unless the browser says that a page of this server makes it.

        Every browser of today says so with each such request: ``Sec-Fetch-Site`` over encrypted connections and on
        this machine, ``Origin`` everywhere. Pages cannot set either. What says neither is refused, so nothing depends
        on a token that pages would have to carry, and nothing on who else has a name below the same domain.

        Raises:
            PermissionDeniedError: It is not, or the browser does not say so.
        """
        if request.scope["method"] in _SAFE_METHODS:
            return
        site = request.headers.get("sec-fetch-site")
        if (site in _OWN_PAGES) if site is not None else self._is_own(request, request.headers.get("origin")):
            return
        raise PermissionDeniedError(
            "A browser's login changes something only for pages of this server, and this request does not say that one "
            "of them makes it (Sec-Fetch-Site: same-origin, or Origin). Programs present a key."
        )

    def require_no_other_page(self, request: HTTPConnection) -> None:
        """Refuse a request that the browser says another site's page makes; one that says nothing is let pass.

        Raises:
            PermissionDeniedError: It does.
        """
        said = "sec-fetch-site" in request.headers or "origin" in request.headers
        if said:
            self.require_own_page(request)

    def _is_own(self, request: HTTPConnection, origin: str | None) -> bool:
        if not origin:
            return False
        named = [request.headers.get("host", "").lower()]
        if self._public is not None:
            named.append(self._public.netloc.lower())
        return urlsplit(origin).netloc.lower() in named

    def _full(self, request: HTTPConnection, name: str) -> str:
        return f"{_HOST_ONLY}{name}" if self.is_encrypted(request) else name
