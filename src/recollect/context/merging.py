"""Passages of documents, of conversations, and facts in one order. Pure: no I/O, no clock, no chance."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Literal, TypeAlias

from recollect.model import RetrievedContext
from recollect.model.facts import EXTRACTIVE, RecalledFact
from recollect.model.memory import Episode, Recollection

if TYPE_CHECKING:
    from recollect.retrieval.analysis import Analyzer
    from recollect.retrieval.indexing import TermIndexer
    from recollect.retrieval.relevance import SimilarityScale

#: Gives the scale of an embedding model's similarities by its name; None where it is not known.
Scales: TypeAlias = "Callable[[str], SimilarityScale | None]"

Kind = Literal["document", "memory", "fact"]

# Below every episode's number with its sign turned: of one context, all numbers differ.
_FACTS_FROM = -(1 << 61)

# Words are only compared with one another here.
_SALT = 0

# The part that words, counted over documents and memory alike, have in the final order.
_WORDS_SHARE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class HybridPassage:
    """A passage of a document or of a conversation, or a fact, as it is shown.

    Attributes:
        kind: Which of the three; facts are memory, and share its part of the budget.
        source: The document's name, ``memory:`` and the session's, or ``fact:`` and the fact's number.
        content: What is shown of it.
        score: What the passages are ordered by, best first; comparable within one search only.
        passage: The passage; of memory it has no document (``document_id`` 0), and ``metadata`` names the session and
            the position, of a fact also the ``fact`` and its ``evidence``, the exact characters of turns.
        recollection: The turn it came from, of a conversation.
        fact: The fact, of one.
    """

    kind: Kind
    source: str
    content: str
    score: float
    passage: RetrievedContext
    recollection: Recollection | None = None
    fact: RecalledFact | None = None

    @property
    def side(self) -> Literal["document", "memory"]:
        """Whose part of the budget it takes."""
        return "document" if self.kind == "document" else "memory"


def merged(
    query: str,
    items: Sequence[HybridPassage],
    weights: Mapping[str, float],
    *,
    language: str,
    scales: Scales,
) -> list[HybridPassage]:
    """Both sides in one order, best first.

    Similarities to the question are weighed by side: as they are where one model measured them all, else each on its
    model's own scale. BM25, its statistics counted over all candidates alike, has the other half of the say.

    Args:
        query: As asked.
        items: Of both sides, in any order.
        weights: By side.
        language: ISO 639-1, of the words.
        scales: Gives a model's scale, where there are several.
    """
    if not items:
        return []
    meant = [weights[item.side] * score for item, score in zip(items, _comparable(items, scales), strict=True)]
    said = _said(query, [item.content for item in items], language)
    scores = [
        (1 - _WORDS_SHARE) * by_meaning + _WORDS_SHARE * by_words
        for by_meaning, by_words in zip(_scaled(meant), _scaled(said), strict=True)
    ]
    scored = [replace(item, score=score) for item, score in zip(items, scores, strict=True)]
    return sorted(scored, key=lambda item: (-item.score, item.kind, item.passage.rank))


def _said(query: str, texts: Sequence[str], language: str) -> list[float]:
    """BM25 of each text, frequencies and lengths counted over these texts: `Bm25Reranker`, of known words faster."""
    from recollect.retrieval import bm25
    from recollect.retrieval.analysis import term_frequencies

    analyzer, indexer = _analysis(language)
    wanted = term_frequencies(analyzer.query_terms(query), salt=_SALT)
    counted = [dict(zip(one.lexemes.tolist(), one.counts.tolist(), strict=True)) for one in indexer.count(texts)]
    lengths = [sum(counts.values()) for counts in counted]
    average = max(1.0, sum(lengths) / len(lengths))
    weights = {
        lexeme: count * bm25.idf(sum(lexeme in counts for counts in counted), len(counted))
        for lexeme, count in wanted.items()
    }
    scores = []
    for counts, length in zip(counted, lengths, strict=True):
        saturation = bm25.K1 * (1 - bm25.B + bm25.B * length / average)
        scores.append(
            math.fsum(
                weights[lexeme] * counts[lexeme] * bm25.MAX_WEIGHT / (counts[lexeme] + saturation)
                for lexeme in weights.keys() & counts.keys()
            )
        )
    return scores


@cache
def _analysis(language: str) -> tuple[Analyzer, TermIndexer]:
    """What counts words, which remembers those it has met."""
    from recollect.retrieval.analysis import Analyzer
    from recollect.retrieval.indexing import TermIndexer

    return Analyzer(language), TermIndexer(language, salt=_SALT)


def _comparable(items: Sequence[HybridPassage], scales: Scales) -> list[float]:
    """How near each is to the question; where that is known of none (a search by words alone), 1 for all."""
    known = {
        place: (item.passage.embedding_model or "", item.passage.similarity)
        for place, item in enumerate(items)
        if item.passage.similarity is not None
    }
    if not known:
        return [1.0] * len(items)
    near = [similarity for _, similarity in known.values()]
    models = dict.fromkeys(model for model, _ in known.values())
    if len(models) > 1:
        from recollect.retrieval.spaces import on_one_scale

        near = on_one_scale(list(known.values()), {model: scales(model) for model in models})
    measured = dict(zip(known, near, strict=True))
    # Of a fact whose vector is of no use, nothing is known.
    return [max(0.0, measured.get(place, 0.0)) for place in range(len(items))]


def no_scale(_: str) -> None:
    """No model's scale is known: what was found of each is its measure."""


def _scaled(values: Sequence[float]) -> list[float]:
    """The values as shares of the greatest."""
    greatest = max(values, default=0.0)
    return [value / greatest if greatest > 0 and math.isfinite(value) else 0.0 for value in values]


def passage_of_document(passage: RetrievedContext) -> HybridPassage:
    """A document's passage among those of both sides."""
    return HybridPassage(
        kind="document", source=passage.source, content=passage.content, score=passage.score, passage=passage
    )


def passages_of_memory(found: Sequence[Recollection], query: str) -> list[HybridPassage]:
    """Turns with their neighbours as passages; a turn is part of the best passage that it belongs to, and no other.

    What was said twice in the same words, in one conversation or in two, is one passage.

    Args:
        found: Best first.
        query: A turn that says just this is the question itself, remembered already; it answers nothing.
    """
    asked = query.strip().casefold()
    shown: set[int] = set()
    passages: dict[str, HybridPassage] = {}
    for one in found:
        around = [*one.before, one.episode, *one.after]
        fresh = [turn for turn in around if turn.episode_id not in shown and turn.content.strip().casefold() != asked]
        if one.episode in fresh:
            shown.update(turn.episode_id for turn in fresh)
            passage = _memory_passage(one, fresh)
            passages.setdefault(passage.content.casefold(), passage)
    return list(passages.values())


def _memory_passage(one: Recollection, turns: Sequence[Episode]) -> HybridPassage:
    content = "\n".join(f"{turn.role}: {turn.content.strip()}" for turn in turns)
    episode = one.episode
    source = f"memory:{episode.session}"
    passage = RetrievedContext(
        rank=one.rank,
        score=one.score,
        content=content,
        # Documents' chunks have positive numbers: of one context, all differ.
        chunk_id=-episode.episode_id,
        document_id=0,
        title=episode.session,
        source=source,
        section=None,
        page=None,
        start_offset=0,
        end_offset=len(content),
        metadata={"session": episode.session, "position": episode.position, "role": episode.role},
        similarity=one.similarity,
        event_time=episode.at,
        embedding_model=one.embedding_model,
    )
    return HybridPassage(
        kind="memory", source=source, content=content, score=one.score, passage=passage, recollection=one
    )


def passage_of_fact(found: RecalledFact) -> HybridPassage:
    """A fact among the passages of both sides, with the turns that it rests on."""
    fact = found.fact
    said = fact.statement if fact.made_by != EXTRACTIVE else f"{fact.role}: {fact.statement}"
    turns = dict.fromkeys(f"{one.session}, turn {one.position}" for one in fact.evidence)
    content = f"{said} ({'; '.join(turns)})" if turns else said
    evidence = [
        {
            "session": one.session,
            "position": one.position,
            "start_offset": one.start_offset,
            "end_offset": one.end_offset,
            "quote": one.quote,
        }
        for one in fact.evidence
    ]
    latest = max((one for one in fact.evidence if one.kind == "source"), key=lambda one: one.episode_id, default=None)
    passage = RetrievedContext(
        rank=found.rank,
        score=found.score,
        content=content,
        chunk_id=_FACTS_FROM - fact.fact_id,
        document_id=0,
        title=fact.session,
        source=fact.source,
        section=None,
        page=None,
        start_offset=0,
        end_offset=len(content),
        metadata={
            "fact": fact.fact_id,
            "session": fact.session,
            "position": None if latest is None else latest.position,
            "role": fact.role,
            "evidence": evidence,
        },
        similarity=found.similarity,
        event_time=fact.at,
        embedding_model=found.embedding_model,
    )
    return HybridPassage(
        kind="fact", source=fact.source, content=content, score=found.score, passage=passage, fact=found
    )


def told_by(item: HybridPassage) -> set[int]:
    """The episodes that a passage says, so that a fact drawn from one of them says nothing more."""
    if item.fact is not None:
        return _rests_on(item)
    if item.recollection is None:
        return set()
    one = item.recollection
    return {turn.episode_id for turn in (*one.before, one.episode, *one.after)}


def is_echo(item: HybridPassage, told: set[int]) -> bool:
    """Whether what is shown says already what a passage would: a fact's turns, or a turn itself or as a fact."""
    episodes = _rests_on(item)
    return bool(episodes) and episodes <= told


def _rests_on(item: HybridPassage) -> set[int]:
    if item.fact is not None:
        return {one.episode_id for one in item.fact.fact.evidence if one.kind == "source"}
    return set() if item.recollection is None else {item.recollection.episode.episode_id}
