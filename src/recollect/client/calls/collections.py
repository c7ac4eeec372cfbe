"""Collections."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.client.calls.base import Call, Calls, Pages, Steps, as_it_is, listed, nothing, once, segment
from recollect.client.place import given
from recollect.client.reading import Json, read
from recollect.errors import ConflictError, NotFoundError, UsageError
from recollect.ingest.line_files import require_file
from recollect.model.collection import Collection
from recollect.model.page import cursor_at

if TYPE_CHECKING:
    from recollect.ingest.report import IngestReport, ProgressCallback


class CollectionCalls(Calls):
    """Collections; see `recollect.View.collections`."""

    def ensure(self, name: str | None = None) -> Steps[Collection]:
        """The collection of that name, made with the server's settings where it is missing; None: the view's own."""
        wanted = (yield from self._collection()) if name is None else name
        try:
            return (yield from once(self.get(wanted)))
        except NotFoundError:
            pass
        try:
            return (yield from once(self.create(wanted)))
        except ConflictError:  # another process was faster
            return (yield from once(self.get(wanted)))

    def create(
        self,
        name: str,
        *,
        description: str = "",
        language: str | None = None,
        chunking: Mapping[str, Any] | None = None,
        token_vectors: bool | None = None,
        dimensions: int | None = None,
    ) -> Call[Collection]:
        """Make an empty one; what is None is as the server is configured."""
        self._at.require_present()
        body = given(
            name=name,
            description=description,
            language=language,
            chunking=None if chunking is None else dict(chunking),
            token_vectors=token_vectors,
            dimensions=dimensions,
        )
        return Call(method="POST", path="/v1/collections", body=body, read=read_collection)

    def get(self, name: str) -> Call[Collection]:
        """One of those that may be read."""
        self._at.require_present()
        return Call(method="GET", path=_path(name), read=read_collection)

    def update(self, name: str, *, description: str) -> Call[Collection]:
        """Say something else of it."""
        self._at.require_present()
        return Call(method="PATCH", path=_path(name), body={"description": description}, read=read_collection)

    def delete(self, name: str) -> Call[None]:
        """Remove it with everything in it, physically."""
        self._at.require_present()
        return Call(method="DELETE", path=_path(name), read=nothing)

    def export_lines(self, *, originals: bool = False) -> Call[Any]:
        """The view's collection as JSON Lines, as they are read; with ``originals`` the files of documents too."""
        self._at.require_present()
        if self._at.collections is None and self._at.known.me is None:
            raise UsageError("Name the collection that is exported: view(collections=NAME).")
        path = f"{_path(self._at.collection)}/export"
        return Call(method="GET", path=path, query={"originals": originals or None}, read=as_it_is)

    def import_file(
        self, path: Path | str, *, force: bool = False, on_progress: ProgressCallback | None = None
    ) -> Steps[IngestReport]:
        """Import documents from JSON Lines into the view's collection; see `recollect.View.collections`.

        The file is sent part by part. What an interruption leaves is whole; the same again goes on behind it.
        """
        from recollect.client.calls.importing import send_lines

        self._at.require_present()
        require_file(Path(path))
        place = yield from self.ensure()
        return (yield from send_lines(place.name, Path(path), force=force, on_progress=on_progress))

    def each(self, *, after: str = "") -> Pages[Collection]:
        """By name behind ``after``, counting what may be read of each, page by page as they are read."""
        self._at.require_present()
        return Pages(
            call=Call(method="GET", path="/v1/collections", read=dict),
            items=listed("collections", read_collection),
            cursor=cursor_at(after) if after else None,
        )

    def list(self, *, after: str = "", limit: int | None = None) -> Steps[list[Collection]]:
        """By name behind ``after``, counting what may be read of each; so many at most, None: all."""
        return (yield from self.each(after=after).first(sys.maxsize if limit is None else limit))


def read_collection(told: Json) -> Collection:
    """A collection."""
    return read(Collection, told, document_count=told["documents"], chunk_count=told["chunks"])


def _path(name: str) -> str:
    return f"/v1/collections/{segment(name)}"
