"""Recalling facts."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from recollect.memory.scoring import fused, rarest
from recollect.memory.service import CANDIDATE_BUDGET, CANDIDATES
from recollect.memory.validation import checked_name, checked_options, checked_question
from recollect.model.facts import RecalledFact
from recollect.model.memory import RecallOptions
from recollect.store.recall import TurnWords, Window

if TYPE_CHECKING:
    from recollect.embedding.base import EmbeddingProvider
    from recollect.memory.terms import TurnLexicon
    from recollect.model import Scope
    from recollect.store.fact_search import FactSearchRepository
    from recollect.store.facts import FactRepository
    from recollect.store.memory import MemoryRepository
    from recollect.store.recall import RecallRepository, SearchedSessions


class FactMemory:
    """Searches the facts of one tenant. Safe to share between threads.

    Args:
        memory: Knows the conversations.
        recalls: Knows how rare words are in them.
        facts: Reads facts.
        arms: Searches them.
        embedder: Embeds questions.
        lexicon: Counts and weighs words.
    """

    def __init__(
        self,
        memory: MemoryRepository,
        recalls: RecallRepository,
        facts: FactRepository,
        arms: FactSearchRepository,
        *,
        embedder: EmbeddingProvider,
        lexicon: TurnLexicon,
    ) -> None:
        self._memory = memory
        self._recalls = recalls
        self._facts = facts
        self._arms = arms
        self._embedder = embedder
        self._lexicon = lexicon

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
        searched = self._searched(scope, session, user)
        if not searched.turns:
            return []
        similarities, bm25 = self._scores(scope, question, wanted, searched)
        scores = fused([arm for arm in (similarities, bm25) if arm])
        best = heapq.nsmallest(wanted.top_k, scores.items(), key=lambda item: (-item[1], item[0]))
        found = self._facts.by_id(scope, [fact_id for fact_id, _ in best]) if best else {}
        present = [(found[fact_id], score) for fact_id, score in best if fact_id in found]
        return [
            RecalledFact(
                rank=rank,
                score=score,
                fact=fact,
                similarity=similarities.get(fact.fact_id),
                bm25=bm25.get(fact.fact_id),
            )
            for rank, (fact, score) in enumerate(present, start=1)
        ]

    def _searched(self, scope: Scope, session: str | None, user: str | None) -> SearchedSessions:
        owner = None if user is None else checked_name("The user id", user)
        named = []
        if session is not None:
            name = checked_name("The session id", session)
            named.append(self._memory.get_session(scope, name, user=owner).session_id)
        return self._recalls.searched(scope, named=named, user=owner)

    def _scores(
        self, scope: Scope, question: str, options: RecallOptions, searched: SearchedSessions
    ) -> tuple[dict[int, float], dict[int, float]]:
        """Similarities and BM25 scores of every candidate, as far as the mode asks for them."""
        window = Window(
            session_ids=searched.session_ids,
            since=options.since,
            until=options.until,
            limit=max(CANDIDATES, options.top_k),
        )
        weights: dict[int, float] = {}
        found: set[int] = set()
        words = None
        if options.mode != "dense" and (counts := self._lexicon.question(question)):
            rarity = self._recalls.document_frequencies(scope, list(counts), session_ids=searched.session_ids)
            weights = self._lexicon.question_weights(counts, frequencies=rarity, turns=searched.turns)
        if weights:
            rare = rarest({lexeme: rarity[lexeme] for lexeme in weights}, budget=CANDIDATE_BUDGET)
            words = self._arms.lexical(scope, window, weights, candidates=rare)
            found.update(words.episode_ids)
        if options.mode == "lexical":
            return {}, {} if words is None else self._bm25(weights, words)
        vector = self._embedder.embed_query(question)
        similarities = dict(self._arms.dense(scope, window, vector))
        found.update(similarities)
        if not weights:
            return similarities, {}
        similarities, words = self._arms.index_rows(scope, vector, sorted(found))
        return similarities, self._bm25(weights, words)

    def _bm25(self, weights: dict[int, float], words: TurnWords) -> dict[int, float]:
        scores = self._lexicon.scores(
            weights,
            lengths=words.lengths,
            counts=words.counts,
            lexemes=words.lexemes,
            stored=words.weights,
            average_length=float(words.lengths.mean()) if len(words.lengths) else 0.0,
        )
        return dict(zip(words.episode_ids, scores.tolist(), strict=True))
