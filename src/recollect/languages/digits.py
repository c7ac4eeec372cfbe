"""Digits of every script as 0 to 9. Pure."""

from __future__ import annotations

import re
import unicodedata

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
