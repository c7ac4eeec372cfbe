"""Who asks: API keys, bearer tokens, browsers that are logged in, and the one user of a server for this machine."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from ipaddress import ip_address
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from starlette.concurrency import run_in_threadpool

from recollect.errors import AuthenticationError, ConfigurationError, NotFoundError, PermissionDeniedError
from recollect.model.key import PREFIX, SECRET_PATTERN, read_key
from recollect.server.caller import Caller, Credential, KnownCallers, digest_of
from recollect.server.limits import FailedCredentials
from recollect.server.login.browsers import BrowserLogins
from recollect.server.login.issuer import Issuer
from recollect.server.requests import is_loopback, name_of
from recollect.server.tokens import TokenClaims, TokenVerifier

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection

    from recollect.config.server import ServerConfig
    from recollect.model.key import ApiKey, NewLogin, WidgetUse
    from recollect.pipeline import RAGPipeline
    from recollect.server.login.issuer import LoginAttempt


#: What programs for OpenAI's API are given as a key where none is needed, since they insist on sending one. Any other
#: text was meant for somebody, and is not passed over.
PLACEHOLDERS = frozenset(
    {"local", "none", "no-key", "not-needed", "empty", "dummy"}
    | {"recollect", "ollama", "lm-studio", "sk-no-key-required"}
)


_BEARER = "bearer"


class Authenticator:
    """Says who presents a credential. Safe to share between threads.

    Args:
        rag: The open store, whose credentials they are.
        config: Whom the server lets in; None: as the store's settings say.
        environment: Where the variables are looked up that settings name.
        observe: Told of each credential that is not taken, by its kind, and whether it was one too many.

    Attributes:
        failures: Counts what is not taken.
        logins: The browsers that are logged in.
        issuer: Whom people log in with; None: nobody is configured.

    Raises:
        ConfigurationError: Tokens are to be taken, and their key or the client's secret cannot be used.
    """

    def __init__(
        self,
        rag: RAGPipeline,
        config: ServerConfig | None = None,
        *,
        environment: Mapping[str, str] = os.environ,
        observe: Callable[[str, bool], None] = lambda *_: None,
    ) -> None:
        self._rag = rag
        self._config = config = config or rag.config.server
        self._tokens = TokenVerifier(config.jwt, environment) if config.jwt.configured else None
        oidc = config.login.oidc
        self.issuer = Issuer(oidc, config.jwt, environment) if oidc.configured else None
        self.failures = FailedCredentials(rag, limit=config.limits.failed_credentials, observe=observe)
        self.logins = BrowserLogins(rag, config, self.failures)
        self._known = KnownCallers()

    @property
    def admits_local(self) -> bool:
        """Whether somebody on this machine needs no credential: of a server that nobody else reaches."""
        known_otherwise = self._tokens is not None or self.issuer is not None
        return self._config.authentication == "auto" and not known_otherwise and is_loopback(self._config.host)

    @property
    def takes_keys_of_browsers(self) -> bool:
        """Whether people log in with API keys."""
        return self._config.login.keys

    def require_usable(self) -> None:
        """Refuse to serve where anybody could come, and nobody could be known.

        Raises:
            ConfigurationError: Everybody needs a credential, and there is none.
        """
        scope = self._rag.standpoint.everything
        if self.admits_local or self._tokens is not None or self.issuer is not None:
            return
        if not self._rag.standpoint.store.keys.any_active(scope):
            raise ConfigurationError(
                f"On {self._config.host} everybody needs a credential, and there is none yet. Make a key: recollect "
                "keys create NAME; or take tokens: [rag.server.jwt]; or have people log in: [rag.server.login.oidc]. "
                "Without, serve on 127.0.0.1 and leave authentication out."
            )

    def authenticate(
        self,
        authorization: str | None,
        *,
        api_key: str | None = None,
        local: bool = False,
        address: str | None = None,
    ) -> Caller:
        """Who presents a credential.

        Args:
            authorization: The header of that name: ``Bearer`` and an API key or a token.
            api_key: The header ``X-API-Key``.
            local: Whether the request can be nobody's but this machine's user's (`recollect.server.authentication`).
            address: Where the request comes from.

        Raises:
            AuthenticationError: There is none where one is needed, or it is not taken.
            RateLimitedError: Too many credentials from there, or of that key, were not taken.
            TenantSuspendedError: It is a key of a tenant that is suspended.
            FetchError: The keys of the tokens' issuer cannot be fetched now.
        """
        text = _presented(authorization, api_key)
        if text is None:
            if local and self.admits_local:
                return Caller.local(self._rag.standpoint.everything.tenant_id)
            raise AuthenticationError(
                "This needs a credential: Authorization: Bearer and an API key (recollect keys create NAME)"
                + (" or a token." if self._tokens else "."),
                missing=True,
            )
        if local and self.admits_local and text.lower() in PLACEHOLDERS:
            # It opens nothing that was not open without it.
            return Caller.local(self._rag.standpoint.everything.tenant_id)
        return self._known.get(text) or self._known.add(text, self._looked_up(text, address))

    def log_in_with_key(self, key: str, *, address: str | None, admit: Callable[[Caller], object]) -> NewLogin:
        """Log a browser in with an API key.

        Args:
            key: As it was typed.
            address: Where the browser is.
            admit: Raises where the caller has asked for too much.

        Raises:
            AuthenticationError: It is not taken.
            PermissionDeniedError: This server takes none of browsers.
            RateLimitedError: Too many credentials from there, or of that key, were not taken, or it logs in too often.
            TenantSuspendedError: It is a key of a tenant that is suspended.
        """
        if not self.takes_keys_of_browsers:
            raise PermissionDeniedError("This server takes no keys at its login page ([rag.server.login] keys).")
        caller = self.authenticate(None, api_key=key, address=address)
        admit(caller)
        return self.logins.open_with_key(caller, key)

    def log_in_with_code(self, code: str, attempt: LoginAttempt, *, redirect_uri: str, address: str | None) -> NewLogin:
        """Log a browser in that the issuer has sent back.

        Args:
            code: As the browser brought it.
            attempt: That it belongs to.
            redirect_uri: As when the attempt was begun.
            address: Where the browser is.

        Raises:
            AuthenticationError: The issuer's word is not taken.
            IssuerError: The issuer does not answer as it has to.
            RateLimitedError: Too many credentials from there were not taken.
            TenantSuspendedError: It is a user of a tenant that is suspended.
        """
        assert self.issuer is not None, "the attempt was begun with it"
        digest = digest_of(attempt.state)
        self.failures.require_room("code", address, digest)
        try:
            claims, id_token = self.issuer.exchange(code, attempt, redirect_uri=redirect_uri)
            caller = self._of_claims(claims, kind="oidc")
        except AuthenticationError:
            self.failures.count("code", address, digest)
            raise
        return self.logins.open_with_token(caller, id_token)

    def known(self, authorization: str | None, *, api_key: str | None = None) -> Caller | None:
        """As `authenticate`, of a credential that was looked up a moment ago; None: it must be. Asks nobody.

        Raises:
            AuthenticationError: It is none.
        """
        text = _presented(authorization, api_key)
        return None if text is None else self._known.get(text)

    @property
    def cached(self) -> int:
        """How many credentials are taken without another look."""
        return len(self._known)

    def forget(self) -> None:
        """Look up every credential anew: one was revoked here."""
        self._known.forget()
        self.logins.forget()

    def _looked_up(self, text: str, address: str | None) -> Caller:
        is_key = text.startswith(PREFIX)
        named = _named_key(text) if is_key else None
        with self.failures.looking_up("key" if is_key else "token", address, digest_of(text), key=named):
            return self._of_key(text) if is_key else self._of_token(text)

    def authenticate_widget(self, text: str, *, address: str | None = None) -> tuple[Caller, WidgetUse]:
        """Who asks with a widget on a page of another site, and what the key is for.

        Args:
            text: The key that the page holds.
            address: Where the request comes from.

        Raises:
            AuthenticationError: It is no key of a widget, or is not taken.
            RateLimitedError: Too many credentials from there, or of that key, were not taken.
            TenantSuspendedError: It is a key of a tenant that is suspended.
        """
        if not text.isascii():
            raise AuthenticationError("The credential is no API key.")
        with self.failures.looking_up("key", address, digest_of(text), key=_named_key(text)):
            key = self._rag.keys.authenticate(text)
            if key.widget is None:
                raise AuthenticationError(
                    "This is no key of a widget, and a page is no place for another one: revoke it."
                )
        return _caller(key), key.widget

    def _of_key(self, text: str) -> Caller:
        key = self._rag.keys.authenticate(text)
        if key.widget is not None:
            raise AuthenticationError(f"The API key {key.key_id!r} is of a widget, and opens nothing else.")
        return _caller(key)

    def _of_token(self, text: str) -> Caller:
        if self._tokens is None:
            raise AuthenticationError(
                "That is no API key, and this server takes no tokens ([rag.server.jwt])."
                + (" On this machine send none, or local, where a program insists on one." if self.admits_local else "")
            )
        return self._of_claims(self._tokens.verify(text), kind="jwt")

    def _of_claims(self, claims: TokenClaims, *, kind: Literal["jwt", "oidc"]) -> Caller:
        assert claims.principal.user_id is not None, "a token names a user"
        return Caller(
            tenant=self._tenant(claims),
            principal=claims.principal,
            scopes=claims.scopes,
            credential=Credential(kind=kind, id=claims.principal.user_id, expires_at=claims.expires_at),
        )

    def _tenant(self, claims: TokenClaims) -> int:
        """The tenant that a token names; where the store has several, one that names none is nobody's."""
        directory = self._rag.standpoint.store.tenants
        if claims.tenant is not None:
            try:
                return directory.number(claims.tenant)
            except NotFoundError:
                raise AuthenticationError("The token names a tenant that does not exist.") from None
        required = self._config.jwt.require_tenant
        if required or (required is None and len(directory.page(limit=2)) > 1):
            raise AuthenticationError(f"The token names no tenant ({self._config.jwt.claims.tenant!r}).")
        return self._rag.standpoint.everything.tenant_id


def _caller(key: ApiKey) -> Caller:
    return Caller(
        tenant=key.tenant_id,
        principal=key.principal,
        scopes=frozenset(key.scopes),
        credential=Credential(kind="key", id=key.key_id, expires_at=key.expires_at),
    )


def _presented(authorization: str | None, api_key: str | None) -> str | None:
    """The one credential of a request; None: there is none."""
    if authorization is not None and api_key is not None:
        raise AuthenticationError("Two credentials were presented (Authorization and X-API-Key): present one.")
    if authorization is None:
        text = api_key
    else:
        scheme, _, text = authorization.partition(" ")
        if scheme.lower() != _BEARER:
            raise AuthenticationError("Authorization must be Bearer and an API key or a token.")
        text = text.strip(" ")
    if text is None:
        return None
    if not text or not text.isascii() or not text.isprintable() or " " in text:
        raise AuthenticationError("The credential is neither an API key nor a token.")
    if api_key is not None and not text.startswith(PREFIX):
        raise AuthenticationError("That is no API key: one begins with rk_.")
    return text


def _named_key(text: str) -> str | None:
    """The public part of a key that somebody presents; None: it is not written like one."""
    try:
        key = read_key(text)
    except AuthenticationError:
        return None
    return f"{key.tenant_id} {key.key_id}"


# What a request says of who asks, before anybody is believed: its headers, and where it comes from.


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
