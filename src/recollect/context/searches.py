"""What a context is made from; `recollect.RAGPipeline` is all three."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.model import Principal, RetrievalOptions, RetrievedContext
    from recollect.model.facts import RecalledFact
    from recollect.model.memory import RecallOptions, Recollection


class DocumentSearch(Protocol):
    """Finds passages of documents; `recollect.RAGPipeline` does."""

    def retrieve(
        self,
        query: str,
        options: RetrievalOptions | None = None,
        *,
        collection: str | None = None,
        tenant_id: int | None = None,
        as_of: datetime | None = None,
        principal: Principal | None = None,
    ) -> list[RetrievedContext]:
        """The passages that answer a query, best first."""
        ...


class MemorySearch(Protocol):
    """Finds turns of conversations; `recollect.RAGPipeline` does."""

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
        """The turns that answer a question, best first."""
        ...


@runtime_checkable
class FactSearch(Protocol):
    """Finds facts drawn from conversations; `recollect.RAGPipeline` does."""

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
        """The facts that answer a question, best first."""
        ...
