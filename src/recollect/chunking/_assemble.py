"""From spans to chunks: trimming, sections, pages, token counts."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from recollect.chunking._cutting import Tables, TableSpan
from recollect.chunking._measure import Ruler, skip_space, trim, whole_character_cut
from recollect.model import Chunk, Document, Heading
from recollect.model.chunk import SECTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from recollect.chunking.base import Span


@dataclass(frozen=True, slots=True)
class Piece:
    """A span that is to become a chunk."""

    start: int
    end: int
    parent: Span | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


def build_chunks(
    document: Document, pieces: Iterable[Piece], ruler: Ruler, *, headings: Sequence[Heading] | None = None
) -> list[Chunk]:
    """Make chunks of spans in ascending order of their starts.

    Spans are trimmed; one that holds only whitespace, or lies inside the one before it, gives no chunk.

    Args:
        document: What the spans are spans of.
        pieces: The spans.
        ruler: Counts the tokens.
        headings: Where the sections come from; None: the document's own headings.
    """
    content = document.content
    sections = Sections(content, document.headings if headings is None else headings)
    tables = Tables(content)
    chunks: list[Chunk] = []
    for piece in pieces:
        start, end = trim(content, piece.start, piece.end)
        if start >= end or (chunks and end <= chunks[-1].end_offset):
            continue
        index = sections.index_of_span(start, end)
        chunks.append(
            Chunk(
                text=content[start:end],
                position=len(chunks),
                start_offset=start,
                end_offset=end,
                section=sections.path(index),
                page=document.page_at(start),
                token_count=ruler.token_count(start, end),
                parent=piece.parent,
                metadata={**piece.metadata, **_of_table(tables.containing(start)), **sections.behind(index, end)},
            )
        )
    return chunks


def _of_table(table: TableSpan | None) -> dict[str, str]:
    """What a piece of a table does not say itself: what names its columns, and the line above the table."""
    if table is None:
        return {}
    caption = {"table_caption": table.caption} if table.caption else {}
    return {"table_header": table.header, **caption}


class Sections:
    """Section paths as ``Document.section_path`` gives them, in time that does not grow with the headings."""

    def __init__(self, content: str, headings: Sequence[Heading]) -> None:
        self._content = content
        self._headings = headings
        self._starts = [heading.start_offset for heading in headings]
        self._above: list[int] = []
        for index, heading in enumerate(headings):
            above = index - 1
            while above >= 0 and headings[above].level >= heading.level:
                above = self._above[above]
            self._above.append(-1 if heading.level <= 1 else above)

    def index_at(self, offset: int) -> int:
        """The index of the heading that the character at ``offset`` stands under, or -1."""
        return bisect_right(self._starts, offset) - 1

    def index_of_span(self, start: int, end: int) -> int:
        """The index of the heading of a span's first character that is no heading's, or of its last heading."""
        index = self.index_at(start)
        while index >= 0 and start < self._headings[index].end_offset:
            start = skip_space(self._content, self._headings[index].end_offset)
            if start >= end:
                break
            index = self.index_at(start)
        return index

    def behind(self, index: int, end: int) -> dict[str, list[list[object]]]:
        """Where a span that ends at ``end`` goes on under another heading, and what is above it there."""
        begun = range(index + 1, bisect_left(self._starts, end))
        found: list[list[object]] = [[self._starts[one], " > ".join(self.path(one))] for one in begun]
        return {SECTIONS: found} if found else {}

    def path(self, index: int) -> tuple[str, ...]:
        """Titles from the outermost heading to the one with that index; empty for -1."""
        titles: list[str] = []
        while index >= 0:
            titles.append(self._headings[index].title)
            index = self._above[index]
        return tuple(reversed(titles))


# Windows of equal length that move over a text in equal steps.


def windows(content: str, ruler: Ruler, *, size: int, stride: int) -> Iterator[Piece]:
    """Windows of at most ``size`` units, each starting at most ``stride`` units behind the one before.

    Both ends give way by a few characters where they would tear a character from its combining marks.
    """
    start = 0
    while start < len(content):
        end = whole_character_cut(content, ruler.furthest_end(start, size), start)
        yield Piece(start, end)
        if end >= len(content):
            return
        start = min(whole_character_cut(content, ruler.furthest_end(start, stride), start), end)
