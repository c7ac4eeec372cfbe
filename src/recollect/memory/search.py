"""Searches of turns and of facts: candidates, their scores and fusion as of chunks, over tables of their own."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from recollect.memory.scoring import FOLLOWING, followed
from recollect.memory.validation import checked_name
from recollect.retrieval import bm25, fusion
from recollect.retrieval.candidates import Candidates
from recollect.retrieval.lexical import LexicalQuery, complete, judged, take
from recollect.retrieval.turns import REFERENCE_LENGTH
from recollect.store.recall import Window

if TYPE_CHECKING:
    from recollect.embedding.base import EmbeddingProvider
    from recollect.model import Scope
    from recollect.model.memory import RecallOptions
    from recollect.retrieval.turns import TurnTerms
    from recollect.store.memory import MemoryRepository
    from recollect.store.recall import MemoryTable, Place, RecallRepository, SearchedSessions
    from recollect.store.search import CandidateRows

#: Candidates that each way of searching contributes, at least.
CANDIDATES = 200

#: How many turns the words may stand in together that candidates are taken by: in a long memory, who spoke or "day" are
#: in too many to tell anything. They count in the score all the same.
CANDIDATE_BUDGET = 2_000


@dataclass(frozen=True, slots=True)
class MemoryKind:
    """What is searched, as data.

    Attributes:
        table: Where it stands.
        following: The shares of the scores of what was said next, and behind that, which a score gains.
        measured: Whether lengths are compared with their average in what is found, instead of in all that is searched.
    """

    table: MemoryTable
    following: tuple[float, ...] = ()
    measured: bool = False


TURNS = MemoryKind("turns", following=FOLLOWING)
FACTS = MemoryKind("facts", measured=True)


@dataclass(frozen=True, slots=True)
class Found:
    """A turn or a fact that was found, by its number."""

    number: int
    score: float
    similarity: float | None
    bm25: float | None


class MemorySearcher:
    """Searches one tenant's memory. Safe to share between threads.

    Args:
        memory: Knows the conversations.
        recalls: Searches them.
        embedder: Embeds questions.
        terms: Counts and weighs words.
    """

    def __init__(
        self, memory: MemoryRepository, recalls: RecallRepository, embedder: EmbeddingProvider, terms: TurnTerms
    ) -> None:
        self._memory = memory
        self._recalls = recalls
        self._embedder = embedder
        self._terms = terms

    def sessions(self, scope: Scope, session: str | None, user: str | None) -> SearchedSessions:
        """The sessions that are searched: one that is named, beside all of a user's; without either, every one.

        Raises:
            UsageError: A name is not valid.
            NotFoundError: There is no such session.
        """
        owner = None if user is None else checked_name("The user id", user)
        named = []
        if session is not None:
            name = checked_name("The session id", session)
            named.append(self._memory.get_session(scope, name, user=owner).session_id)
        return self._recalls.searched(scope, named=named, user=owner)

    def search(
        self, scope: Scope, kind: MemoryKind, question: str, options: RecallOptions, searched: SearchedSessions
    ) -> list[Found]:
        """The best of a kind for a question, by words and meaning alike."""
        found, places = self._candidates(scope, kind, question, options, searched)
        fused = fusion.weighted(
            found.dense,
            found.lexical,
            dense_weight=0.5,
            known_dense=found.similarities,
            known_lexical=found.bm25,
        )
        # The sum of both, not their mean.
        scores = {number: 2 * score for number, score in fused}
        if kind.following:
            scores = followed(scores, places, shares=kind.following)
        best = heapq.nsmallest(options.top_k, scores.items(), key=lambda item: (-item[1], item[0]))
        return [Found(number, score, found.similarities.get(number), found.bm25.get(number)) for number, score in best]

    def _candidates(
        self, scope: Scope, kind: MemoryKind, question: str, options: RecallOptions, searched: SearchedSessions
    ) -> tuple[Candidates, dict[int, Place]]:
        window = Window(
            session_ids=searched.session_ids,
            since=options.since,
            until=options.until,
            limit=max(CANDIDATES, options.top_k),
        )
        vector = None if options.mode == "lexical" else self._embedder.embed_query(question)
        query = LexicalQuery({}) if options.mode == "dense" else self._query(scope, question, searched)
        worded = nearest = None
        places: dict[int, Place] = {}
        if query.weights:
            (rarest,) = query.conditions
            worded, own = self._recalls.lexical(
                scope, kind.table, window, query.weights, candidates=rarest, embedding=vector
            )
            places |= own
        if vector is not None:
            nearest, own = self._recalls.dense(scope, kind.table, window, vector, words=bool(query.weights))
            places |= own
        if kind.measured:
            query = replace(query, average_length=_average_length(worded, nearest))
        found = Candidates(embedding=vector)
        if worded is not None:
            take(found, judged(query, worded.lexical, top_k=options.top_k, limit=window.limit))
            found.similarities = worded.similarities
        if nearest is not None:
            complete(found, query, nearest)
        return found, places

    def _query(self, scope: Scope, question: str, searched: SearchedSessions) -> LexicalQuery:
        """What each of a question's lexemes weighs, and the ones that candidates are taken by."""
        counts = self._terms.question(question)
        if not counts:
            return LexicalQuery({})
        known = self._recalls.document_frequencies(scope, list(counts), session_ids=searched.session_ids)
        weights = bm25.query_weights(counts, document_frequencies=known, chunks=searched.turns)
        choice = bm25.choose_terms({lexeme: known[lexeme] for lexeme in weights}, budget=CANDIDATE_BUDGET)
        return LexicalQuery(
            weights,
            reference_length=REFERENCE_LENGTH,
            average_length=searched.average_length,
            remaining=choice.remaining,
            conditions=(choice.chosen,),
            fractional=True,
        )


def _average_length(*parts: CandidateRows | None) -> float:
    lengths = {
        number: length
        for part in parts
        if part is not None
        for number, length in zip(part.lexical.chunk_ids, part.lexical.lengths.tolist(), strict=True)
    }
    return sum(lengths.values()) / len(lengths) if lengths else 0.0
