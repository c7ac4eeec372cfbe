"""Bodies as they travel to what they hold, never more of it in memory than may be held."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

#: What requests ask for. Brotli and Zstandard are not asked for, and not unpacked where they are sent all the same.
ACCEPTED_CODINGS = "gzip, deflate"
_PIECE = 256 << 10


class TooLargeError(ValueError):
    """There is more than may be held."""


class BrokenCodingError(ValueError):
    """What was sent is not what its coding says, or is cut off; the message says which."""


class UnknownCodingError(ValueError):
    """A coding that was not asked for."""


def read_limited(pieces: Iterable[bytes], *, coding: str, max_bytes: int) -> bytes:
    """A body unpacked.

    Args:
        pieces: As they came.
        coding: What ``Content-Encoding`` says.
        max_bytes: Of what is unpacked, and of what came.

    Raises:
        TooLargeError: It is more than that; no more was unpacked or read.
        BrokenCodingError: It cannot be unpacked, or not to its end.
        UnknownCodingError: It is in another coding.
    """
    match [name for name in coding.lower().replace(" ", "").split(",") if name not in {"", "identity"}]:
        case []:
            return _plain(pieces, max_bytes)
        case ["gzip" | "x-gzip"]:
            return _inflated(pieces, zlib.MAX_WBITS | 16, max_bytes)
        case ["deflate"]:
            return _inflated(pieces, 0, max_bytes)
        case _:
            raise UnknownCodingError


def _plain(pieces: Iterable[bytes], max_bytes: int) -> bytes:
    found = bytearray()
    for piece in pieces:
        found += piece
        if len(found) > max_bytes:
            raise TooLargeError
    return bytes(found)


def _inflated(pieces: Iterable[bytes], window: int, max_bytes: int) -> bytes:
    found = bytearray()
    arrived = 0
    unpacker = None
    for piece in pieces:
        arrived += len(piece)
        rest = piece
        while rest:
            unpacker = unpacker or zlib.decompressobj(window or _deflate_window(rest))
            try:
                found += unpacker.decompress(rest, _PIECE)
            except zlib.error as error:
                raise BrokenCodingError("is damaged: it cannot be unpacked") from error
            if max(len(found), arrived) > max_bytes:
                raise TooLargeError
            rest = unpacker.unconsumed_tail
            if unpacker.eof:
                # Several members one after the other are one file; what is behind a stream of deflate is nothing.
                rest, unpacker = (unpacker.unused_data.lstrip(b"\0"), None) if window else (b"", unpacker)
    if unpacker is not None and not unpacker.eof:
        raise BrokenCodingError("was cut off")
    return bytes(found)


def _deflate_window(start: bytes) -> int:
    # By the standard deflate comes in a zlib wrapper, by some servers without one.
    wrapped = start[0] & 0x0F == 8 and (len(start) < 2 or int.from_bytes(start[:2], "big") % 31 == 0)
    return zlib.MAX_WBITS if wrapped else -zlib.MAX_WBITS
