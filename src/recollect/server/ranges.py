"""Parts of something by bytes: ``Range`` and ``Content-Range`` (RFC 9110)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recollect.model.original import Original

_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")


@dataclass(frozen=True, slots=True)
class ByteRange:
    """Bytes of something, one after the other.

    Attributes:
        start: The first, from 0.
        stop: Just behind the last.
    """

    start: int
    stop: int


class UnsatisfiableError(Exception):
    """The range begins behind the end."""


def range_of(header: str | None, total: int) -> ByteRange | None:
    """The one range that a header asks for; None: all of it, also where several ranges or other units are asked for.

    Raises:
        UnsatisfiableError: There is nothing in the range.
    """
    found = _RANGE.fullmatch(header.replace(" ", "").lower()) if header is not None else None
    if found is None:
        return None
    first, last = found.groups()
    if not first and not last:
        return None
    if not first:
        length = min(int(last), total)
        if not length:
            raise UnsatisfiableError
        return ByteRange(total - length, total)
    start = int(first)
    if last and int(last) < start:
        return None
    if start >= total:
        raise UnsatisfiableError
    return ByteRange(start, min(int(last) + 1, total) if last else total)


def bytes_of(original: Original, wanted: ByteRange) -> Iterator[bytes]:
    """The bytes of a range, piece by piece, however long it is."""
    left = wanted.stop - wanted.start
    skip = wanted.start
    for piece in original.pieces():
        if skip >= len(piece):
            skip -= len(piece)
            continue
        part = piece[skip : skip + left]
        skip = 0
        left -= len(part)
        yield part
        if not left:
            return
