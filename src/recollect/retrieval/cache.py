"""Remembers the replies of searches for a while, each for exactly the caller, question and state that it was made for.

A key covers everything that a reply depends on: the query, the options and settings, the whole scope of the caller, and
the revision of every collection. An ingest, a deletion or a change of permissions makes new keys, so nothing is ever
invalidated: what is out of date is simply never asked for again, and falls out at the end of the list.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import UTC, date, datetime
from enum import Enum
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from recollect.errors import UsageError
from recollect.interruption import check, stoppable
from recollect.model import RetrievalOptions, RetrievedContext, Scope, SearchReply

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

MAX_ENTRIES = 1_000
TTL_SECONDS = 3_600.0

#: Passages that all entries hold together: a few replies of a thousand passages must not fill the memory.
MAX_PASSAGES = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultCacheCounts:
    """What the cache has done since it was made.

    Attributes:
        hits: Replies that were not computed, those included that waited for an equal search under way.
        misses: Replies that were computed, or failed to be.
        evictions: Entries that fell out because there was no room.
        expirations: Entries that were found to be too old.
        entries: Kept at this moment.
    """

    hits: int
    misses: int
    evictions: int
    expirations: int
    entries: int

    @property
    def hit_rate(self) -> float:
        """Share of hits, 0 before the first search."""
        return self.hits / max(1, self.hits + self.misses)


class _Flight:
    """A reply that one thread computes and others may wait for."""

    def __init__(self) -> None:
        self.landed: Future[None] = Future()
        self.reply: SearchReply | None = None
        self.error: Exception | None = None


@dataclass(slots=True)
class Claim:
    """What `ResultCache.claim` gives.

    Attributes:
        reply: The caller's own: changing its mappings changes no entry. None: the caller has to compute and set it.
        hit: Whether the reply was computed by another call.
        keep_seconds: How long a new reply may be kept, where that is less than the usual: 0 for one that an enhancement
            or a reranker failed for. None: the usual time.
    """

    reply: SearchReply | None = None
    hit: bool = False
    keep_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class _Entry:
    reply: SearchReply
    deadline: float


class ResultCache:
    """Least recently used replies, each for a limited time. Safe to share between threads.

    Equal searches at the same time are computed once. Failures are raised to all who wait, and not kept.

    Args:
        max_entries: Replies that are kept at most; 0 keeps none (equal concurrent searches are still computed once).
        ttl_seconds: How long a reply is kept.
        max_passages: Passages that all replies may hold together; a greater reply is not kept.
        clock: Seconds that never go back.

    Raises:
        UsageError: A number is out of range.
    """

    def __init__(
        self,
        *,
        max_entries: int = MAX_ENTRIES,
        ttl_seconds: float = TTL_SECONDS,
        max_passages: int = MAX_PASSAGES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if max_entries < 0 or max_passages < 0:
            raise UsageError(f"max_entries ({max_entries!r}) and max_passages ({max_passages!r}) must be 0 or more")
        if not ttl_seconds > 0:
            raise UsageError(
                f"ttl_seconds must be more than 0, not {ttl_seconds!r}; to keep nothing, set max_entries to 0"
            )
        self._max_entries = max_entries
        self._max_passages = max_passages
        self._ttl_seconds = ttl_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: OrderedDict[bytes, _Entry] = OrderedDict()
        self._flights: dict[bytes, _Flight] = {}
        self._passages = 0
        self._generation = 0
        self._hits = self._misses = self._evictions = self._expirations = 0

    @property
    def counts(self) -> ResultCacheCounts:
        """For ``status``."""
        with self._lock:
            return ResultCacheCounts(
                hits=self._hits,
                misses=self._misses,
                evictions=self._evictions,
                expirations=self._expirations,
                entries=len(self._entries),
            )

    def clear(self) -> None:
        """Forget every reply, those under way included; an erasure calls this. The counts stay."""
        with self._lock:
            self._entries.clear()
            # Those who wait already are served; whoever comes later computes anew.
            self._flights.clear()
            self._passages = 0
            self._generation += 1

    @contextmanager
    def claim(self, key: bytes) -> Iterator[Claim]:
        """The reply of a search, or the task to compute it, which falls to one of those who ask at the same time.

        Whoever is given no reply sets one, and may lower ``keep_seconds``; what they raise is raised to all who wait.

        Args:
            key: From `cache_key`. Whoever computes must not ask this cache for it again.

        Raises:
            Exception: Whatever another one raised who computed the reply.
        """
        while True:
            with self._lock:
                found = self._find(key)
                flight = self._flights.get(key)
                generation = self._generation
                if found is None and flight is None:
                    own = self._flights[key] = _Flight()
                    self._misses += 1
                    break
            if found is not None:
                shared: SearchReply | None = _own_copy(found)
            else:
                assert flight is not None, "the loop ends where there is neither"
                shared = self._wait(flight)
            if shared is not None:
                yield Claim(shared, hit=True)
                return
        claim = Claim()
        try:
            yield claim
            if claim.reply is not None:
                own.reply = _own_copy(claim.reply)
                self._settle(key, own.reply, claim.keep_seconds, generation)
        except Exception as exc:
            own.error = exc
            raise
        finally:
            with self._lock:
                if self._flights.get(key) is own:
                    del self._flights[key]
            own.landed.set_result(None)

    def _find(self, key: bytes) -> SearchReply | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        if self._clock() >= entry.deadline:
            self._drop(key)
            self._expirations += 1
            return None
        self._entries.move_to_end(key)
        self._hits += 1
        return entry.reply

    def _settle(self, key: bytes, reply: SearchReply, wanted: float | None, generation: int) -> None:
        seconds = self._ttl_seconds if wanted is None else min(wanted, self._ttl_seconds)
        with self._lock:
            if generation == self._generation:
                self._keep(key, reply, seconds)

    def _wait(self, flight: _Flight) -> SearchReply | None:
        """What the other thread computed; None where it was interrupted, so that somebody else must.

        Raises:
            Interrupted: Nobody waits for this one any more.
        """
        given_up: Future[None] = Future()
        with stoppable(partial(given_up.set_result, None)):
            wait([flight.landed, given_up], return_when=FIRST_COMPLETED)
            check()
        if flight.error is not None:
            raise flight.error
        if flight.reply is None:
            return None
        with self._lock:
            self._hits += 1
        return _own_copy(flight.reply)

    def _keep(self, key: bytes, reply: SearchReply, seconds: float) -> None:
        if seconds <= 0 or not self._max_entries or len(reply.results) > self._max_passages:
            return
        if key in self._entries:
            self._drop(key)
        self._entries[key] = _Entry(reply, self._clock() + seconds)
        self._passages += len(reply.results)
        while len(self._entries) > self._max_entries or self._passages > self._max_passages:
            self._drop(next(iter(self._entries)))
            self._evictions += 1

    def _drop(self, key: bytes) -> None:
        self._passages -= len(self._entries.pop(key).reply.results)


def cache_key(
    scope: Scope,
    query: str,
    options: RetrievalOptions,
    *,
    collections: Sequence[tuple[object, ...]],
    settings: object = None,
) -> bytes:
    """The key of a search: equal only where everything that its reply depends on is.

    Args:
        scope: Whose search: every field of it counts, so that no caller meets what was made for another.
        query: As asked.
        options: Every one.
        collections: Of each collection searched, in their order: its id (not its name alone: a collection that is
            deleted and made again is another one), its revision, read before the search, and what may be read of it.
        settings: What else decides the results: defaults of the search, synonyms' fingerprint, models. A frozen
            dataclass, or a tuple of simple values.

    Raises:
        UsageError: A value is of a type that has no canonical form.
    """
    digest = hashlib.blake2b(digest_size=24)
    _feed(digest.update, (scope, query, options, collections, settings))
    return digest.digest()


def _feed(update: Callable[[bytes], object], value: object) -> None:
    """Hash a value with its type and length, so that no two different values look alike."""
    if value is None or (isinstance(value, (bool, int, float, str, bytes)) and not isinstance(value, Enum)):
        content = value if isinstance(value, bytes) else repr(value).encode("utf-8", "surrogatepass")
        update(b"%s %d:" % (type(value).__name__.encode(), len(content)))
        update(content)
    elif isinstance(value, Enum):
        _feed(update, (type(value).__name__, value.value))
    elif isinstance(value, (datetime, date)):
        # One instant is one instant in whatever zone it is written.
        aware = isinstance(value, datetime) and value.tzinfo is not None
        moment = value.astimezone(UTC) if isinstance(value, datetime) and aware else value
        _feed(update, (type(value).__name__, moment.isoformat()))
    else:
        _feed_compound(update, value)


def _feed_compound(update: Callable[[bytes], object], value: object) -> None:
    if is_dataclass(value) and not isinstance(value, type):
        # Most options are left as they are, and walking through them all would take longer than the look-up.
        items: list[object] = [
            (name, given)
            for name, default in _defaults(type(value))
            if not _same(given := getattr(value, name), default)
        ]
    elif isinstance(value, Mapping):
        items = [*sorted(((_canonical(key), _canonical(item)) for key, item in value.items()))]
    elif isinstance(value, Set):
        items = [*sorted(_canonical(item) for item in value)]
    elif isinstance(value, Sequence):
        items = list(value)
    else:
        raise UsageError(f"A value of type {type(value).__name__} cannot be part of a search: {value!r}.")
    kind = "list" if isinstance(value, (list, tuple)) else type(value).__name__
    update(b"%s %d[" % (kind.encode(), len(items)))
    for item in items:
        _feed(update, item)
    update(b"]")


def _same(given: object, default: object) -> bool:
    # Of one type, because True is equal to 1.
    return given is default or (type(given) is type(default) and given == default)


@lru_cache(maxsize=64)
def _defaults(kind: type[DataclassInstance]) -> tuple[tuple[str, object], ...]:
    """The fields of a dataclass with their defaults, MISSING where there is none."""
    return tuple((field.name, field.default) for field in fields(kind))


def fingerprint(value: object) -> bytes:
    """What stands for a value in a key: made once for what never changes, because walking through it takes time.

    Raises:
        UsageError: It is of a type that has no canonical form.
    """
    return hashlib.blake2b(_canonical(value), digest_size=24).digest()


def _canonical(value: object) -> bytes:
    parts: list[bytes] = []
    _feed(parts.append, value)
    return b"".join(parts)


def _own_copy(reply: SearchReply) -> SearchReply:
    return replace(
        reply,
        results=tuple(map(_own_passage, reply.results)),
        timings_ms=dict(reply.timings_ms),
        paths=dict(reply.paths),
    )


def _own_passage(passage: RetrievedContext) -> RetrievedContext:
    return replace(passage, metadata=_own_json(dict(passage.metadata))) if passage.metadata else passage


def _own_json(value: Any) -> Any:  # noqa: ANN401 - whatever JSON holds
    if isinstance(value, dict):
        return {key: _own_json(item) for key, item in value.items()}
    return [_own_json(item) for item in value] if isinstance(value, list) else value
