"""The boxes of a page's lines in a few bytes each: a long document has tens of thousands of them."""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import overload

_PARTS = 10_000
_MOST_BYTES = 2_000_000
_NUMBERS = 6


@dataclass(frozen=True, slots=True)
class LineBox:
    """Where a line of a page's text stands on the page.

    Attributes:
        start_offset: Of the line's first character in the document's content.
        end_offset: Just behind its last one.
        left: The left edge, as a share of the page's width, 0 to 1.
        top: The upper edge, as a share of its height from above.
        right: The right edge.
        bottom: The lower edge.
    """

    start_offset: int
    end_offset: int
    left: float
    top: float
    right: float
    bottom: float


class PackedLines(Sequence[LineBox]):
    """Lines as `packed` wrote them, which are read when somebody asks for one.

    Args:
        text: From `packed`.
        start_offset: Of their page.
    """

    __slots__ = ("_lines", "start_offset", "text")

    def __init__(self, text: str, start_offset: int) -> None:
        self.text = text
        self.start_offset = start_offset
        self._lines: tuple[LineBox, ...] | None = None

    def _read(self) -> tuple[LineBox, ...]:
        if self._lines is None:
            self._lines = tuple(_unpacked(self.text, self.start_offset))
        return self._lines

    @overload
    def __getitem__(self, index: int) -> LineBox: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[LineBox]: ...

    def __getitem__(self, index: int | slice) -> LineBox | Sequence[LineBox]:
        """One line or several.

        Raises:
            ValueError: The text is not one of `packed`. (So it is wherever lines are read.)
        """
        return self._read()[index]

    def __len__(self) -> int:
        """How many there are."""
        return len(self._read())

    def __bool__(self) -> bool:
        """Whether there are any; told without reading them."""
        return bool(self.text)

    def __eq__(self, other: object) -> bool:
        """Whether the other are the same lines."""
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        """That of a tuple of the lines."""
        return hash(self._read())

    def __repr__(self) -> str:
        """As of a tuple of the lines."""
        return repr(self._read())


def packed(lines: Sequence[LineBox], start_offset: int) -> str:
    """Lines as a short text; edges in ten thousandths.

    Each number is told by its distance to the one before it of its kind, which mostly is small or the same again.

    Args:
        lines: Of one page.
        start_offset: Of the page.
    """
    if isinstance(lines, PackedLines) and lines.start_offset == start_offset:
        return lines.text
    numbers: list[int] = []
    end, left, right, bottom = start_offset, 0, 0, 0
    for one in lines:
        edges = [round(edge * _PARTS) for edge in (one.left, one.top, one.right, one.bottom)]
        numbers += (one.start_offset - end, one.end_offset - one.start_offset)
        numbers += (edges[0] - left, edges[1] - bottom, edges[2] - right, edges[3] - edges[1])
        end, (left, _, right, bottom) = one.end_offset, edges
    if not numbers:
        return ""
    return base64.b64encode(zlib.compress(bytes(_varints(numbers)), 9)).decode().rstrip("=")


def _unpacked(text: str, start_offset: int) -> Iterator[LineBox]:
    numbers = _numbers(text)
    end, left, right, bottom = start_offset, 0, 0, 0
    for at in range(0, len(numbers), _NUMBERS):
        apart, length, *edges = numbers[at : at + _NUMBERS]
        start = end + apart
        end = start + length
        left, top, right = left + edges[0], bottom + edges[1], right + edges[2]
        bottom = top + edges[3]
        yield LineBox(start, end, left / _PARTS, top / _PARTS, right / _PARTS, bottom / _PARTS)


def _varints(numbers: Iterable[int]) -> Iterator[int]:
    """Whole numbers as bytes of seven bits each, the lowest first; the lowest bit of all is the sign."""
    for number in numbers:
        rest = number << 1 if number >= 0 else (-number << 1) - 1
        while rest > 0x7F:
            yield rest & 0x7F | 0x80
            rest >>= 7
        yield rest


def _numbers(text: str) -> list[int]:
    try:
        unpacking = zlib.decompressobj()
        data = unpacking.decompress(base64.b64decode(text + "=" * (-len(text) % 4), validate=True), _MOST_BYTES)
    except (binascii.Error, zlib.error) as error:
        raise ValueError("is not what lines of a page are packed to") from error
    numbers: list[int] = []
    number = shift = 0
    for byte in data:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            numbers.append(-(number + 1 >> 1) if number & 1 else number >> 1)
            number = shift = 0
        elif shift > 63:
            raise ValueError("is not what lines of a page are packed to: a number is too large")
    if shift or len(numbers) % _NUMBERS or not unpacking.eof:
        raise ValueError("is not what lines of a page are packed to: it breaks off")
    return numbers
