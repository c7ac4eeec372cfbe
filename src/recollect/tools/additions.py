"""The tool that stores a document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from recollect.errors import ConflictError, NotFoundError
from recollect.model import Document
from recollect.tools.documents import beside_a_conversation, shortened

if TYPE_CHECKING:
    from recollect.pipeline.view import View
    from recollect.tools.results import Room

# Documents whose source or title holds a name, among which the one of that name is looked for.
_ALIKE = 1_000


@beside_a_conversation
def add(
    view: View,
    room: Room,  # noqa: ARG001 - it always fits
    *,
    text: str,
    source: str | None,
    title: str | None,
    department: str | None,
    tags: tuple[str, ...] | None,
    replace: bool,
) -> dict[str, Any]:
    """Store a document, or a new version of one."""
    if source is not None and not replace:
        _require_new(view, source, text)
    document = Document(
        content=text, source=source, title=title, department=department, tags=tags or (), mime_type="text/markdown"
    )
    done = view.ingest(document)
    stored = source or document.content_hash.hex()
    return {
        "document_id": done.document_id,
        "source": shortened(stored),
        "status": done.status,
        "version": done.version,
    }


def _require_new(view: View, source: str, text: str) -> None:
    """Refuses to write over a document that says something else."""
    try:
        alike = view.contents.list(name=source, limit=_ALIKE)
    except NotFoundError:  # the collection is made with its first document
        return
    there = next((one for one in alike if one.source == source), None)
    if there is None or (there.byte_count == len(text.encode()) and _says(view, there.document_id, text)):
        return
    raise ConflictError(
        f"There is a document {shortened(source)!r} already (document_id {there.document_id}). Read it; then give "
        "replace: true to store this as its new version, or another source to store it beside."
    )


def _says(view: View, document_id: int, text: str) -> bool:
    return view.contents.read(document_id, length=len(text) + 1).text == text
