"""Passages of documents and of conversations in one order. Pure: no I/O, no clock, no chance."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from recollect.model import RetrievedContext
from recollect.model.memory import Episode, Recollection

Kind = Literal["document", "memory"]

# The part that words, counted over documents and memory alike, have in the final order.
_WORDS_SHARE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class HybridPassage:
    """A passage of a document or of a conversation, as it is shown.

    Attributes:
        kind: Which of the two.
        source: The document's name, or ``memory:`` and the session's.
        content: What is shown of it.
        score: What the passages are ordered by, best first; comparable within one search only.
        passage: The passage; of a conversation it has no document (``document_id`` 0), and ``metadata`` names the
            session and the position.
        recollection: The turn it came from, of a conversation.
    """

    kind: Kind
    source: str
    content: str
    score: float
    passage: RetrievedContext
    recollection: Recollection | None = None


def merged(
    query: str, items: Sequence[HybridPassage], weights: Mapping[str, float], *, language: str
) -> list[HybridPassage]:
    """Both sides in one order, best first.

    Similarities to the question, which one model measured on both sides, are weighed by side. BM25, its statistics
    counted over all candidates alike, has the other half of the say.

    Args:
        query: As asked.
        items: Of both sides, in any order.
        weights: By kind.
        language: ISO 639-1, of the words.
    """
    if not items:
        return []
    from recollect.retrieval.rerank.base import Candidate
    from recollect.retrieval.rerank.bm25 import Bm25Reranker

    meant = [weights[item.kind] * score for item, score in zip(items, _comparable(items), strict=True)]
    candidates = [Candidate(chunk_id=item.passage.chunk_id, text=item.content, score=0.0) for item in items]
    said = Bm25Reranker(language).rerank(query, candidates)
    scores = [
        (1 - _WORDS_SHARE) * by_meaning + _WORDS_SHARE * by_words
        for by_meaning, by_words in zip(_scaled(meant), _scaled(said), strict=True)
    ]
    scored = [replace(item, score=score) for item, score in zip(items, scores, strict=True)]
    return sorted(scored, key=lambda item: (-item.score, item.kind, item.passage.rank))


def _comparable(items: Sequence[HybridPassage]) -> list[float]:
    """Similarities to the question; where they are not known (a search by words alone), 1 for all."""
    similarities = [_similarity(item) for item in items]
    if any(similarity is None for similarity in similarities):
        return [1.0] * len(items)
    return [max(0.0, similarity or 0.0) for similarity in similarities]


def _similarity(item: HybridPassage) -> float | None:
    return item.recollection.similarity if item.recollection is not None else item.passage.similarity


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

    Args:
        found: Best first.
        query: A turn that says just this is the question itself, remembered already; it answers nothing.
    """
    asked = query.strip().casefold()
    shown: set[int] = set()
    passages = []
    for one in found:
        around = [*one.before, one.episode, *one.after]
        fresh = [turn for turn in around if turn.episode_id not in shown and turn.content.strip().casefold() != asked]
        if one.episode in fresh:
            shown.update(turn.episode_id for turn in fresh)
            passages.append(_memory_passage(one, fresh))
    return passages


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
    )
    return HybridPassage(
        kind="memory", source=source, content=content, score=one.score, passage=passage, recollection=one
    )
