"""Joins passages that overlap, so that no sentence is cut at a passage's edge or read twice. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from recollect.model import Citation, PassagePart, RetrievedContext


@dataclass(frozen=True, slots=True)
class Region:
    """A contiguous stretch of one document, covered by one or more passages.

    Attributes:
        start_offset: Where ``text`` begins in the document's content.
        text: The document's characters.
        passages: Those that cover it, in order of their start offsets.
    """

    start_offset: int
    text: str
    passages: tuple[RetrievedContext, ...]

    @property
    def document_id(self) -> int:
        """The document it belongs to."""
        return self.passages[0].document_id

    def covering(self, start: int, end: int) -> Sequence[RetrievedContext]:
        """The passages that share characters with a span of the document, never none for a span inside."""
        return [p for p in self.passages if p.start_offset < end and p.end_offset > start]

    def passage_at(self, offset: int) -> RetrievedContext:
        """Of the passages that hold a character, the one that starts last."""
        return max(self.covering(offset, offset + 1), key=lambda p: p.start_offset)

    def part_at(self, offset: int) -> PassagePart:
        """The section and page of a character of the document."""
        return self.passage_at(offset).part_at(offset)

    def citation(self, marker: int, start: int, end: int) -> Citation:
        """The citation of the characters from ``start`` to ``end`` of its text."""
        begin, stop = self.start_offset + start, self.start_offset + end
        passage, part = self.passage_at(begin), self.part_at(begin)
        boxes = dict.fromkeys(box for one in self.covering(begin, stop) for box in one.boxes(begin, stop))
        return Citation(
            marker=marker,
            document_id=self.document_id,
            source=passage.source,
            section=part.section,
            page=part.page,
            last_page=self.part_at(stop - 1).page,
            boxes=tuple(boxes),
            start_offset=begin,
            end_offset=stop,
            quote=self.text[start:end],
            department=passage.department,
            notes=passage.notes,
            collection=passage.collection,
            server=passage.server,
            id=passage.id,
        )


def join_passages(passages: Iterable[RetrievedContext]) -> list[Region]:
    """Regions in order of document, then offset. Every character of every passage lies in one.

    Passages that overlap but disagree about the shared characters (two versions of a document) stay apart.
    """
    regions: list[Region] = []
    for passage in sorted(passages, key=lambda p: (p.document_id, p.start_offset, -p.end_offset)):
        new = Region(passage.start_offset, passage.content, (passage,))
        if regions and (joined := _joined(regions[-1], new)):
            regions[-1] = joined
        else:
            regions.append(new)
    return regions


def _joined(region: Region, new: Region) -> Region | None:
    offset = new.start_offset - region.start_offset
    known = region.text[offset:]
    shared = min(len(known), len(new.text))
    apart = new.document_id != region.document_id or offset > len(region.text)
    if apart or known[:shared] != new.text[:shared]:
        return None
    return Region(region.start_offset, region.text + new.text[shared:], (*region.passages, *new.passages))
