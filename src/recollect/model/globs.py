"""Patterns over paths: ``*`` within a name, ``**`` for any number of folders."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from fnmatch import translate
from functools import lru_cache


def reached(segments: Iterable[str], parts: Sequence[str], begin: AbstractSet[int]) -> set[int]:
    """How much of a path a pattern may cover; takes time in proportion to both, whatever the pattern.

    Args:
        segments: The pattern's parts between slashes.
        parts: The path's.
        begin: How many of the path's parts may stand before the pattern.

    Returns:
        How many of them may then be behind its end; empty where it does not match.

    Example:
        >>> reached(["**", "*.md"], ["guide", "start.md"], {0})
        {2}
    """
    places = set(begin)
    for segment in segments:
        if not places:
            break
        if segment == "**":
            places = set(range(min(places), len(parts) + 1))
        else:
            name = _name(segment)
            places = {place + 1 for place in places if place < len(parts) and name.match(parts[place])}
    return places


@lru_cache(maxsize=1024)
def _name(pattern: str) -> re.Pattern[str]:
    # Its patterns take time in proportion to the text.
    return re.compile(translate(pattern))
