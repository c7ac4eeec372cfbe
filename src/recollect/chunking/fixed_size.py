"""Windows of a fixed size, whatever stands in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from recollect.chunking._assemble import build_chunks, windows
from recollect.chunking._measure import ruler_for
from recollect.chunking.base import Tokenize, Unit, require_smaller, require_unit, require_whole_number

if TYPE_CHECKING:
    from recollect.model import Chunk, Document


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedSizeChunker:
    """Cuts every ``size`` units, through sentences and words.

    Args:
        size: The most units in a chunk.
        overlap: How many units of a chunk the next one repeats; smaller than ``size``.
        unit: What ``size`` and ``overlap`` count: ``"characters"`` or ``"tokens"``.
        tokenize: Finds the tokens; None: words, punctuation marks and single CJK characters.

    Raises:
        UsageError: A parameter is out of range.

    Example:
        >>> from recollect.model import Document
        >>> [chunk.text for chunk in FixedSizeChunker(size=4, overlap=1).chunk(Document(content="abcdefg"))]
        ['abcd', 'defg']
    """

    size: int = 500
    overlap: int = 0
    unit: Unit = "characters"
    tokenize: Tokenize | None = None

    def __post_init__(self) -> None:
        require_whole_number("size", self.size, at_least=1)
        require_whole_number("overlap", self.overlap, at_least=0)
        require_smaller("overlap", self.overlap, "size", self.size)
        require_unit(self.unit)

    def chunk(self, document: Document) -> list[Chunk]:
        """The document's chunks, in order."""
        ruler = ruler_for(document.content, unit=self.unit, tokenize=self.tokenize)
        pieces = windows(document.content, ruler, size=self.size, stride=self.size - self.overlap)
        return build_chunks(document, pieces, ruler)
