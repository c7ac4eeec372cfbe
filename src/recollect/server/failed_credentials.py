"""Credentials that are not taken: counted by where they come from and by the key that they name, and slowed down.

No credential can be guessed: each holds 256 random bits, or a signature. What is saved is the work of looking each up,
and the log. So a good credential that is known costs nothing here, and one that was taken before is never refused for
what others send from the same address.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections import deque
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address, ip_network
from time import monotonic
from typing import TYPE_CHECKING

from cachetools import LRUCache, TTLCache

from recollect.errors import RateLimitedError, RecollectError
from recollect.model import Scope
from recollect.model.audit import AuditEntry
from recollect.server.limits import WINDOW_SECONDS
from recollect.store.limits import Bucket
from recollect.store.tenants import TenantDirectory

if TYPE_CHECKING:
    from recollect.pipeline import RAGPipeline

logger = logging.getLogger(__name__)

#: So long a credential that was taken is looked at again, however many others its address sends.
TRUSTED_SECONDS = 24 * 3600.0

#: An address or a key is noted in the audit once in so many seconds, and no more than so many in a minute.
NOTED_SECONDS = 600.0
MOST_NOTED_A_MINUTE = 10

# Of addresses, and of keys, there are so many counters at most, in memory and in the database: several addresses may
# share one, by a hash with a key that nobody else has.
_COUNTERS = 65_536
_MOST_TRUSTED = 16_384


class FailedCredentials:
    """Counts what is not taken, for all processes together. Safe to share between threads.

    Args:
        rag: The open store, in which it is counted.
        limit: So many a minute may an address send, and name a key; None: any number.
        observe: Told of each by its kind (``key``, ``token``, ``login``, ``code``), and whether it was one too many.
        clock: Seconds that never run backwards.
    """

    def __init__(
        self,
        rag: RAGPipeline,
        *,
        limit: int | None,
        observe: Callable[[str, bool], None] = lambda *_: None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._rag = rag
        self._limit = limit
        self._observe = observe
        self._clock = clock
        self._lock = threading.Lock()
        self._refused_until: LRUCache[str, float] = LRUCache(_COUNTERS)
        self._trusted: TTLCache[bytes, bool] = TTLCache(_MOST_TRUSTED, TRUSTED_SECONDS, timer=lambda: clock())
        self._noted: TTLCache[str, bool] = TTLCache(_COUNTERS, NOTED_SECONDS, timer=lambda: clock())
        self._noted_at: deque[float] = deque(maxlen=MOST_NOTED_A_MINUTE)
        self._salt: bytes | None = None

    def require_room(self, kind: str, address: str | None, digest: bytes) -> None:
        """Refuse to look up what comes from an address that has sent too much that was not taken. Asks nobody.

        Args:
            kind: Of the credential.
            address: Where it comes from.
            digest: Of the credential: one that was taken lately is looked up all the same.

        Raises:
            RateLimitedError: It is not looked up now.
        """
        with self._lock:
            wait = self._refused_until.get(_place(address), 0.0) - self._clock()
            if wait <= 0 or digest in self._trusted:
                return
        self._observe(kind, True)
        raise _refusal(wait)

    def taken(self, digest: bytes) -> None:
        """Note that a credential was taken."""
        with self._lock:
            self._trusted[digest] = True

    def count(self, kind: str, address: str | None, digest: bytes, *, key: str | None = None) -> None:
        """Count a credential that was not taken.

        Args:
            kind: Of the credential.
            address: Where it came from.
            digest: Of the credential.
            key: The public id of the key that it names.

        Raises:
            RateLimitedError: There were too many, from there or of that key.
        """
        wait = 0.0
        if self._limit is not None:
            with self._lock:
                self._trusted.pop(digest, None)
            for place in (_place(address), *([] if key is None else [f"key {key}"])):
                wait = max(wait, self._counted(place))
        self._observe(kind, wait > 0)
        if wait > 0:
            raise _refusal(wait)

    def _counted(self, place: str) -> float:
        """Count one for an address or a key; returns for how many seconds there were too many."""
        assert self._limit is not None
        with self._lock:
            wait = self._refused_until.get(place, 0.0) - self._clock()
        if wait > 0:
            return wait
        try:
            bucket = Bucket(name=self._name(place), size=self._limit, seconds=WINDOW_SECONDS / self._limit)
            taken = self._rag.standpoint.store.limits.take(self._scope, [bucket], wanted=1)
        except RecollectError as exc:
            # Whoever presents nothing that is taken is told that, whatever else is out of order.
            logger.warning("A credential that was not taken is not counted: %s", exc)
            return 0.0
        if taken.granted:
            return 0.0
        (wait,) = taken.waits
        with self._lock:
            self._refused_until[place] = self._clock() + wait
        self._note(place)
        return wait

    def _name(self, place: str) -> str:
        """A counter's name, which does not say of whom it is: no address stands in the database for this."""
        if self._salt is None:
            _, self._salt = TenantDirectory(self._rag.standpoint.store.caretaking).privacy(self._scope)
        kind, _, which = place.partition(" ")
        hashed = hashlib.blake2b(which.encode("utf-8", "replace"), key=self._salt[:64], digest_size=8).digest()
        return f"failed {kind} {int.from_bytes(hashed) % _COUNTERS}"

    def _note(self, place: str) -> None:
        """Write an address or a key that sends too much to the audit of the server's own tenant."""
        with self._lock:
            now, at = self._clock(), self._noted_at
            if place in self._noted or (len(at) == MOST_NOTED_A_MINUTE and now - at[0] < WINDOW_SECONDS):
                return
            self._noted[place] = True
            at.append(now)
        kind, _, which = place.partition(" ")
        entry = AuditEntry(action="credentials_refused", actor="server", details={kind: which, "limit": self._limit})
        try:
            self._rag.standpoint.store.audit.append(self._scope, [entry])
        except RecollectError as exc:
            logger.warning("That too many credentials were not taken is not in the audit: %s", exc)

    @property
    def _scope(self) -> Scope:
        return Scope(tenant_id=self._rag.standpoint.everything.tenant_id)


def _place(address: str | None) -> str:
    """An address, as far as it is one caller's: of IPv6 the network that a subscriber has."""
    try:
        found = ip_address((address or "").partition("%")[0])
    except ValueError:
        return f"address {(address or 'unknown')[:100]}"
    if isinstance(found, IPv6Address):
        if found.ipv4_mapped is not None:
            return f"address {found.ipv4_mapped}"
        return f"address {ip_network((found, 64), strict=False)}"
    return f"address {found}"


def _refusal(seconds: float) -> RateLimitedError:
    return RateLimitedError(
        "Too many credentials were not taken that came from this address, or named this key: try again later.",
        retry_after_seconds=seconds,
    )
