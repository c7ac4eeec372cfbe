"""What is done with sources of documents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, Protocol

from recollect.model.page import MOST_OF_A_PAGE, Page, every
from recollect.model.source import SourceRecord
from recollect.operations.declaring import operation
from recollect.operations.values import Cursor, Limit, SourceName


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
