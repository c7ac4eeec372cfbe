"""The facts of a view: drawn from conversations, searched, and followed through time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.errors import NotFoundError
from recollect.model.arguments import checked
from recollect.model.keywords import refined
from recollect.model.memory import RecallOptions
from recollect.pipeline.search import recall_facts
from recollect.pipeline.standpoint import Group

if TYPE_CHECKING:
    from datetime import datetime
    from typing import Unpack

    from recollect.model.facts import ConsolidationReport, Fact, RecalledFact
    from recollect.model.keywords import RecallKeywords


@checked
class Facts(Group):
    """Facts drawn from the conversations of a view: its session's or its user's; of a view with neither, from all.

    See `recollect.View`. Where permissions are enforced, facts from others' conversations do not exist for a principal.
    """

    def consolidate(self, *, min_retrievals: int | None = None, limit: int = 100) -> ConsolidationReport:
        """Draw facts from the user's turns that were asked for often enough; each turn is looked at once.

        Without a language model, the sentences of a turn that state something become facts as they are. With one
        (``[rag.answer]``, or handed to the pipeline), it writes them, and what it writes is held against the turns.
        A fact that contradicts an earlier one takes its place; the earlier one stays in the history.

        Args:
            min_retrievals: How often a turn was found, at least; None: as configured, 3.
            limit: How many turns at most, the most often found first.

        Raises:
            UsageError: A number is less than 1.
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

    def get(self, fact_id: int) -> Fact:
        """One fact with its evidence.

        Raises:
            NotFoundError: There is none of that number.
        """
        found = self._at.store.facts.by_id(self._at.scope, [fact_id])
        if fact_id not in found:
            raise NotFoundError(f"There is no fact {fact_id}. `recollect facts list` shows them.")
        return found[fact_id]

    def history(self, fact_id: int) -> list[Fact]:
        """A fact with those before it and after it, in the order in which they were said.

        Raises:
            NotFoundError: There is none of that number.
        """
        return self._at.store.facts.chain(self._at.scope, fact_id)

    def delete(self, fact_id: int) -> None:
        """Remove a fact. The turns that it rests on stay, and what it took the place of is current again.

        Raises:
            NotFoundError: There is none of that number.
        """
        self._at.store.facts.delete(self._at.present(), fact_id)

    # Last: its name is a type's in what stands before it.
    def list(
        self,
        *,
        superseded: bool = False,
        limit: int = 100,
        offset: int = 0,
        after: tuple[datetime, int] | None = None,
    ) -> list[Fact]:
        """Facts, what was said last before the others.

        Args:
            superseded: Also those that others have taken the place of.
            limit: How many at most.
            offset: How many to pass over.
            after: When the last one of the page before was said, and its number.
        """
        return self._at.store.facts.page(
            self._at.scope,
            user=self._at.user,
            session=self._at.session,
            superseded=superseded,
            limit=limit,
            offset=offset,
            after=after,
        )
