"""What is done with facts, and with feedback on contexts and answers."""

from __future__ import annotations

from typing import Annotated, Protocol

from pydantic import Field

from recollect.model.facts import ConsolidationReport, Fact
from recollect.model.page import Page
from recollect.operations.declaring import operation
from recollect.operations.values import Cursor, Limit, Number


class FactOperations(Protocol):
    """Facts drawn from the conversations of a view: its session's or its user's; of a view with neither, from all.

    Where permissions are enforced, facts from others' conversations do not exist for a principal.
    """

    @operation("POST /v1/facts/consolidate", "writer", of_view=("user",))
    def consolidate(
        self, *, min_retrievals: Annotated[int, Field(ge=1, le=1_000_000)] | None = None, limit: Limit = 100
    ) -> ConsolidationReport:
        """Draw facts from what is asked for again and again.

        Each turn is looked at once. Without a language model, the sentences of a turn that state something become facts
        as they are. With one (``[rag.answer]``, or handed to the pipeline), it writes them, and what it writes is held
        against the turns. A fact that contradicts an earlier one takes its place; the earlier one stays in the history.

        Args:
            min_retrievals: How often searches found a turn, at least; None: as configured, 3.
            limit: How many turns at most, the most often found first.

        Raises:
            ProviderError: The embedding model failed. Where the language model fails, sentences are taken.

        Example:
            >>> from recollect import RAGPipeline
            >>> with RAGPipeline() as rag:  # doctest: +SKIP
            ...     ada = rag.view(user="ada")
            ...     ada.view(session="chat-1").remember("I live in Lisbon.", role="Ada")
            ...     ada.recall("Where does Ada live?")
            ...     ada.facts.consolidate(min_retrievals=1).added
            1
        """
        ...

    @operation("GET /v1/facts/{fact_id:int}", "reader", of_view=("as_of",))
    def get(self, fact_id: Number) -> Fact:
        """Show a fact with the words that it rests on.

        Args:
            fact_id: Its number.

        Raises:
            NotFoundError: There is none of that number.
        """
        ...

    @operation("GET /v1/facts/{fact_id:int}/history", "reader", of_view=("as_of",), reply="history")
    def history(self, fact_id: Number) -> list[Fact]:
        """Show what was said of the same before and after.

        The earliest first, the fact itself among them.

        Args:
            fact_id: Its number.

        Raises:
            NotFoundError: There is none of that number.
        """
        ...

    @operation("DELETE /v1/facts/{fact_id:int}", "writer")
    def delete(self, fact_id: Number) -> None:
        """Remove a fact.

        The turns that it rests on stay, and what it superseded is current again.

        Args:
            fact_id: Its number.

        Raises:
            NotFoundError: There is none of that number.
        """
        ...

    # Last: its name is a type's in what stands before it.
    @operation("GET /v1/facts", "reader", of_view=("session", "user", "as_of"))
    def list(self, *, superseded: bool = False, cursor: Cursor | None = None, limit: Limit = 100) -> Page[Fact]:
        """List facts, what was said last first.

        Args:
            superseded: Also those that others have taken the place of.
            cursor: ``next_cursor`` of the page before; None: the first page.
            limit: Facts at most.

        Raises:
            NotFoundError: There is no such conversation.
            UsageError: The cursor is none of this list.
        """
        ...


# What is done with feedback on contexts and answers.


class FeedbackOperations(Protocol):
    """Whether what contexts and answers showed has helped."""

    @operation("POST /v1/feedback/judgement", "writer", of_view=("session", "user"), reply="counted")
    def judge(self, position: Number, *, helpful: bool) -> bool:
        """Say whether an answer helped.

        An answer of the view's conversation counts for what it cites or shows, once: what was said of it before stays.

        Args:
            position: Where the answer stands in the conversation.
            helpful: Whether it helped.

        Returns:
            Whether it was counted.

        Raises:
            UsageError: The view has no conversation.
            NotFoundError: There is no such conversation, or no answer at that position that cites or shows anything.
        """
        ...

    @operation("DELETE /v1/feedback", "writer", of_view=("session", "user"), reply="forgotten")
    def reset(self) -> int:
        """Forget the feedback.

        The weights are as before it.

        Returns:
            How many passages it was on.

        Raises:
            NotFoundError: There is no such conversation.
            PermissionDeniedError: The principal would move the weights of everybody.
        """
        ...
