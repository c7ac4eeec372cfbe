"""Words that were split at the ends of lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from recollect.documents.pdf._words import HYPHEN

_WORDS = re.compile(r"\w+(?:-\w+)*")
_LAST = re.compile(r"(\w{1,40})[\x02-]$")
_FIRST = re.compile(r"\w{1,40}")
_SPLIT_LINE = re.compile(r"\w[\x02]$")


class Hyphens:
    """Decides whether the hyphen at a line's end belongs to the word (``six-month``) or to the line (``adip-iscing``).

    The form that the document has elsewhere decides, and else whether it splits words often, as typesetting programs
    do.

    Args:
        lines: All lines of the document.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        texts = list(lines)
        splits = sum(1 for text in texts if _SPLIT_LINE.search(text))
        self._typeset = splits > 0.03 * len(texts)
        self._words = Counter(_WORDS.findall("\n".join(texts).lower())) if splits or _any_hyphen(texts) else Counter()

    def joined(self, line: str, following: str) -> str | None:
        """What ``line`` becomes before ``following`` is set right behind it; None: they are two words."""
        end, start = _LAST.search(line), _FIRST.match(following)
        if end is None or start is None:
            return line[:-1] + "-" if line.endswith(HYPHEN) else None
        solid, hyphenated = (end[1] + start[0]).lower(), f"{end[1]}-{start[0]}".lower()
        as_solid, as_hyphenated = self._words[solid], self._words[hyphenated]
        keeps = line[:-1] + "-"
        if not start[0][0].islower() or as_hyphenated > as_solid:
            return keeps
        marked = line.endswith(HYPHEN)
        return line[:-1] if as_solid > as_hyphenated or (self._typeset and marked) else keeps


def _any_hyphen(texts: Iterable[str]) -> bool:
    return any(text.endswith("-") for text in texts)
