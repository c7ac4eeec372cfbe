"""Paragraphs, the short ones merged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from recollect.chunking._assemble import Piece, build_chunks
from recollect.chunking._cutting import Cutter, Grouper, find_boundaries, headings_of, units_between
from recollect.chunking._measure import ruler_for
from recollect.chunking.base import Tokenize, Unit, require_unit, require_whole_number
from recollect.errors import UsageError

if TYPE_CHECKING:
    from recollect.model import Chunk, Document


@dataclass(frozen=True, slots=True, kw_only=True)
class ParagraphChunker:
    r"""One chunk a paragraph; a heading belongs to the paragraph below it.

    A paragraph shorter than ``min_size`` is merged with the next one of its section, else with the one before it,
    else with its neighbour across the heading. A chunk is shorter only where the whole document is, or where
    merging would exceed ``max_size``. Longer paragraphs are cut at lines, sentences, words.

    Args:
        min_size: The fewest units in a chunk.
        max_size: The most units in a chunk; at least twice ``min_size``.
        unit: What both count: ``"characters"`` or ``"tokens"``.
        tokenize: Finds the tokens; None: words, punctuation marks and single CJK characters.

    Raises:
        UsageError: A parameter is out of range.

    Example:
        >>> from recollect.model import Document
        >>> text = "Leave is thirty days a year, for everyone.\n\nSick leave needs a note from the third day on."
        >>> [chunk.end_offset for chunk in ParagraphChunker().chunk(Document(content=text))]
        [42, 90]
    """

    min_size: int = 40
    max_size: int = 1000
    unit: Unit = "characters"
    tokenize: Tokenize | None = None

    def __post_init__(self) -> None:
        require_whole_number("min_size", self.min_size, at_least=1)
        require_whole_number("max_size", self.max_size, at_least=1)
        if self.max_size < 2 * self.min_size:
            raise UsageError(
                f"max_size ({self.max_size}) must be at least twice min_size ({self.min_size}), "
                "or a paragraph that is too long could not be cut in two"
            )
        require_unit(self.unit)

    def chunk(self, document: Document) -> list[Chunk]:
        """The document's chunks, in order."""
        content = document.content
        headings = headings_of(document, expect_markdown=True)
        ruler = ruler_for(content, unit=self.unit, tokenize=self.tokenize)
        boundaries = find_boundaries(content, headings, document.language)
        cutter = Cutter(content, ruler, boundaries, size=self.max_size, shortest=self.min_size)
        starts = sorted({*boundaries.paragraphs, *boundaries.headings})
        grouper = Grouper(content, ruler, boundaries, min_size=self.min_size, max_size=self.max_size)
        for start, end in units_between(content, starts):
            grouper.add(start, end)
        pieces = (Piece(*span) for start, end in grouper.finish() for span in cutter.spans(start, end))
        return build_chunks(document, pieces, ruler, headings=headings)
