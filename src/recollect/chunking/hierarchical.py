"""Small chunks to search, the section around them to read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from recollect.chunking._assemble import Piece, build_chunks
from recollect.chunking._cutting import Cutter, find_boundaries, headings_of, units_between
from recollect.chunking._measure import ruler_for, trim
from recollect.chunking.base import Tokenize, Unit, require_unit, require_whole_number
from recollect.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recollect.model import Chunk, Document


@dataclass(frozen=True, slots=True, kw_only=True)
class HierarchicalChunker:
    r"""Document, section, paragraph: paragraphs are searched, ``Chunk.parent`` is the section that is returned.

    A parent is the text from one heading to the next, cut into several where it is longer than
    ``parent_max_size``; without headings, paragraphs up to that size. Searching small and returning large is known
    as small-to-big or parent-document retrieval.

    Args:
        size: The most units in a chunk.
        parent_max_size: The most units in a parent; at least ``size``.
        unit: What both count: ``"characters"`` or ``"tokens"``.
        tokenize: Finds the tokens; None: words, punctuation marks and single CJK characters.

    Raises:
        UsageError: A parameter is out of range.

    Example:
        >>> from recollect.model import Document
        >>> chunker = HierarchicalChunker(size=12, parent_max_size=40)
        >>> [(chunk.text, chunk.parent) for chunk in chunker.chunk(Document(content="One is one.\n\nTwo is two."))]
        [('One is one.', (0, 24)), ('Two is two.', (0, 24))]
    """

    size: int = 300
    parent_max_size: int = 1200
    unit: Unit = "characters"
    tokenize: Tokenize | None = None

    def __post_init__(self) -> None:
        require_whole_number("size", self.size, at_least=1)
        require_whole_number("parent_max_size", self.parent_max_size, at_least=1)
        if self.parent_max_size < self.size:
            raise UsageError(f"parent_max_size ({self.parent_max_size}) must be at least size ({self.size})")
        require_unit(self.unit)

    def chunk(self, document: Document) -> list[Chunk]:
        """The document's chunks, in order."""
        content = document.content
        headings = headings_of(document, expect_markdown=True)
        ruler = ruler_for(content, unit=self.unit, tokenize=self.tokenize)
        boundaries = find_boundaries(content, headings, document.language)
        outer = Cutter(content, ruler, boundaries, size=self.parent_max_size)
        inner = Cutter(content, ruler, boundaries, size=self.size)

        def pieces() -> Iterator[Piece]:
            for section in units_between(content, boundaries.headings):
                for span in outer.spans(*section):
                    parent = trim(content, *span)
                    yield from (Piece(start, end, parent) for start, end in inner.spans(*parent))

        return build_chunks(document, pieces(), ruler, headings=headings)
