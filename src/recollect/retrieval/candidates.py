"""Where a search looks, and the protocol below fusion: what is asked of each collection, and what is found."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from recollect.errors import TenantSuspendedError, UsageError
from recollect.interruption import check, current
from recollect.model.scope import asked_for
from recollect.retrieval.analysis import Analyzer, analyzer_of
from recollect.store.database import CollectionRevision

if TYPE_CHECKING:
    from recollect.embedding.base import Vectors
    from recollect.model import Scope, SearchMode
    from recollect.model.collection import Collection
    from recollect.model.scope import Guest, Target
    from recollect.retrieval.enhance.plan import QueryPlan
    from recollect.store.filters import MatchingVersions
    from recollect.store.past import PastParts
    from recollect.store.store import Store


@dataclass(frozen=True, slots=True)
class PooledStatistics:
    """What collections that are searched together say of a query's words: BM25 of all can be compared only by these.

    Attributes:
        elsewhere: Chunks of the other collections that hold a word, by the lexeme that it has here.
        chunks: Of all collections.
        average_length: Of all these chunks, in terms.
        usually_beside: How many chunks stand beside one of these in its document, on average: 0 to 2.
    """

    elsewhere: Mapping[int, int]
    chunks: int
    average_length: float
    usually_beside: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateRequest:
    """What is asked of one collection.

    Attributes:
        collection: As whoever searches sees it: with its ``access_ids``, where not all of it may be read.
        plan: The query, and what was added to it.
        mode: Whether candidates are found by meaning, by words, or both.
        top_k: Passages wanted: by words alone, as many are proven to be the best.
        limit: Candidates that each way contributes.
        versions: The document versions that pass the filter; None: no filter.
        embedding: The query's vector; None: by words alone, and no similarities are wanted.
        needs_vectors: Whether every candidate's stored vector is wanted.
        past: The parts of the history where what was known at the scope's moment is looked for through indexes; None:
            by ``versions``, or in the present.
        pooled: Of a search of several collections: the statistics of all; None: this one is searched alone.
    """

    collection: Collection
    plan: QueryPlan
    mode: SearchMode
    top_k: int
    limit: int
    versions: MatchingVersions | None = None
    embedding: Vectors | None = None
    needs_vectors: bool = False
    past: PastParts | None = None
    pooled: PooledStatistics | None = None

    @property
    def version_ids(self) -> list[int] | None:
        """The versions that candidates may come from, None for all."""
        return self.versions.version_ids if self.versions else None

    @property
    def empty(self) -> bool:
        """Whether nothing can be found, because nothing passes the filter or was known."""
        return (self.versions is not None and not self.versions.version_ids) or (
            self.past is not None and not self.past
        )


@dataclass(slots=True)
class Candidates:
    """What was found, and what is known of each candidate in the end.

    Attributes:
        dense: (chunk_id, cosine similarity), best first.
        lexical: (chunk_id, BM25 score), best first.
        similarities: Of every candidate, where there is a query vector.
        bm25: Of every candidate, where the query has terms.
        in_context: The same of each read together with the chunks beside it, where both ways went.
        coverage: The share of the query's words, by their rarity in the collection, that each candidate holds.
        paths: How each way went.
        embedding: The query's vector, where there is one.
        vectors: Stored vectors: of every candidate where that was asked for, otherwise of some.
        weights: The query's weight of each lexeme that the collection has.
        dense_exact: Whether every chunk was compared.
        lexical_exact: Whether the best by words are known to have been found.
        comparable: The similarities on one scale, where several models measured them; ``dense`` is ordered by it.
        models: The model that measured each candidate, where there are several.
    """

    dense: list[tuple[int, float]] = field(default_factory=list)
    lexical: list[tuple[int, float]] = field(default_factory=list)
    similarities: dict[int, float] = field(default_factory=dict)
    bm25: dict[int, float] = field(default_factory=dict)
    in_context: dict[int, float] = field(default_factory=dict)
    coverage: dict[int, float] = field(default_factory=dict)
    paths: dict[str, str] = field(default_factory=dict)
    embedding: Vectors | None = None
    vectors: dict[int, Vectors] = field(default_factory=dict)
    weights: Mapping[int, float] = field(default_factory=dict)
    dense_exact: bool = True
    lexical_exact: bool = True
    comparable: Mapping[int, float] = field(default_factory=dict)
    models: Mapping[int, str] = field(default_factory=dict)

    @property
    def known(self) -> set[int]:
        """Every chunk of which a score is known."""
        return {*self.similarities, *self.bm25}

    @property
    def lexical_scores(self) -> Mapping[int, float]:
        """How well each candidate answers by words: in its context, where that was looked at."""
        return {**self.bm25, **self.in_context}

    @property
    def nearness(self) -> Mapping[int, float]:
        """How near each candidate is, comparable whatever model measured it."""
        return self.comparable or self.similarities

    @property
    def nearest(self) -> list[tuple[int, float]]:
        """(chunk_id, nearness), best first."""
        if not self.comparable:
            return list(self.dense)
        return [(chunk_id, self.comparable[chunk_id]) for chunk_id, _ in self.dense]

    @property
    def exact(self) -> bool:
        """Whether both ways are known to have found their best."""
        return self.dense_exact and self.lexical_exact


class CandidateSource(Protocol):
    """Finds candidates; `recollect.retrieval.sql_candidates.SqlCandidates` does so in the database.

    What a filter means, who may read what, which moment is searched: all of it is settled in the scope and the request.
    Fusion, reranking, texts, notes and explanations come afterwards, whatever the source. Shared between threads.
    """

    def candidates(self, scope: Scope, request: CandidateRequest, watch: Stopwatch) -> Candidates:
        """The best chunks of one collection by meaning and by words, each with both scores.

        Args:
            scope: As whom, and as of when.
            request: What is asked.
            watch: Times the stages.
        """
        ...

    def frequencies(self, scope: Scope, request: CandidateRequest) -> Mapping[str, int]:
        """In how many chunks of the collection each word of the query stands; none where no words count."""
        ...

    def similarities(
        self, scope: Scope, embedding: Vectors, chunk_ids: Sequence[int], *, space_ids: Sequence[int]
    ) -> dict[int, float]:
        """Cosine similarities of chunks that another request found, by their vectors in the spaces searched."""
        ...


def analyzer_for(collection: Collection) -> Analyzer:
    """What turns questions to a collection into terms, in each language that its documents are analysed in."""
    return analyzer_of(collection.language, collection.languages)


# Milliseconds by stage.


class Stopwatch:
    """Times the stages of one search; stages may overlap, in several threads."""

    def __init__(self) -> None:
        self._timings_ms: dict[str, float] = {}
        self._start = time.perf_counter()

    def stage(self, name: str) -> AbstractContextManager[None]:
        """Time what happens inside; a stage that comes twice is added up.

        Raises:
            Interrupted: Nobody waits for the search any more.
        """
        return _Stage(self._timings_ms, name)

    def timings_ms(self) -> Mapping[str, float]:
        """Every stage so far, and ``total`` since the beginning, to the microsecond."""
        timings = {**self._timings_ms, "total": (time.perf_counter() - self._start) * 1000}
        return {stage: round(milliseconds, 3) for stage, milliseconds in timings.items()}


class _Stage:
    # A search has a dozen of them: made by `contextmanager`, each would take twice as many steps.
    __slots__ = ("_name", "_start", "_timings_ms")

    def __init__(self, timings_ms: dict[str, float], name: str) -> None:
        self._timings_ms = timings_ms
        self._name = name

    def __enter__(self) -> None:
        # Seldom can anybody give up.
        if current.get() is not None:
            check()
        self._start = time.perf_counter()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            elapsed_ms = (time.perf_counter() - self._start) * 1000
            self._timings_ms[self._name] = self._timings_ms.get(self._name, 0.0) + elapsed_ms


# From the target of a search to the collections that it looks into, as they are and as whoever searches sees them.


#: What the reply of a search of every collection names as its collection.
EVERYWHERE = "*"


@dataclass(frozen=True, slots=True)
class Searched:
    """One collection of a search.

    Attributes:
        scope: As whom it is read.
        collection: As it is.
        label: What replies call it.
        hides_expired: Whether something in it has expired that could not be closed, so that the search leaves it out.
        record: Its row as text, where an earlier search looked it up: nothing is shown before that is known to be as it
            is now. None: it was looked up for this search.
    """

    scope: Scope
    collection: Collection
    label: str
    hides_expired: bool = False
    record: str | None = None

    @property
    def revision(self) -> CollectionRevision:
        """What a replica must have to be searched in its place."""
        return CollectionRevision(self.scope.tenant_id, self.collection.collection_id, self.collection.revision)

    @property
    def kept(self) -> bool:
        """Whether a reply may be kept: no revision tells when the next document expires, or when a session ends."""
        return not self.hides_expired and not self.collection.hidden


def heading(target: Target, searched: Sequence[Searched]) -> str:
    """What a reply names as its collection."""
    if target.collections is None and target.session is None:
        return EVERYWHERE
    if target.shared and target.collections:
        return target.collections[0]
    return ", ".join([one.label for one in searched] or (target.collections or ()))


def tells_origins(target: Target, searched: Sequence[Searched]) -> bool:
    """Whether each passage of a reply names its collection: more than one was looked for."""
    return len(searched) > 1 or bool(target.shared) or (target.collections is None and target.session is None)


class OutdatedError(Exception):
    """A search began with a collection as it was remembered, and it is another by now: look it up, and search again."""


# Collections that are remembered, for each caller.
_MOST_REMEMBERED = 1_024


class TargetResolver:
    """Finds the collections of targets. Safe to share between threads.

    Args:
        store: Where they are.
        auto_expire: Whether what has expired is closed, or left out, before a search of the present.
        seen: What is searched in place of a collection; None: itself.
    """

    def __init__(
        self, store: Store, *, auto_expire: bool, seen: Callable[[Collection], Collection] | None = None
    ) -> None:
        self._store = store
        self._seen = seen
        self._auto_expire = auto_expire
        # What was looked up last, and whether the time before it was the same.
        self._known: dict[tuple[Scope, str], tuple[Searched, bool]] = {}

    def remembered(self, scope: Scope, target: Target) -> list[Searched] | None:
        """The one collection of a target, where it was the same the last two times; what changes is looked up."""
        known = self._known.get((scope, target.collections[0])) if target.collections else None
        if known is None or not known[1] or not self._is_remembered(scope, target):
            return None
        asked_for(scope)
        return [known[0]]

    def forget(self) -> None:
        """Remember nothing of what was looked up."""
        self._known.clear()

    def resolve(self, scope: Scope, target: Target) -> list[Searched]:
        """The collections of a target: the session's, the scope's own, and what others share.

        Raises:
            UsageError: It names none.
            NotFoundError: One that it names, and that is not optional, does not exist for the scope.
        """
        if target.collections == () and target.session is None:
            raise UsageError("Name at least one collection to search.")
        found = [*self._session(target.session), *self._own(scope, target), *self._shared(target.shared)]
        unexpired = [self._unexpired(one) for one in found]
        if self._seen is None:
            return unexpired
        return [replace(one, collection=self._seen(one.collection)) for one in unexpired]

    def changed_rights(self, searched: Sequence[Searched]) -> list[Searched] | None:
        """The same collections as they are to be searched again, because what may be read of one of them changed.

        Returns:
            None: whatever the search could find may be read.

        Raises:
            NotFoundError: One of them does not exist any more for whom it was searched.
        """
        changed = [
            None if one.scope.principal is None else self._store.collections.changed_rights(one.scope, one.collection)
            for one in searched
        ]
        if not any(changed):
            return None
        return [replace(one, collection=now) if now else one for one, now in zip(searched, changed, strict=True)]

    def _session(self, session: Guest | None) -> Iterator[Searched]:
        if session is not None:
            collection = self._store.collections.get(session.scope, session.collection)
            yield Searched(session.scope, collection, session.label)

    def _own(self, scope: Scope, target: Target) -> Iterator[Searched]:
        if target.collections is None:
            for collection in self._store.collections.searchable(scope):
                yield Searched(scope, collection, collection.name)
            return
        for name in dict.fromkeys(target.collections):
            named = self._store.collections.look_up(scope, name)
            if named is not None:
                searched = Searched(scope, named[0], name)
                if self._is_remembered(scope, target):
                    self._remember(searched, named[1])
                yield searched
            elif name not in target.optional:
                raise self._store.collections.missing(scope, name)

    def _is_remembered(self, scope: Scope, target: Target) -> bool:
        """Whether a target is one collection in the present, of which the statement that reads passages can tell."""
        beside = target.session is not None or target.shared or scope.session is not None or scope.as_of is not None
        alone = target.collections is not None and len(target.collections) == 1 and not beside
        return alone and self._seen is None and self._store.database.replica is None

    def _remember(self, searched: Searched, record: str) -> None:
        key = searched.scope, searched.label
        before = self._known.pop(key, None)
        if searched.collection.hidden or self._hides_expired(searched):
            return
        if len(self._known) >= _MOST_REMEMBERED:
            self._known.clear()
        self._known[key] = replace(searched, record=record), before is not None and before[0].record == record

    def _shared(self, guests: Sequence[Guest]) -> Iterator[Searched]:
        for guest in guests:
            try:
                collection = self._store.collections.find(guest.scope, guest.collection)
            except TenantSuspendedError:  # since it was listed
                continue
            if collection is not None:
                yield Searched(guest.scope, collection, guest.label)

    def _unexpired(self, one: Searched) -> Searched:
        """The collection after what has expired in it is closed.

        The past needs none of this: what was known then has its end among its times.
        """
        if not self._hides_expired(one):
            return one
        if not self._store.expiry.close_due(one.scope, one.collection.collection_id):
            return replace(one, hides_expired=True)
        now = replace(one, collection=self._store.collections.get(one.scope, one.collection.name))
        return replace(now, hides_expired=self._hides_expired(now))

    def _hides_expired(self, one: Searched) -> bool:
        return one.collection.expiry_due and one.scope.as_of is None and self._auto_expire
