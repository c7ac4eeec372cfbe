"""A chunker that is not recollect's own: what it gives is looked at before anything is stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from recollect.errors import PluginError
from recollect.model import Chunk
from recollect.plugins import told

if TYPE_CHECKING:
    from recollect.chunking.base import ChunkingStrategy
    from recollect.model import Document


@dataclass(frozen=True, slots=True)
class PluggedChunker:
    """Cuts as another chunker does, and keeps its promise (`ChunkingStrategy`) or raises.

    Attributes:
        name: Of the strategy.
        inner: Cuts.
        parameters: What it was made with.
    """

    name: str
    inner: ChunkingStrategy
    parameters: Mapping[str, Any]

    def chunk(self, document: Document) -> list[Chunk]:
        """The document's chunks, in order.

        Raises:
            PluginError: The chunker failed, or some text would be lost or found in a wrong place.
        """
        where = f" on {document.source!r}" if document.source else ""
        try:
            chunks = list(self.inner.chunk(document))
        except Exception as exc:
            raise PluginError(f"The chunking strategy {self.name!r} failed{where}: {told(exc)}.") from exc
        wrong = _wrong_with(document.content, chunks)
        if wrong:
            raise PluginError(f"The chunking strategy {self.name!r} gave wrong chunks{where}: {wrong}.")
        return chunks


def _wrong_with(content: str, chunks: Sequence[object]) -> str:
    """What breaks the promise of `ChunkingStrategy`; empty: nothing."""
    begins, covered = 0, 0
    for place, chunk in enumerate(chunks):
        if not isinstance(chunk, Chunk):
            return f"number {place} is no Chunk, but {type(chunk).__name__}"
        start, end = chunk.start_offset, chunk.end_offset
        span = f"chunk {place} ({start!r} to {end!r})"
        if not _lies(start, end, len(content)) or content[start:end] != chunk.text:
            return f"{span} does not hold the document's characters from there to there"
        if not chunk.text.strip():
            return f"{span} is empty"
        if chunk.position != place or start < begins:
            return f"{span} is out of order: position is {chunk.position!r}"
        if chunk.parent is not None and not _holds(chunk.parent, start, end, len(content)):
            return f"{span} does not lie in its parent {chunk.parent!r}"
        if not all(isinstance(title, str) for title in chunk.section):
            return f"{span} has a section that is no tuple of titles: {chunk.section!r}"
        page: object = chunk.page
        if not isinstance(page, int | None):
            return f"{span} has a page that is no whole number: {page!r}"
        if content[covered:start].strip():
            return f"the characters {covered} to {start} are in no chunk"
        begins, covered = start, max(covered, end)
    return f"the characters from {covered} on are in no chunk" if content[covered:].strip() else ""


def _lies(start: object, end: object, length: int) -> bool:
    return isinstance(start, int) and isinstance(end, int) and 0 <= start < end <= length


def _holds(parent: object, start: int, end: int, length: int) -> bool:
    return (
        isinstance(parent, tuple)
        and len(parent) == 2
        and _lies(*parent, length)
        and parent[0] <= start < end <= parent[1]
    )
