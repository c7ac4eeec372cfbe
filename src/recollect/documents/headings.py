"""Headings of texts: as markup writes them, as lines without markup look, and all of them in a text without a file."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from recollect.model import Heading

# Headings of texts that are read as they are: Markdown, reStructuredText, Org.


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


# Headings of texts without markup: ALL-CAPS, Title-Case and numbered lines.
#
# A line is a heading only if its words look like one *and* it stands like one. The words: few, no full stop at the
# end, no table, address, date or dot leaders, written in capitals or as a title, or numbered in the manner of ``3.2``.
# The place: what stands before it has ended, body text or a deeper heading follows, and it is no entry of a list.
# Scripts without case give headings only where they are numbered in the manner of ``3.2``.


_MAX_LENGTH = 90
_MAX_WORDS = 12
_NUMBER = re.compile(
    r"(?:(?P<word>section|chapter|part|article|appendix|annex|schedule|kapitel|abschnitt|teil|artikel|anhang|chapitre|"
    r"partie|annexe|capítulo|sección|parte|capitolo|sezione|hoofdstuk|bijlage)\s+)?"
    r"(?P<number>\d{1,3}(?:\.\d{1,3}){0,5}|[IVXLC]{1,7}|[A-Z])(?P<mark>[.):]|\s*[–—-](?=\s))?(?=\s|$)\s*",
    re.IGNORECASE,
)
# Articles, prepositions and conjunctions that titles leave small: English, German, French, Spanish, Italian,
# Portuguese, Dutch.
_SMALL_WORDS = """
a an and as at but by for from in into nor of off on onto or over per the to under upon via vs with without
am auf aus bei beim das dem den der des die ein eine für im mit nach oder ohne über um und unter vom von vor zu zum zur
au aux avec ce dans de du en et la le les ou par pour sur un une
al con del e el las los o para por sin su una y
da dei della delle di do dos em gli il lo na no nel een het met op te van voor
"""
_SMALL = frozenset(_SMALL_WORDS.split())
_TABULAR = re.compile(r"\t|\s{3,}|\.{3,}|(?:\. ){3,}|…|[|=<>{}@\\©]|https?:|www\.")
_BULLET = re.compile(r"[-–—*•·▪◦‣●○■□➢✓>#\"“„'‘(\[]")
_CLOSING = re.compile(
    r"(?:(?:best|kind|warm|with kind|yours|many)\s+)?(?:regards|wishes|sincerely|faithfully|truly|thanks|cheers|love)"
    r"\W*$|(?:mit\s+)?(?:freundlichen|besten|viele|liebe)\s+grüße?n?\W*$|cordialement\W*$|signed\W*$|thank you\W*$",
    re.IGNORECASE,
)
_MONTHS = (
    r"jan(?:uary|uar)?|feb(?:ruary|ruar)?|mar(?:ch)?|märz|apr(?:il)?|ma[iy]|june?|juni|july?|juli|aug(?:ust)?|"
    r"sept?(?:ember)?|o[ck]t(?:ober)?|nov(?:ember)?|de[cz](?:ember)?|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day|mon|tue|wed|thu|fri|sat|sun"
)
_DATE = re.compile(rf"(?:(?:(?:{_MONTHS})\b|\d{{1,4}}(?:st|nd|rd|th|er)?\b)[\s.,/:-]*)+(?:am|pm|uhr)?$", re.IGNORECASE)
_FIELD = re.compile(r"[^:]{1,40}:\s+\S")
_IDENTIFIER = re.compile(r"(?=\S*\d)[\w./-]+$")
_NUMBER_END = re.compile(r"\s\d{1,5}$")
_THREE_LETTERS = re.compile(r"[^\W\d_]{3}")
_FOUR_LETTERS = re.compile(r"[^\W\d_]{4}")
# "Edition 2, Leeds", "New York, NY 10017".
_PLACE = re.compile(r"\d.*,|,.*\d")
_PLAIN_WORDS = re.compile(r"(?![a-z][.)])[\w\s,:&/()’'?–-]+")
_SECOND_NUMBER = re.compile(r"\d+\.\d")
_ENDINGS = (".", "!", "?", ":", ";", "。", "！", "？", "؟", "।", "…", "”", '"')


@dataclass(frozen=True, slots=True)
class _Candidate:
    level: int
    numbered: tuple[str, ...]
    capitals: bool
    title: str
    sentence: bool = False


def title_headings(text: str) -> list[Heading]:
    """The headings of a plain text whose paragraphs are separated by blank lines, or are one long line each."""
    placed = list(lines_of(text))
    lines = [line for _, line in placed]
    found = find_titles(lines)
    return [Heading(level, title, placed[at][0], placed[at][0] + len(lines[at])) for at, level, title in found]


def find_titles(
    lines: Sequence[str], *, wrapped: bool = False, shown_as_headings: Collection[str] = ()
) -> list[tuple[int, int, str]]:
    """Which lines are headings: index, level and title of each, in order.

    Args:
        lines: The text's lines, blank ones included.
        wrapped: Whether blank lines are missing, as in text from PDF pages, so that the length of lines must tell
            where a paragraph ends.
        shown_as_headings: Lines that are set in larger type, where type is known. They need not stand alone, and
            where any are given, a line that is neither among them nor in capitals nor numbered is no heading.
    """
    candidates = {
        at: found
        for at, line in enumerate(lines)
        if (found := _candidate(line, large=line.strip() in shown_as_headings)) is not None
    }
    repeated = Counter(found.title for found in candidates.values())
    full = _full_length(lines) if wrapped else 0
    return [
        (at, found.level, found.title)
        for at, found in candidates.items()
        if repeated[found.title] <= max(3, len(lines) // 100)
        and not _in_list(lines, at, candidates)
        and _placed_as_heading(lines, at, candidates, full, shown_as_headings)
    ]


def _candidate(line: str, *, large: bool) -> _Candidate | None:
    """What the words of a line alone say; in larger type, words in sentence case are enough."""
    stripped = line.strip()
    if not 2 <= len(stripped) <= _MAX_LENGTH or _BULLET.match(stripped) or _TABULAR.search(stripped):
        return None
    if stripped.endswith((".", ",", ";", "!", "…", "。", "-", "–", "—")) or _DATE.match(stripped):
        return None
    number = _numbering(stripped)
    rest = stripped[number.end() :] if number else stripped
    rest = rest.rstrip(":").strip()
    words = rest.split()
    if number and number["word"] and not words:
        return _Candidate(1, (), stripped.isupper(), stripped.rstrip(":"))
    if number and not number["mark"] and _SECOND_NUMBER.match(rest):
        return None
    if not words or len(words) > _MAX_WORDS or _FIELD.match(rest) or (not number and _NUMBER_END.search(rest)):
        return None
    return _judge(stripped, words, number, large=large)


def _numbering(stripped: str) -> re.Match[str] | None:
    match = _NUMBER.match(stripped)
    if match is None or match["word"] or match["mark"]:
        return match
    if match["number"][0].isdigit():
        # Three digits and no dot begin an address or an amount.
        return match if len(match["number"]) < 3 or "." in match["number"] else None
    # "A New Office" and "I Am Legend" begin with a word, not with a number.
    return None


def _judge(stripped: str, words: Sequence[str], number: re.Match[str] | None, *, large: bool) -> _Candidate | None:
    rest = " ".join(words)
    letters = [char for char in rest if char.isalpha()]
    cased = [char for char in letters if char.isupper() or char.islower()]
    parts = tuple(number["number"].split(".")) if number and number["number"][0].isdigit() else ()
    depth = 1 if number and number["word"] and len(parts) <= 1 else len(parts)
    title = stripped.rstrip(":").rstrip()
    if len(letters) < 0.6 * len(rest.replace(" ", "")) or not letters:
        return None
    uncased = len(cased) < 0.8 * len(letters)
    if len(parts) >= 2 and len(words) <= 10 and (uncased or rest[0].isupper()):
        return _Candidate(depth, parts, False, title)
    if uncased:
        return None
    if all(char.isupper() for char in cased) and len(cased) >= 4:
        alone = len(words) == 1 and _IDENTIFIER.match(rest)
        return None if alone else _Candidate(depth or 1, parts, True, title)
    long_word = _FOUR_LETTERS if not parts else _THREE_LETTERS
    if not long_word.search(rest) or (not number and _PLACE.search(rest)):
        return None
    if _is_title_case(words):
        return _Candidate(depth or 2, parts, False, title)
    if large and rest[0].isupper() and _PLAIN_WORDS.fullmatch(stripped):
        return _Candidate(depth or 2, parts, False, title, sentence=not parts)
    return None


def _is_title_case(words: Sequence[str]) -> bool:
    capitalised = 0
    for word in words:
        bare = word.strip("\"'“”‘’()[],:;&/–—-+")
        if not bare:
            continue
        if bare[0].isupper():
            capitalised += 1
        elif bare[0].isalpha() and bare.lower() not in _SMALL:
            return False
    first = words[0].strip("\"'“”‘’(")
    return bool(first) and first[0].isupper() and 2 * capitalised >= len(words) and len("".join(words)) >= 3


def _full_length(lines: Sequence[str]) -> int:
    lengths = sorted(len(line.strip()) for line in lines if len(line.strip()) > 20)
    return lengths[(len(lengths) * 3) // 4] if lengths else 0


def _in_list(lines: Sequence[str], at: int, candidates: dict[int, _Candidate]) -> bool:
    """Whether a line numbered ``1`` stands directly beside a line numbered ``2``, or a content list's entry does."""
    numbered = candidates[at].numbered
    if not numbered:
        return False
    for other in (at - 1, at + 1):
        alike = other in candidates and candidates[other].capitals
        if 0 <= other < len(lines) and (alike or not candidates[at].capitals):
            match = _NUMBER.match(lines[other].strip())
            parts = match["number"].split(".") if match and not match["word"] else []
            if len(parts) == len(numbered) and parts[-1].isdigit():
                return True
    return False


def _placed_as_heading(
    lines: Sequence[str], at: int, candidates: dict[int, _Candidate], full: int, shown: Collection[str]
) -> bool:
    found = candidates[at]
    if lines[at].strip() not in shown:
        # A word in capitals may be a cell of a table, and a numbered line that ends in a number a table of contents.
        lone = found.capitals and not found.numbered and " " not in found.title
        marked = (found.capitals and not lone) or bool(found.numbered)
        if full and found.numbered and _NUMBER_END.search(found.title):
            return False
        return (marked or not shown) and _stands_alone(lines, at, found, candidates, full)
    after = _neighbour(lines, at, 1)
    if after is None or found.capitals or found.numbered:
        return True
    # The header of a table is often bold or large too, but short rows follow it and no paragraph.
    before = _neighbour(lines, at, -1)
    if found.sentence and before is not None and before not in candidates and not lines[before].endswith(_ENDINGS):
        return False
    if " " not in found.title:
        return True
    following = lines[after].strip()
    deeper = candidates.get(after)
    if following in shown or (deeper is not None and (deeper.capitals or deeper.numbered)):
        return True
    return _opens_paragraph(following, full)


def _opens_paragraph(line: str, full: int) -> bool:
    return len(line) >= 0.75 * full or line.endswith(_ENDINGS) or bool(_BULLET.match(line) or _NUMBER.match(line))


def _stands_alone(
    lines: Sequence[str], at: int, found: _Candidate, candidates: dict[int, _Candidate], full: int
) -> bool:
    before, after = _neighbour(lines, at, -1), _neighbour(lines, at, 1)
    if after is None or (before is not None and _CLOSING.match(lines[before].strip())):
        return False
    touching_before = before is not None and before == at - 1
    touching_after = after == at + 1
    if touching_before and before not in candidates and not _ended(lines[before or 0], full):
        return False
    if full and len(lines[at].strip()) > 0.9 * full and not (found.capitals or found.numbered):
        return False
    if not (found.capitals or found.numbered) and touching_before and not full:
        return False
    return _body_follows(lines[after], found, candidates.get(after), touching=touching_after, full=full)


def _neighbour(lines: Sequence[str], at: int, step: int) -> int | None:
    at += step
    while 0 <= at < len(lines):
        if lines[at].strip():
            return at
        at += step
    return None


def _ended(line: str, full: int) -> bool:
    line = line.strip()
    return line.endswith(_ENDINGS) or (full > 0 and len(line) < 0.6 * full) or (full == 0 and len(line) < 40)


def _body_follows(line: str, found: _Candidate, after: _Candidate | None, *, touching: bool, full: int) -> bool:
    """Whether the next line that is not blank is text that a heading can stand above."""
    line = line.strip()
    if after is not None:
        # Two lines of title case in one block are an address, a signature or a table; a heading above a deeper or
        # numbered one is a heading.
        return found.capitals or bool(found.numbered) or bool(after.numbered) or after.capitals or not touching
    if _BULLET.match(line) or _NUMBER.match(line):
        return True
    long_enough = len(line) >= (40 if touching and not (found.capitals or found.numbered) else 12)
    return long_enough or line.endswith(_ENDINGS) or (full > 0 and len(line) >= 0.6 * full)


def headings_of_text(content: str, *, mime_type: str) -> tuple[Heading, ...]:
    """Headings of Markdown, in plain text as well; what only looks like a title is one in Markdown alone.

    Args:
        content: The text.
        mime_type: Of other types than plain text and Markdown there are none.
    """
    if mime_type not in {"text/plain", "text/markdown"}:
        return ()
    found = markdown_headings(content)
    return tuple(found or (title_headings(content) if mime_type == "text/markdown" else ()))
