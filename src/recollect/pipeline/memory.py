"""Conversations, contexts made of them, and the facts drawn from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from typing_extensions import override

from recollect.errors import NotFoundError, UsageError
from recollect.memory.validation import checked_name, checked_turns
from recollect.model.arguments import checked
from recollect.model.facts import ConsolidationReport, Fact, RecalledFact
from recollect.model.memory import ConversationEntry, Episode, RecallOptions, Remembered, SessionRecord, Turn
from recollect.model.page import Page, moment_at
from recollect.model.search_options import RecallKeywords, refined
from recollect.operations.conversations import FactOperations
from recollect.operations.declaring import implements
from recollect.pipeline.hybrid import ContextAssembler, HybridRetriever, of_view
from recollect.pipeline.preparing import make_door
from recollect.pipeline.standpoint import Group, Standpoint, recall_facts

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.context import HybridContext, RetrievalWeights
    from recollect.context.hybrid import ContextStrategy
    from recollect.memory import QueryPatternTracker


_PAGE_TURNS = 1_000


@checked
class ConversationMemory(Group):
    """The conversations of a view; see `recollect.View`, which remembers and recalls their turns.

    A conversation is named by its id, and by the view's user where several users have one of that id. Where permissions
    are enforced, others' conversations do not exist for a principal.
    """

    def get(self, session: str) -> SessionRecord:
        """One conversation.

        Raises:
            NotFoundError: There is none.
            UsageError: Several users have one of that id, and the view names none.
        """
        return self._at.store.memory.get_session(self._at.present(), session, user=self._at.user)

    def turns(self, session: str, *, after: int = 0, limit: int = _PAGE_TURNS) -> list[Episode]:
        """A conversation's turns in their order; ``after`` is the last position of the page before.

        Raises:
            NotFoundError: There is no such conversation.
            UsageError: Several users have one of that id, and the view names none.
        """
        memory, scope = self._at.store.memory, self._at.scope
        return memory.turns(scope, memory.get_session(scope, session, user=self._at.user), after=after, limit=limit)

    def each_turn(self, session: str) -> Iterator[Episode]:
        """All turns of a conversation in their order, page by page as they are read; see `turns`."""
        after = 0
        while page := self.turns(session, after=after):
            yield from page
            after = page[-1].position

    def latest(self, session: str, *, before: int | None = None, limit: int = 100) -> list[Episode]:
        """The last turns of a conversation, in their order.

        Args:
            session: Its id.
            before: Only turns before this position; None: up to the end.
            limit: How many at most.

        Raises:
            NotFoundError: There is no such conversation.
            UsageError: Several users have one of that id, and the view names none.
        """
        at, scope = self._at, self._at.scope
        record = at.store.memory.get_session(scope, session, user=at.user)
        return at.store.conversations.latest(scope, record, before=before, limit=limit)

    def rename(self, session: str, title: str | None) -> SessionRecord:
        """Call a conversation something.

        Args:
            session: Its id.
            title: Up to 200 characters; None: it is called by its first words again.

        Raises:
            NotFoundError: There is no such conversation.
            UsageError: The title is too long, empty, or holds what cannot be stored.
            PersonalDataError: It holds personal data, which the tenant's policy refuses.
        """
        scope = self._at.present()
        record = self.get(session)
        if title is not None:
            door = make_door(self._at.assembly, scope)
            title = checked_name("The title", title)
            title = title if door is None else door.admit_turn(Turn(content=title)).content
        self._at.store.conversations.rename(scope, record, title)
        return self.get(session)

    def delete(self, session: str) -> int:
        """Remove a conversation with everything that was made of it, facts among it, physically.

        A receipt stays in the audit (action ``forget``) that holds nothing of what was said.

        Args:
            session: Its id.

        Returns:
            How many turns it had.

        Raises:
            NotFoundError: There is none of that name.
        """
        memory, scope = self._at.store.memory, self._at.present()
        return memory.delete_session(
            scope, memory.get_session(scope, session, user=self._at.user), actor=self._at.actor
        )

    def forget(self, session: str, positions: Sequence[int]) -> int:
        """Remove turns of a conversation with everything that was made of them, facts among it, physically.

        The turns behind them are indexed anew, as though the removed ones had never been said; positions stay.

        Args:
            session: The conversation.
            positions: Of the turns, as `turns` and `View.recall` give them.

        Returns:
            How many were removed.

        Raises:
            NotFoundError: There is no such conversation, or no turn at one of the positions: then none is removed.
        """
        scope = self._at.present()
        forgetter = self._at.assembly.memory(scope.tenant_id).forgetter
        return forgetter.forget(scope, session, positions, actor=self._at.actor, user=self._at.user)

    @property
    def patterns(self) -> QueryPatternTracker:
        """What memory is asked for again and again; for the owner of the store."""
        self._at.owner()
        return self._at.assembly.query_patterns

    def retriever(
        self,
        *,
        weights: RetrievalWeights | None = None,
        count_tokens: Callable[[str], int] | None = None,
    ) -> HybridRetriever:
        """Searches documents, conversations and facts together.

        Args:
            weights: What each weighs; None: memory 60 %, documents 40 %.
            count_tokens: Counts tokens as the model does that will read the context; None: as `View.context` does.
        """
        return of_view(HybridRetriever, self._at, weights=weights, count_tokens=count_tokens)

    def assembler(
        self,
        *,
        weights: RetrievalWeights | None = None,
        count_tokens: Callable[[str], int] | None = None,
        min_relevance: float | None = None,
    ) -> ContextAssembler:
        """Assembles contexts of documents, of memory, or of both; the arguments are `retriever`'s.

        ``min_relevance`` is that of documents' passages; None: as configured.
        """
        return of_view(
            ContextAssembler, self._at, weights=weights, count_tokens=count_tokens, min_relevance=min_relevance
        )

    def assemble(
        self,
        query: str,
        strategy: ContextStrategy = "hybrid",
        token_budget: int = 2_000,
        *,
        weights: RetrievalWeights | None = None,
        min_relevance: float | None = None,
    ) -> HybridContext:
        """Assemble what a language model should read: documents, the view's conversation, and facts.

        Args:
            query: In plain words.
            strategy: What it is made of; see `ContextAssembler.assemble`.
            token_budget: Tokens at most, headers included; never exceeded.
            weights: What documents and memory weigh; None: as the strategy has it.
            min_relevance: Of documents' passages, 0 to 1; None: as configured.

        Raises:
            UsageError: The query is empty, the strategy unknown, or the budget less than 1.
            NotFoundError: There is no such collection.
        """
        assembler = self.assembler(weights=weights, min_relevance=min_relevance)
        return assembler.assemble(query, strategy, token_budget)

    def overview(
        self, *, text: str | None = None, limit: int = 100, after: tuple[datetime, int] | None = None
    ) -> Sequence[ConversationEntry]:
        """The conversations of the view's user, or all, with what they are called; the one with the latest turn first.

        Args:
            text: Only those whose title or turns hold this, in whatever case; None: all.
            limit: How many at most.
            after: When the last one of the page before was updated, and its number.
        """
        at = self._at
        return at.store.conversations.overview(at.present(), text=text, user=at.user, limit=limit, after=after)

    # Last: its name is a type's in what stands before it.
    def list(
        self,
        *,
        text: str | None = None,
        limit: int = 100,
        offset: int = 0,
        after: tuple[datetime, int] | None = None,
    ) -> list[SessionRecord]:
        """The conversations of the view's user, or all, the one with the latest turn first.

        Args:
            text: Only those whose title or turns hold this, in whatever case; None: all.
            limit: How many at most.
            offset: How many to pass over.
            after: When the last one of the page before was updated, and its number.
        """
        if text is not None:
            found = self.overview(text=text, limit=offset + limit, after=after)
            return [one.record for one in found[offset:]]
        return self._at.store.memory.list_sessions(
            self._at.present(), user=self._at.user, limit=limit, offset=offset, after=after
        )


def remember(at: Standpoint, turns: Sequence[Turn], *, metadata: Mapping[str, Any] | None = None) -> Remembered:
    """Append turns to the conversation of a view; see `recollect.View.remember`.

    Raises:
        UsageError: The view has no session, or is of the past; the others are `recollect.View.remember`'s.
    """
    if at.session is None:
        raise UsageError("Say which conversation this is of: view(session=...).")
    scope = at.present()
    if (door := make_door(at.assembly, scope)) is not None:
        turns = [door.admit_turn(turn) for turn in checked_turns(turns)]
    memory = at.assembly.memory(scope.tenant_id).turns
    return memory.remember(scope, at.session, turns, user=at.user, metadata=metadata)


# The facts of a view: drawn from conversations, searched, and followed through time.


@implements(FactOperations)
@checked
class Facts(Group, FactOperations):
    """Facts drawn from the conversations of a view: its session's or its user's; of a view with neither, from all.

    See `recollect.View`. Where permissions are enforced, facts from others' conversations do not exist for a principal.
    """

    @override
    def consolidate(self, *, min_retrievals: int | None = None, limit: int = 100) -> ConsolidationReport:
        scope = self._at.present()
        least = self._at.config.memory.min_retrievals if min_retrievals is None else min_retrievals
        consolidator = self._at.assembly.memory(scope.tenant_id).consolidator
        return consolidator.consolidate(scope, min_retrievals=least, user=self._at.user, limit=limit)

    def search(
        self, query: str, options: RecallOptions | None = None, **keywords: Unpack[RecallKeywords]
    ) -> list[RecalledFact]:
        """The facts that answer a question, best first, each with the words that it rests on.

        Args:
            query: In plain words.
            options: How to search; None: the defaults.
            **keywords: Options by name; they win over ``options``.

        Raises:
            UsageError: The query or an option is not valid.
            NotFoundError: There is no such conversation.
        """
        return recall_facts(self._at, query, refined(RecallOptions, options, keywords))

    @override
    def get(self, fact_id: int) -> Fact:
        found = self._at.store.facts.by_id(self._at.scope, [fact_id])
        if fact_id not in found:
            raise NotFoundError(f"There is no fact {fact_id}. `recollect facts list` shows them.")
        return found[fact_id]

    @override
    def history(self, fact_id: int) -> list[Fact]:
        return self._at.store.facts.chain(self._at.scope, fact_id)

    @override
    def delete(self, fact_id: int) -> None:
        self._at.store.facts.delete(self._at.present(), fact_id)

    # Last: its name is a type's in what stands before it.
    @override
    def list(self, *, superseded: bool = False, cursor: str | None = None, limit: int = 100) -> Page[Fact]:
        at = self._at
        found = at.store.facts.page(
            at.scope,
            user=at.user,
            session=at.session,
            superseded=superseded,
            limit=limit + 1,
            after=moment_at(cursor),
        )
        return Page.of(found, limit, lambda fact: (fact.said_at.isoformat(), fact.fact_id))
