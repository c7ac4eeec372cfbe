"""Which collections are held in memory: loaded in the background, brought up to date, and let go."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from recollect.errors import RecollectError
from recollect.forking import renew_in_children
from recollect.interruption import carried_through
from recollect.model import Scope
from recollect.model.status import ResidentCopy
from recollect.retrieval.resident.generation import Generation, Part
from recollect.retrieval.resident.segment import Segment

if TYPE_CHECKING:
    from recollect.model.collection import Collection
    from recollect.store.resident import ResidentRepository, Snapshot

logger = logging.getLogger(__name__)

#: What is held is compared with the store so often, in seconds, whether it is searched or not.
FOLLOW_SECONDS = 5.0

# What is held takes at most this share of the machine's memory, where no other bound is set.
_SHARE = 8

# More changes than these are not applied one by one: the collection is loaded anew.
_MOST_VERSIONS = 10_000

# So many chunks may stand beside the base, and of a large base a share of it.
_BESIDE = 2_000
_BESIDE_SHARE = 20

# What was searched within so many seconds keeps its place, and what found none is tried again after as long.
_IDLE_SECONDS = 60.0

# What failed is tried again after as long, then after twice that, and so on: it doubles so often.
_DOUBLED = 6

# What a chunk takes beside its vector: its words, mostly.
_WORDS_BYTES = 600

_CONTAINER_LIMIT = Path("/sys/fs/cgroup/memory.max")

_Key = tuple[int, int]


@dataclass(slots=True, eq=False)
class _Held:
    """A collection in memory."""

    generation: Generation
    name: str
    used: float
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResidentUsage:
    """What is held in memory.

    Attributes:
        collections: How many.
        chunks: Of these.
        bytes: That they take.
        budget: Bytes that they may take.
        answered: Searches of a collection that were answered from memory, since the process began.
        missed: Those that were not.
        dropped: Copies that were let go because they did not say what the store says.
    """

    collections: int
    chunks: int
    bytes: int
    budget: int
    answered: int
    missed: int
    dropped: int


def budget_bytes(megabytes: int | None) -> int:
    """How much memory copies may take: as configured, or a share of the machine's, or of what its container may use."""
    if megabytes is not None:
        return megabytes * 1024 * 1024
    memory = psutil.virtual_memory().total
    with suppress(OSError, ValueError):  # "max", where there is no limit
        memory = min(memory, int(_CONTAINER_LIMIT.read_text(encoding="ascii")))
    return memory // _SHARE


class ResidentCollections:
    """Holds copies of collections. Safe to share between threads; what fails leaves searches to the database.

    Args:
        repository: Reads them.
        budget: Bytes that all of them may take together; 0: none is held.
        follow_seconds: See `FOLLOW_SECONDS`.
        clock: Seconds that never go back.
    """

    def __init__(
        self,
        repository: ResidentRepository,
        *,
        budget: int,
        follow_seconds: float = FOLLOW_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._repository = repository
        self._budget = budget
        self._follow_seconds = follow_seconds
        self._clock = clock
        self._begin()
        renew_in_children(self)

    def _begin(self) -> None:
        self._held: dict[_Key, _Held] = {}
        self._wanted: dict[_Key, str] = {}
        self._failed: dict[_Key, int] = {}
        self._refused: dict[_Key, float] = {}
        self._answered = self._missed = self._dropped = self._forgotten = 0
        self._lock = threading.Lock()
        self._turn = threading.Condition(self._lock)
        self._threads: list[threading.Thread] = []
        self._closed = False

    def renew_in_child(self) -> None:
        """In the child of a fork: nothing is held, and no thread runs."""
        self._begin()

    def find(self, scope: Scope, collection: Collection) -> Generation | None:
        """The copy of a collection as it is, or as it has become since it was looked up; None: there is none."""
        if not self._budget or collection.hidden:
            return None
        key = scope.tenant_id, collection.collection_id
        held = self._held.get(key)
        generation = None if held is None else self._current(key, held, collection)
        if generation is None:
            self._missed += 1
            self._want(key, collection)
        else:
            self._answered += 1
        return generation

    def follow(self) -> None:
        """Bring every copy up to date, whether it is searched or not; what was erased is not kept for longer."""
        for key, held in list(self._held.items()):
            with self._giving_up(key, held.name), carried_through():
                self._follow(key, held)

    def usage(self) -> ResidentUsage:
        """What is held at this moment."""
        held = list(self._held.values())
        return ResidentUsage(
            collections=len(held),
            chunks=sum(one.generation.chunks for one in held),
            bytes=sum(one.generation.nbytes for one in held),
            budget=self._budget,
            answered=self._answered,
            missed=self._missed,
            dropped=self._dropped,
        )

    def copy_of(self, scope: Scope, collection: Collection) -> ResidentCopy | None:
        """What is held of a collection; None: nothing."""
        held = self._held.get((scope.tenant_id, collection.collection_id))
        if held is None:
            return None
        generation = held.generation
        return ResidentCopy(chunks=generation.chunks, bytes=generation.nbytes, revision=generation.revision)

    def drop(self, scope: Scope, collection: Collection, *, why: str) -> None:
        """Let a copy go that does not say what the store says. The next search has it loaded again."""
        if self._let_go((scope.tenant_id, collection.collection_id)):
            self._dropped += 1
            logger.warning("The copy of %s in memory is dropped: %s", collection.name, why)

    def forget(self) -> None:
        """Let everything go, because something was erased; what is searched is loaded again."""
        with self._lock:
            self._forgotten += 1
            self._held.clear()
            self._refused.clear()

    def close(self) -> None:
        """Hold nothing any more; idempotent."""
        with self._turn:
            self._closed = True
            self._turn.notify_all()
        self.forget()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(self._follow_seconds)

    # Following what changes.

    def _current(self, key: _Key, held: _Held, collection: Collection) -> Generation | None:
        held.used = self._clock()
        generation: Generation | None = held.generation
        if generation is not None and generation.revision_id != collection.revision_id:
            generation = None
            with self._giving_up(key, collection.name):
                generation = self._followed(key, held, collection.revision_id)
        # Another space than the collection's own is being tried, and is not held.
        return generation if generation is not None and generation.space_id == collection.space_id else None

    def _followed(self, key: _Key, held: _Held, wanted: str | None = None) -> Generation | None:
        """The copy with all that has changed since; None, and it is let go, where that is not known or too much."""
        with held.lock:
            known = held.generation
            if known.revision_id == wanted:
                return known
            with self._repository.snapshot(Scope(tenant_id=key[0])) as snapshot:
                generation = _next(known, snapshot, key[1])
            if generation is None:
                self._let_go(key)
                return None
            held.generation = generation
            if not self._within_budget():
                self._let_go(key)
                self._refuse(key, held.name)
                return generation
        if _is_behind(generation) or generation.erased:
            self._call(key, held.name)
        return generation

    def _let_go(self, key: _Key) -> bool:
        with self._lock:
            return self._held.pop(key, None) is not None

    # Loading, in the background.

    def _want(self, key: _Key, collection: Collection) -> None:
        if key in self._wanted or self._refused.get(key, 0.0) > self._clock():
            return
        self._call(key, collection.name)

    def _call(self, key: _Key, name: str) -> None:
        """Have a collection loaded, or what stands beside its base joined to it."""
        with self._turn:
            if self._closed:
                return
            self._wanted[key] = name
            self._start()
            self._turn.notify_all()

    def _start(self) -> None:
        if self._threads or self._closed:
            return
        # What is erased leaves the memory in time, also while a large collection is loaded.
        for work in (self._run, self._run_follow):
            self._threads.append(threading.Thread(target=work, name="recollect-resident", daemon=True))
            self._threads[-1].start()

    def _run(self) -> None:
        while True:
            with self._turn:
                self._turn.wait_for(lambda: self._closed or bool(self._wanted))
                if self._closed:
                    return
                wanted = next(iter(self._wanted.items()))
            with self._giving_up(*wanted), carried_through():
                self._load_or_join(*wanted)
            with self._lock:
                self._wanted.pop(wanted[0], None)

    def _run_follow(self) -> None:
        while True:
            with self._turn:
                if self._turn.wait_for(lambda: self._closed, self._follow_seconds):
                    return
            self.follow()

    @contextmanager
    def _giving_up(self, key: _Key, name: str) -> Iterator[None]:
        """Let a copy go that cannot be loaded or followed; the database answers instead."""
        try:
            yield
        except RecollectError as exc:
            # Suspended, deleted, or the server is away: searches say so themselves.
            self._let_go(key)
            logger.info("%s is not held in memory: %s", name, exc)
        except Exception:
            self._let_go(key)
            failed = self._failed[key] = self._failed.get(key, 0) + 1
            seconds = _IDLE_SECONDS * 2 ** min(failed - 1, _DOUBLED)
            self._refused[key] = self._clock() + seconds
            told = "%s could not be held in memory; the database answers. It is tried again after %.0f seconds."
            logger.warning(told, name, seconds, exc_info=True)
        else:
            self._failed.pop(key, None)

    def _load_or_join(self, key: _Key, name: str) -> None:
        held = self._held.get(key)
        if held is None:
            self._load(key, name)
        else:
            self._join(held)

    def _join(self, held: _Held) -> None:
        """Join what stands beside a base to it, where that is much or some of the base was erased."""
        known = held.generation
        if not known.erased and not _is_behind(known):
            return
        compacted = known.compacted()
        with held.lock:
            # Where it has changed meanwhile, the next search applies those changes once more, to the new base. One that
            # was joined meanwhile may have been rid of what was erased.
            if held.generation.base.segment is known.base.segment:
                held.generation = compacted

    def _load(self, key: _Key, name: str) -> None:
        forgotten = self._forgotten
        with self._repository.snapshot(Scope(tenant_id=key[0]), aside=True) as snapshot:
            state = snapshot.state(key[1])
            if state is None:
                return
            if not self._has_room(
                key, name, state.chunks * (2 * state.dimension + state.dimension // 8 + _WORDS_BYTES)
            ):
                return
            contents = snapshot.contents(state)
            term_counts = snapshot.term_counts(key[1])
        segment = Segment.of(contents, dimension=state.dimension, reference_length=state.reference_length)
        generation = Generation(
            revision=state.revision,
            revision_id=state.revision_id,
            space_id=state.space_id,
            reference_length=state.reference_length,
            term_counts=term_counts,
            base=Part(segment),
        )
        if not self._has_room(key, name, generation.nbytes):
            return
        with self._lock:
            # What was read before an erasure may hold what was erased.
            if not self._closed and forgotten == self._forgotten:
                self._held[key] = _Held(generation, name, self._clock())

    def _has_room(self, key: _Key, name: str, size: int) -> bool:
        """Whether a copy fits in, once those have gone that were not used lately."""
        with self._lock:
            held = sorted(self._held, key=lambda one: self._held[one].used)
            taken = sum(one.generation.nbytes for one in self._held.values())
            while taken + size > self._budget and held and self._held[held[0]].used < self._clock() - _IDLE_SECONDS:
                taken -= self._held.pop(held.pop(0)).generation.nbytes
            if taken + size <= self._budget:
                return True
        self._refuse(key, name)
        return False

    def _within_budget(self) -> bool:
        return sum(one.generation.nbytes for one in list(self._held.values())) <= self._budget

    def _refuse(self, key: _Key, name: str) -> None:
        self._refused[key] = self._clock() + _IDLE_SECONDS
        logger.info(
            "There is no room for %s in memory: raise resident_memory_mb in [rag.retrieval] for faster searches.",
            name,
        )

    def _follow(self, key: _Key, held: _Held) -> None:
        if self._followed(key, held) is not None:
            self._join(held)


def _next(known: Generation, snapshot: Snapshot, collection_id: int) -> Generation | None:
    changes, state = snapshot.changes(collection_id, known.revision, known.revision_id), snapshot.state(collection_id)
    if changes is None or state is None or len(changes.version_ids) > _MOST_VERSIONS:
        return None
    if changes.revision_id == known.revision_id:
        return known
    if (state.space_id, state.reference_length) != (known.space_id, known.reference_length):
        return None
    changed = list(changes.version_ids)
    return known.changed(
        changed,
        snapshot.contents(state, changed),
        revision=changes.revision,
        revision_id=changes.revision_id,
        term_counts=snapshot.term_counts(collection_id) if changes.terms_counted else known.term_counts,
        erased=len(snapshot.still_there(changed)) < len(changed),
    )


def _is_behind(generation: Generation) -> bool:
    return generation.behind > max(_BESIDE, len(generation.base.segment) // _BESIDE_SHARE)
