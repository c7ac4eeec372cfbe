"""Searches of turns and of facts: candidates, their scores and fusion as of chunks, over tables of their own."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from recollect.memory.indexing import FOLLOWING, SessionEmbedders, followed
from recollect.memory.validation import checked_name, checked_options, checked_question
from recollect.model.facts import RecalledFact
from recollect.model.memory import RecallOptions
from recollect.model.record import fields_of
from recollect.retrieval import fusion
from recollect.retrieval.candidates import Candidates
from recollect.retrieval.indexing import REFERENCE_LENGTH, TurnTerms
from recollect.retrieval.lexical import LexicalQuery, choose_terms, complete, judged, query_weights, take
from recollect.retrieval.ranking import joined
from recollect.store.recall import MemoryTable, Place, RecallRepository, SearchedSessions, Window

if TYPE_CHECKING:
    from recollect.embedding.base import EmbeddingProvider, Vectors
    from recollect.model import Scope
    from recollect.retrieval.relevance import RelevanceMeter
    from recollect.store.facts import FactRepository
    from recollect.store.memory import MemoryRepository
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
    """A turn or a fact that was found, by its number; ``model`` measured its similarity."""

    number: int
    score: float
    similarity: float | None
    bm25: float | None
    model: str | None


@dataclass(slots=True)
class _Rows:
    """What the store finds in sessions of one embedding model."""

    embedder: EmbeddingProvider | None
    vector: Vectors | None
    limit: int
    worded: CandidateRows | None = None
    nearest: CandidateRows | None = None
    places: dict[int, Place] = field(default_factory=dict)

    @property
    def rows(self) -> tuple[CandidateRows | None, ...]:
        return self.worded, self.nearest

    def candidates(self, query: LexicalQuery, options: RecallOptions) -> Candidates:
        found = Candidates(embedding=self.vector)
        if self.worded is not None:
            take(found, judged(query, self.worded.lexical, top_k=options.top_k, limit=self.limit))
            found.similarities = self.worded.similarities
        if self.nearest is not None:
            complete(found, query, self.nearest)
        return found


@dataclass(eq=False)
class MemorySearcher:
    """Searches one tenant's memory. Safe to share between threads.

    Args:
        memory: Knows the conversations.
        recalls: Searches them.
        embedders: Embed questions.
        terms: Counts and weighs words.
    """

    memory: MemoryRepository
    recalls: RecallRepository
    embedders: SessionEmbedders
    terms: TurnTerms

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
            named.append(self.memory.get_session(scope, name, user=owner).session_id)
        return self.recalls.searched(scope, named=named, user=owner)

    def search(
        self, scope: Scope, kind: MemoryKind, question: str, options: RecallOptions, searched: SearchedSessions
    ) -> list[Found]:
        """The best of a kind for a question, by words and meaning alike."""
        found, places = self._candidates(scope, kind, question, options, searched)
        model = next(iter(searched.by_model), None)
        fused = fusion.weighted(
            found.nearest,
            found.lexical,
            dense_weight=0.5,
            known_dense=found.nearness,
            known_lexical=found.bm25,
        )
        # The sum of both, not their mean.
        scores = {number: 2 * score for number, score in fused}
        if kind.following:
            scores = followed(scores, places, shares=kind.following)
        best = heapq.nsmallest(options.top_k, scores.items(), key=lambda item: (-item[1], item[0]))
        return [
            Found(
                number,
                score,
                similarity := found.similarities.get(number),
                found.bm25.get(number),
                None if similarity is None else found.models.get(number, model),
            )
            for number, score in best
        ]

    def _candidates(
        self, scope: Scope, kind: MemoryKind, question: str, options: RecallOptions, searched: SearchedSessions
    ) -> tuple[Candidates, dict[int, Place]]:
        query = LexicalQuery({}) if options.mode == "dense" else self._query(scope, question, searched)
        parts = [
            self._rows(scope, kind, query, options, session_ids, embedder, question)
            for session_ids, embedder in self._spaces(options, searched)
        ]
        if kind.measured:
            query = replace(query, average_length=_average_length(*(rows for part in parts for rows in part.rows)))
        found = [part.candidates(query, options) for part in parts]
        scales = [None if meter is None or len(parts) == 1 else meter.scale() for meter in map(self._meter, parts)]
        names = ["" if part.embedder is None else part.embedder.model_name for part in parts]
        limit = max(CANDIDATES, options.top_k)
        return joined(names, found, scales, limit=limit), {k: v for part in parts for k, v in part.places.items()}

    def _spaces(
        self, options: RecallOptions, searched: SearchedSessions
    ) -> list[tuple[tuple[int, ...] | None, EmbeddingProvider | None]]:
        """The sessions that are searched together, and the model of their vectors, where these are compared."""
        if options.mode == "lexical":
            return [(searched.session_ids, None)]
        if len(searched.by_model) == 1:
            return [(searched.session_ids, self.embedders.of_session(model)) for model in searched.by_model]
        return [(own, self.embedders.of_session(model)) for model, own in searched.by_model.items()]

    def _rows(
        self,
        scope: Scope,
        kind: MemoryKind,
        query: LexicalQuery,
        options: RecallOptions,
        session_ids: tuple[int, ...] | None,
        embedder: EmbeddingProvider | None,
        question: str,
    ) -> _Rows:
        window = Window(
            session_ids=session_ids,
            since=options.since,
            until=options.until,
            limit=max(CANDIDATES, options.top_k),
        )
        found = _Rows(embedder, None if embedder is None else embedder.embed_query(question), window.limit)
        if query.weights:
            (rarest,) = query.conditions
            found.worded, own = self.recalls.lexical(
                scope, kind.table, window, query.weights, candidates=rarest, embedding=found.vector
            )
            found.places |= own
        if found.vector is not None:
            found.nearest, own = self.recalls.dense(scope, kind.table, window, found.vector, words=bool(query.weights))
            found.places |= own
        return found

    def _meter(self, part: _Rows) -> RelevanceMeter | None:
        embedder = part.embedder
        return None if embedder is None else self.embedders.meters.of(embedder.model_name, lambda: embedder)

    def _query(self, scope: Scope, question: str, searched: SearchedSessions) -> LexicalQuery:
        """What each of a question's lexemes weighs, and the ones that candidates are taken by."""
        counts = self.terms.question(question)
        if not counts:
            return LexicalQuery({})
        known = self.recalls.document_frequencies(scope, list(counts), session_ids=searched.session_ids)
        weights = query_weights(counts, document_frequencies=known, chunks=searched.turns)
        choice = choose_terms({lexeme: known[lexeme] for lexeme in weights}, budget=CANDIDATE_BUDGET)
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


# Recalling facts.


@dataclass(eq=False)
class FactMemory:
    """Recalls the facts of one tenant. Safe to share between threads.

    Args:
        searcher: Searches the tenant's memory.
        facts: Reads facts.
    """

    searcher: MemorySearcher
    facts: FactRepository

    def recall(
        self,
        scope: Scope,
        query: str,
        options: RecallOptions | None = None,
        *,
        session: str | None = None,
        user: str | None = None,
    ) -> list[RecalledFact]:
        """The current facts that answer a question, best first, by words and meaning as turns are.

        Args:
            scope: Whose, and as of when: what was not known as a fact then does not exist, and what was superseded
                later is current.
            query: In plain words.
            options: How to search; ``before``, ``after`` and ``counted`` mean nothing here. None: the defaults.
            session: Facts drawn from this session.
            user: Facts from all sessions of this user, beside the one named; without either, from every session.

        Raises:
            UsageError: The query or an option is not valid.
            NotFoundError: There is no such session.
        """
        question = checked_question(query)
        wanted = checked_options(options or RecallOptions())
        searched = self.searcher.sessions(scope, session, user)
        best = self.searcher.search(scope, FACTS, question, wanted, searched) if searched.turns else []
        found = self.facts.by_id(scope, [one.number for one in best]) if best else {}
        present = [one for one in best if one.number in found]
        return [
            RecalledFact(
                **fields_of(found[one.number]),
                rank=rank,
                score=one.score,
                similarity=one.similarity,
                bm25=one.bm25,
                embedding_model=one.model,
            )
            for rank, one in enumerate(present, start=1)
        ]
