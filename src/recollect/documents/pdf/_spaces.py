"""Stray spaces inside words: gaps that may be a letter's or a word's are judged by the words of the document."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from recollect.documents.pdf._words import DOUBTFUL, Segment

_WORD = re.compile(r"[^\W\d_]+")
_AROUND = re.compile(rf"([^\W_]*){DOUBTFUL}([^\W_]*)")
_SHORT_WORDS = frozenset("aAIiyYeEoOàuUwz")


def mend_spaces(segments: Iterable[Segment]) -> None:
    """Settles the doubtful spaces of a document's segments: out where both sides are one word of the document.

    They are where the whole is written elsewhere without a gap, and more often than the rarer of its sides.
    """
    words: Counter[str] = Counter()
    doubtful: list[Segment] = []
    for segment in segments:
        text = segment.text
        if DOUBTFUL in text:
            doubtful.append(segment)
            text = _AROUND.sub(" ", text)
        words.update(_WORD.findall(text.casefold()))
    if not doubtful:
        return

    def settled(before: str, after: str) -> str:
        if not before or not after:
            return f"{before} {after}"
        whole = words[(before + after).casefold()]
        sides = min(words[one.casefold()] if len(one) > 1 or one in _SHORT_WORDS else 0 for one in (before, after))
        # Of two letters that overlap, as in slanted type, pdfium leaves out one.
        if before.endswith("f") and words[(before + "f" + after).casefold()] > max(whole, sides):
            return f"{before}f{after}"
        return before + after if whole > sides else f"{before} {after}"

    for segment in doubtful:
        done, *rest = segment.text.split(DOUBTFUL)
        for part in rest:
            start, end = _last_word(done), _first_word(part)
            done = done[:start] + settled(done[start:], part[:end]) + part[end:]
        segment.text = done


def _last_word(text: str) -> int:
    """Where the letters and digits at the end of a text begin."""
    at = len(text)
    while at and text[at - 1].isalnum():
        at -= 1
    return at


def _first_word(text: str) -> int:
    """Where the letters and digits at the beginning of a text end."""
    at = 0
    while at < len(text) and text[at].isalnum():
        at += 1
    return at
