"""Why a search misses a document: the same search is run in several ways, and the document looked for in each."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from recollect.model import CompleteOptions, RetrievalOptions, RetrievedContext, Scope, SearchReply
from recollect.model.filter import Condition, Filter, conditions_in, describe, field_name
from recollect.model.scope import Target
from recollect.model.search_options import (
    MAX_CANDIDATES,
    MAX_RERANK_CANDIDATES,
    MAX_TOP_K,
    at_moment,
    most_passages,
    search_options,
    validate,
)
from recollect.model.why_not import NamedDocument, WhyNot, WhyNotStage
from recollect.retrieval.analysis import lexeme
from recollect.retrieval.candidates import analyzer_for
from recollect.retrieval.enhance.plan import QueryEnhancer, QueryPlan, enhance, query_vector
from recollect.retrieval.ranking import NO_RERANKER, UNKNOWN_RERANKER
from recollect.retrieval.relevance import BELOW_FLOOR, RelevanceMeter, Thresholds
from recollect.retrieval.rerank.registry import DEFAULTS
from recollect.store.filters import (
    document_filter_of,
    failed_conditions,
    matching_versions,
    version_values,
)

if TYPE_CHECKING:
    from recollect.embedding.base import EmbeddingProvider
    from recollect.model.collection import Collection
    from recollect.retrieval.search import Searcher, SearchSettings
    from recollect.store.collections import CollectionRepository
    from recollect.store.database import Database
    from recollect.store.why_not import BestChunk, Standing, StandingRepository


_WORD = re.compile(r"\w+(?:[-.'@/]\w+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyNotInquiry:
    """Says where a document stands at every stage of a search. Safe to share between threads.

    Attributes:
        database: The store's connections.
        collections: Finds the collection.
        standings: Finds the document, and counts what comes before it.
        embedder: Gives the model of a collection, which embeds the query, as the searcher has it.
        searcher: Makes a searcher whose enhancements are those given: an inquiry searches many times, and a language
            model that enhances the query is asked once.
        enhancers: Gives the query enhancements of a collection.
        settings: What the options of a search leave open, as the searcher has them.
    """

    database: Database
    collections: CollectionRepository
    standings: StandingRepository
    embedder: Callable[[Collection], EmbeddingProvider]
    searcher: Callable[[Sequence[QueryEnhancer]], Searcher]
    enhancers: Callable[[Collection], Sequence[QueryEnhancer]]
    settings: SearchSettings

    def ask(
        self, scope: Scope, query: str, document: int | str, options: RetrievalOptions, *, collection: str
    ) -> WhyNot:
        """Where a document stands, and what kept it out.

        Args:
            scope: Whose knowledge, and as of when.
            query: As it was searched.
            document: Its id, source, title, or the end of its path.
            options: As they were searched with.
            collection: Where was searched.

        Raises:
            UsageError: The query or an option is not valid, or several documents are meant.
            NotFoundError: There is no such collection or document.
        """
        validate(query, options)
        options = at_moment(options, scope.as_of)
        asked = document_filter_of(options, scope.as_of)
        searched = self.collections.get(scope, collection)
        standing = self.standings.find(scope, searched, document)
        stages = [document_stage(standing, searched.name)]
        rank = None
        if stages[0].passed:
            failed = failed_conditions(
                self.database, scope, searched.collection_id, asked, version_id=standing.version_id
            )
            stages += access_stages(standing, datetime.now(UTC))
            values = version_values(self.database, scope, searched.collection_id, standing.version_id) if failed else {}
            stages += filter_stage(values, asked.conditions(), failed)
            options = _without(self.settings.complete(options), failed)
            trials = _Trials(self, scope, query, searched, standing, options)
            later = list(trials.stages())
            kept_out = next((one for one in later if not one.passed and one.stage not in _UNDECIDED), None)
            told = trials.advice(kept_out, later) if kept_out else ""
            rank = trials.rank(trials.asked)
            place = f"result {rank:,} of {len(trials.asked.results):,}." if rank else ""
            verdict = f"is {place}" if rank else f"is not found: {told}"
            if failed:
                without = f"be {place}" if rank else f"still be missing: {told}"
                verdict, rank = f"is not found: {stages[-1].detail}. Without that it would {without}", None
            stages += later
        else:
            elsewhere = f"Search that collection (collection={standing.collection!r}), or ingest it into this one."
            remedy = elsewhere if standing.collection != searched.name else "Ingest it again."
            verdict = f"cannot be found: {stages[0].detail}. {remedy}"
        return WhyNot(
            query=query,
            collection=searched.name,
            document=NamedDocument(
                document_id=standing.document_id,
                title=standing.title,
                source=standing.source,
                department=standing.department,
            ),
            found=rank is not None,
            rank=rank,
            stages=tuple(stages),
            verdict=f"{standing.source} {verdict}",
        )


@dataclass(frozen=True, slots=True)
class _Planned:
    """An enhancement that was thought out before: the same for every trial."""

    plan: QueryPlan
    name: str = "planned"

    def enhance(self, plan: QueryPlan) -> QueryPlan:  # noqa: ARG002 - it is the plan of this very query
        return self.plan


def _without(options: CompleteOptions, failed: Sequence[Filter]) -> CompleteOptions:
    """The options without what makes conditions that failed: entries of a list or an object, else the whole option."""

    def fails(field: str, value: object) -> bool:
        alone: dict[str, Any] = {field: value}
        return any(one in failed for one in document_filter_of(RetrievalOptions(**alone)).conditions())

    changed: dict[str, Any] = {}
    for option in search_options():
        field, value = option.field, getattr(options, option.field)
        if value == option.default or not fails(field, value):
            continue
        left = option.default
        if isinstance(value, Mapping):
            left = {key: one for key, one in value.items() if not fails(field, {key: one})}
        elif option.type == tuple[str, ...]:
            left = tuple(one for one in value if not fails(field, (one,)))
        # Of several that are one condition, none is to blame alone.
        changed[field] = option.default if left == value else left
    return replace(options, **changed)


class Word(NamedTuple):
    """A term of the query as it is searched and as it was written.

    Attributes:
        weight: By its rarity, None where the collection lacks it.
        present: Whether the document has it.
    """

    term: str
    written: str
    weight: float | None
    present: bool


class _ByWords(NamedTuple):
    """Where a document's best chunk stands by its words.

    Attributes:
        score: BM25, None where it shares no word with the query.
        rank: From 1.
        exact: Whether the rank was read from an exact ranking, rather than counted by stored weights.
    """

    score: float | None
    rank: int | None
    exact: bool


class _Trials:
    """A search and a document: the same search is run in other ways, each once and when it is needed.

    Args:
        inquiry: What searches.
        scope: Whose knowledge, and as of when.
        query: As it was searched.
        searched: Where.
        standing: The document.
        options: As asked, without the conditions that remove the document.
    """

    def __init__(
        self,
        inquiry: WhyNotInquiry,
        scope: Scope,
        query: str,
        searched: Collection,
        standing: Standing,
        options: CompleteOptions,
    ) -> None:
        self._inquiry, self._scope, self._query = inquiry, scope, query
        self._searched, self._standing, self._options = searched, standing, options
        self._limit = inquiry.settings.limit(options)
        self._plan = enhance(query, inquiry.enhancers(searched) if options.enhance else ())
        self._searcher = inquiry.searcher([_Planned(self._plan)])
        kept = document_filter_of(options, scope.as_of)
        versions = None
        if kept or scope.as_of is not None:
            versions = matching_versions(
                inquiry.database, scope, searched.collection_id, kept, access_ids=searched.access_ids
            )
        self._version_ids = versions.version_ids if versions else None
        self._chunk_count = versions.chunk_count if versions else searched.chunk_count

    def run(self, **changed: Any) -> SearchReply:  # noqa: ANN401 - options of a search
        """The search with other options."""
        told = replace(self._options, **{**changed, "explain": True, "use_cache": False})
        return self._searcher.search(self._scope, self._query, told, Target.of(self._searched.name))

    def places(self, reply: SearchReply) -> list[RetrievedContext]:
        """The document's passages among the results of a trial, best first."""
        return [result for result in reply.results if result.document_id == self._standing.document_id]

    def rank(self, reply: SearchReply) -> int | None:
        """The rank of the best of them."""
        return next((place.rank for place in self.places(reply)), None)

    @cached_property
    def asked(self) -> SearchReply:
        """The search as asked, without the conditions that remove the document."""
        return self.run()

    @cached_property
    def ranked(self) -> SearchReply:
        """The whole ranking of the same candidates: no threshold, no duplicates collapsed."""
        return self.run(**self._bare)

    @cached_property
    def distinct(self) -> SearchReply:
        """The ranking with both."""
        return self.run(**{name: value for name, value in self._bare.items() if name not in _LEAVING_OUT})

    @cached_property
    def _bare(self) -> Mapping[str, Any]:
        """What makes a search show all that it ranks: nothing left out for a threshold, likeness or want of room."""
        options, settings = self._options, self._inquiry.settings
        known = DEFAULTS.get(options.rerank or settings.ranking.rerank, UNKNOWN_RERANKER)
        depth = settings.ranking.rerank_candidates or known.depth
        return {
            "top_k": min(self._limit, MAX_TOP_K),
            "candidates": self._limit,
            # The depth follows from top_k, which is another one here.
            "rerank_candidates": options.rerank_candidates
            or min(max(depth, 2 * options.top_k), 2 * depth, MAX_RERANK_CANDIDATES),
            "similarity_threshold": None if settings.similarity_threshold is None else -1.0,
            "min_relevance": 0.0,
            "min_score": None if settings.min_score is None else -math.inf,
            "collapse_duplicates": False,
            "mmr_lambda": None,
            "neighbours": 0,
            "merge_adjacent": False,
        }

    @cached_property
    def _dense(self) -> SearchReply:
        """What the dense retriever alone contributes."""
        return self.run(**{**self._bare, "rerank": NO_RERANKER, "mode": "dense"})

    @cached_property
    def _thresholds(self) -> Thresholds:
        """Those in force: given, or the model's floor of relevance where not even the best passage reached it."""
        given = Thresholds.of(self._options, self._inquiry.settings)
        stopped = self.asked.explain is not None and self.asked.explain.dropped.get(BELOW_FLOOR)
        if given.relevance is not None or not stopped:
            return given
        meter = RelevanceMeter(self._inquiry.embedder(self._searched))
        return replace(given, relevance=meter.floor(similarities=True, coverage=self.asked.mode == "hybrid"))

    @cached_property
    def _by_meaning(self) -> BestChunk | None:
        """Where the document's best chunk stands by similarity; None: it has no vectors."""
        vector = query_vector(self._plan, self._inquiry.embedder(self._searched))
        return self._inquiry.standings.dense_rank(
            self._scope,
            self._searched,
            vector,
            version_id=self._standing.version_id,
            version_ids=self._version_ids,
        )

    @cached_property
    def _words_only(self) -> Mapping[str, Any]:
        return {**self._bare, "rerank": NO_RERANKER, "mode": "lexical", "pseudo_relevance": False}

    @cached_property
    def _whole_by_words(self) -> SearchReply:
        return self.run(**{**self._words_only, "top_k": MAX_TOP_K, "candidates": max(self._limit, MAX_TOP_K)})

    @cached_property
    def _weights(self) -> Mapping[int, float]:
        """The lexemes of the query, with what they count for; 0 where the collection lacks them."""
        return {lexeme(term, self._searched.collection_id): weight for term, weight in self._terms}

    @property
    def _terms(self) -> Sequence[tuple[str, float]]:
        return self._whole_by_words.explain.terms if self._whole_by_words.explain else ()

    @cached_property
    def _words(self) -> Sequence[Word]:
        number = self._searched.collection_id
        held = self._inquiry.standings.lexemes(self._scope, self._standing.version_id, list(self._weights))
        analyzer = analyzer_for(self._searched)
        # Backwards: of several words of one term, the first is shown.
        written = {term: word for word in reversed(_WORD.findall(self._query)) for term in analyzer.query_terms(word)}
        return [
            Word(term, written.get(term, term), weight or None, lexeme(term, number) in held)
            for term, weight in self._terms
        ]

    @cached_property
    def _by_words(self) -> _ByWords:
        # It meets the other conditions: those that it fails were left out.
        only = {**self._words_only, "filters": {"document_id": self._standing.document_id}, "top_k": 1}
        best = self.places(self.run(**only))
        if not best:
            return _ByWords(None, None, exact=True)
        known = self.places(self._whole_by_words)
        if known and known[0].explain and known[0].explain.lexical:
            return _ByWords(best[0].score, known[0].explain.lexical.rank, exact=True)
        rank = self._inquiry.standings.stored_rank(
            self._scope,
            self._searched,
            {number: weight for number, weight in self._weights.items() if weight > 0},
            version_id=self._standing.version_id,
            version_ids=self._version_ids,
        )
        return _ByWords(best[0].score, max(rank, MAX_TOP_K + 1), exact=False)

    def _ranks(self) -> dict[str, int]:
        """Where the document stands for each retriever that runs, where it is known."""
        by_meaning = None if self._options.mode == "lexical" or self._by_meaning is None else self._by_meaning.rank
        by_words = None if self._options.mode == "dense" else self._by_words.rank
        return {name: rank for name, rank in (("by meaning", by_meaning), ("by words", by_words)) if rank}

    # The stages, as far as the document came.

    def stages(self) -> Iterator[WhyNotStage]:
        """The stages of the search itself, as far as the document came."""
        ranked = self.places(self.ranked)
        explained = [place.explain for place in ranked if place.explain]
        retrievers = []
        if self._options.mode != "lexical":
            retrievers.append(self._dense_stage(any(explain.dense for explain in explained)))
        if self._options.mode != "dense":
            retrievers.append(self._lexical_stage(any(explain.lexical for explain in explained)))
        yield from retrievers
        candidate = bool(ranked or any(stage.passed for stage in retrievers))
        missed = f"neither retriever has it among its best {self._limit:,}"
        yield _stage("candidates", candidate, "it is among the candidates" if candidate else missed, limit=self._limit)
        if not candidate:
            return
        order = sorted(self.ranked.results, key=_fused_score, reverse=True)
        fused = next(((rank, one) for rank, one in enumerate(order, 1) if one in ranked), None)
        if self._options.mode == "hybrid":
            detail, score = f"beyond the first {len(order):,}", None
            if fused is not None:
                score = _fused_score(fused[1])
                detail = f"score {score:.3f}: rank {fused[0]:,}"
            yield _stage("fusion", True, detail, rank=fused and fused[0], **({} if score is None else {"score": score}))
        yield from self._rerank_stage(fused and fused[0], ranked)
        thresholds = list(self._threshold_stages(ranked))
        yield from thresholds
        if all(stage.passed for stage in thresholds):
            yield from self._order_stages(ranked)

    def _dense_stage(self, found: bool) -> WhyNotStage:
        best = self._by_meaning
        if best is None:
            return _stage("dense", False, "it has no vectors", rank=None)
        passed = found or bool(self.places(self._dense))
        detail = f"similarity {best.score:.3f}: rank {best.rank:,} of {_count(self._chunk_count, 'chunk')}"
        if not passed and best.rank <= self._limit:
            detail += ", which the approximate index did not find"
        elif not passed:
            detail += f", and the retriever gives its best {self._limit:,}"
        numbers = {"rank": best.rank, "score": best.score, "chunk_id": best.chunk_id}
        return _stage("dense", passed, detail, **numbers, limit=self._limit)

    def _lexical_stage(self, found: bool) -> WhyNotStage:
        score, rank, exact = self._by_words
        passed = found or (rank is not None and rank <= self._limit)
        if not self._words:
            detail = "the query has no words that count"
        elif score is None or rank is None:
            detail = "it shares no word with the query"
        else:
            detail = f"BM25 {score:.2f}: rank {'' if exact else 'about '}{rank:,}"
            detail += "" if passed else f", and the retriever gives its best {self._limit:,}"
        numbers = {"rank": rank, "score": score, "exact": exact, "limit": self._limit}
        terms = [word._asdict() for word in self._words]
        return _stage("lexical", passed, detail + "".join(_told(self._words)), **numbers, terms=terms)

    def _rerank_stage(self, before: int | None, ranked: Sequence[RetrievedContext]) -> Iterator[WhyNotStage]:
        explain, top_k = self.ranked.explain, self._options.top_k
        name = explain.reranker if explain else None
        if name is None or explain is None:
            return
        if not self.ranked.reranked:
            detail = f"{name} had no say: {explain.rerank_reason or 'it ordered nothing'}"
            yield _stage("rerank", True, detail, reranker=name)
            return
        after = ranked[0].rank if ranked else None
        pushed_out = before is not None and before <= top_k and (after is None or after > top_k)
        shown = ranked[0].explain if ranked else None
        own, moved_from = (shown.rerank_score, shown.moved_from) if shown else (None, None)
        if moved_from is not None:
            detail = f"the words that it holds moved it up from {moved_from:,} to {after:,}"
        elif after is None:
            detail = f"{name} left it beyond the first {len(self.ranked.results):,}"
        elif before is None or before == after:
            detail = f"{name} has it at rank {after:,}"
        else:
            detail = f"{name} moved it {'up' if after < before else 'down'} from {before:,} to {after:,}"
        yield _stage("rerank", not pushed_out, detail, reranker=name, rank=after, before=before, score=own)

    def _threshold_stages(self, above: Sequence[RetrievedContext]) -> Iterator[WhyNotStage]:
        limit = self._thresholds.similarity
        if limit is not None:
            best = max((place.similarity for place in above if place.similarity is not None), default=None)
            if best is None and self._by_meaning:
                best = self._by_meaning.score
            above = [place for place in above if place.similarity is not None and place.similarity >= limit]
            yield _threshold("similarity_threshold", best, limit)
        needed = self._thresholds.relevance
        if needed is not None and above:
            yield _threshold("min_relevance", max(place.relevance or 0.0 for place in above), needed)
            above = [place for place in above if (place.relevance or 0.0) >= needed]
        lowest = self._thresholds.score
        if lowest is not None and above:
            yield _threshold("min_score", max(place.score for place in above), lowest)

    def _order_stages(self, ranked: Sequence[RetrievedContext]) -> Iterator[WhyNotStage]:
        asked, distinct, found = self.asked, self.places(self.distinct), self.places(self.asked)
        own = {place.chunk_id for place in ranked}
        twin = next((one for one in self.distinct.results if own & set(one.duplicates)), None)
        if twin is not None and not (distinct or found):
            detail = f"it says the same as {twin.source}, which stands above it at rank {twin.rank:,}"
            yield _stage("duplicates", False, detail, document_id=twin.document_id, source=twin.source, rank=twin.rank)
            return
        rank, top_k = distinct[0].rank if distinct else None, self._options.top_k
        if self._options.mmr_lambda is not None:
            kept_out = not found and rank is not None and rank <= top_k
            crowded = f"rank {rank or 0:,} by relevance, but others bring more variety"
            detail = crowded if kept_out else "not kept out by it"
            yield _stage("variety", not kept_out, detail, rank=rank, mmr_lambda=self._options.mmr_lambda)
            if kept_out:
                return
        last = asked.results[-1].score if asked.results else None
        score = next((place.score for place in (*found, *distinct)), None)
        place = f"rank {rank:,}" if rank else f"beyond rank {len(self.distinct.results):,}"
        scores = "" if score is None or last is None else f"; its score is {score:.3f}, the last result's {last:.3f}"
        detail = f"{place}, and {top_k:,} are shown{scores}"
        if found:
            rank = found[0].rank
            detail = f"result {rank:,} of {len(asked.results):,}"
        yield _stage("top_k", bool(found), detail, rank=rank, top_k=top_k, score=score, last_score=last)

    # What to change so that a search finds the document; nothing is advised that was not tried.

    def advice(self, blamed: WhyNotStage, stages: Sequence[WhyNotStage]) -> str:
        """What kept the document out, and what to change, in sentences.

        Args:
            blamed: The stage that kept it out.
            stages: All of the search's.
        """
        cause = blamed.detail
        if blamed.stage == "top_k":
            cause = "; ".join([*(one.detail for one in stages if one.stage == "rerank" and not one.passed), cause])
        elif blamed.stage == "candidates" and self._ranks():
            cause += f" (it ranks {' and '.join(f'{rank:,} {how}' for how, rank in self._ranks().items())})"
        return f"{cause}. {self._remedy(blamed)}"

    def _remedy(self, blamed: WhyNotStage) -> str:
        match blamed.stage:
            case "similarity_threshold" | "min_relevance" | "min_score":
                value = blamed.numbers.get("value")
                if not isinstance(value, float):
                    return "It was not compared with the query at all."
                # Rounded down, so that the document's own value reaches it.
                limit = math.floor(value * 1000) / 1000
                lowered = max(-1.0, limit) if "similarity" in blamed.stage else limit
                return self._tried(f"lower {blamed.stage} to {limit:g}", **{blamed.stage: lowered})
            case "duplicates":
                return self._tried("switch collapse_duplicates off", collapse_duplicates=False)
            case "variety":
                return self._tried("leave mmr_lambda out", mmr_lambda=None)
            case "candidates":
                needed = min(self._ranks().values(), default=MAX_CANDIDATES + 1)
                if needed <= MAX_CANDIDATES and self.rank(self.run(candidates=needed)):
                    return f"Raise candidates to {needed:,}."
        return self._more_results()

    def _tried(self, change: str, **changed: Any) -> str:  # noqa: ANN401 - options of a search
        rank = self.rank(self.run(**changed))
        if rank is not None:
            return f"{change.capitalize()}, and it is result {rank:,}."
        wanted, _ = self._enough(self.rank(self.ranked), **changed)
        if wanted is None:
            return f"To {change} is not enough."
        return f"{change.capitalize()} and raise top_k to {wanted:,}."

    def _more_results(self) -> str:
        wanted, wide = self._enough(self.rank(self.distinct))
        words = () if self._options.mode == "dense" else self._words
        lacking = ", ".join(dict.fromkeys(word.written for word in words if not word.present))
        ask = f"ask in words that it uses{f'; it lacks {lacking}' if lacking else ''}"
        most = most_passages(self._options.neighbours)
        if wanted is not None:
            return f"Raise top_k to {wanted:,}{f', or {ask}' if wanted > self._limit else ''}."
        if wide is None:
            return f"Even among {most:,} results it is missing: {ask}."
        return f"Of {most:,} results (top_k) it is number {wide:,}."

    def _enough(self, likely: int | None, **changed: Any) -> tuple[int | None, int | None]:  # noqa: ANN401 - options
        """A `top_k` that brings the document in, near the smallest, and its rank in the widest search.

        A wider search has more candidates, which shifts the ranks a little.
        """

        def rank(top_k: int) -> int | None:
            return self.rank(self.run(**changed, top_k=top_k))

        if likely is not None and likely > self._options.top_k and rank(likely):
            return likely, None
        most = most_passages(self._options.neighbours)
        wide = rank(most)
        if wide is None:
            return None, None
        tried = (min(most, math.ceil(wide * growth)) for growth in _GROWTH)
        return next((number for number in tried if number > self._options.top_k and rank(number)), None), wide


# Stages that keep nothing out by themselves: one retriever is enough, and a reranker only orders.
_UNDECIDED = frozenset({"dense", "lexical", "rerank"})

# What leaves passages of a ranking out.
_LEAVING_OUT = frozenset({"similarity_threshold", "min_relevance", "min_score", "collapse_duplicates"})

# What is tried beyond a rank in the widest search, by which narrower ones may differ from it.
_GROWTH = (1.0, 1.1, 1.3, 1.6, 2.0)


def _fused_score(place: RetrievedContext) -> float:
    """What fusion made of the retrievers' scores, before any reranker."""
    return place.explain.fused_score if place.explain else place.score


def _stage(name: str, passed: bool, detail: str, **numbers: object) -> WhyNotStage:
    return WhyNotStage(stage=name, passed=passed, detail=detail, numbers=numbers)


def document_stage(standing: Standing, collection: str) -> WhyNotStage:
    """Whether there is something that a search of the collection could find."""
    passed = False
    if standing.collection != collection:
        detail = f"it is in the collection {standing.collection!r}, and {collection!r} was searched"
    elif not standing.known:
        closed = f"was closed on {_moment(standing.known_to)}" if standing.known_to else "was not known then"
        detail = f"its last version {closed}: it was deleted, or its file had gone"
    elif standing.status != "embedded":
        detail = f"its status is {standing.status}" + (f": {standing.error}" if standing.error else "")
    elif not standing.chunk_count:
        detail = "it has no text that could be found"
    elif not (standing.vectors or standing.lexical_rows):
        detail = f"its {_count(standing.chunk_count, 'chunk')} lack their vectors and words"
    else:
        passed = True
        detail = (
            f"version {standing.version} of {_moment(standing.known_from)}, {_count(standing.chunk_count, 'chunk')}"
        )
    return _stage(
        "document",
        passed,
        detail,
        version=standing.version,
        known_from=standing.known_from.isoformat(),
        known_to=standing.known_to and standing.known_to.isoformat(),
        status=standing.status,
        chunks=standing.chunk_count,
    )


def access_stages(standing: Standing, now: datetime) -> list[WhyNotStage]:
    """Permissions and expiry, by the rules that searches go by; whoever may not read it was not told of it at all."""
    everyone = list(standing.permissions) == ["*"]
    who = "everyone of the tenant may read it"
    if not everyone:
        who = f"its permissions are {', '.join(standing.permissions) or 'for nobody'}: others do not find it"
    if standing.expires_at is None:
        until = "it does not expire"
    elif standing.expires_at > now:
        until = f"it expires on {_moment(standing.expires_at)}"
    else:
        until = f"it expired on {_moment(standing.expires_at)}, which searches do not mind"
    expires = standing.expires_at and standing.expires_at.isoformat()
    return [
        _stage("permissions", True, who, permissions=list(standing.permissions)),
        _stage("expiry", True, until, expires_at=expires),
    ]


def filter_stage(values: Mapping[str, object], asked: Sequence[Filter], failed: Sequence[Filter]) -> list[WhyNotStage]:
    """The conditions that the document fails, with its own values; nothing where there is no filter."""
    if not asked:
        return []
    reasons = [f"{describe(condition)} excludes it: {own_values(values, condition)}" for condition in failed]
    conditions = [{"condition": describe(condition), "passed": condition not in failed} for condition in asked]
    met = f"it meets {' and '.join(describe(condition) for condition in asked)}"
    return [_stage("filter", not failed, "; ".join(reasons) or met, conditions=conditions)]


def own_values(values: Mapping[str, object], condition: Filter) -> str:
    """What a document has in the fields that a condition looks at, in words.

    Args:
        values: Its own, by the names of `EVERY_FIELD`.
        condition: That it fails.
    """
    told = dict.fromkeys(_own_value(values, inner) for inner in conditions_in(condition))
    return ", ".join(told) or "nothing can meet it"


def _own_value(values: Mapping[str, object], condition: Condition) -> str:
    name, value = field_name(condition), values[condition.field]
    for key in condition.path:
        if not isinstance(value, Mapping) or key not in value:
            return f"it has no {name}"
        value = value[key]
    if not condition.path and value in (None, []):
        return f"it has no {name}"
    return f"its {name} is {value.isoformat() if isinstance(value, datetime) else repr(value)}"


def _told(words: Sequence[Word]) -> Iterator[str]:
    has = [f"{word.written} {word.weight:.2f}" for word in words if word.present and word.weight is not None]
    lacks = [f"{word.written} {word.weight:.2f}" for word in words if not word.present and word.weight is not None]
    # A word is looked up in every language of the collection: found by one analysis, it is somewhere.
    somewhere = {word.written for word in words if word.weight is not None}
    nowhere = [word.written for word in words if word.weight is None and word.written not in somewhere]
    if has:
        yield f"; it has {', '.join(has)}"
    if lacks:
        yield f"; it lacks {', '.join(lacks)}"
    if nowhere:
        yield f"; no document has {', '.join(nowhere)}"


def _threshold(name: str, value: float | None, limit: float) -> WhyNotStage:
    passed = value is not None and value >= limit
    shown = "unknown" if value is None else f"{value:.3f}"
    noun = {"similarity_threshold": "similarity", "min_relevance": "relevance"}.get(name, "score")
    detail = f"its {noun} of {shown} {'reaches' if passed else 'is below'} {name} {limit:g}"
    return _stage(name, passed, detail, value=value, limit=limit)


def _moment(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC" if moment else "an unknown day"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
