"""One chunk a section."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from recollect.chunking._assemble import Piece, Sections, build_chunks
from recollect.chunking._cutting import Cutter, find_boundaries, first_between, headings_of
from recollect.chunking._measure import Ruler, ruler_for, skip_space, trim
from recollect.chunking.base import Span, Tokenize, require_whole_number

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from recollect.model import Chunk, Document, Heading

_SECTION_LEVEL = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkdownChunker:
    r"""Cuts at ``##`` headings, always where the document has them, without overlap.

    A section longer than ``max_tokens`` is cut at its ``###`` headings, what is still too long at deeper ones, then
    at paragraphs, lines, sentences, words. A document without ``##`` is one chunk where it fits. A heading with no
    text of its own, such as a title, stays with its first subsection where the two fit together.

    Levels come from ``document.headings``, so a Word file or a web page is cut like Markdown; a document without
    them is searched for ``#`` lines outside fenced code.

    Each chunk's ``metadata`` holds ``header`` (the heading's title or None), ``level`` (or None), ``position`` and
    ``token_count``.

    Args:
        max_tokens: The most tokens in a chunk.
        tokenize: Finds the tokens; None: words, punctuation marks and single CJK characters.

    Raises:
        UsageError: ``max_tokens`` is out of range.

    Example:
        >>> from recollect.model import Document
        >>> text = "# Leave\n\n## Annual\n\nThirty days.\n\n## Sick\n\nWith a note."
        >>> [chunk.metadata["header"] for chunk in MarkdownChunker().chunk(Document(content=text))]
        ['Annual', 'Sick']
    """

    max_tokens: int = 256
    tokenize: Tokenize | None = None

    def __post_init__(self) -> None:
        require_whole_number("max_tokens", self.max_tokens, at_least=1)

    def chunk(self, document: Document) -> list[Chunk]:
        """The document's chunks, in order."""
        content = document.content
        headings = headings_of(document, expect_markdown=True)
        ruler = ruler_for(content, unit="tokens", tokenize=self.tokenize)
        cutter = Cutter(content, ruler, find_boundaries(content, headings, document.language), size=self.max_tokens)
        splitter = _SectionSplitter(content, headings, ruler, self.max_tokens)
        pieces = (Piece(*span) for section in splitter.sections() for span in cutter.spans(*section))
        sections = Sections(content, headings)
        return [
            replace(chunk, metadata={**chunk.metadata, **_facts(chunk, headings, sections)})
            for chunk in build_chunks(document, pieces, ruler, headings=headings)
        ]


def _facts(chunk: Chunk, headings: Sequence[Heading], sections: Sections) -> dict[str, str | int | None]:
    index = sections.index_of_span(chunk.start_offset, chunk.end_offset)
    return {
        "header": headings[index].title if index >= 0 else None,
        "level": headings[index].level if index >= 0 else None,
        "position": chunk.position,
        "token_count": chunk.token_count,
    }


class _SectionSplitter:
    """Cuts at headings only; what is too long without headings is left too long."""

    def __init__(self, content: str, headings: Sequence[Heading], ruler: Ruler, max_tokens: int) -> None:
        self._content = content
        self._ruler = ruler
        self._max_tokens = max_tokens
        self._levels = sorted({heading.level for heading in headings})
        self._all_starts = sorted(heading.start_offset for heading in headings)
        self._starts: dict[int, list[int]] = {level: [] for level in self._levels}
        self._headings = {heading.start_offset: heading for heading in headings}
        for heading in headings:
            self._starts[heading.level].append(heading.start_offset)

    def sections(self) -> Iterator[Span]:
        """The sections, in order."""
        start, end = trim(self._content, 0, len(self._content))
        if start == end:
            return
        if _SECTION_LEVEL in self._starts:
            upper = [s for level in self._levels if level <= _SECTION_LEVEL for s in self._starts[level]]
            deeper = [level for level in self._levels if level > _SECTION_LEVEL]
            for section in self._cut((start, end), sorted(upper)):
                yield from self._shorten(section, deeper)
        else:
            yield from self._shorten((start, end), self._levels)

    def _shorten(self, span: Span, levels: Sequence[int]) -> Iterator[Span]:
        if self._ruler.length(*span) <= self._max_tokens or not levels:
            yield span
            return
        for part in self._cut(span, self._starts[levels[0]]):
            yield from self._shorten(part, levels[1:])

    def _cut(self, span: Span, starts: Sequence[int]) -> Iterator[Span]:
        begin, end = span
        cut = first_between(starts, begin + 1, end)
        while cut is not None:
            if not self._stays_together(begin, cut, first_between(self._all_starts, cut + 1, end) or end):
                yield trim(self._content, begin, cut)
                begin = cut
            cut = first_between(starts, cut + 1, end)
        yield trim(self._content, begin, end)

    def _stays_together(self, begin: int, cut: int, end: int) -> bool:
        """Whether only headings stand between ``begin`` and the subsection at ``cut``, and both fit up to ``end``."""
        position = begin
        while position < cut and position in self._headings:
            position = skip_space(self._content, max(self._headings[position].end_offset, position + 1))
        return (
            position == cut
            and self._headings[begin].level < self._headings[cut].level
            and self._ruler.length(begin, end) <= self._max_tokens
        )
