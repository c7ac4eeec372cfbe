"""Where a document stands at each stage, from what the trials of a search have shown. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from recollect.model.filter import Condition, Filter, conditions_in, describe, field_name
from recollect.model.why_not import WhyNotStage

if TYPE_CHECKING:
    from recollect.model import CompleteOptions, RetrievedContext, SearchReply
    from recollect.store.why_not import BestChunk, Standing

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
        similarity_threshold: In force, from the options or the settings.
        min_relevance: Likewise; where neither says anything, the floor that not even the best passage reached.
        min_score: Likewise.
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
    similarity_threshold: float | None
    min_relevance: float | None
    min_score: float | None
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
        by_meaning = self.embedded.rank if self.embedded and self.dense else None
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


def filter_stage(standing: Standing, asked: Sequence[Filter], failed: Sequence[Filter]) -> list[WhyNotStage]:
    """The conditions that the document fails, with its own values; nothing where there is no filter."""
    if not asked:
        return []
    reasons = [f"{describe(condition)} excludes it: {own_values(standing, condition)}" for condition in failed]
    conditions = [{"condition": describe(condition), "passed": condition not in failed} for condition in asked]
    met = f"it meets {' and '.join(describe(condition) for condition in asked)}"
    return [_stage("filter", not failed, "; ".join(reasons) or met, conditions=conditions)]


def own_values(standing: Standing, condition: Filter) -> str:
    """What a document has in the fields that a condition looks at, in words."""
    told = dict.fromkeys(_own_value(standing, inner) for inner in conditions_in(condition))
    return ", ".join(told) or "nothing can meet it"


def _own_value(standing: Standing, condition: Condition) -> str:
    name = field_name(condition)
    plain: Mapping[str, object] = {
        "department": standing.department,
        "document_id": standing.document_id,
        "event_time": standing.event_time and standing.event_time.isoformat(),
        "language": standing.language,
        "source": standing.source,
        "source_type": standing.source_type,
        "tags": list(standing.tags) or None,
        "title": standing.title,
    }
    value = plain.get(condition.field)
    if condition.field == "metadata":
        value = standing.metadata
        for key in condition.path:
            if not isinstance(value, Mapping) or key not in value:
                return f"it has no {name}"
            value = value[key]
    elif value is None:
        return f"it has no {name}"
    return f"its {name} is {value!r}"


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
    limit = evidence.similarity_threshold
    if limit is not None:
        best = max((place.similarity for place in ranked if place.similarity is not None), default=None)
        if best is None and evidence.embedded:
            best = evidence.embedded.score
        above = [place for place in ranked if place.similarity is not None and place.similarity >= limit]
        yield _threshold("similarity_threshold", best, limit)
    needed = evidence.min_relevance
    if needed is not None and above:
        yield _threshold("min_relevance", max((place.relevance or 0.0 for place in above), default=None), needed)
        above = [place for place in above if (place.relevance or 0.0) >= needed]
    lowest = evidence.min_score
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
