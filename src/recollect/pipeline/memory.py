"""Conversations: what was said is remembered and recalled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from recollect.model.memory import Episode, RecallOptions, Recollection, Remembered, SessionRecord, Turn
from recollect.pipeline.history import LIBRARY
from recollect.pipeline.parts import Parts

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.config import RAGConfig
    from recollect.context import ContextAssembler, HybridRetriever, RetrievalWeights
    from recollect.context.weights import Adapt
    from recollect.memory import QueryPatternTracker
    from recollect.model import Principal, RetrievalOptions, RetrievedContext
    from recollect.model.facts import RecalledFact

_PAGE_TURNS = 1_000


class _Whole(Protocol):
    """What `RAGPipeline` has, of which this is a part."""

    @property
    def config(self) -> RAGConfig: ...

    @property
    def _parts(self) -> Parts: ...

    def _note_shown(self, tenant_id: int | None, episode_ids: Sequence[int]) -> None: ...

    def _adapt(self, tenant_id: int | None, principal: Principal | None, user: str | None) -> Adapt | None: ...

    def retrieve(
        self,
        query: str,
        options: RetrievalOptions | None = None,
        *,
        collection: str | None = None,
        tenant_id: int | None = None,
        as_of: datetime | None = None,
        principal: Principal | None = None,
    ) -> list[RetrievedContext]: ...

    def recall(
        self,
        query: str,
        options: RecallOptions | None = None,
        *,
        session: str | None = None,
        user: str | None = None,
        tenant_id: int | None = None,
        as_of: datetime | None = None,
        principal: Principal | None = None,
    ) -> list[Recollection]: ...

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
    ) -> list[RecalledFact]: ...


class Conversations:
    """The part of `RAGPipeline` that remembers conversations.

    Attributes:
        config: The settings.
    """

    config: RAGConfig
    _parts: Parts

    def remember(
        self,
        session: str,
        turns: Turn | str | Sequence[Turn | str],
        *,
        role: str = "user",
        at: datetime | None = None,
        user: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        tenant_id: int | None = None,
        principal: Principal | None = None,
    ) -> Remembered:
        """Append turns to a conversation; they can be recalled when this returns.

        Args:
            session: Your id of the conversation, made where it is missing. Every user has ids of his own.
            turns: What was said, in its order. A turn whose ``turn_id`` is stored already is not stored again.
            role: Who said what is given as text alone: ``user``, ``assistant``, or a name.
            at: When that was said (without a zone: UTC); None: not known.
            user: Whose conversation it is, so that `recall` can search all of theirs. None: nobody's in particular, or
                that of whoever alone has one of that id.
            metadata: Of the session, where it is made.
            tenant_id: Whose memory; None: the default tenant's.
            principal: Who remembers: where permissions are enforced, a user in conversations of his own alone; None:
                the owner of the store.

        Returns:
            Where each turn stands in its session.

        Raises:
            UsageError: A name or a turn is not valid, or several users have a session of that id and none is named;
                then nothing is stored.
            ConflictError: A turn's id is stored with other words.
            PermissionDeniedError: The principal would write another's conversation.
            ProviderError: The embedding model failed.

        Example:
            >>> from recollect import RAGPipeline
            >>> with RAGPipeline() as rag:  # doctest: +SKIP
            ...     rag.remember("chat-1", "My sister lives in Lisbon.", user="ada")
            ...     rag.recall("Where does my sister live?", user="ada")[0].episode.content
            'My sister lives in Lisbon.'
        """
        given = [turns] if isinstance(turns, Turn | str) else turns
        complete = [Turn(content=turn, role=role, at=at) if isinstance(turn, str) else turn for turn in given]
        scope = self._parts.scope(tenant_id, principal=principal)
        return self._parts.memory(scope).remember(scope, session, complete, user=user, metadata=metadata)

    def recall(
        self,
        query: str,
        options: RecallOptions | None = None,
        *,
        session: str | None = None,
        user: str | None = None,
        tenant_id: int | None = None,
        as_of: datetime | None = None,
        principal: Principal | None = None,
    ) -> list[Recollection]:
        """The turns that answer a question, best first, each with those around it.

        Args:
            query: In plain words.
            options: How to search; None: the defaults.
            session: Search this conversation.
            user: Search all conversations of this user, beside the one named; without either, every one of the tenant.
            tenant_id: Whose memory; None: the default tenant's.
            as_of: What was known at this time (without a zone: UTC); None: now.
            principal: Who asks: where permissions are enforced, others' conversations do not exist for him; None: the
                owner of the store.

        Raises:
            UsageError: The query or an option is not valid.
            NotFoundError: There is no such session.
        """
        scope = self._parts.scope(tenant_id, as_of, principal=principal)
        return self._parts.memory(scope).recall(scope, query, options, session=session, user=user)

    def list_sessions(
        self,
        *,
        user: str | None = None,
        limit: int = 100,
        offset: int = 0,
        tenant_id: int | None = None,
        principal: Principal | None = None,
    ) -> list[SessionRecord]:
        """Conversations, the one with the latest turn first; ``user``: only this user's."""
        scope = self._parts.scope(tenant_id, principal=principal)
        return self._parts.store.memory.list_sessions(scope, user=user, limit=limit, offset=offset)

    def get_session(
        self,
        session: str,
        *,
        user: str | None = None,
        tenant_id: int | None = None,
        principal: Principal | None = None,
    ) -> SessionRecord:
        """One conversation by its id; ``user``: whose, where several users have one of that id.

        Raises:
            NotFoundError: There is none.
            UsageError: Several users have one of that id, and none is named.
        """
        scope = self._parts.scope(tenant_id, principal=principal)
        return self._parts.store.memory.get_session(scope, session, user=user)

    def session_turns(
        self,
        session: str,
        *,
        after: int = 0,
        limit: int = _PAGE_TURNS,
        user: str | None = None,
        tenant_id: int | None = None,
        as_of: datetime | None = None,
        principal: Principal | None = None,
    ) -> list[Episode]:
        """A conversation's turns in their order; ``after`` is the last position of the page before.

        ``user``: whose conversation, where several users have one of that id.

        Raises:
            NotFoundError: There is no such session.
            UsageError: Several users have one of that id, and none is named.
        """
        scope = self._parts.scope(tenant_id, as_of, principal=principal)
        place = self._parts.store.memory.get_session(scope, session, user=user)
        return self._parts.store.memory.turns(scope, place, after=after, limit=limit)

    def delete_session(
        self,
        session: str,
        *,
        actor: str = LIBRARY,
        user: str | None = None,
        tenant_id: int | None = None,
        principal: Principal | None = None,
    ) -> int:
        """Remove a conversation with everything that was made of it, facts among it, physically.

        A receipt stays in the audit (`list_audit`, action ``forget``) that holds nothing of what was said.

        Args:
            session: Its id.
            actor: Who asks, for the receipt.
            user: Whose it is, where several users have one of that id.
            tenant_id: Whose memory; None: the default tenant's.
            principal: Who asks, as far as permissions are concerned; None: the owner of the store.

        Returns:
            How many turns it had.

        Raises:
            NotFoundError: There is none of that name.
        """
        scope = self._parts.scope(tenant_id, principal=principal)
        place = self._parts.store.memory.get_session(scope, session, user=user)
        return self._parts.store.memory.delete_session(scope, place, actor=actor)

    def forget_turns(
        self,
        session: str,
        positions: Sequence[int],
        *,
        actor: str = LIBRARY,
        user: str | None = None,
        tenant_id: int | None = None,
        principal: Principal | None = None,
    ) -> int:
        """Remove turns of a conversation with everything that was made of them, facts among it, physically.

        The turns behind them are indexed anew, as though the removed ones had never been said; positions stay.

        Args:
            session: The conversation.
            positions: Of the turns, as `session_turns` and `recall` give them.
            actor: Who asks, for the receipts.
            user: Whose conversation, where several users have one of that id.
            tenant_id: Whose memory; None: the default tenant's.
            principal: Who asks; None: the owner of the store.

        Returns:
            How many were removed.

        Raises:
            NotFoundError: There is no such session, or no turn at one of the positions: then none is removed.
        """
        scope = self._parts.scope(tenant_id, principal=principal)
        return self._parts.forgetter(scope).forget(scope, session, positions, actor=actor, user=user)

    @property
    def query_patterns(self) -> QueryPatternTracker:
        """What memory is asked for again and again."""
        return self._parts.query_patterns

    def hybrid_retriever(
        self: _Whole,
        *,
        weights: RetrievalWeights | None = None,
        collection: str | None = None,
        user: str | None = None,
        tenant_id: int | None = None,
        principal: Principal | None = None,
        count_tokens: Callable[[str], int] | None = None,
    ) -> HybridRetriever:
        """Searches documents, conversations and facts together.

        Args:
            weights: What each weighs; None: memory 60 %, documents 40 %.
            collection: Of the documents; None: the configured one.
            user: Whose conversations are searched beside the session that is named.
            tenant_id: Whose knowledge; None: the default tenant's.
            principal: Who asks: what he may not read does not exist for him; None: the owner of the store.
            count_tokens: Counts tokens as the model does that will read the context; None: as `context` counts them.
        """
        from recollect.context import HybridRetriever

        return HybridRetriever(
            self,
            self,
            weights=weights,
            collection=collection,
            user=user,
            tenant_id=tenant_id,
            principal=principal,
            facts=self.config.memory.facts,
            count_tokens=count_tokens or self._parts.count_tokens,
            language=self.config.language,
            on_shown=partial(self._note_shown, tenant_id),
            adapt=self._adapt(tenant_id, principal, user),
        )

    def context_assembler(
        self: _Whole,
        *,
        weights: RetrievalWeights | None = None,
        collection: str | None = None,
        user: str | None = None,
        tenant_id: int | None = None,
        principal: Principal | None = None,
        count_tokens: Callable[[str], int] | None = None,
        min_relevance: float | None = None,
    ) -> ContextAssembler:
        """Assembles contexts of documents, of memory, or of both; the arguments are `hybrid_retriever`'s.

        ``min_relevance`` is that of documents' passages; None: as configured.
        """
        from recollect.context import ContextAssembler

        return ContextAssembler(
            self,
            self,
            weights=weights,
            collection=collection,
            user=user,
            tenant_id=tenant_id,
            principal=principal,
            facts=self.config.memory.facts,
            count_tokens=count_tokens or self._parts.count_tokens,
            language=self.config.language,
            on_shown=partial(self._note_shown, tenant_id),
            adapt=self._adapt(tenant_id, principal, user),
            min_relevance=min_relevance,
        )

    def _note_shown(self, tenant_id: int | None, episode_ids: Sequence[int]) -> None:
        self.query_patterns.record(self._parts.scope_of(tenant_id), episode_ids)
