"""Collections."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.client.calls.base import Call, Calls, Steps, as_it_is, once, reading, segment
from recollect.client.calls.declared import asked
from recollect.errors import ConflictError, NotFoundError, UsageError
from recollect.ingest.line_files import require_file
from recollect.model.collection import Collection
from recollect.operations.collections import CollectionOperations
from recollect.operations.declaring import operations_of

if TYPE_CHECKING:
    from recollect.ingest.report import IngestReport, ProgressCallback


class CollectionCalls(Calls):
    """Collections; see `recollect.View.collections`."""

    create: Callable[..., Call[Collection]] = asked(operations_of(CollectionOperations)["create"])
    get: Callable[..., Call[Collection]] = asked(operations_of(CollectionOperations)["get"])

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

    def update(self, name: str, *, description: str) -> Call[Collection]:
        """Say something else of it."""
        self._at.require_present()
        return Call(method="PATCH", path=_path(name), body={"description": description}, read=reading(Collection))

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


def _path(name: str) -> str:
    return f"/v1/collections/{segment(name)}"
