"""Why a search misses a document: the same search is run in several ways, and the document looked for in each."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from recollect.model import CompleteOptions, RetrievalOptions, Scope
from recollect.model.bounds import MAX_CANDIDATES, MAX_RERANK_CANDIDATES, MAX_TOP_K, most_passages
from recollect.model.filter import Condition, Filter, conditions_in, describe, field_name
from recollect.model.scope import Target
from recollect.model.search_options import search_options
from recollect.model.time_limits import at_moment
from recollect.model.why_not import NamedDocument, WhyNot, WhyNotStage
from recollect.retrieval.analysis import lexeme
from recollect.retrieval.candidates import analyzer_for
from recollect.retrieval.enhance.plan import QueryPlan, enhance, query_vector
from recollect.retrieval.ranking import NO_RERANKER, UNKNOWN_RERANKER
from recollect.retrieval.relevance import BELOW_FLOOR, RelevanceMeter, Thresholds
from recollect.retrieval.rerank.registry import DEFAULTS
from recollect.retrieval.validation import validate
from recollect.store.filters import (
    document_filter_of,
    failed_conditions,
    matching_versions,
    version_values,
)

if TYPE_CHECKING:
    from recollect.embedding.base import EmbeddingProvider
    from recollect.model import RetrievedContext, SearchReply
    from recollect.model.collection import Collection
    from recollect.retrieval.enhance.plan import QueryEnhancer
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
            evidence = self._gather(scope, searched, standing, query, _without(self.settings.complete(options), failed))
            later = list(search_stages(evidence))
            kept_out = blamed(later)
            told = advice(kept_out, later, evidence) if kept_out else ""
            rank = evidence.rank(evidence.asked)
            place = f"result {rank:,} of {len(evidence.asked.results):,}." if rank else ""
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

    def _gather(
        self, scope: Scope, searched: Collection, standing: Standing, query: str, options: CompleteOptions
    ) -> Evidence:
        plan = enhance(query, self.enhancers(searched) if options.enhance else ())
        searcher = self.searcher([_Planned(plan)])

        def run(changed: CompleteOptions) -> SearchReply:
            told = replace(changed, explain=True, use_cache=False)
            return searcher.search(scope, query, told, Target.of(searched.name))

        limit, thresholds = self.settings.limit(options), Thresholds.of(options, self.settings)
        kept = document_filter_of(options, scope.as_of)
        versions = None
        if kept or scope.as_of is not None:
            versions = matching_versions(
                self.database, scope, searched.collection_id, kept, access_ids=searched.access_ids
            )
        ids = versions.version_ids if versions else None
        asked = run(options)
        embedded = None
        if options.mode != "lexical" or thresholds.similarity is not None:
            vector = query_vector(plan, self.embedder(searched))
            embedded = self.standings.dense_rank(
                scope, searched, vector, version_id=standing.version_id, version_ids=ids
            )
        bare = self._bare(options, limit)
        unranked = replace(bare, rerank=NO_RERANKER)
        ranked = run(bare)
        as_asked = ("similarity_threshold", "min_relevance", "min_score", "collapse_duplicates")
        return Evidence(
            standing=standing,
            options=options,
            limit=limit,
            thresholds=replace(thresholds, relevance=self._least_relevance(searched, thresholds, asked)),
            chunk_count=versions.chunk_count if versions else searched.chunk_count,
            embedded=embedded,
            lexical=None
            if options.mode == "dense"
            else self._lexical(scope, searched, standing, query, unranked, run, ids),
            run=run,
            asked=asked,
            dense=None if options.mode == "lexical" else run(replace(unranked, mode="dense")),
            fused=ranked if ranked.explain and ranked.explain.reranker is None else run(unranked),
            ranked=ranked,
            distinct=run(replace(bare, **{name: getattr(options, name) for name in as_asked})),
        )

    def _least_relevance(self, searched: Collection, thresholds: Thresholds, asked: SearchReply) -> float | None:
        """The threshold in force: the one given, or the model's floor where not even the best passage reached it."""
        stopped = asked.explain is not None and asked.explain.dropped.get(BELOW_FLOOR)
        if thresholds.relevance is not None or not stopped:
            return thresholds.relevance
        return RelevanceMeter(self.embedder(searched)).floor(similarities=True, coverage=asked.mode == "hybrid")

    def _bare(self, options: CompleteOptions, limit: int) -> CompleteOptions:
        """The whole ranking of the same candidates: nothing left out for a threshold, likeness or want of room."""
        settings = self.settings
        known = DEFAULTS.get(options.rerank or settings.ranking.rerank, UNKNOWN_RERANKER)
        depth = settings.ranking.rerank_candidates or known.depth
        return replace(
            options,
            top_k=min(limit, MAX_TOP_K),
            candidates=limit,
            # The depth follows from top_k, which is another one here.
            rerank_candidates=options.rerank_candidates
            or min(max(depth, 2 * options.top_k), 2 * depth, MAX_RERANK_CANDIDATES),
            similarity_threshold=None if settings.similarity_threshold is None else -1.0,
            min_relevance=0.0,
            min_score=None if settings.min_score is None else -math.inf,
            collapse_duplicates=False,
            mmr_lambda=None,
            neighbours=0,
            merge_adjacent=False,
        )

    def _lexical(
        self,
        scope: Scope,
        searched: Collection,
        standing: Standing,
        query: str,
        bare: CompleteOptions,
        run: Run,
        version_ids: list[int] | None,
    ) -> LexicalStanding:
        words_only = replace(bare, mode="lexical", pseudo_relevance=False)
        # It meets the other conditions: those that it fails were left out.
        only = replace(words_only, filters={"document_id": standing.document_id}, top_k=1)
        best = passages_of(run(only), standing.document_id)
        whole = run(replace(words_only, top_k=MAX_TOP_K, candidates=max(words_only.candidates or 0, MAX_TOP_K)))
        terms = whole.explain.terms if whole.explain else ()
        weights = {lexeme(term, searched.collection_id): weight for term, weight in terms}
        held = self.standings.lexemes(scope, standing.version_id, list(weights))
        analyzer = analyzer_for(searched)
        # Backwards: of several words of one term, the first is shown.
        written = {term: word for word in reversed(_WORD.findall(query)) for term in analyzer.query_terms(word)}
        words = tuple(
            Word(term, written.get(term, term), weight or None, lexeme(term, searched.collection_id) in held)
            for term, weight in terms
        )
        if not best:
            return LexicalStanding(words=words, score=None, rank=None, exact=True)
        known = passages_of(whole, standing.document_id)
        explain = known[0].explain.lexical if known and known[0].explain else None
        if explain is not None:
            return LexicalStanding(words=words, score=best[0].score, rank=explain.rank, exact=True)
        positive = {number: weight for number, weight in weights.items() if weight > 0}
        rank = self.standings.stored_rank(
            scope, searched, positive, version_id=standing.version_id, version_ids=version_ids
        )
        return LexicalStanding(words=words, score=best[0].score, rank=max(rank, MAX_TOP_K + 1), exact=False)


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


# What to change so that a search finds a document; nothing is advised that was not tried.


# What is tried beyond a rank in the widest search, by which narrower ones may differ from it.
_GROWTH = (1.0, 1.1, 1.3, 1.6, 2.0)


def advice(blamed: WhyNotStage, stages: Sequence[WhyNotStage], evidence: Evidence) -> str:
    """What kept the document out, and what to change, in sentences.

    Args:
        blamed: The stage that kept it out.
        stages: All of the search's.
        evidence: What is known; every change is tried before it is advised.
    """
    cause = blamed.detail
    if blamed.stage == "top_k":
        cause = "; ".join([*(one.detail for one in stages if one.stage == "rerank" and not one.passed), cause])
    elif blamed.stage == "candidates" and evidence.ranks():
        cause += f" (it ranks {' and '.join(f'{rank:,} {how}' for how, rank in evidence.ranks().items())})"
    return f"{cause}. {_remedy(blamed, evidence)}"


def _remedy(blamed: WhyNotStage, evidence: Evidence) -> str:
    options = evidence.options
    match blamed.stage:
        case "similarity_threshold" | "min_relevance" | "min_score":
            value = blamed.numbers.get("value")
            if not isinstance(value, float):
                return "It was not compared with the query at all."
            # Rounded down, so that the document's own value reaches it.
            limit = math.floor(value * 1000) / 1000
            lowered: dict[str, Any] = {blamed.stage: max(-1.0, limit) if "similarity" in blamed.stage else limit}
            return _tried(f"lower {blamed.stage} to {limit:g}", replace(options, **lowered), evidence)
        case "duplicates":
            return _tried("switch collapse_duplicates off", replace(options, collapse_duplicates=False), evidence)
        case "variety":
            return _tried("leave mmr_lambda out", replace(options, mmr_lambda=None), evidence)
        case "candidates":
            needed = min(evidence.ranks().values(), default=MAX_CANDIDATES + 1)
            if needed <= MAX_CANDIDATES and evidence.rank(evidence.run(replace(options, candidates=needed))):
                return f"Raise candidates to {needed:,}."
    return _more_results(evidence)


def _tried(change: str, changed: CompleteOptions, evidence: Evidence) -> str:
    rank = evidence.rank(evidence.run(changed))
    if rank is not None:
        return f"{change.capitalize()}, and it is result {rank:,}."
    wanted, _ = _enough(changed, evidence.rank(evidence.ranked), evidence)
    if wanted is None:
        return f"To {change} is not enough."
    return f"{change.capitalize()} and raise top_k to {wanted:,}."


def _more_results(evidence: Evidence) -> str:
    wanted, wide = _enough(evidence.options, evidence.rank(evidence.distinct), evidence)
    words = evidence.lexical.words if evidence.lexical else ()
    lacking = ", ".join(dict.fromkeys(word.written for word in words if not word.present))
    ask = f"ask in words that it uses{f'; it lacks {lacking}' if lacking else ''}"
    most = most_passages(evidence.options.neighbours)
    if wanted is not None:
        return f"Raise top_k to {wanted:,}{f', or {ask}' if wanted > evidence.limit else ''}."
    if wide is None:
        return f"Even among {most:,} results it is missing: {ask}."
    return f"Of {most:,} results (top_k) it is number {wide:,}."


def _enough(options: CompleteOptions, likely: int | None, evidence: Evidence) -> tuple[int | None, int | None]:
    """A `top_k` that brings the document in, near the smallest, and its rank in the widest search.

    A wider search has more candidates, which shifts the ranks a little.
    """

    def rank(top_k: int) -> int | None:
        return evidence.rank(evidence.run(replace(options, top_k=top_k)))

    if likely is not None and likely > options.top_k and rank(likely):
        return likely, None
    most = most_passages(options.neighbours)
    wide = rank(most)
    if wide is None:
        return None, None
    tried = (min(most, math.ceil(wide * growth)) for growth in _GROWTH)
    return next((number for number in tried if number > options.top_k and rank(number)), None), wide


# Where a document stands at each stage, from what the trials of a search have shown. Pure: no I/O.


# Stages that decide: the first of them that a document does not pass is what kept it out.
_DECISIVE = (
    *("document", "permissions", "expiry", "filter", "candidates"),
    *("similarity_threshold", "min_relevance", "min_score", "duplicates", "variety", "top_k"),
)


Run: TypeAlias = "Callable[[CompleteOptions], SearchReply]"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class LexicalStanding:
    """What the words say of a document.

    Attributes:
        score: BM25 of its best chunk, None where it shares no word with the query.
        rank: Of that chunk, from 1.
        exact: Whether the rank was read from an exact ranking, rather than counted by stored weights.
    """

    words: tuple[Word, ...]
    score: float | None
    rank: int | None
    exact: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Everything that is known of a document and a search, which was run in several ways.

    Attributes:
        options: As asked, without the conditions that remove the document.
        limit: How many candidates each retriever contributes.
        thresholds: In force, from the options or the settings; where neither names a relevance, the floor that not
            even the best passage reached.
        embedded: Where the document's best chunk stands by similarity; None without a query vector.
        lexical: What the words say; None where that retriever does not run.
        run: Searches with other options.
        asked: The search as asked, without the conditions that remove the document.
        dense: What the dense retriever alone contributes; None where it does not run.
        fused: The whole ranking before the reranker.
        ranked: The whole ranking after it: no threshold, no duplicates collapsed.
        distinct: The ranking with both.
    """

    standing: Standing
    options: CompleteOptions
    limit: int
    thresholds: Thresholds
    chunk_count: int
    embedded: BestChunk | None
    lexical: LexicalStanding | None
    run: Run
    asked: SearchReply
    dense: SearchReply | None
    fused: SearchReply
    ranked: SearchReply
    distinct: SearchReply

    def places(self, reply: SearchReply) -> list[RetrievedContext]:
        """The document's passages among the results of a trial, best first."""
        return passages_of(reply, self.standing.document_id)

    def rank(self, reply: SearchReply) -> int | None:
        """The rank of the best of them."""
        return next((place.rank for place in self.places(reply)), None)

    def ranks(self) -> dict[str, int]:
        """Where the document stands for each retriever that runs, where it is known."""
        by_meaning = self.embedded.rank if self.embedded and self.dense is not None else None
        by_words = self.lexical.rank if self.lexical else None
        return {name: rank for name, rank in (("by meaning", by_meaning), ("by words", by_words)) if rank}


def passages_of(reply: SearchReply, document_id: int) -> list[RetrievedContext]:
    """A document's passages among the results of a search, best first."""
    return [result for result in reply.results if result.document_id == document_id]


def blamed(stages: Sequence[WhyNotStage]) -> WhyNotStage | None:
    """What kept a document out: the first stage that decides and that it did not pass."""
    failed = {stage.stage: stage for stage in stages if not stage.passed}
    return next((failed[name] for name in _DECISIVE if name in failed), None)


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


def search_stages(evidence: Evidence) -> Iterator[WhyNotStage]:
    """The stages of the search itself, as far as the document came."""
    retrievers = [*_dense_stage(evidence), *_lexical_stage(evidence)]
    yield from retrievers
    fused, ranked = evidence.places(evidence.fused), evidence.places(evidence.ranked)
    candidate = bool(fused or ranked or any(stage.passed for stage in retrievers))
    missed = f"neither retriever has it among its best {evidence.limit:,}"
    yield _stage("candidates", candidate, "it is among the candidates" if candidate else missed, limit=evidence.limit)
    if not candidate:
        return
    if evidence.options.mode == "hybrid":
        yield _fusion_stage(evidence, fused)
    yield from _rerank_stage(evidence, fused, ranked)
    thresholds = list(_threshold_stages(evidence, ranked))
    yield from thresholds
    if all(stage.passed for stage in thresholds):
        yield from _order_stages(evidence, ranked)


def _dense_stage(evidence: Evidence) -> list[WhyNotStage]:
    best, trial = evidence.embedded, evidence.dense
    if trial is None:
        return []
    if best is None:
        return [_stage("dense", False, "it has no vectors", rank=None)]
    explained = [place.explain for place in evidence.places(evidence.fused) if place.explain]
    passed = bool(evidence.places(trial)) or any(explain.dense for explain in explained)
    detail = f"similarity {best.score:.3f}: rank {best.rank:,} of {_count(evidence.chunk_count, 'chunk')}"
    if not passed and best.rank <= evidence.limit:
        detail += ", which the approximate index did not find"
    elif not passed:
        detail += f", and the retriever gives its best {evidence.limit:,}"
    numbers = {"rank": best.rank, "score": best.score, "chunk_id": best.chunk_id}
    return [_stage("dense", passed, detail, **numbers, limit=evidence.limit)]


def _lexical_stage(evidence: Evidence) -> list[WhyNotStage]:
    lexical = evidence.lexical
    if lexical is None:
        return []
    explained = [place.explain for place in evidence.places(evidence.fused) if place.explain]
    within = lexical.rank is not None and lexical.rank <= evidence.limit
    passed = within or any(explain.lexical for explain in explained)
    if not lexical.words:
        detail = "the query has no words that count"
    elif lexical.score is None or lexical.rank is None:
        detail = "it shares no word with the query"
    else:
        about = "" if lexical.exact else "about "
        detail = f"BM25 {lexical.score:.2f}: rank {about}{lexical.rank:,}"
        detail += "" if passed else f", and the retriever gives its best {evidence.limit:,}"
    numbers = {"rank": lexical.rank, "score": lexical.score, "exact": lexical.exact, "limit": evidence.limit}
    terms = [word._asdict() for word in lexical.words]
    return [_stage("lexical", passed, detail + "".join(_words(lexical.words)), **numbers, terms=terms)]


def _words(words: Sequence[Word]) -> Iterator[str]:
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


def _fusion_stage(evidence: Evidence, fused: Sequence[RetrievedContext]) -> WhyNotStage:
    if not fused:
        return _stage("fusion", True, f"beyond the first {len(evidence.fused.results):,}", rank=None)
    best = fused[0]
    return _stage("fusion", True, f"score {best.score:.3f}: rank {best.rank:,}", rank=best.rank, score=best.score)


def _rerank_stage(
    evidence: Evidence, fused: Sequence[RetrievedContext], ranked: Sequence[RetrievedContext]
) -> list[WhyNotStage]:
    explain = evidence.ranked.explain
    name = explain.reranker if explain else None
    if name is None or explain is None:
        return []
    if not evidence.ranked.reranked:
        detail = f"{name} had no say: {explain.rerank_reason or 'it ordered nothing'}"
        return [_stage("rerank", True, detail, reranker=name)]
    before, after = fused[0].rank if fused else None, ranked[0].rank if ranked else None
    top_k = evidence.options.top_k
    pushed_out = before is not None and before <= top_k and (after is None or after > top_k)
    own = ranked[0].explain.rerank_score if ranked and ranked[0].explain else None
    if after is None:
        detail = f"{name} left it beyond the first {len(evidence.ranked.results):,}"
    elif before is None or before == after:
        detail = f"{name} has it at rank {after:,}"
    else:
        detail = f"{name} moved it {'up' if after < before else 'down'} from {before:,} to {after:,}"
    return [_stage("rerank", not pushed_out, detail, reranker=name, rank=after, before=before, score=own)]


def _threshold_stages(evidence: Evidence, ranked: Sequence[RetrievedContext]) -> Iterator[WhyNotStage]:
    above = list(ranked)
    limit = evidence.thresholds.similarity
    if limit is not None:
        best = max((place.similarity for place in ranked if place.similarity is not None), default=None)
        if best is None and evidence.embedded:
            best = evidence.embedded.score
        above = [place for place in ranked if place.similarity is not None and place.similarity >= limit]
        yield _threshold("similarity_threshold", best, limit)
    needed = evidence.thresholds.relevance
    if needed is not None and above:
        yield _threshold("min_relevance", max((place.relevance or 0.0 for place in above), default=None), needed)
        above = [place for place in above if (place.relevance or 0.0) >= needed]
    lowest = evidence.thresholds.score
    if lowest is not None and above:
        yield _threshold("min_score", max(place.score for place in above), lowest)


def _threshold(name: str, value: float | None, limit: float) -> WhyNotStage:
    passed = value is not None and value >= limit
    shown = "unknown" if value is None else f"{value:.3f}"
    noun = {"similarity_threshold": "similarity", "min_relevance": "relevance"}.get(name, "score")
    detail = f"its {noun} of {shown} {'reaches' if passed else 'is below'} {name} {limit:g}"
    return _stage(name, passed, detail, value=value, limit=limit)


def _order_stages(evidence: Evidence, ranked: Sequence[RetrievedContext]) -> Iterator[WhyNotStage]:
    asked, distinct = evidence.asked, evidence.places(evidence.distinct)
    found = evidence.places(asked)
    own = {place.chunk_id for place in ranked}
    twins = [one for one in evidence.distinct.results if own & set(one.duplicates)]
    if twins and not (distinct or found):
        twin = twins[0]
        detail = f"it says the same as {twin.source}, which stands above it at rank {twin.rank:,}"
        yield _stage("duplicates", False, detail, document_id=twin.document_id, source=twin.source, rank=twin.rank)
        return
    rank, top_k = distinct[0].rank if distinct else None, evidence.options.top_k
    if evidence.options.mmr_lambda is not None:
        kept_out = not found and rank is not None and rank <= top_k
        crowded = f"rank {rank or 0:,} by relevance, but others bring more variety"
        detail = crowded if kept_out else "not kept out by it"
        yield _stage("variety", not kept_out, detail, rank=rank, mmr_lambda=evidence.options.mmr_lambda)
        if kept_out:
            return
    last = asked.results[-1].score if asked.results else None
    score = next((place.score for place in (*found, *distinct)), None)
    place = f"rank {rank:,}" if rank else f"beyond rank {len(evidence.distinct.results):,}"
    scores = "" if score is None or last is None else f"; its score is {score:.3f}, the last result's {last:.3f}"
    detail = f"{place}, and {top_k:,} are shown{scores}"
    if found:
        rank = found[0].rank
        detail = f"result {rank:,} of {len(asked.results):,}"
    yield _stage("top_k", bool(found), detail, rank=rank, top_k=top_k, score=score, last_score=last)


def _moment(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC" if moment else "an unknown day"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
