"""Merging what is too short to stand alone."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from recollect.chunking._boundaries import first_between
from recollect.chunking._text import skip_space, trim

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from recollect.chunking._boundaries import Boundaries
    from recollect.chunking._measure import Ruler
    from recollect.chunking.base import Span


def units_between(content: str, starts: Sequence[int]) -> Iterator[Span]:
    """The trimmed spans between ascending cut positions, without those of whitespace alone."""
    first = skip_space(content, 0)
    cuts = [first, *(start for start in starts if first < start < len(content)), len(content)]
    for start, end in pairwise(cuts):
        left, right = trim(content, start, end)
        if left < right:
            yield left, right


class Grouper:
    """Takes spans in order and merges those below ``min_size`` with a neighbour.

    A merged span may exceed ``max_size`` only where the last piece of it would otherwise be too short; whoever
    calls cuts it again.
    """

    def __init__(self, content: str, ruler: Ruler, boundaries: Boundaries, *, min_size: int, max_size: int) -> None:
        self._content = content
        self._ruler = ruler
        self._headings = boundaries.headings
        self._min_size = min_size
        self._max_size = max_size
        self._groups: list[Span] = []
        self._open: Span | None = None

    def add(self, start: int, end: int) -> None:
        """Take the next span."""
        if self._open is not None and self._new_section(self._open[0], start) and self._merge_back():
            self._open = None
        self._open = (start, end) if self._open is None else (self._open[0], end)
        self.close_if_long()

    def close_if_long(self) -> None:
        """End the open group where it is long enough to stand alone."""
        if self._open is not None and self._ruler.length(*self._open) >= self._min_size:
            self._groups.append(self._open)
            self._open = None

    def finish(self) -> list[Span]:
        """The groups; the last one merged with the one before it where it is too short."""
        if self._open is not None and not self._merge_back():
            if self._groups:
                self._groups[-1] = (self._groups[-1][0], self._open[1])
            else:
                self._groups.append(self._open)
        self._open = None
        return self._groups

    def _new_section(self, after: int, up_to: int) -> bool:
        return first_between(self._headings, after + 1, up_to + 1) is not None

    def _merge_back(self) -> bool:
        """Merge the open, short group with the one before it where the two fit together and share a section."""
        if self._open is None or not self._groups:
            return False
        start, end = self._groups[-1][0], self._open[1]
        if self._new_section(start, self._open[0]) or self._ruler.length(start, end) > self._max_size:
            return False
        self._groups[-1] = (start, end)
        return True
