"""Who asks: what a request's credential says of whose knowledge, as whom, and what it opens."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal

from cachetools import TTLCache

from recollect.errors import PermissionDeniedError, UsageError
from recollect.model import DEFAULT_TENANT_ID
from recollect.model.key import ACCESS_SCOPES, AccessScope, BrowserLogin, KeyMaker
from recollect.pipeline.refreshing import DIRECTORY, reader_of, uses_machine

if TYPE_CHECKING:
    from recollect.model import Principal
    from recollect.pipeline import RAGPipeline, View


_OPENS: dict[AccessScope, str] = {
    "read": "searches, asks and reads documents",
    "write": "ingests, deletes and remembers",
    "admin": "administers its tenant",
    "operator": "looks after the tenants",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """What somebody was known by: never a secret, so that it may stand in logs and in the audit.

    Attributes:
        kind: ``key``: an API key; ``jwt``: a bearer token of an issuer; ``oidc``: the word of an issuer that the user
            logged in with; ``local``: nothing, on this machine.
        id: The key's public id, or the user that the issuer names.
        expires_at: When it ends; None: it does not say.
    """

    kind: Literal["key", "jwt", "oidc", "local"]
    id: str
    expires_at: datetime | None = None

    def __str__(self) -> str:
        return self.kind if self.kind == "local" else f"{self.kind}:{self.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Somebody who asks. What they may is decided here and by the view, never by a route.

    Attributes:
        tenant: Whose knowledge, by number.
        principal: As whom; None: as the owner of the tenant's store.
        scopes: What the credential opens.
        credential: What they were known by.
        login: The browser's login that they ask with; None: they present the credential itself.
    """

    tenant: int
    principal: Principal | None
    scopes: frozenset[AccessScope]
    credential: Credential = field(default_factory=lambda: Credential(kind="local", id="local"))
    login: BrowserLogin | None = None

    @classmethod
    def local(cls, tenant: int = DEFAULT_TENANT_ID) -> Caller:
        """The one user of a server that nobody else reaches."""
        return cls(tenant=tenant, principal=None, scopes=frozenset(ACCESS_SCOPES))

    def require(self, scope: AccessScope) -> Caller:
        """The caller, where the credential opens that.

        Raises:
            PermissionDeniedError: It does not.
        """
        if scope not in self.scopes:
            raise PermissionDeniedError(
                f"This needs a credential with the scope {scope!r}, which {_OPENS[scope]}; this one has "
                f"{', '.join(one for one in ACCESS_SCOPES if one in self.scopes) or 'none'}."
            )
        return self

    def view(self, rag: RAGPipeline) -> View:
        """What the caller sees."""
        return rag.view(tenant=self.tenant, principal=self.principal, actor=self.actor)

    def administration(self, rag: RAGPipeline) -> View:
        """What whoever administers the tenant sees: its owner's view, whoever they are beside that.

        Raises:
            PermissionDeniedError: The credential has not the scope ``admin``.
        """
        self.require("admin")
        return self.owner(rag)

    def owner(self, rag: RAGPipeline) -> View:
        """What the owner of the tenant's store sees, for callers whose scope was checked before."""
        return rag.view(tenant=self.tenant, principal=None, actor=self.actor)

    def rights(self, rag: RAGPipeline) -> View:
        """What the caller sees of who may do what, and changes: the one rule of the pages and of ``/v1/grants``.

        Whoever administers the tenant has its owner's view. Whoever may write has their own, which shows and changes
        the grants of what is theirs: collections that they own, documents that they have stored. A credential of
        nobody in particular, for which everything is its own, has to be an administrator's.

        Raises:
            PermissionDeniedError: The caller is none of these.
        """
        if "admin" in self.scopes:
            return self.administration(rag)
        if self.principal is None or "write" not in self.scopes:
            self.require("admin")
        return self.view(rag)

    @property
    def is_over(self) -> bool:
        """Whether the credential, or the browser's login, has ended."""
        ends = [self.credential.expires_at]
        if self.login is not None:
            ends += [self.login.idle_until, self.login.expires_at]
        now = datetime.now(UTC)
        return any(end is not None and end <= now for end in ends)

    @property
    def actor(self) -> str:
        """The caller's name in the audit: the user, and the key that it was."""
        user = None if self.principal is None else self.principal.user_id
        if user is None:
            return str(self.credential)
        return f"user:{user}" if self.credential.kind in {"jwt", "oidc"} else f"user:{user} ({self.credential})"

    @property
    def maker(self) -> KeyMaker:
        """What keys that the caller makes may not go beyond. A token that ends soon is renewed: it limits no key."""
        ends = self.credential.expires_at if self.credential.kind == "key" else None
        return KeyMaker(scopes=tuple(self.scopes), expires_at=ends)


#: So long a credential that was looked up is taken without another look: a revocation ends it in all processes by then,
#: and so does the suspension or erasure of its tenant.
CACHE_SECONDS = 5.0
#: Of so many credentials at most; the ones that were not used longest go.
MOST_CACHED = 4096


class KnownCallers:
    """Callers whose credential was looked up within `CACHE_SECONDS`. Safe to share between threads."""

    def __init__(self) -> None:
        self._known: TTLCache[bytes, Caller] = TTLCache(MOST_CACHED, CACHE_SECONDS, timer=lambda: monotonic())
        self._lock = threading.Lock()

    def __len__(self) -> int:
        with self._lock:
            return len(self._known)

    def get(self, text: str) -> Caller | None:
        """Who presents a credential; None: it must be looked up."""
        with self._lock:
            known = self._known.get(digest_of(text))
        return None if known is None or known.is_over else known

    def add(self, text: str, caller: Caller) -> Caller:
        """Note who presents a credential."""
        with self._lock:
            self._known[digest_of(text)] = caller
        return caller

    def forget(self) -> None:
        """Have all of them looked up anew."""
        with self._lock:
            self._known.clear()


def digest_of(text: str) -> bytes:
    """What is kept of a credential."""
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()


# What is read with the server's own files and credentials is for whoever runs it to say.


def require_machine(caller: Caller, location: str, *, connector: str | None, settings: Mapping[str, Any]) -> None:
    """Refuse a source that a caller may not have the server read.

    Whoever administers a tenant names what everybody could read: sites, public repositories, buckets that are open.
    Folders of the server's machine and its credentials would show them what belongs to others.

    Raises:
        PermissionDeniedError: It takes the server's files or credentials, and the caller does not run the server.
        UsageError: A folder is not named by its whole path.
    """
    if not uses_machine(location, connector=connector, settings=settings):
        return
    if "operator" not in caller.scopes:
        raise PermissionDeniedError(
            "This source is read with files or credentials of the server's machine: that needs a key of whoever runs "
            "the server (scope 'operator'). Sites, public repositories and open buckets need none."
        )
    if reader_of(location, connector=connector) == DIRECTORY and not Path(location).is_absolute():
        raise UsageError(
            f"{location[:200]!r} is a folder of the server's machine, not of this one: name it by its whole path there."
        )
