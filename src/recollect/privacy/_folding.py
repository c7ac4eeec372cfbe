"""A text as patterns read it: digits, dashes and blanks of every script as ASCII has them."""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Sequence

_DASHES = dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2014\u2212\ufe58\ufe63\uff0d"), "-")
_BLANKS = dict.fromkeys(
    map(ord, "\t\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u3000"), " "
)
# They stand within words and numbers and are not seen.
_UNSEEN = frozenset("\u00ad\u200b\u200c\u200d\u2060\ufeff")


class Folded:
    """A folded text, and where its characters stand in the text that it was made of.

    Attributes:
        text: One character for each of the original's that is seen.
    """

    def __init__(self, original: str) -> None:
        self._ends: Sequence[int] = ()
        self._skipped: Sequence[int] = ()
        if original.isascii():
            self.text = original.replace("\t", " ")
            return
        plain = original.translate(_DASHES | _BLANKS)
        if any(mark in plain for mark in _UNSEEN):
            plain = self._without_unseen(plain)
        self.text = plain.translate({ord(one): _folded(one) for one in set(plain) if not one.isascii()})

    def _without_unseen(self, text: str) -> str:
        ends: list[int] = []
        skipped: list[int] = []
        kept: list[str] = []
        for at, character in enumerate(text):
            if character in _UNSEEN:
                # From this place of the folded text on, so many more of the original's went before.
                ends.append(len(kept))
                skipped.append(at + 1 - len(kept))
            else:
                kept.append(character)
        self._ends, self._skipped = ends, skipped
        return "".join(kept)

    def start(self, offset: int) -> int:
        """Where the character at an offset of the folded text stands in the original."""
        rank = bisect_right(self._ends, offset)
        return offset + (self._skipped[rank - 1] if rank else 0)

    def end(self, offset: int) -> int:
        """Where the stretch that ends at an offset of the folded text ends in the original."""
        return self.start(offset - 1) + 1


def _folded(character: str) -> str:
    if character.isascii():
        return character
    digit = unicodedata.decimal(character, None)
    if digit is not None:
        return str(digit)
    compatible = unicodedata.normalize("NFKC", character)
    return compatible if len(compatible) == 1 and compatible.isascii() else character
