"""The conversations of a view, and contexts that are made of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from recollect.model.arguments import checked
from recollect.model.audit import LIBRARY
from recollect.pipeline.standpoint import Group

if TYPE_CHECKING:
    from recollect.context import RetrievalWeights
    from recollect.memory import QueryPatternTracker
    from recollect.model.memory import Episode, SessionRecord
    from recollect.pipeline.hybrid import ContextAssembler, HybridRetriever

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

    def delete(self, session: str, *, actor: str = LIBRARY) -> int:
        """Remove a conversation with everything that was made of it, facts among it, physically.

        A receipt stays in the audit (action ``forget``) that holds nothing of what was said.

        Args:
            session: Its id.
            actor: Who asks, for the receipt.

        Returns:
            How many turns it had.

        Raises:
            NotFoundError: There is none of that name.
        """
        memory, scope = self._at.store.memory, self._at.present()
        return memory.delete_session(scope, memory.get_session(scope, session, user=self._at.user), actor=actor)

    def forget(self, session: str, positions: Sequence[int], *, actor: str = LIBRARY) -> int:
        """Remove turns of a conversation with everything that was made of them, facts among it, physically.

        The turns behind them are indexed anew, as though the removed ones had never been said; positions stay.

        Args:
            session: The conversation.
            positions: Of the turns, as `turns` and `View.recall` give them.
            actor: Who asks, for the receipts.

        Returns:
            How many were removed.

        Raises:
            NotFoundError: There is no such conversation, or no turn at one of the positions: then none is removed.
        """
        scope = self._at.present()
        forgetter = self._at.assembly.memory(scope.tenant_id).forgetter
        return forgetter.forget(scope, session, positions, actor=actor, user=self._at.user)

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
        from recollect.pipeline.hybrid import HybridRetriever, settings

        at = self._at
        return HybridRetriever(at, at, **settings(at, weights=weights, count_tokens=count_tokens))

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
        from recollect.pipeline.hybrid import ContextAssembler, settings

        at = self._at
        made_with = settings(at, weights=weights, count_tokens=count_tokens)
        return ContextAssembler(at, at, min_relevance=min_relevance, **made_with)

    # Last: its name is a type's in what stands before it.
    def list(self, *, limit: int = 100, offset: int = 0) -> list[SessionRecord]:
        """The conversations of the view's user, or all, the one with the latest turn first."""
        return self._at.store.memory.list_sessions(self._at.present(), user=self._at.user, limit=limit, offset=offset)
