"""Traditional Chinese characters as simplified ones, so that either finds the other. Pure."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


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
