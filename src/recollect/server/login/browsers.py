"""Browsers that are logged in: who presents a cookie, and how it comes to one."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from starlette.requests import cookie_parser

from recollect.errors import PermissionDeniedError, RecollectError
from recollect.model import Scope
from recollect.model.key import BrowserLogin, Login, NewLogin, draw_login, read_key, read_login
from recollect.server.caller import Caller, Credential, KnownCallers, digest_of
from recollect.store.logins import LoginRepository

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection
    from starlette.responses import Response

    from recollect.config.server import ServerConfig
    from recollect.pipeline import RAGPipeline
    from recollect.server.limits import FailedCredentials


class BrowserLogins:
    """Says who presents a cookie, and makes and ends logins. Safe to share between threads.

    Args:
        rag: The open store, whose logins they are.
        config: Of the server.
        failures: Counts cookies that are not taken.
    """

    def __init__(self, rag: RAGPipeline, config: ServerConfig, failures: FailedCredentials) -> None:
        self._rag = rag
        self._config = config.login
        self._failures = failures
        self.cookies = Cookies(config.public_url)
        self._known = KnownCallers()

    def known(self, text: str) -> Caller | None:
        """Who presents a cookie that was looked up a moment ago; None: it must be. Asks nobody."""
        return self._known.get(text)

    def authenticate(self, text: str, *, address: str | None) -> Caller:
        """Who presents a cookie.

        Args:
            text: What it holds.
            address: Where the request comes from.

        Raises:
            AuthenticationError: It is of no login that is taken.
            RateLimitedError: Too many credentials from there were not taken.
            TenantSuspendedError: It is of a tenant that is suspended.
        """
        with self._failures.looking_up("login", address, digest_of(text)):
            given = read_login(text)
            login = self._repository.presented(Scope(tenant_id=given.tenant_id), given)
        return self._known.add(text, _caller(login))

    def open_with_key(self, caller: Caller, key: str) -> NewLogin:
        """A login of whoever has presented a key that was taken."""
        scope, text = Scope(tenant_id=caller.tenant), draw_login(caller.tenant)
        login = self._repository.create_with_key(
            scope,
            text,
            key=read_key(key),
            idle_seconds=self._config.idle_seconds,
            lifetime_seconds=self._config.lifetime_seconds,
            actor=caller.actor,
        )
        return NewLogin(login=login, secret=text.text)

    def open_with_token(self, caller: Caller, id_token: str) -> NewLogin:
        """A login of a user for whom an issuer vouches, as its token says."""
        scope, text = Scope(tenant_id=caller.tenant), draw_login(caller.tenant)
        assert caller.principal is not None, "an issuer names a user"
        login = self._repository.create_with_token(
            scope,
            text,
            scopes=sorted(caller.scopes),
            principal=caller.principal,
            id_token=seal(id_token, text.text),
            idle_seconds=self._config.idle_seconds,
            lifetime_seconds=self._config.lifetime_seconds,
            actor=caller.actor,
        )
        return NewLogin(login=login, secret=text.text)

    def end(self, caller: Caller, text: str) -> str | None:
        """End the login of whoever asks; returns the issuer's token that it was made with, for the logout there."""
        assert caller.login is not None, "they are logged in"
        scope = Scope(tenant_id=caller.tenant)
        _, sealed = self._repository.end(scope, caller.login.login_id, actor=caller.actor)
        self.forget()
        return None if sealed is None else unseal(sealed, text)

    def replace(self, text: str) -> None:
        """End the login whose cookie a browser had before it logged in anew, where there is one."""
        try:
            self.end(self.authenticate(text, address=None), text)
        except RecollectError:
            return  # it had ended, or is not to be had now: then it ends by its time

    @property
    def lifetime_seconds(self) -> float:
        """After how long a login ends, however much it is used."""
        return self._config.lifetime_seconds

    def forget(self) -> None:
        """Look up every cookie anew: a login, or the key of one, was ended here."""
        self._known.forget()

    @property
    def _repository(self) -> LoginRepository:
        return LoginRepository(self._rag.standpoint.store.caretaking)


def _caller(login: Login) -> Caller:
    if login.key_id is None:
        user = "" if login.principal is None else login.principal.user_id or ""
        credential = Credential(kind="oidc", id=user)
    else:
        credential = Credential(kind="key", id=login.key_id, expires_at=login.key_expires_at)
    return Caller(
        tenant=login.tenant_id,
        principal=login.principal,
        scopes=frozenset(login.scopes),
        credential=credential,
        login=BrowserLogin(
            login_id=login.login_id,
            created_at=login.created_at,
            idle_until=login.idle_until,
            expires_at=login.expires_at,
        ),
    )


# What is kept for a browser so that only the browser's own cookie opens it again.


# A key is derived from one secret for one text, so no two texts meet the same key.
_NONCE = bytes(12)


def seal(text: str, secret: str) -> bytes:
    """Encrypt a text with a secret of 256 random bits, of which nothing but a hash is kept."""
    return AESGCM(_key(secret)).encrypt(_NONCE, text.encode(), None)


def unseal(sealed: bytes, secret: str) -> str | None:
    """The text; None: it was sealed with another secret, or was changed."""
    try:
        return AESGCM(_key(secret)).decrypt(_NONCE, sealed, None).decode()
    except InvalidTag:
        return None


def _key(secret: str) -> bytes:
    return HKDF(SHA256(), length=32, salt=None, info=b"recollect login").derive(secret.encode())


# The cookies of a login, and what a browser has to say for a request with one to be believed.


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
