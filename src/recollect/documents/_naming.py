"""A document's title: what its author called it, not what a program did."""

from __future__ import annotations

import re

from recollect.documents._parsed import Parsed, one_line

_PROGRAM = re.compile(r"^microsoft (?:office )?(?:word|excel|powerpoint)\s*-\s*", re.IGNORECASE)
_EXTENSION = re.compile(
    r"\.(?:pdf|docx?|docm|dotx?|pptx?|xlsx?|odt|ods|odp|rtf|txt|html?|tex|dvi|md|indd|qxd|pages|wpd|ps|tmp)$",
    re.IGNORECASE,
)
_MEANINGLESS = re.compile(
    r"(?:untitled|document|dokument|doc|unbenannt|sans titre|sin título|no title|title|titel|new|presentation|"
    r"powerpoint[ -]?\w*|slide|folie|book|mappe|workbook|sheet|home|index|microsoft word|print|layout)[\s\W\d]*$"
    r"|[\W\d_]*$|[0-9a-f-]{16,}$",
    re.IGNORECASE,
)
_LONGEST = 200
# A line alone at the top of a text with headings: a title whose style the format has lost.
_OPENING = re.compile(r"(?=.{5,100}$)[^\W\d_][^\n|]*\s[^\n|]*[^\W_)]\)?")


def choose_title(parsed: Parsed, stem: str) -> str:
    """The title from the file's metadata where it is sensible, else the first heading, else the file's name.

    Args:
        parsed: The parsed file.
        stem: The file's name without its extension.
    """
    stated = sensible_title(parsed.title)
    if stated is not None:
        return stated
    if parsed.pages:
        return readable(stem)
    opening = parsed.content.lstrip()[:1000].split("\n\n", 1)[0].strip()
    if parsed.headings and _OPENING.fullmatch(opening):
        return opening
    first = next((one_line(heading.title) for heading in parsed.headings), "")
    if first and not _MEANINGLESS.fullmatch(first):
        return first[:_LONGEST]
    return readable(stem)


def sensible_title(stated: str | None) -> str | None:
    """A title without the name of the program that made it; None where it is a file's name or says nothing."""
    title = _PROGRAM.sub("", one_line(stated or ""))
    if not title or len(title) > _LONGEST or _EXTENSION.search(title) or _MEANINGLESS.fullmatch(title):
        return None
    return title


def readable(stem: str) -> str:
    """``leave_policy-2024`` as ``Leave policy 2024``."""
    words = one_line(re.sub(r"[_\-+.]+|%20", " ", stem))
    if not words:
        return one_line(stem) or "Untitled"
    return words[0].upper() + words[1:]
