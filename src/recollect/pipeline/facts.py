"""The facts of a view: drawn from conversations, searched, and followed through time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from recollect.errors import NotFoundError
from recollect.model.arguments import checked
from recollect.model.facts import ConsolidationReport, Fact
from recollect.model.keywords import refined
from recollect.model.memory import RecallOptions
from recollect.model.page import Page, moment_at
from recollect.operations.conversations import FactOperations
from recollect.operations.declaring import implements
from recollect.pipeline.search import recall_facts
from recollect.pipeline.standpoint import Group

if TYPE_CHECKING:
    from typing import Unpack

    from recollect.model.facts import RecalledFact
    from recollect.model.keywords import RecallKeywords


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
