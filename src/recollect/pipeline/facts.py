"""Semantic memory: facts drawn from conversations, searched and followed through time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.errors import NotFoundError
from recollect.model.facts import ConsolidationReport, Fact, RecalledFact
from recollect.model.memory import RecallOptions
from recollect.pipeline.parts import Parts

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.config import RAGConfig
    from recollect.model import Principal


class SemanticMemory:
    """The part of `RAGPipeline` that knows facts.

    Attributes:
        config: The settings.
    """

    config: RAGConfig
    _parts: Parts

    def consolidate(
        self,
        *,
        min_retrievals: int | None = None,
        user: str | None = None,
        limit: int = 100,
        tenant_id: int | None = None,
        principal: Principal | None = None,
    ) -> ConsolidationReport:
        """Draw facts from the turns that were asked for often enough; each turn is looked at once.

        Without a language model, the sentences of a turn that state something become facts as they are. With one
        (``[rag.answer]``, or handed to the pipeline), it writes them, and what it writes is held against the turns.
        A fact that contradicts an earlier one takes its place; the earlier one stays in the history.

        Args:
            min_retrievals: How often a turn was found, at least; None: as configured, 3.
            user: Only of this user's conversations; None: of all.
            limit: How many turns at most, the most often found first.
            tenant_id: Whose memory; None: the default tenant's.
            principal: Whose conversations, where permissions are enforced; None: everybody's.

        Raises:
            UsageError: A number is less than 1.
            ProviderError: The embedding model failed. Where the language model fails, sentences are taken.

        Example:
            >>> from recollect import RAGPipeline
            >>> with RAGPipeline() as rag:  # doctest: +SKIP
            ...     rag.remember("chat-1", "I live in Lisbon.", role="Ada", user="ada")
            ...     rag.recall("Where does Ada live?", user="ada")
            ...     rag.consolidate(min_retrievals=1).added
            1
        """
        scope = self._parts.scope(tenant_id, principal=principal)
        least = self.config.memory.min_retrievals if min_retrievals is None else min_retrievals
        return self._parts.consolidator(scope).consolidate(scope, min_retrievals=least, user=user, limit=limit)

    def recall_facts(
        self,
        query: str,
        options: RecallOptions | None = None,
        *,
        session: str | None = None,
        user: str | None = None,
        tenant_id: int | None = None,
        as_of: datetime | None = None,
        principal: Principal | None = None,
    ) -> list[RecalledFact]:
        """The facts that answer a question, best first, each with the words that it rests on.

        Args:
            query: In plain words.
            options: How to search; None: the defaults.
            session: Facts drawn from this conversation.
            user: Facts drawn from all conversations of this user, beside the one named; without either, from any.
            tenant_id: Whose memory; None: the default tenant's.
            as_of: The facts that were current at this time (without a zone: UTC); None: now.
            principal: Who asks: where permissions are enforced, facts from others' conversations do not exist for him;
                None: the owner of the store.

        Raises:
            UsageError: The query or an option is not valid.
            NotFoundError: There is no such session.
        """
        scope = self._parts.scope(tenant_id, as_of, principal=principal)
        return self._parts.fact_memory(scope).recall(scope, query, options, session=session, user=user)

    def list_facts(
        self,
        *,
        user: str | None = None,
        session: str | None = None,
        superseded: bool = False,
        limit: int = 100,
        offset: int = 0,
        tenant_id: int | None = None,
        as_of: datetime | None = None,
        principal: Principal | None = None,
    ) -> list[Fact]:
        """Facts, what was said last before the others.

        Args:
            user: Only those from this user's conversations.
            session: Only those from this conversation.
            superseded: Also those that others have taken the place of.
            limit: How many at most.
            offset: How many to pass over.
            tenant_id: Whose memory; None: the default tenant's.
            as_of: As they were at this time (without a zone: UTC); None: now.
            principal: Who asks; None: the owner of the store.
        """
        return self._parts.store.facts.page(
            self._parts.scope(tenant_id, as_of, principal=principal),
            user=user,
            session=session,
            superseded=superseded,
            limit=limit,
            offset=offset,
        )

    def get_fact(
        self,
        fact_id: int,
        *,
        tenant_id: int | None = None,
        as_of: datetime | None = None,
        principal: Principal | None = None,
    ) -> Fact:
        """One fact with its evidence.

        Raises:
            NotFoundError: There is none of that number.
        """
        found = self._parts.store.facts.by_id(self._parts.scope(tenant_id, as_of, principal=principal), [fact_id])
        if fact_id not in found:
            raise NotFoundError(f"There is no fact {fact_id}. `recollect facts list` shows them.")
        return found[fact_id]

    def fact_history(
        self,
        fact_id: int,
        *,
        tenant_id: int | None = None,
        as_of: datetime | None = None,
        principal: Principal | None = None,
    ) -> list[Fact]:
        """A fact with those before it and after it, in the order in which they were said.

        Raises:
            NotFoundError: There is none of that number.
        """
        return self._parts.store.facts.thread(self._parts.scope(tenant_id, as_of, principal=principal), fact_id)

    def delete_fact(self, fact_id: int, *, tenant_id: int | None = None, principal: Principal | None = None) -> None:
        """Remove a fact. The turns that it rests on stay, and what it took the place of is current again.

        Raises:
            NotFoundError: There is none of that number.
        """
        self._parts.store.facts.delete(self._parts.scope(tenant_id, principal=principal), fact_id)
