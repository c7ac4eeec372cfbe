"""Recalling facts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.memory.search import FACTS, MemorySearcher
from recollect.memory.validation import checked_options, checked_question
from recollect.model.facts import RecalledFact
from recollect.model.memory import RecallOptions

if TYPE_CHECKING:
    from recollect.model import Scope
    from recollect.store.facts import FactRepository


class FactMemory:
    """Recalls the facts of one tenant. Safe to share between threads.

    Args:
        searcher: Searches the tenant's memory.
        facts: Reads facts.
    """

    def __init__(self, searcher: MemorySearcher, facts: FactRepository) -> None:
        self._searcher = searcher
        self._facts = facts

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
        searched = self._searcher.sessions(scope, session, user)
        best = self._searcher.search(scope, FACTS, question, wanted, searched) if searched.turns else []
        found = self._facts.by_id(scope, [one.number for one in best]) if best else {}
        present = [one for one in best if one.number in found]
        return [
            RecalledFact(
                rank=rank,
                score=one.score,
                fact=found[one.number],
                similarity=one.similarity,
                bm25=one.bm25,
                embedding_model=one.model,
            )
            for rank, one in enumerate(present, start=1)
        ]
