"""What is done with collections, and with the sources of their documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, Protocol

from pydantic import Field

from recollect.model.collection import MOST_DIMENSIONS, Collection
from recollect.model.page import MOST_OF_A_PAGE, Page, every
from recollect.model.source import SourceRecord
from recollect.operations.declaring import operation
from recollect.operations.values import Cursor, Limit, Name, SourceName, Text


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


# What is done with sources of documents.


class SourceOperations(Protocol):
    """Where the documents of a collection come from: listed, and read no longer."""

    @operation("GET /v1/sources", "administrator", of_view=("collection",))
    def list(
        self, *, name: SourceName | None = None, cursor: Cursor | None = None, limit: Limit = 100
    ) -> Page[SourceRecord]:
        """List where documents come from.

        The sources of one collection, of the configured one where none is named, or of all: by collection, type and
        name, with how the last refresh of each went.

        Args:
            name: Only the one of this name.
            cursor: ``next_cursor`` of the page before; None: the first page.
            limit: Sources at most.

        Raises:
            NotFoundError: There is no such collection. The default collection is empty rather than missing.
            PermissionDeniedError: The view has a principal.
            UsageError: The cursor is none of this list.
        """
        ...

    @operation("DELETE /v1/sources", "administrator", of_view=("collection",), reply="documents")
    def remove(self, source: SourceName, *, documents: Literal["close", "keep", "erase"] = "close") -> int:
        """Have a source read no longer.

        Jobs that refresh it are cancelled, and waited for while they end.

        Args:
            source: By name.
            documents: What becomes of its documents: they are closed, kept as they are, or erased with every version.

        Returns:
            How many documents were closed, or erased.

        Raises:
            NotFoundError: There is no such source.
            PermissionDeniedError: The view has a principal.
        """
        ...

    def each(self) -> Iterator[SourceRecord]:
        """All of them, page by page as they are read."""
        return every(self.list, limit=MOST_OF_A_PAGE)
