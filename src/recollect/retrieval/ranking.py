"""From candidates with two scores to one ranking: joined over collections, fused, moved by feedback, reranked."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from recollect.model import CompleteOptions, Scope
from recollect.model.search_options import MAX_RERANK_CANDIDATES, FusionMethod
from recollect.retrieval import fusion
from recollect.retrieval.analysis import lexeme
from recollect.retrieval.candidates import CandidateRequest, Candidates, PooledStatistics, Stopwatch
from recollect.retrieval.enhance.feedback import PseudoRelevanceFeedback
from recollect.retrieval.enhance.plan import fuse_alternatives
from recollect.retrieval.lexical import usually_beside
from recollect.retrieval.relevance import MeaningShare, SimilarityScale, known_model
from recollect.retrieval.rerank.apply import apply_to_parts
from recollect.retrieval.rerank.base import Candidate, Reranker
from recollect.retrieval.rerank.registry import DEFAULTS, RerankDefaults

if TYPE_CHECKING:
    from recollect.embedding.base import Vectors
    from recollect.model.collection import Collection
    from recollect.model.principal import Principal
    from recollect.retrieval.shaping import ChunkReader


# Who asks moves the order: documents of his own department first, those of others behind. Pure: no I/O.


@dataclass(frozen=True, slots=True, kw_only=True)
class RolePreference:
    """What a role prefers.

    Attributes:
        departments: Documents of these departments.
        factor: Multiplies their scores.
    """

    departments: tuple[str, ...]
    factor: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Preferences:
    """How much the order of results depends on who asks; see `recollect.config.AccessConfig`.

    Attributes:
        department_boost: Multiplies the scores of the asker's own department.
        other_departments: Multiplies those of other departments.
        roles: By role; of several that prefer a department, the strongest counts.
        privileged_roles: Whoever has one of these sees results in the order of their relevance alone.
    """

    department_boost: float = 1.2
    other_departments: float = 0.9
    roles: Mapping[str, RolePreference] = field(default_factory=dict)
    privileged_roles: tuple[str, ...] = ()

    def factor(self, principal: Principal, department: str | None) -> float:
        """What a score is multiplied by; 1 for a document of no department, and for somebody who belongs to none."""
        if department is None or not self.concern(principal):
            return 1.0
        own = 1.0
        if principal.department is not None:
            own = self.department_boost if department == principal.department else self.other_departments
        preferred = [
            preference.factor
            for role, preference in self.roles.items()
            if role in principal.roles and department in preference.departments
        ]
        return own * max(preferred, default=1.0)

    def concern(self, principal: Principal) -> bool:
        """Whether somebody has preferences at all."""
        if not set(self.privileged_roles).isdisjoint(principal.roles):
            return False
        return principal.department is not None or not set(self.roles).isdisjoint(principal.roles)


def scaled(score: float, factor: float) -> float:
    """A score times a factor, so that more than 1 is always better: scores below 0 are divided."""
    return score * factor if score >= 0 else score / factor


Scored = tuple[int, float]


#: Makes a reranker: by its name, the number of a tenant, and a collection whose model embedded the candidates.
RerankerMaker: TypeAlias = "Callable[[str, int, Collection], Reranker]"


#: How a reranker that the registry does not know is used.
UNKNOWN_RERANKER = RerankDefaults(weight=0.7, depth=50)


NO_RERANKER = "none"


CONSENSUS = "consensus"


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingSettings:
    """What a ranking does where the options of a search leave it open; see `recollect.config.RetrievalConfig`."""

    dense_weight: float | None = None
    rrf_k: int = fusion.RRF_K
    fusion: FusionMethod = "weighted"
    rerank: str = CONSENSUS
    rerank_weight: float | None = None
    rerank_candidates: int | None = None
    rerank_timeout_seconds: float = 10.0
    pseudo_relevance: bool = False
    preferences: Preferences = field(default_factory=Preferences)

    def reranker_name(self, options: CompleteOptions) -> str | None:
        """The reranker that a search will ask: the one named, or for hybrid searches the configured one."""
        name = options.rerank or (self.rerank if options.mode == "hybrid" else NO_RERANKER)
        return None if name == NO_RERANKER else name

    def wanted(self, options: CompleteOptions) -> int:
        """How many candidates a search must find at least, because so many are to be reranked; 0: any number."""
        if self.reranker_name(options) is None:
            return 0
        return options.rerank_candidates or self.rerank_candidates or 0


@dataclass(slots=True)
class Ranking:
    """A final order, and how it came about.

    Attributes:
        ranked: (chunk_id, score), best first.
        fused: What fusion gave each chunk.
        rerank_scores: The reranker's own scores.
        reranker: Its name, None where none was asked.
        reranked: Whether it had a say.
        reason: Why not.
        failed: Whether that is because the reranker failed.
        preferences: What scores were multiplied by for the sake of who asks.
        exact: Chunks at the front that hold every word of the query; none where many do, or preferences count.
        moved_from: Of chunks that were moved up for the words that they hold, their ranks before.
    """

    ranked: list[Scored]
    fused: Mapping[int, float]
    rerank_scores: dict[int, float] = field(default_factory=dict)
    reranker: str | None = None
    reranked: bool = False
    reason: str = ""
    failed: bool = False
    preferences: Mapping[int, float] = field(default_factory=dict)
    exact: frozenset[int] = frozenset()
    moved_from: Mapping[int, int] = field(default_factory=dict)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reply says of a reranker that failed."""
        told = f"The reranker {self.reranker!r} failed: the passages are in the order before it."
        return (told,) if self.failed else ()


#: Passages that hold every word of the query come first, where they are so many or fewer: otherwise, the best of them.
FEW_EXACT = 20

#: A passage comes first that holds so much more of the query's words, by their rarity, than the first one does.
MORE_OF_THE_WORDS = 0.4

#: A first passage stays first that is so much more relevant.
FAR_BETTER = 0.2

# The share of all words, added up.
_EVERY_WORD = 1 - 1e-9


def exact_first(ranking: Ranking, coverage: Mapping[int, float], relevance: Mapping[int, float]) -> Ranking:
    """The ranking with exact matches first, unless something far better is known.

    Args:
        ranking: As meaning and words together order it.
        coverage: The share of the query's words that chunks hold, by their rarity.
        relevance: How relevant chunks are.
    """
    order = [chunk_id for chunk_id, _ in ranking.ranked]
    if not order or not coverage:
        return ranking
    shares = [coverage.get(chunk_id, 0.0) for chunk_id in order]
    more = shares[0] + MORE_OF_THE_WORDS
    if max(shares) < min(more, _EVERY_WORD):
        return ranking
    ahead = exact = [chunk_id for chunk_id, share in zip(order, shares, strict=True) if share >= _EVERY_WORD]
    if not 0 < len(exact) <= FEW_EXACT:
        exact, ahead = [], [chunk_id for chunk_id, share in zip(order, shares, strict=True) if share >= more][:1]
    best = max((relevance.get(chunk_id, 0.0) for chunk_id in ahead), default=0.0)
    if not ahead or relevance.get(order[0], 0.0) > best + FAR_BETTER:
        return ranking
    return replace(_moved_up(ranking, ahead), exact=frozenset(exact))


def _moved_up(ranking: Ranking, ahead: Sequence[int]) -> Ranking:
    """The ranking with some chunks at the front; scores stay where they are, so that they still fall."""
    front, ranks = set(ahead), {chunk_id: rank for rank, (chunk_id, _) in enumerate(ranking.ranked, 1)}
    order = [*ahead, *(chunk_id for chunk_id in ranks if chunk_id not in front)]
    ranked = [(chunk_id, score) for chunk_id, (_, score) in zip(order, ranking.ranked, strict=True)]
    moved_from = {chunk_id: ranks[chunk_id] for rank, chunk_id in enumerate(ahead, 1) if ranks[chunk_id] > rank}
    return replace(ranking, ranked=ranked, moved_from=moved_from)


class Ranker:
    """Fuses and reranks. Safe to share between threads.

    Args:
        settings: What the options leave open.
        rerankers: Makes a reranker, by name, for a tenant, whose stored token vectors it may read, and for collections
            that are embedded as the one given.
    """

    def __init__(self, *, settings: RankingSettings, rerankers: RerankerMaker) -> None:
        self._settings = settings
        self._rerankers = rerankers
        self._feedback = PseudoRelevanceFeedback()

    def needs_vectors(self, options: CompleteOptions) -> bool:
        """Whether ranking will read the candidates' stored vectors."""
        name = self._settings.reranker_name(options)
        return self._uses_feedback(options) or (
            name is not None and DEFAULTS.get(name, UNKNOWN_RERANKER).needs_embedding
        )

    def rank(
        self,
        scope: Scope,
        reader: ChunkReader,
        query: str,
        options: CompleteOptions,
        found: Candidates,
        watch: Stopwatch,
        *,
        places: Sequence[Collection],
        alternatives: Sequence[Candidates] = (),
        share: MeaningShare | None = None,
    ) -> Ranking:
        """Order candidates, together with those of other lexical_scores.

        Args:
            scope: Whose search.
            reader: Reads the vectors and texts that feedback and rerankers need.
            query: As asked.
            options: How to search.
            found: The candidates.
            watch: Times the stages.
            places: A collection of each embedding model.
            alternatives: Those of each other wording.
            share: What the language of the query says; None: nothing, because texts and models know it.
        """
        if share is not None and share.counts(found):
            options = self._shared(options, share)
        with watch.stage("fuse"):
            others = [self._fuse(options, other) for other in alternatives]
            fused = fuse_alternatives(self._fuse(options, found), others)
        if self._uses_feedback(options) and found.embedding is not None:
            with watch.stage("feedback"):
                known = self._vectors(reader, found, fused[: self._feedback.settings.depth])
                fused = self._moved(options, found, fused, known)
        standard = not alternatives and _standardised(options, self._settings)
        shown = fusion.presented(fused) if standard else fused
        first = Ranking(shown, dict(shown))
        name = self._settings.reranker_name(options)
        if name is None or not fused or (options.rerank is None and name == CONSENSUS and not _agree(places)):
            return first
        if len(fused) < options.rerank_from:
            return replace(first, reason=f"{len(fused)} candidates are too few for {name} (rerank_from)")
        with watch.stage("rerank"):
            seen = self._seen(reader, options, found, fused, name)
            return self._rerank(scope, query, seen, fused[len(seen) :], replace(first, reranker=name), places)

    def exact_first(
        self,
        ranking: Ranking,
        options: CompleteOptions,
        found: Candidates,
        relevance: Mapping[int, float],
        share: MeaningShare | None,
    ) -> Ranking:
        """The ranking with exact matches first, unless its words say little or have no say; see `exact_first`."""
        crossing = share is not None and share.crossing and share.counts(found)
        if crossing or (options.mode == "hybrid" and self._dense_weight(options) == 1):
            return ranking
        return exact_first(ranking, found.coverage, relevance)

    def preferred(self, scope: Scope, reader: ChunkReader, ranking: Ranking) -> Ranking:
        """The ranking as whoever it is made for prefers it; see `recollect.retrieval.ranking`."""
        principal, preferences = scope.ranked_for, self._settings.preferences
        if principal is None or not preferences.concern(principal) or not ranking.ranked:
            return ranking
        departments = reader.departments(scope, [chunk_id for chunk_id, _ in ranking.ranked])
        factors = {chunk_id: preferences.factor(principal, name) for chunk_id, name in departments.items()}
        moved = [(chunk_id, scaled(score, factors.get(chunk_id, 1.0))) for chunk_id, score in ranking.ranked]
        moved.sort(key=lambda item: -item[1])
        return replace(ranking, ranked=moved, preferences=factors, exact=frozenset())

    def _shared(self, options: CompleteOptions, share: MeaningShare) -> CompleteOptions:
        if options.dense_weight is None and self._settings.dense_weight is None:
            options = replace(options, dense_weight=share.weight)
        if share.crossing:
            return options
        configured = DEFAULTS.get(self._settings.rerank, UNKNOWN_RERANKER)
        if options.rerank is None and (configured.needs_embedding or configured.of_one_model):
            options = replace(options, rerank=NO_RERANKER)
        return options

    def _fuse(self, options: CompleteOptions, found: Candidates) -> list[Scored]:
        if options.mode == "dense":
            return found.nearest
        if options.mode == "lexical":
            return list(found.lexical)
        if (options.fusion or self._settings.fusion) == "rrf":
            k = self._settings.rrf_k if options.rrf_k is None else options.rrf_k
            share = self._dense_weight(options, fusion.RRF_DENSE_WEIGHT)
            # Twice the shares: of equal ones, each ranking counts once, as in the paper.
            return fusion.rrf([found.dense, found.lexical], k=k, weights=[2 * share, 2 * (1 - share)])
        words = found.lexical_scores
        return fusion.weighted(
            found.nearest,
            [(chunk_id, words[chunk_id]) for chunk_id, _ in found.lexical],
            dense_weight=self._dense_weight(options),
            known_dense=found.nearness,
            known_lexical=words,
        )

    def _dense_weight(self, options: CompleteOptions, otherwise: float = fusion.DENSE_WEIGHT) -> float:
        given = self._settings.dense_weight if options.dense_weight is None else options.dense_weight
        return otherwise if given is None else given

    def _uses_feedback(self, options: CompleteOptions) -> bool:
        return self._settings.pseudo_relevance if options.pseudo_relevance is None else options.pseudo_relevance

    def _moved(
        self, options: CompleteOptions, found: Candidates, ranking: list[Scored], vectors: Mapping[int, Vectors]
    ) -> list[Scored]:
        words = found.lexical_scores

        def fuse(similarities: Mapping[int, float]) -> list[Scored]:
            lexical = [(chunk_id, words.get(chunk_id, 0.0)) for chunk_id in similarities]
            weight = {"dense": 1.0, "lexical": 0.0}.get(options.mode, self._dense_weight(options))
            return fusion.weighted(list(similarities.items()), lexical, dense_weight=weight)

        return self._feedback.rerank(found.embedding, ranking, vectors=vectors, fuse=fuse)

    def _seen(
        self, reader: ChunkReader, options: CompleteOptions, found: Candidates, fused: Sequence[Scored], name: str
    ) -> list[Candidate]:
        """What a reranker sees of a ranking."""
        defaults = DEFAULTS.get(name, UNKNOWN_RERANKER)
        # Twice what is shown, but not without end: whoever lists hundreds wants the first ones right.
        usual = self._settings.rerank_candidates or defaults.depth
        depth = options.rerank_candidates or min(max(usual, 2 * options.top_k), 2 * usual, MAX_RERANK_CANDIDATES)
        return self._candidates(reader, found, fused[:depth], defaults)

    def _rerank(
        self,
        scope: Scope,
        query: str,
        seen: Sequence[Candidate],
        tail: Sequence[Scored],
        first: Ranking,
        places: Sequence[Collection],
    ) -> Ranking:
        name = first.reranker or NO_RERANKER
        defaults = DEFAULTS.get(name, UNKNOWN_RERANKER)
        weight = defaults.weight if self._settings.rerank_weight is None else self._settings.rerank_weight
        outcome = apply_to_parts(
            [(self._rerankers(name, scope.tenant_id, place), own) for place, own in _parts(seen, places, defaults)],
            query,
            weight=weight,
            timeout_seconds=self._settings.rerank_timeout_seconds,
            # What only calculates cannot hang, and a thread would cost more than the calculation.
            own_thread=not defaults.needs_embedding,
        )
        if not outcome.reranked:
            return replace(first, reason=outcome.reason, failed=outcome.failed)
        ranked = fusion.presented([(one.candidate.chunk_id, one.score) for one in outcome.ranking])
        lowest = ranked[-1][1]
        # What the reranker did not see follows, in its order, and never above what it saw.
        below = [(chunk_id, lowest / (2 + place)) for place, (chunk_id, _) in enumerate(tail)]
        scores = {one.candidate.chunk_id: one.rerank_score for one in outcome.ranking if one.rerank_score is not None}
        return replace(first, ranked=ranked + below, rerank_scores=scores, reranked=True)

    def _vectors(self, reader: ChunkReader, found: Candidates, head: Sequence[Scored]) -> Mapping[int, Vectors]:
        missing = [chunk_id for chunk_id, _ in head if chunk_id not in found.vectors]
        if missing:
            found.vectors |= reader.vectors(missing)
        return found.vectors

    def _candidates(
        self,
        reader: ChunkReader,
        found: Candidates,
        head: Sequence[Scored],
        needs: RerankDefaults,
    ) -> list[Candidate]:
        rows = reader.passages([chunk_id for chunk_id, _ in head]) if needs.needs_text else {}
        vectors = self._vectors(reader, found, head) if needs.needs_embedding else {}
        return [
            Candidate(
                chunk_id=chunk_id,
                text=f"{rows[chunk_id].title}\n{rows[chunk_id].content}" if chunk_id in rows else "",
                score=score,
                similarity=found.similarities.get(chunk_id),
                bm25=found.bm25.get(chunk_id),
                embedding=vectors.get(chunk_id),
                model=found.models.get(chunk_id, ""),
            )
            for chunk_id, score in head
        ]


def _parts(
    seen: Sequence[Candidate], places: Sequence[Collection], needs: RerankDefaults
) -> list[tuple[Collection, list[Candidate]]]:
    """Candidates by the model that measured them, for a reranker that works with one model's vectors."""
    if len(places) == 1 or not needs.of_one_model:
        return [(places[0], list(seen))]
    parts = [(place, [one for one in seen if one.model == place.embedding_model]) for place in places]
    return [(place, own) for place, own in parts if own]


def _agree(places: Sequence[Collection]) -> bool:
    """Whether passages that are alike speak for one another, by one of the models at least."""
    models = [known_model(place.embedding_model) for place in places]
    return any(model is None or model.consensus for model in models)


def _standardised(options: CompleteOptions, settings: RankingSettings) -> bool:
    return options.mode == "hybrid" and (options.fusion or settings.fusion) == "weighted"


# Collections of several embedding models searched as one.
#
# A cosine of one model says nothing beside a cosine of another: what is nearest to one model at 0.4 is far away to
# the next. So the question is embedded by each model once, and similarities are told apart from what is unrelated and
# what answers by the model's own scale (`recollect.retrieval.relevance.SimilarityScale`) before candidates get one
# order.


@dataclass(frozen=True, slots=True)
class VectorSpace:
    """The collections of a search that one model embedded: their vectors can be compared.

    Attributes:
        place: One of them, by which the model is made.
        positions: Which of those searched they are.
    """

    place: Collection
    positions: tuple[int, ...]

    @property
    def model(self) -> str:
        """The model's name."""
        return self.place.embedding_model


def spaces_of(places: Sequence[Collection]) -> tuple[VectorSpace, ...]:
    """The vector spaces of collections, in the order in which they come up."""
    positions: dict[str, list[int]] = {}
    for position, place in enumerate(places):
        positions.setdefault(place.embedding_model, []).append(position)
    return tuple(VectorSpace(places[own[0]], tuple(own)) for own in positions.values())


def joined(
    models: Sequence[str], parts: Sequence[Candidates], scales: Sequence[SimilarityScale | None], *, limit: int
) -> Candidates:
    """What was found in several spaces, as if it were one.

    Args:
        models: The name of each space's model.
        parts: What was found in each; no chunk is in two of them.
        scales: Of each model; None: unknown, so that what was found of it is its own measure.
        limit: Candidates that each way contributes.
    """
    if len(parts) == 1:
        return parts[0]
    comparable: dict[int, float] = {}
    for part, scale in zip(parts, scales, strict=True):
        own = scale or _scale_of(part.similarities.values())
        comparable |= {chunk_id: own.standardised(similarity) for chunk_id, similarity in part.similarities.items()}
    whole = merged(parts, limit=limit, comparable=comparable)
    return replace(
        whole,
        embedding=None,  # there are several
        comparable={chunk_id: comparable[chunk_id] for chunk_id in whole.similarities},
        models={chunk_id: model for model, part in zip(models, parts, strict=True) for chunk_id in part.known},
    )


def on_one_scale(measured: Sequence[tuple[str, float]], scales: Mapping[str, SimilarityScale | None]) -> list[float]:
    """Similarities that several models measured, comparable with one another.

    Args:
        measured: The model, and the similarity.
        scales: Of each model; None, or a model that is not there: unknown, so that what was found of it is its measure.
    """
    own: dict[str, list[float]] = {}
    for model, similarity in measured:
        own.setdefault(model, []).append(similarity)
    known = {model: scales.get(model) or _scale_of(found) for model, found in own.items()}
    return [known[model].standardised(similarity) for model, similarity in measured]


def _scale_of(similarities: Iterable[float]) -> SimilarityScale:
    """By what was found alone: the mean is taken for unrelated, the best for an answer."""
    found = list(similarities)
    return SimilarityScale(sum(found) / len(found), max(found)) if found else SimilarityScale(0.0, 1.0)


# Several collections searched as if they were one: their words weighed alike, their candidates in one order.
#
# A word that is rare in a small collection may be frequent in all of them together, and the other way round. BM25 of
# different collections can be compared only where its document frequencies and average length are those of all; cosine
# similarities of one model can be compared as they are. So the statistics are added up before candidates are looked
# for, and what is found is joined before it is fused and reranked.

_Value = TypeVar("_Value")


def pooled(requests: Sequence[CandidateRequest], frequencies: Sequence[Mapping[str, int]]) -> list[CandidateRequest]:
    """The requests with the statistics of all their collections.

    Args:
        requests: One for each collection.
        frequencies: In how many chunks of each collection the words of its request stand. Only words of one language
            are added up: analysed in another one, they are others.
    """
    sizes = [max(request.collection.stats_chunks, request.collection.chunk_count) for request in requests]
    terms = sum(size * request.collection.average_length for size, request in zip(sizes, requests, strict=True))
    chunks = max(1, sum(sizes))
    # Of collections that are all empty, any length will do.
    length = terms / chunks or 1.0
    beside = usually_beside([request.collection for request in requests])
    joined = []
    for request, own in zip(requests, frequencies, strict=True):
        elsewhere = {
            lexeme(word, request.collection.collection_id): sum(
                other.get(word, 0)
                for one, other in zip(requests, frequencies, strict=True)
                if one is not request and one.collection.language == request.collection.language
            )
            for word in own
        }
        joined.append(replace(request, pooled=PooledStatistics(elsewhere, chunks, length, beside)))
    return joined


def merged(results: Sequence[Candidates], *, limit: int, comparable: Mapping[int, float] | None = None) -> Candidates:
    """What was found in several collections, as if they were one.

    Args:
        results: Of each collection; no chunk is in two of them.
        limit: Candidates that each way contributes.
        comparable: The similarities on one scale, where they are of several models.
    """
    if len(results) == 1:
        return results[0]
    dense = _best((item for one in results for item in one.dense), limit, comparable)
    lexical = _best((item for one in results for item in one.lexical), limit)
    kept = {chunk_id for chunk_id, _ in (*dense, *lexical)}

    return Candidates(
        dense=dense,
        lexical=lexical,
        similarities=_of(kept, (one.similarities for one in results)),
        bm25=_of(kept, (one.bm25 for one in results)),
        in_context=_of(kept, (one.in_context for one in results)),
        coverage=_of(kept, (one.coverage for one in results)),
        paths={
            way: " and ".join(sorted({one.paths[way] for one in results if way in one.paths}))
            for way in ("dense", "lexical")
            if any(way in one.paths for one in results)
        },
        embedding=next((one.embedding for one in results if one.embedding is not None), None),
        vectors=_of(kept, (one.vectors for one in results)),
        weights={number: weight for one in results for number, weight in one.weights.items()},
        dense_exact=all(one.dense_exact for one in results),
        lexical_exact=all(one.lexical_exact for one in results),
    )


def _of(chunk_ids: Set[int], maps: Iterable[Mapping[int, _Value]]) -> dict[int, _Value]:
    return {chunk_id: value for known in maps for chunk_id, value in known.items() if chunk_id in chunk_ids}


def _best(
    scored: Iterable[tuple[int, float]], limit: int, comparable: Mapping[int, float] | None = None
) -> list[tuple[int, float]]:
    measured = comparable or {}
    return heapq.nsmallest(limit, scored, key=lambda item: (-measured.get(item[0], item[1]), item[0]))
