"""How much a caller may ask for (requests, answers, bytes), and how many wrong credentials an address may send.

What is left is counted in the database, for all processes. A process takes a few tokens at a time, so that most
requests ask nobody: as many as a quarter of a second allows. What it takes and does not use is
lost to the caller, never gained.
"""

from __future__ import annotations

import hashlib
import logging
import math
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import IPv6Address, ip_address, ip_network
from time import monotonic
from typing import TYPE_CHECKING, Literal

from cachetools import LRUCache, TTLCache

from recollect.errors import AuthenticationError, RateLimitedError, RecollectError
from recollect.model import Scope
from recollect.model.audit import AuditEntry
from recollect.store.admission import Bucket
from recollect.store.tenants import TenantDirectory

if TYPE_CHECKING:
    from recollect.config.server import LimitsConfig
    from recollect.pipeline import RAGPipeline
    from recollect.server.caller import Caller
    from recollect.store.admission import LimitRepository, Taken


LimitKind = Literal["ingest", "search", "answer"]


WINDOW_SECONDS = 60


# Of the tokens that a process takes at once: those of so long a time, which it keeps as long.
_LEASE_SECONDS = 0.25


_MOST_LEASES = 16_384


#: Streams of jobs that a credential follows at once: each looks at its job again and again.
MOST_FOLLOWED = 100


# A file that is read range by range is counted once for so long, and so many ranges.
_READ_SECONDS = 300.0


_MOST_RANGES = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitPolicy:
    """One limit, as a reply tells it.

    Attributes:
        name: ``search``, or ``search-tenant``: what all of the tenant's callers have together.
        quota: Requests in `WINDOW_SECONDS`.
        remaining: How many are left.
        reset_seconds: After how long they are all there again.
    """

    name: str
    quota: int
    remaining: int
    reset_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitState:
    """What a caller may still ask for, after the request that was just counted.

    Attributes:
        policies: The limits; none where nothing is limited.
        retry_after_seconds: None: the request is allowed.
    """

    policies: tuple[LimitPolicy, ...] = ()
    retry_after_seconds: float | None = None

    def headers(self) -> dict[str, str]:
        """As the fields of HTTP: ``RateLimit-Policy`` and ``RateLimit`` (draft-ietf-httpapi-ratelimit-headers-10)."""
        if not self.policies:
            return {}
        told = {
            "RateLimit-Policy": ", ".join(f'"{one.name}";q={one.quota};w={WINDOW_SECONDS}' for one in self.policies),
            "RateLimit": ", ".join(
                f'"{one.name}";r={max(one.remaining, 0)};t={math.ceil(one.reset_seconds)}' for one in self.policies
            ),
        }
        if self.retry_after_seconds is not None:
            told["Retry-After"] = str(max(1, math.ceil(self.retry_after_seconds)))
        return told

    def refusal(self, kind: LimitKind) -> RateLimitedError:
        """What whoever asks too much is told."""
        seconds = self.retry_after_seconds or 0.0
        return RateLimitedError(
            f"Too many requests of the kind {kind!r}: the next one is taken in {max(1, math.ceil(seconds))} seconds.",
            retry_after_seconds=seconds,
        )


_UNLIMITED = LimitState()


@dataclass(slots=True)
class _Read:
    """A file that somebody reads range by range."""

    until: float
    ranges: int = 0


@dataclass(slots=True)
class _Lease:
    """Tokens that this process has taken for a caller."""

    tokens: int = 0
    until: float = 0.0
    refused_until: float = 0.0
    policies: tuple[LimitPolicy, ...] = field(default=())


class Limits:
    """Counts what callers ask for. Safe to share between threads; the one user of this machine is not limited.

    Args:
        rag: The pipeline in whose store it is counted.
        config: How much is allowed.
        clock: Seconds that never run backwards.
        refused: Told of each request that is refused: whose, by the tenant's number, and of which kind.
    """

    def __init__(
        self,
        rag: RAGPipeline,
        config: LimitsConfig,
        *,
        clock: Callable[[], float] = monotonic,
        refused: Callable[[int, LimitKind], object] = lambda *_: None,
    ) -> None:
        self._refused = refused
        self._rag = rag
        self._config = config
        self._clock = clock
        self._lock = threading.Lock()
        self._leases: LRUCache[tuple[int, str], _Lease] = LRUCache(_MOST_LEASES)
        self._answering: Counter[tuple[int, str]] = Counter()
        self._following: Counter[tuple[int, str]] = Counter()
        self._reads: LRUCache[tuple[object, ...], _Read] = LRUCache(_MOST_LEASES)

    def begin_read(self, caller: Caller, what: tuple[object, ...]) -> None:
        """Note that somebody begins to read a file, which was counted; one that they read already goes on."""
        with self._lock:
            key, now = (*_place(caller, "search"), *what), self._clock()
            read = self._reads.get(key)
            if read is None or read.until < now or read.ranges >= _MOST_RANGES:
                self._reads[key] = _Read(until=now + _READ_SECONDS)

    def goes_on(self, caller: Caller, what: tuple[object, ...]) -> bool:
        """Whether another range of a file belongs to a read that was counted, and is not counted itself.

        What draws the pages of a file asks for it piece by piece. A read lasts some minutes, and so many ranges.
        """
        with self._lock:
            read = self._reads.get((*_place(caller, "search"), *what))
            if read is None or read.until < self._clock() or read.ranges >= _MOST_RANGES:
                return False
            read.ranges += 1
            return True

    def check(self, caller: Caller, kind: LimitKind) -> LimitState:
        """Count a request that is to be made.

        Raises:
            RateLimitedError: There were too many; this one is not counted.
        """
        found = self.count(caller, kind)
        if found.retry_after_seconds is not None:
            raise found.refusal(kind)
        return found

    def count(self, caller: Caller, kind: LimitKind) -> LimitState:
        """Count a request; where there were too many, it is not, and the state says so."""
        known = self.look(caller, kind)
        if known is not None:
            return known
        buckets = self._buckets(caller, kind)
        lease_size = max(1, min(int(_LEASE_SECONDS / bucket.seconds) for bucket in buckets))
        taken = self._repository.take(Scope(tenant_id=caller.tenant), buckets, wanted=lease_size)
        with self._lock:
            return self._noted(caller, kind, buckets, taken)

    def look(self, caller: Caller, kind: LimitKind) -> LimitState | None:
        """As `count`, where nobody has to be asked; None: the database must be."""
        buckets = self._buckets(caller, kind)
        if not buckets:
            return _UNLIMITED
        with self._lock:
            lease, now = self._leases.get(_place(caller, kind)), self._clock()
            if lease is None:
                return None
            if now < lease.refused_until:
                self._refused(caller.tenant, kind)
                return LimitState(policies=lease.policies, retry_after_seconds=lease.refused_until - now)
            if lease.tokens < 1 or now > lease.until:
                return None
            lease.tokens -= 1
            return LimitState(policies=_with(lease.policies, lease.tokens))

    def begin_answer(self, caller: Caller) -> Callable[[int], None]:
        """Count an answer that is being written, which keeps a language model, a thread and a connection busy.

        Returns:
            What counts it as written; to be called once, with the status of the reply.

        Raises:
            RateLimitedError: So many are being written by this process, for all callers or for this one, as may be.
        """
        config = self._config
        with self._lock:
            if self._answering.total() >= config.concurrent_answers:
                self._refused(caller.tenant, "answer")
                raise _busy("This server writes as many answers at once as it may")
            most = config.concurrent_answers_per_credential
            what = "As many answers as your credential may have at once are being written"
            return self._begun(self._answering, caller, "answer", most, what)

    def begin_following(self, caller: Caller) -> Callable[[int], None]:
        """As `begin_answer`, of a stream that follows a job."""
        with self._lock:
            what = f"You follow {MOST_FOLLOWED} jobs at once already"
            return self._begun(self._following, caller, "search", MOST_FOLLOWED, what)

    def _begun(
        self, under_way: Counter[tuple[int, str]], caller: Caller, kind: LimitKind, most: int, what: str
    ) -> Callable[[int], None]:
        place = _place(caller, kind)
        if under_way[place] >= most:
            self._refused(caller.tenant, kind)
            raise _busy(what)
        under_way[place] += 1

        def ended(_: int) -> None:
            with self._lock:
                under_way[place] -= 1
                if not under_way[place]:
                    del under_way[place]

        return ended

    @contextmanager
    def admitted(self, caller: Caller, kind: LimitKind, byte_count: int = 0) -> Iterator[None]:
        """Count a call that is made within the block, and what it stores; for calls that are no requests of their own.

        Raises:
            RateLimitedError: There were too many; it is not to be made.
        """
        self.check(caller, kind)
        if byte_count:
            self.upload(caller, byte_count)
        ended = self.begin_answer(caller) if kind == "answer" else None
        try:
            yield
        except BaseException:
            self.give_back_upload(caller, byte_count)
            raise
        finally:
            if ended is not None:
                ended(200)

    def upload(self, caller: Caller, byte_count: int) -> None:
        """Count bytes that a caller uploads, before they are read or as they come.

        Raises:
            RateLimitedError: The tenant has uploaded as much today (UTC) as it may; these are not counted.
        """
        limit, scope = self._config.upload_bytes_per_day, Scope(tenant_id=caller.tenant)
        if limit is None or self._repository.upload(scope, byte_count, limit=limit) is not None:
            return
        self._refused(caller.tenant, "ingest")
        now = datetime.now(UTC)
        tomorrow = (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
        seconds = (tomorrow - now).total_seconds()
        raise RateLimitedError(
            f"The tenant may upload {limit:,} bytes a day and has uploaded {self._repository.uploaded(scope):,} today: "
            f"{byte_count:,} more are too many before midnight (UTC).",
            retry_after_seconds=seconds,
        )

    def give_back_upload(self, caller: Caller, byte_count: int) -> None:
        """Count bytes as not uploaded, of a request that ended before they came."""
        if self._config.upload_bytes_per_day is not None and byte_count > 0:
            self._repository.give_back(Scope(tenant_id=caller.tenant), byte_count)

    @property
    def limits_uploads(self) -> bool:
        """Whether a tenant may send only so much in a day."""
        return self._config.upload_bytes_per_day is not None

    @property
    def _repository(self) -> LimitRepository:
        return self._rag.standpoint.store.limits

    def _buckets(self, caller: Caller, kind: LimitKind) -> list[Bucket]:
        if caller.credential.kind == "local":
            return []
        own: int | None = getattr(self._config, kind)
        tenants: int | None = getattr(self._config, f"tenant_{kind}")
        named = ((f"{kind} {caller.credential}", own), (kind, tenants))
        return [Bucket(name=name, size=size, seconds=WINDOW_SECONDS / size) for name, size in named if size is not None]

    def _noted(self, caller: Caller, kind: LimitKind, buckets: list[Bucket], taken: Taken) -> LimitState:
        """Keep what was granted beyond the one that is used now."""
        now = self._clock()
        lease = self._leases.setdefault(_place(caller, kind), _Lease())
        lease.policies = tuple(
            LimitPolicy(
                name=kind if " " in bucket.name else f"{kind}-tenant",
                quota=bucket.size,
                remaining=remaining,
                reset_seconds=(bucket.size - remaining) * bucket.seconds,
            )
            for bucket, remaining in zip(buckets, taken.remaining, strict=True)
        )
        if taken.granted < 1:
            # As long as the emptiest of them.
            empty = [wait for wait, left in zip(taken.waits, taken.remaining, strict=True) if left < 1]
            lease.tokens, lease.refused_until = 0, now + max(empty)
            self._refused(caller.tenant, kind)
            return LimitState(policies=lease.policies, retry_after_seconds=max(empty))
        # Another thread may have taken some at the same time.
        lease.tokens = (lease.tokens if now <= lease.until else 0) + taken.granted - 1
        lease.until, lease.refused_until = now + _LEASE_SECONDS, 0.0
        return LimitState(policies=_with(lease.policies, lease.tokens))


def _place(caller: Caller, kind: LimitKind) -> tuple[int, str]:
    return caller.tenant, f"{kind} {caller.credential}"


def _with(policies: tuple[LimitPolicy, ...], tokens: int) -> tuple[LimitPolicy, ...]:
    return tuple(
        LimitPolicy(name=one.name, quota=one.quota, remaining=one.remaining + tokens, reset_seconds=one.reset_seconds)
        for one in policies
    )


def _busy(what: str) -> RateLimitedError:
    return RateLimitedError(f"{what}: try again in a moment.", retry_after_seconds=1.0)


# Credentials that are not taken: counted by where they come from and by the key that they name, and slowed down.
#
# No credential can be guessed: each holds 256 random bits, or a signature. What is saved is the work of looking each
# up, and the log. So a good credential that is known costs nothing here, and one that was taken before is never
# refused for what others send from the same address.


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
            wait = self._refused_until.get(_network_of(address), 0.0) - self._clock()
            if wait <= 0 or digest in self._trusted:
                return
        self._observe(kind, True)
        raise _refusal(wait)

    @contextmanager
    def looking_up(self, kind: str, address: str | None, digest: bytes, *, key: str | None = None) -> Iterator[None]:
        """A block that looks a credential up, and raises `AuthenticationError` where it is not taken, which is counted.

        Args:
            kind: Of the credential.
            address: Where it comes from.
            digest: Of the credential.
            key: The public id of the key that it names.

        Raises:
            RateLimitedError: It is not looked up now, or there were too many, from there or of that key.
        """
        if kind != "token":  # which is verified without asking the database
            self.require_room(kind, address, digest)
        try:
            yield
        except AuthenticationError:
            self.count(kind, address, digest, key=key)
            raise
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
            for place in (_network_of(address), *([] if key is None else [f"key {key}"])):
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


def _network_of(address: str | None) -> str:
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
