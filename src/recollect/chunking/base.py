"""What every chunking strategy promises."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, Protocol

from recollect.model import Chunk, Document

Span = tuple[int, int]

#: Splits a text into tokens and returns their character spans, in order.
Tokenize = Callable[[str], Sequence[Span]]

#: Returns one similarity per pair of neighbouring texts: n texts give n - 1 numbers in -1..1.
NeighbourSimilarity = Callable[[Sequence[str]], Sequence[float]]

Unit = Literal["characters", "tokens"]


class ChunkingStrategy(Protocol):
    """Cuts a document into chunks.

    For every document: ``content[c.start_offset:c.end_offset] == c.text`` for each chunk; every character that is
    not whitespace lies in at least one chunk; positions are 0…n-1 in order of start offsets; no chunk is longer
    than the strategy's limit; no chunk is empty or whitespace alone. A document of whitespace alone has no chunks.
    """

    def chunk(self, document: Document) -> list[Chunk]:
        """The document's chunks, in order."""
        ...
