"""Windows of equal length that move over a text in equal steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.chunking._assemble import Piece
from recollect.chunking._text import whole_character_cut

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recollect.chunking._measure import Ruler


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
