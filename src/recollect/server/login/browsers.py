"""Browsers that are logged in: who presents a cookie, and how it comes to one."""

from __future__ import annotations

import hashlib
import threading
from datetime import UTC, datetime
from time import monotonic
from typing import TYPE_CHECKING

from cachetools import TTLCache

from recollect.errors import AuthenticationError, RecollectError
from recollect.model import Scope
from recollect.model.key_text import draw_login, read_key, read_login
from recollect.model.login import Login, NewLogin
from recollect.server.caller import BrowserLogin, Caller, Credential
from recollect.server.login.cookies import Cookies
from recollect.server.login.sealing import seal, unseal
from recollect.store.logins import LoginRepository

if TYPE_CHECKING:
    from recollect.config.server import ServerConfig
    from recollect.pipeline import RAGPipeline
    from recollect.server.failed_credentials import FailedCredentials

#: So long a cookie that was looked up is taken without another look, like a key.
CACHE_SECONDS = 5.0
_MOST_CACHED = 4096


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
        self._known: TTLCache[bytes, Caller] = TTLCache(_MOST_CACHED, CACHE_SECONDS, timer=lambda: monotonic())
        self._lock = threading.Lock()

    def known(self, text: str) -> Caller | None:
        """Who presents a cookie that was looked up within `CACHE_SECONDS`; None: it must be. Asks nobody."""
        with self._lock:
            known = self._known.get(_digest(text))
        if known is None or known.login is None:
            return None
        return known if datetime.now(UTC) < min(known.login.idle_until, known.login.expires_at) else None

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
        digest = _digest(text)
        self._failures.require_room("login", address, digest)
        try:
            given = read_login(text)
            login = self._repository.presented(Scope(tenant_id=given.tenant_id), given)
        except AuthenticationError:
            self._failures.count("login", address, digest)
            raise
        self._failures.taken(digest)
        caller = _caller(login)
        with self._lock:
            self._known[digest] = caller
        return caller

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
        with self._lock:
            self._known.clear()

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


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()
