"""Which lines of a PDF are headings: as its outline says, where it has one, else as they are numbered and set."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from recollect.documents.headings import find_titles
from recollect.documents.pdf._grid import Table
from recollect.documents.pdf._library import OutlineEntry
from recollect.documents.pdf._lines import Line

Block = Line | Table
#: Level and title of each line that is a heading, by the line's ``id``.
Found = dict[int, tuple[int, str]]

#: An outline of fewer entries names the parts of a binding, not the sections of a text.
LEAST_OUTLINE = 8
_PART = re.compile(r"part\s+(?:[ivx]{1,4}|\d)\b(?!.*\bitem\b)", re.IGNORECASE)
_ITEM = re.compile(r"items?\s+\d{1,2}[a-c]?(?:\s*\([a-z]\))?\s*(?:[.:–—-]|\s\s|\s?$)", re.IGNORECASE)
_NOTE = re.compile(r"note\s+\d{1,2}[a-z]?\s*(?:[.:–—-]|\s)", re.IGNORECASE)
_ARTICLE = re.compile(r"(?:article|artikel|artículo|articolo|§)\s+(?:\d{1,3}|[ivxlc]{1,6})\b", re.IGNORECASE)
_PAGE_AT_END = re.compile(r"(?:\s|\.)(?:\d{1,3}|[FS]-\d{1,3}|N/?A)$")
_CONTINUED = re.compile(r"\bcont(?:inued|[’']d|\.)", re.IGNORECASE)
_SMALL_WORD = re.compile(r"[a-z][\w’'-]*")
_LONGEST = 170
_LEAST_ITEMS = 4
_LARGER = 1.08
_DEEPEST = 6
_TABLE_STANDS_HERE = "A table stands here, with its rows and columns and what is in them."


def headings_by_outline(pages: Sequence[Sequence[Block]], entries: Sequence[OutlineEntry], body_size: float) -> Found:
    """The lines that an outline's entries lead to; of several that lead to one place the first counts.

    Args:
        pages: The blocks of each page.
        entries: Of the outline.
        body_size: Of most of the text.
    """
    found: Found = {}
    for entry in entries:
        lines = [block for block in pages[entry.page] if isinstance(block, Line)]
        line, title = _named(lines, entry, found), entry.title
        if line is None:
            line = _at_height(lines, entry.top)
            if line is not None and (line.bold or line.size > _LARGER * body_size) and len(line.text) <= _LONGEST:
                title = line.text  # what the page says counts more than what the outline calls it
        if line is not None and id(line) not in found:
            found[id(line)] = (min(entry.level, _DEEPEST), " ".join(title.split()))
    return found


def headings_by_rule(pages: Sequence[Sequence[Block]], body_size: float) -> Found:
    """The lines that are numbered, set or written as headings are.

    In a document with items (an annual report's) parts are of the first level, items of the second, notes of the
    third, and all others stand below them.
    """
    marked: Found = {}
    others: Found = {}
    for blocks in pages:
        for at, block in enumerate(blocks):
            if isinstance(block, Line) and (level := _numbered_level(block, blocks, at, body_size)):
                marked[id(block)] = (level, _title(block, blocks, at))
        others.update(_titles_of(blocks, body_size))
    items = sum(level == 2 for level, _ in marked.values())
    if items < _LEAST_ITEMS:
        marked = {line: found for line, found in marked.items() if found[0] > 2}
        return {**others, **{line: (min(level, 2), title) for line, (level, title) in marked.items()}}
    deeper = {line: (min(3 + level, _DEEPEST), title) for line, (level, title) in others.items()}
    return {**deeper, **marked}


def body_size_of(pages: Sequence[Sequence[Block]]) -> float:
    """The size of the type that most characters are set in."""
    sizes: Counter[float] = Counter()
    for blocks in pages:
        for block in blocks:
            if isinstance(block, Line):
                sizes[round(block.size, 1)] += len(block.text)
    return sizes.most_common(1)[0][0] if sizes else 0.0


def largest_type(blocks: Sequence[Block], body_size: float) -> str | None:
    """The words of a page's largest type, where it is larger than that of the text: two neighbouring lines at most."""
    lines = [block for block in blocks if isinstance(block, Line) and sum(map(str.isalpha, block.text)) >= 3]
    size = max((line.size for line in lines), default=0.0)
    if not lines or not body_size or size < 1.15 * body_size:
        return None
    first = next(at for at, line in enumerate(lines) if line.size >= size - 0.1)
    largest = [line.text for line in lines[first : first + 3] if line.size >= 0.97 * size]
    title = " ".join(" ".join(largest).split())
    return title if len(title) <= _LONGEST else None


def _key(text: str) -> str:
    return "".join(char for char in text.casefold() if char.isalnum())


def _named(lines: Sequence[Line], entry: OutlineEntry, taken: Mapping[int, object]) -> Line | None:
    key = _key(entry.title)
    keys = [(line, _key(line.text)) for line in lines if id(line) not in taken]
    exact = next((line for line, text in keys if text == key), None)
    if exact is not None or len(key) < 3:
        return exact
    return next((line for line, text in keys if text.endswith(key) and len(text) < len(key) + 8), None)


def _at_height(lines: Sequence[Line], top: float | None) -> Line | None:
    if top is None:
        return lines[0] if lines else None
    below = [line for line in lines if (line.y0 + line.y1) / 2 < top]
    return max(below, key=lambda line: line.y1, default=None)


def _numbered_level(line: Line, blocks: Sequence[Block], at: int, body_size: float) -> int:
    """1 for a part, 2 for an item, 3 for a note or an article; 0: it is none of them."""
    text = line.text
    level = next((level for level, kind in ((1, _PART), (2, _ITEM), (3, _NOTE), (3, _ARTICLE)) if kind.match(text)), 0)
    if not level or len(text) > _LONGEST or _PAGE_AT_END.search(text) or _CONTINUED.search(text):
        return 0
    if text.endswith((",", ";")) or not (line.bold or text.isupper() or line.size > _LARGER * body_size):
        small = _SMALL_WORD.match(text.split()[0])
        return level if level == 2 and not small and _stands_alone(blocks, at, text) else 0
    following = next((block for block in blocks[at + 1 :]), None)
    if level == 2 and isinstance(following, Line) and _ITEM.match(following.text) and _lists(blocks, at):
        return 0
    return level


def _stands_alone(blocks: Sequence[Block], at: int, text: str) -> bool:
    """Whether a line in ordinary type is short and between paragraphs."""
    before, after = (blocks[one] if 0 <= one < len(blocks) else None for one in (at - 1, at + 1))
    line = blocks[at]
    assert isinstance(line, Line)
    ended = not isinstance(before, Line) or before.text.endswith((".", ":", "”")) or before.y0 - line.y1 > line.size
    return ended and len(text) < 90 and not (isinstance(after, Line) and after.text[:1].islower())


def _lists(blocks: Sequence[Block], at: int) -> bool:
    near = blocks[max(0, at - 4) : at + 5]
    return sum(isinstance(one, Line) and _ITEM.match(one.text) is not None for one in near) >= _LEAST_ITEMS


def _title(line: Line, blocks: Sequence[Block], at: int) -> str:
    """The text of a numbered heading, with the line that it goes on in."""
    text = " ".join(line.text.split())
    following = blocks[at + 1] if at + 1 < len(blocks) else None
    if not isinstance(following, Line) or not line.bold or not following.bold or line.region != following.region:
        return text
    near = line.y0 - following.y1 < 0.6 * line.size
    goes_on = near and abs(line.size - following.size) < 0.5 and len(text) > 45
    goes_on = goes_on and _ITEM.match(following.text) is None and len(text) + len(following.text) < _LONGEST
    return f"{text} {following.text}" if goes_on and not text.endswith(".") else text


def _titles_of(blocks: Sequence[Block], body_size: float) -> Found:
    """What the words of the lines and their place say; larger and bold type confirm it."""
    texts: list[str] = []
    lines: list[Line | None] = []
    shown: set[str] = set()
    for block in blocks:
        if isinstance(block, Table):
            texts.append(_TABLE_STANDS_HERE)
            lines.append(None)
            continue
        text = block.text
        texts.append(text)
        lines.append(block)
        if len(block.cells) == 1 and (block.bold or block.size > _LARGER * body_size):
            shown.add(text)
    found: Found = {}
    for at, level, title in find_titles(texts, wrapped=True, shown_as_headings=shown):
        line = lines[at]
        if line is not None and len(line.cells) == 1 and not title.endswith(")") | title.startswith("("):
            found[id(line)] = (level, title)
    return found
