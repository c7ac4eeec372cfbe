"""What is done with collections."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Protocol

from pydantic import Field

from recollect.model.collection import MOST_DIMENSIONS, Collection
from recollect.model.page import MOST_OF_A_PAGE, Page, every
from recollect.operations.declaring import operation
from recollect.operations.values import Cursor, Limit, Name, Text


class CollectionOperations(Protocol):
    """Collections: made, listed, shown and removed."""

    @operation("GET /v1/collections", "reader")
    def list(self, *, cursor: Cursor | None = None, limit: Limit = 100) -> Page[Collection]:
        """List the collections by name.

        To a principal those that exist for it, counting what may be read of them.

        Args:
            cursor: ``next_cursor`` of the page before; None: the first page.
            limit: Collections at most.

        Raises:
            UsageError: The cursor is none of this list.
        """
        ...

    @operation("POST /v1/collections", "administrator", status=201)
    def create(
        self,
        name: Name,
        *,
        description: Annotated[Text, Field(max_length=10_000)] = "",
        language: Name | None = None,
        chunking: Mapping[str, Any] | None = None,
        token_vectors: bool | None = None,
        dimensions: Annotated[int, Field(ge=1, le=MOST_DIMENSIONS)] | None = None,
    ) -> Collection:
        """Make an empty collection.

        Args:
            name: Unique for the tenant.
            description: For people.
            language: ISO 639-1; None: the configured one.
            chunking: ``strategy`` and its parameters; None: the configured ones.
            token_vectors: Whether ingest stores token vectors, at most 4 KB a chunk, so that the reranker
                ``late_interaction`` need not compute them; None: as configured.
            dimensions: The length of its vectors, one that the configured embedding model offers; None: as configured.

        Raises:
            ConflictError: There is one of that name.
            UsageError: The name or the chunking is not valid, or the embedding model gives no token vectors or not
                that length.
        """
        ...

    @operation("GET /v1/collections/{name:named}", "reader", etag=True)
    def get(self, name: Name) -> Collection:
        """Show a collection.

        To a principal one that exists for it, counting what may be read of it.

        Args:
            name: Of the collection.

        Raises:
            NotFoundError: There is none of that name.
        """
        ...

    @operation("DELETE /v1/collections/{name:named}", "administrator")
    def delete(self, name: Name) -> None:
        """Remove a collection with everything in it, physically.

        It cannot be taken back.

        Args:
            name: Of the collection.

        Raises:
            NotFoundError: There is none of that name.
        """
        ...

    def each(self) -> Iterator[Collection]:
        """All of them, page by page as they are read."""
        return every(self.list, limit=MOST_OF_A_PAGE)
