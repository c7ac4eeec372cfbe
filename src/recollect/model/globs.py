"""Paths: patterns over them, and the names of attached files as parts of them."""

from __future__ import annotations

import mimetypes
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


# How what is attached to a message is named: by the part of the message that it is, and by its own name.


_NAME_LETTERS = 120
_UNSAFE = re.compile(r"[\x00-\x1f\x7f/\\]+")
_MESSAGE = "message/rfc822"


def stored_name(text: str) -> str:
    """A part of a path as it can be stored."""
    return _UNSAFE.sub("_", text).encode("utf-8", "replace").decode("utf-8")


def attached_name(name: str | None, mime_type: str) -> str:
    """A name as a part of a path, with the ending that its kind has where it has none.

    Args:
        name: As the sender wrote it; None: it has none.
        mime_type: As the sender declared it.
    """
    plain = stored_name(name or "").strip(" .")[-_NAME_LETTERS:] or "attached"
    if "." not in plain:
        plain += ".eml" if mime_type == _MESSAGE else mimetypes.guess_extension(mime_type) or ""
    return plain
