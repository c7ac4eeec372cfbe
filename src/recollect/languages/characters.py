"""Characters that are written otherwise and mean the same, so that either finds the other. Pure."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from importlib.resources import files

# Digits of every script as 0 to 9. Pure.


_OTHER_DIGITS = re.compile(r"(?![0-9])\d")
_ARABIC_SEPARATORS = str.maketrans({"\u066b": ".", "\u066c": ","})
# A year written digit by digit, as before 年, and what its digits are.
_CHINESE_YEAR = re.compile("(?<![〇零一二三四五六七八九十百千])[一二][〇零一二三四五六七八九]{3}(?=年)")
_CHINESE_DIGITS = str.maketrans("〇零一二三四五六七八九", "00123456789")


def plain_digits(text: str) -> str:
    """A text with the decimal digits of every script, and Chinese years, as 0 to 9; of the same length.

    Args:
        text: Any text.

    Example:
        >>> plain_digits("١٩٥٢ १९५२ ๑๙๕๒ 一九五二年")
        '1952 1952 1952 1952年'
    """
    if text.isascii():
        return text
    if _OTHER_DIGITS.search(text):
        text = _OTHER_DIGITS.sub(lambda match: str(unicodedata.decimal(match.group())), text)
        text = text.translate(_ARABIC_SEPARATORS)
    return _CHINESE_YEAR.sub(lambda match: match.group().translate(_CHINESE_DIGITS), text)


# Traditional Chinese characters as simplified ones, so that either finds the other. Pure.


def simplified(text: str) -> str:
    """A text with its traditional Chinese characters as simplified ones; of the same length.

    Characters are exchanged one by one. What two traditional ones share ("發" and "髮", "干" and "乾") is one, in
    simplified texts as in this; whole words that only one side of the strait uses stay as they are.

    Args:
        text: Any text.

    Example:
        >>> simplified("臺灣的圖書館")
        '台湾的图书馆'
    """
    return text if text.isascii() else text.translate(_table())


@cache
def _table() -> dict[int, int]:
    stored = files("recollect.languages").joinpath("simplified.txt").read_text("utf-8")
    pairs = " ".join(line for line in stored.splitlines() if not line.startswith("#")).split()
    return {ord(pair[0]): ord(pair[1]) for pair in pairs}
