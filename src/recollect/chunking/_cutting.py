"""Pieces of limited size: spans are cut at the strongest breaks that their length allows, and short ones merged."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from recollect.chunking._boundaries import first_between, last_between
from recollect.chunking._measure import first_word, last_word, skip_space, trim, whole_character_cut

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from recollect.chunking._boundaries import Boundaries, SeparatorBoundaries
    from recollect.chunking._measure import Ruler
    from recollect.chunking.base import Span


# How full a piece must be, as a share of what its limit allows, before it may end at a break of that kind.
# Low for paragraphs: whole paragraphs are found better than full pieces (see docs/how-to/chunking.md).
_FILLED_FOR_HEADING = 0.25
_FILLED_FOR_PARAGRAPH = 0.3
_FILLED = 0.5


@dataclass(frozen=True, slots=True)
class Cutter:
    """Cuts spans of one text.

    Attributes:
        content: The text.
        ruler: Measures it.
        boundaries: Where it may be cut without tearing words.
        size: The most units in a piece.
        overlap: The most units that a piece repeats of the one before it; whole lines, sentences or words.
        shortest: The fewest units in a piece, where the text allows.
    """

    content: str
    ruler: Ruler
    boundaries: Boundaries | SeparatorBoundaries
    size: int
    overlap: int = 0
    shortest: int = 0

    def spans(self, start: int, end: int) -> Iterator[Span]:
        """Cut ``content[start:end]``; the pieces still have whitespace at their ends."""
        position, end = trim(self.content, start, end)
        while position < end:
            cut = self._cut_after(position, end)
            yield position, cut
            if cut >= end:
                return
            position = self._next_start(position, cut)

    def _cut_after(self, start: int, end: int) -> int:
        limit = min(skip_space(self.content, self.ruler.furthest_end(start, self.size)), end)
        if limit >= end:
            return end
        least = start + 1
        if self.shortest:
            limit = max(min(limit, self._latest_cut(end)), start + 1)
            least = self._least_cut(start)
        reach = limit - start
        heading = first_between(
            self.boundaries.headings, max(start + int(reach * _FILLED_FOR_HEADING), least), limit + 1
        )
        if heading is not None:
            return heading
        for positions in self.boundaries.by_strength():
            filled = _FILLED_FOR_PARAGRAPH if positions is self.boundaries.paragraphs else _FILLED
            cut = last_between(positions, max(start + int(reach * filled), least - 1), limit)
            if cut is not None:
                return cut
            row = self.boundaries.between_rows(max(start, least - 1), limit)
            if row is not None:
                return row
        floor = max(start + int(reach * _FILLED), least - 1)
        word = last_word(self.content, floor, limit) if floor < limit else None
        return whole_character_cut(self.content, limit, start) if word is None else word

    def _latest_cut(self, end: int) -> int:
        """Where the last piece begins at the latest: it must not reach its least size by space that is then trimmed."""
        latest = self.ruler.earliest_start(end, self.shortest)
        while latest > 0 and self.content[latest : latest + 1].isspace():
            latest -= 1
        return latest

    def _least_cut(self, start: int) -> int:
        least = self.ruler.furthest_end(start, self.shortest)
        return skip_space(self.content, least) + 1 if self.content[least - 1].isspace() else least

    def _next_start(self, start: int, cut: int) -> int:
        if not self.overlap:
            return cut
        earliest = self.ruler.earliest_start(trim(self.content, start, cut)[1], self.overlap)
        earliest = max(earliest, start + 1)
        for positions in self.boundaries.by_strength():
            begin = first_between(positions, earliest, cut)
            if begin is not None:
                return begin
        word = first_word(self.content, earliest, cut)
        if word < cut or not self._is_torn(cut):
            return word
        # Where there was no break to cut at, there is none to begin at either.
        return whole_character_cut(self.content, earliest, start)

    def _is_torn(self, cut: int) -> bool:
        """Whether a cut lies inside a word, and not at a break of any kind."""
        if self.content[cut - 1].isspace() or self.content[cut].isspace():
            return False
        levels = (self.boundaries.headings, *self.boundaries.by_strength())
        return all(first_between(positions, cut, cut + 1) is None for positions in levels)


# Merging what is too short to stand alone.


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
