"""The strongest break that fits: section, paragraph, line, sentence, word."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from recollect.chunking._assemble import Piece, build_chunks
from recollect.chunking._cutting import (
    Cutter,
    find_boundaries,
    find_separators,
    headings_of,
    section_starts,
    units_between,
)
from recollect.chunking._measure import ruler_for
from recollect.chunking.base import Tokenize, Unit, require_smaller, require_strings, require_unit, require_whole_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.model import Chunk, Document

# A fragment below this is no chunk of its own where the text beside it has room.
_SHORTEST: dict[str, int] = {"characters": 40, "tokens": 10}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecursiveChunker:
    r"""Chunks up to ``size``, each ended at the strongest break within reach.

    In this order: before a heading, between paragraphs, lines, sentences, words; anywhere only in a word longer
    than half a chunk. A heading stays with the text below it, and fenced code stays whole where it fits. Small
    paragraphs are merged up to ``size``, but never across a heading of the first two levels that the document has.

    Args:
        size: The most units in a chunk.
        overlap: The most units that a chunk repeats of the one before it, in whole paragraphs, lines, sentences or
            words; smaller than ``size``.
        unit: What both count: ``"characters"`` or ``"tokens"``.
        separators: Where to cut in place of headings, paragraphs, lines and sentences, the strongest first; a separator
            stays with the text before it. Without one within reach, a chunk ends behind a word, or anywhere. None: as
            above.
        tokenize: Finds the tokens; None: words, punctuation marks and single CJK characters.

    Raises:
        UsageError: A parameter is out of range.

    Example:
        >>> from recollect.model import Document
        >>> text = "Leave is thirty days. Ask early.\n\nSick leave needs a note."
        >>> [chunk.text for chunk in RecursiveChunker(size=34).chunk(Document(content=text))]
        ['Leave is thirty days. Ask early.', 'Sick leave needs a note.']
    """

    size: int = 500
    overlap: int = 0
    unit: Unit = "characters"
    separators: Sequence[str] | None = None
    tokenize: Tokenize | None = None

    def __post_init__(self) -> None:
        require_whole_number("size", self.size, at_least=1)
        require_whole_number("overlap", self.overlap, at_least=0)
        require_smaller("overlap", self.overlap, "size", self.size)
        require_unit(self.unit)
        if self.separators is not None:
            require_strings("separators", self.separators)
            object.__setattr__(self, "separators", tuple(self.separators))

    def chunk(self, document: Document) -> list[Chunk]:
        """The document's chunks, in order."""
        content = document.content
        headings = headings_of(document, expect_markdown=False)
        ruler = ruler_for(content, unit=self.unit, tokenize=self.tokenize)
        given = self.separators
        boundaries = (
            find_boundaries(content, headings, document.language) if given is None else find_separators(content, given)
        )
        shortest = min(self.size // 10, _SHORTEST[self.unit]) if given is None else 0
        cutter = Cutter(content, ruler, boundaries, size=self.size, overlap=self.overlap, shortest=shortest)
        sections = units_between(content, section_starts(content, headings, boundaries) if given is None else ())
        pieces = (Piece(*span) for section in sections for span in cutter.spans(*section))
        return build_chunks(document, pieces, ruler, headings=headings)
