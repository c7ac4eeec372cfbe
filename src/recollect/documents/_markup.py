"""Headings of texts that are read as they are: Markdown, reStructuredText, Org."""

from __future__ import annotations

import re
from collections.abc import Iterator

from recollect.model import Heading

_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*))?$")
_ATX_CLOSING = re.compile(r"(?:^|[ \t]+)#+[ \t]*$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)$")
_SETEXT = re.compile(r" {0,3}(=+|-{2,})[ \t]*$")
_NO_SETEXT_TEXT = re.compile(r"(?: {4}|\t| {0,3}(?:[-*+>|#]|\d{1,9}[.)]\s|[-=_*]{3,}\s*$))")
_FRONT_MATTER = re.compile(r"---[ \t]*\n(?:.*\n)*?(?:---|\.\.\.)[ \t]*(?:\n|\Z)")
_ATTRIBUTES = re.compile(r"\s*\{[#.:][^{}]*\}\s*$")
_LINK = re.compile(r"!?\[([^\[\]]*)\](?:\([^()\s]*(?:\s+\"[^\"]*\")?\)|\[[^\[\]]*\])")
_EMPHASIS = re.compile(r"(?<!\\)(\*{1,3}|(?<!\w)_{1,3}|`+)(\S(?:.*?\S)?)(?<!\\)\1(?!\w)")
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
_ORG = re.compile(
    r"(\*+)[ \t]+(?:(?:TODO|DONE|NEXT|WAITING)[ \t]+)?(?:\[#[A-Z0-9]\][ \t]+)?(.*?)(?:[ \t]+:[\w@#%:]+:)?[ \t]*$"
)
_ORG_BLOCK = re.compile(r"[ \t]*#\+(begin|end)_(?:src|example|quote|verse|export|comment)", re.IGNORECASE)
_RST_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1+[ \t]*$")

Line = tuple[int, str]


def lines_of(text: str, start: int = 0) -> Iterator[Line]:
    """Each line with the offset of its first character; only a line feed ends a line."""
    while start <= len(text):
        end = text.find("\n", start)
        if end < 0:
            end = len(text)
        yield start, text[start:end]
        start = end + 1


def front_matter(text: str) -> dict[str, str]:
    """The simple ``key: value`` lines of a YAML block at the top of a Markdown text, keys in lower case."""
    match = _FRONT_MATTER.match(text)
    if match is None:
        return {}
    pairs = (line.partition(":") for line in match.group().splitlines() if line and not line[0].isspace())
    found = {key.strip().lower(): value.strip().strip("\"'") for key, colon, value in pairs if colon}
    return {key: value for key, value in found.items() if value}


def markdown_headings(text: str) -> list[Heading]:
    """ATX and setext headings (CommonMark), none of them inside fenced code or front matter.

    A setext heading is recognised where its text is a paragraph of one line.
    """
    matter = _FRONT_MATTER.match(text)
    headings: list[Heading] = []
    fence = ""
    before: Line = (0, "")
    paragraph_lines = 0
    for start, line in lines_of(text, matter.end() if matter else 0):
        if fence:
            match = _FENCE.match(line)
            if match and match[1].startswith(fence) and not match[2].strip():
                fence = ""
            continue
        heading = _atx(start, line) or (_setext(before, start, line) if paragraph_lines == 1 else None)
        fence_match = _FENCE.match(line)
        if heading is not None:
            headings.append(heading)
        elif fence_match and not (fence_match[1][0] == "`" and "`" in fence_match[2]):
            fence = fence_match[1]
        plain = heading is None and not fence and bool(line.strip())
        paragraph_lines = paragraph_lines + 1 if plain else 0
        before = (start, line)
    return headings


def _atx(start: int, line: str) -> Heading | None:
    match = _ATX.match(line)
    title = _plain(_ATX_CLOSING.sub("", match[2] or "")) if match else ""
    return Heading(len(match[1]), title, start, start + len(line)) if match and title else None


def _setext(before: Line, start: int, line: str) -> Heading | None:
    match = _SETEXT.match(line)
    if match is None or _NO_SETEXT_TEXT.match(before[1]):
        return None
    title = _plain(before[1])
    return Heading(1 if match[1][0] == "=" else 2, title, before[0], start + len(line)) if title else None


def _plain(title: str) -> str:
    """A heading's words: links, emphasis, code marks, escapes, tags and attribute blocks taken off."""
    title = _LINK.sub(r"\1", _ATTRIBUTES.sub("", title[:1000]))
    title = _EMPHASIS.sub(r"\2", _EMPHASIS.sub(r"\2", title))
    return _ESCAPE.sub(r"\1", _TAG.sub("", title)).strip()


def org_headings(text: str) -> list[Heading]:
    """Lines that begin with stars; keywords, priorities and tags are not part of the title."""
    headings: list[Heading] = []
    inside = False
    for start, line in lines_of(text):
        block = _ORG_BLOCK.match(line)
        if block:
            inside = block[1].lower() == "begin"
        match = None if inside else _ORG.match(line)
        if match and match[2].strip():
            headings.append(Heading(len(match[1]), match[2].strip(), start, start + len(line)))
    return headings


def org_keywords(text: str) -> dict[str, str]:
    """The ``#+KEY: value`` lines at the top, keys in lower case."""
    found = re.findall(r"^#\+(\w+):[ \t]*(.+)$", text[:4096], re.MULTILINE)
    return {key.lower(): value.strip() for key, value in found}


def rst_headings(text: str) -> list[Heading]:
    """Titles underlined, or over- and underlined, with punctuation.

    As in docutils, levels follow the order in which the styles of adornment first appear.
    """
    lines = list(lines_of(text))
    styles: list[str] = []
    headings: list[Heading] = []
    for index in range(1, len(lines)):
        start, title = lines[index - 1]
        end, under = lines[index]
        if not _is_rst_title(title, under, lines[index - 2][1] if index > 1 else ""):
            continue
        style = under[0]
        if index > 1 and lines[index - 2][1].rstrip() == under.rstrip():
            start = lines[index - 2][0]
            style += under[0]
        if style not in styles:
            styles.append(style)
        headings.append(Heading(styles.index(style) + 1, title.strip(), start, end + len(under)))
    return headings


def _is_rst_title(title: str, under: str, over: str) -> bool:
    if not _RST_ADORNMENT.match(under) or not title.strip() or _RST_ADORNMENT.match(title):
        return False
    overlined = over.rstrip() == under.rstrip()
    if (over.strip() and not overlined) or (title[0].isspace() and not overlined):
        return False
    return len(under.rstrip()) >= min(len(title.rstrip()), 4)
