"""A window that moves over the text in steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from recollect.chunking._assemble import build_chunks, windows
from recollect.chunking._measure import ruler_for
from recollect.chunking.base import Tokenize, Unit, require_unit, require_whole_number
from recollect.errors import UsageError

if TYPE_CHECKING:
    from recollect.model import Chunk, Document


@dataclass(frozen=True, slots=True, kw_only=True)
class SlidingWindowChunker:
    """Windows of ``window_size`` units, a new one every ``stride`` units.

    Args:
        window_size: The most units in a chunk.
        stride: How far the window moves; at most ``window_size``, or text between two windows would be lost.
        unit: What both count: ``"characters"`` or ``"tokens"``.
        tokenize: Finds the tokens; None: words, punctuation marks and single CJK characters.

    Raises:
        UsageError: A parameter is out of range.

    Example:
        >>> from recollect.model import Document
        >>> windows = SlidingWindowChunker(window_size=4, stride=2).chunk(Document(content="abcdefg"))
        >>> [window.text for window in windows]
        ['abcd', 'cdef', 'efg']
    """

    window_size: int = 500
    stride: int = 250
    unit: Unit = "characters"
    tokenize: Tokenize | None = None

    def __post_init__(self) -> None:
        require_whole_number("window_size", self.window_size, at_least=1)
        require_whole_number("stride", self.stride, at_least=1)
        if self.stride > self.window_size:
            raise UsageError(
                f"stride ({self.stride}) must not be larger than window_size ({self.window_size}): "
                "the text between two windows would be lost"
            )
        require_unit(self.unit)

    def chunk(self, document: Document) -> list[Chunk]:
        """The document's chunks, in order."""
        ruler = ruler_for(document.content, unit=self.unit, tokenize=self.tokenize)
        return build_chunks(
            document, windows(document.content, ruler, size=self.window_size, stride=self.stride), ruler
        )
