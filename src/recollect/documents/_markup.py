"""Headings of texts that are read as they are: Markdown, reStructuredText, Org."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace

from recollect.model import Heading

# The only lines that can be or end a heading or a fence; a scan for them is many times as fast as one line by line.
_MARKED_LINE = re.compile(r"^ {0,3}(?:#{1,6}(?:[ \t].*)?|`{3,}.*|~{3,}.*|=+[ \t]*|-{2,}[ \t]*)$", re.MULTILINE)
_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*))?$")
_ATX_CLOSING = re.compile(r"(?:^|[ \t]+)#+[ \t]*$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)$")
_SETEXT = re.compile(r" {0,3}(=+|-{2,})[ \t]*$")
_NO_SETEXT_TEXT = re.compile(r"(?: {4}|\t| {0,3}(?:[-*+>|#]|\d{1,9}[.)]\s|[-=_*]{3,}\s*$))")
_FRONT_MATTER = re.compile(r"---[ \t]*\n(?:.*\n)*?(?:---|\.\.\.)[ \t]*(?:\n|\Z)")
_ATTRIBUTES = re.compile(r"\s*\{\s*[#.:][^{}]*\}\s*$")
# What says nothing to readers: the attributes of a heading or a block, and where links lead that name no address.
_SILENT = re.compile(
    r"^ {0,3}(?P<fence>`{3,}|~{3,}).*\n(?:.*\n)*?(?: {0,3}(?P=fence).*|\Z)"
    r"|^ {0,3}#{1,6}[ \t].*?(?P<attributes>\{[ \t]*[#.:][^{}\n]*\}[ \t]*)$"
    r"|^(?P<line> {0,3}(?:\{:[^{}\n]*\}|\[(?!\^)[^\[\]\n]{1,200}\]:[ \t]*"
    r"(?:<[^<>\n]*>|(?:https?:|ftp:|mailto:|[./#])\S*|\S+\.\w{2,5}(?:[?#]\S*)?)"
    r"(?:[ \t]+(?:\"[^\"\n]*\"|'[^'\n]*'|\([^()\n]*\)))?)[ \t]*(?:\n|\Z))",
    re.MULTILINE,
)
_RST_TARGET = re.compile(r"^(?:\.\. _(?:`[^`\n]+`|[^:\n]+):|__)(?:[ \t]+\S+)?[ \t]*(?:\n|\Z)", re.MULTILINE)
_LINK = re.compile(r"!?\[([^\[\]]*)\](?:\([^()\s]*(?:\s+\"[^\"]*\")?\)|\[[^\[\]]*\])")
_EMPHASIS = re.compile(r"(?<!\\)(\*{1,3}|(?<!\w)_{1,3}|`+)(\S(?:.*?\S)?)(?<!\\)\1(?!\w)")
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
_ORG = re.compile(
    r"(\*+)[ \t]+(?:(?:TODO|DONE|NEXT|WAITING)[ \t]+)?(?:\[#[A-Z0-9]\][ \t]+)?(.*?)(?:[ \t]+:[\w@#%:]+:)?[ \t]*$"
)
_ORG_BLOCK = re.compile(r"[ \t]*#\+(begin|end)_(?:src|example|quote|verse|export|comment)", re.IGNORECASE)
_RST_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1+[ \t]*$")

# Longer "titles" are damage or malice, and would make some of the expressions above slow.
_LONGEST_TITLE = 1000
_LONGEST_MATTER = 65_536

Line = tuple[int, str]


def lines_of(text: str, start: int = 0) -> Iterator[Line]:
    """Each line with the offset of its first character; only a line feed ends a line."""
    while start <= len(text):
        end = text.find("\n", start)
        if end < 0:
            end = len(text)
        yield start, text[start:end]
        start = end + 1


def front_matter(text: str) -> dict[str, object]:
    """What the YAML block at the top of a Markdown text says, keys in lower case.

    Of a block that is no YAML, as people write them (``title: One: two``), the simple ``key: value`` lines count.
    """
    match = _FRONT_MATTER.match(text)
    if match is None:
        return {}
    lines = match.group().splitlines()[1:-1]
    found = _yaml("\n".join(lines))
    if found is None:
        pairs = (line.partition(":") for line in lines if line and not line[0].isspace())
        found = {key: value.strip().strip("\"'") for key, colon, value in pairs if colon}
        listed = front_matter_list(text, "tags")
        found |= {} if listed is None else {"tags": listed}
    return {str(key).strip().lower(): value for key, value in found.items() if value not in (None, "")}


def _yaml(block: str) -> dict[object, object] | None:
    import yaml

    # Of a long block nobody is served by reading it all.
    if len(block) > _LONGEST_MATTER:
        return None
    try:
        found = yaml.safe_load(block)
    except (yaml.YAMLError, ValueError, RecursionError, OverflowError):
        return None
    return found if isinstance(found, dict) else None


def front_matter_list(text: str, key: str) -> list[str] | None:
    """A list in the YAML block at the top of a Markdown text: in brackets, with commas, or a dash a line.

    Returns:
        None where there is no such key. Values are taken as they are written; to YAML ``*`` and ``!`` mean something.
    """
    match = _FRONT_MATTER.match(text)
    if match is None:
        return None
    found: list[str] | None = None
    for line in match.group().splitlines():
        name, colon, value = line.partition(":")
        if found is None:
            if colon and name.strip().lower() == key and not line[0].isspace():
                found = [] if not value.strip() else value.strip().strip("[]").split(",")
                if found:
                    break
        elif line.strip().startswith("- "):
            found.append(line.strip()[2:])
        elif line.strip():
            break
    return None if found is None else [value.strip().strip("\"'") for value in found]


def markdown_headings(text: str) -> list[Heading]:
    """ATX and setext headings (CommonMark), none of them inside fenced code or front matter.

    A setext heading is recognised where its text is a paragraph of one line.
    """
    matter = _FRONT_MATTER.match(text)
    headings: list[Heading] = []
    fence = ""
    # Just behind the last line that was no paragraph text for all its looks: a heading or a fence.
    settled = matter.end() if matter else 0
    for found in _MARKED_LINE.finditer(text, settled):
        start, line = found.start(), found[0]
        opening = _FENCE.match(line)
        if fence:
            if opening and opening[1].startswith(fence) and not opening[2].strip():
                fence, settled = "", found.end() + 1
            continue
        heading = _atx(start, line) or _setext(text, settled, start, line)
        if heading is not None:
            headings.append(heading)
            settled = found.end() + 1
        elif opening and not (opening[1][0] == "`" and "`" in opening[2]):
            fence = opening[1]
    return headings


def without_silent_markdown(text: str) -> str:
    """A Markdown text without attributes of headings and blocks and without definitions of links, none of them code."""
    matter = _FRONT_MATTER.match(text)
    spans = []
    for found in _SILENT.finditer(text, matter.end() if matter else 0):
        spans += [found.span(name) for name in ("attributes", "line") if found[name] is not None]
    return _cut_out(text, spans)[0]


def without_silent_rst(text: str, headings: Sequence[Heading]) -> tuple[str, list[Heading]]:
    """A text in reStructuredText without the lines around its titles and without targets of links; its headings."""
    spans = [found.span() for found in _RST_TARGET.finditer(text)]
    for heading in headings:
        start = heading.start_offset
        lines = text[start : heading.end_offset].split("\n")
        if len(lines) == 3:
            spans.append((start, start + len(lines[0]) + 1))
        spans.append((heading.end_offset - len(lines[-1]) - 1, heading.end_offset))
    return _cut_out(text, sorted(spans), headings)


def _cut_out(
    text: str, spans: Sequence[tuple[int, int]], headings: Sequence[Heading] = ()
) -> tuple[str, list[Heading]]:
    kept: list[str] = []
    moved = [[0, 0]]  # from which offset on, by how much
    done = 0
    for start, end in spans:
        kept.append(text[done:start])
        moved.append([end, moved[-1][1] + end - start])
        done = end
    kept.append(text[done:])
    starts = [start for start, _ in moved]

    def place(offset: int) -> int:
        return offset - moved[bisect_right(starts, offset) - 1][1]

    return "".join(kept), [
        replace(one, start_offset=place(one.start_offset), end_offset=place(one.end_offset)) for one in headings
    ]


def _atx(start: int, line: str) -> Heading | None:
    match = _ATX.match(line)
    title = _plain(_ATX_CLOSING.sub("", (match[2] or "")[:_LONGEST_TITLE])) if match else ""
    return Heading(len(match[1]), title, start, start + len(line)) if match and title else None


def _setext(text: str, settled: int, start: int, line: str) -> Heading | None:
    """The heading that ``line`` underlines, where it does; nothing before ``settled`` is looked at."""
    match = _SETEXT.match(line)
    if match is None or start <= settled:
        return None
    above = max(text.rfind("\n", settled, start - 1) + 1, settled)
    title_line = text[above : start - 1]
    if not title_line.strip() or _NO_SETEXT_TEXT.match(title_line):
        return None
    if above > settled and text[max(text.rfind("\n", settled, above - 1) + 1, settled) : above].strip():
        return None
    title = _plain(title_line)
    return Heading(1 if match[1][0] == "=" else 2, title, above, start + len(line)) if title else None


def _plain(title: str) -> str:
    """A heading's words: links, emphasis, code marks, escapes, tags and attribute blocks taken off."""
    title = _LINK.sub(r"\1", _ATTRIBUTES.sub("", title[:_LONGEST_TITLE]))
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
        match = None if inside or len(line) > _LONGEST_TITLE else _ORG.match(line)
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
