"""Lines and tables written as one text, its headings found, with what is known of its places."""

from __future__ import annotations

import ctypes
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from recollect.documents.headings import find_titles
from recollect.documents.ocr.readings import Box, PageReading
from recollect.documents.pdf._grid import Table
from recollect.documents.pdf._library import OutlineEntry
from recollect.documents.pdf._lines import Line
from recollect.documents.pdf._words import HYPHEN, UNSPACED, Hyphens, Turn, beside_ideograph
from recollect.model import Heading, LineBox, PageSpan

# Where something stands on a page as it is shown: cropped, turned and from its upper left corner.

#: Where lines stand together, as shares of their page's width and height.
Places = Callable[[Iterable[Line]], Box]

# pdfium tells places on a screen in whole dots: on one of so many, errors are far smaller than a line.
_DOTS, _PROBE = 1_000_000, 1_000.0


def places_of_page(page: Any) -> Places | None:  # noqa: ANN401 - a handle of pdfium
    """Tells places on a page; None: it has no size."""
    corner, across, up = (_shown(page, *point) for point in ((0.0, 0.0), (_PROBE, 0.0), (0.0, _PROBE)))
    if corner is None or across is None or up is None:
        return None
    xs = (across[0] - corner[0]) / _PROBE, (up[0] - corner[0]) / _PROBE
    ys = (across[1] - corner[1]) / _PROBE, (up[1] - corner[1]) / _PROBE
    if not (any(xs) and any(ys)):
        return None

    def place(lines: Iterable[Line]) -> Box:
        x0, y0, x1, y1 = _around(lines)
        # Pages are turned by quarters: opposite corners stay opposite.
        left, right = corner[0] + x0 * xs[0] + y0 * xs[1], corner[0] + x1 * xs[0] + y1 * xs[1]
        top, bottom = corner[1] + x0 * ys[0] + y0 * ys[1], corner[1] + x1 * ys[0] + y1 * ys[1]
        if left > right:
            left, right = right, left
        if top > bottom:
            top, bottom = bottom, top
        return _inside(left), _inside(top), _inside(right), _inside(bottom)

    return place


def places_of_reading(reading: PageReading) -> Places:
    """Tells places on a page that was recognised."""

    def place(lines: Iterable[Line]) -> Box:
        x0, y0, x1, y1 = _around(lines)
        return reading.box(x0, reading.height - y1, x1, reading.height - y0)

    return place


def _around(lines: Iterable[Line]) -> Box:
    """The box around lines on the page before it is turned; heights grow upwards."""
    boxes = [
        (cell.x0, cell.y0, cell.x1, cell.y1) if not line.turn else _level(line.turn, cell.x0, cell.y0, cell.x1, cell.y1)
        for line in lines
        for cell in line.cells
    ]
    if len(boxes) == 1:
        return boxes[0]
    x0s, y0s, x1s, y1s = zip(*boxes, strict=True)
    return min(x0s), min(y0s), max(x1s), max(y1s)


def _level(turn: Turn, x0: float, y0: float, x1: float, y1: float) -> Box:
    """A box of text that was turned to run to the right, where it is on the page."""
    match turn:
        case 90:
            return -y1, x0, -y0, x1
        case 180:
            return -x1, -y1, -x0, -y0
        case 270:
            return y0, -x1, y1, -x0
        case _:
            return x0, y0, x1, y1


def _shown(page: Any, x: float, y: float) -> tuple[float, float] | None:  # noqa: ANN401
    import pypdfium2.raw as pdfium

    across, down = ctypes.c_int(), ctypes.c_int()
    if not pdfium.FPDF_PageToDevice(page, 0, 0, _DOTS, _DOTS, 0, x, y, across, down):
        return None
    return across.value / _DOTS, down.value / _DOTS


def _inside(share: float) -> float:
    return min(max(share, 0.0), 1.0)


_ENTRY = re.compile(r"(?:[-–•*·▪◦‣●○■□✓]|\(?\d{1,3}[.)]|\(?[a-z][.)])\s")
_SENTENCE_END = (".", "!", "?", ":", "。", "！", "？", "؟", "।")
_FAR, _FAR_UNSPACED = 0.85, 1.4
_SHORT = 30


class Writer:
    """Joins pages to one text.

    Args:
        headings: Which lines are headings.
        hyphens: Decides about words that were split.
        places: Tells where lines stand, by page.
    """

    def __init__(self, headings: Found, hyphens: Hyphens, places: Mapping[int, Places]) -> None:
        self._found = headings
        self._hyphens = hyphens
        self._places = places
        self._boxes: list[LineBox] = []
        self.parts: list[str] = []
        self.pages: list[PageSpan] = []
        self.headings: list[Heading] = []
        self._length = 0
        self._page = 0
        self._page_start = 0

    def result(self) -> str:
        """The text, once all pages were added."""
        self._end_page()
        return "".join(self.parts)

    def page(self, number: int, blocks: Sequence[Block], notes: Sequence[str] = ()) -> None:
        """Adds a page; one without text adds nothing."""
        if not blocks and not notes:
            return
        self._begin_page(number)
        found = take_footnotes(blocks, self._found)
        pending: list[list[Line]] = []
        full = _full_widths(blocks)
        for at, block in enumerate(found.body):
            before = found.body[at - 1] if at else None
            if isinstance(block, Table):
                self._footnotes(pending, full)
                self._separate("\n\n" if before is not None else "")
                self._table(block)
                continue
            joint = "" if before is None else self._joint(before, block, full)
            if pending and joint == "\n\n":
                self._footnotes(pending, full)
            self._following(before, block, joint)
            pending += found.behind.get(id(block), ())
        self._footnotes(pending, full)
        for at, note in enumerate(notes):
            self._separate("\n" if at else "\n\n" if blocks else "")
            self._add(note)

    def _following(self, before: Block | None, line: Line, joint: str) -> None:
        """Writes a line behind another; a word that was split between them becomes one."""
        if joint == " " and isinstance(before, Line):
            mended = self._hyphens.joined(self.parts[-1], line.text)
            if mended is not None:
                self._replace_last(mended)
                joint = ""
            elif _unspaced(before, line):
                joint = ""
        self._separate(joint)
        self._line(line)

    def _footnotes(self, pending: list[list[Line]], full: dict[int, float]) -> None:
        """Writes the notes that a paragraph refers to behind it, and forgets them."""
        for note in pending:
            self._separate("\n\n")
            self._line(note[0])
            for before, line in pairwise(note):
                self._following(before, line, self._joint(before, line, full))
        pending.clear()

    def _begin_page(self, number: int, joint: str = "\n\n") -> None:
        if self._page == number:  # a table of the page before has gone on here
            self._separate(joint)
            return
        if self.parts:
            self._end_page()
            self._separate(joint)
        self._page, self._page_start = number, self._length

    def _end_page(self) -> None:
        self._settle_hyphen()
        if self._page:
            self.pages.append(PageSpan(self._page, self._page_start, self._length, tuple(self._boxes)))
            self._page = 0
            self._boxes.clear()

    def _line(self, line: Line) -> None:
        text = _plain(line.text)
        found = self._found.get(id(line))
        if found is not None:
            level, title = found
            self.headings.append(Heading(level, _plain(title, whole=True), self._length, self._length + len(text)))
        self._note([line], text)
        self._add(text)

    def _note(self, lines: Sequence[Line], text: str) -> None:
        """Notes where a text stands that is written next."""
        place = self._places.get(self._page)
        if place is None or not lines:
            return
        box = place(lines)
        if self._boxes and self._boxes[-1].end_offset > self._length:
            # Its hyphen has gone from the end of the line before.
            self._boxes[-1] = replace(self._boxes[-1], end_offset=self._length)
        self._boxes.append(LineBox(self._length, self._length + len(text), *box))

    def _table(self, table: Table) -> None:
        head = [_cell(table.corner), *map(_cell, table.labels)]
        named = f"| {' | '.join(head)} |"
        self._note([line for line in table.lines[: table.header_lines] if line.page == self._page], named)
        self._add(f"{named}\n|{'---|' * len(head)}")
        for row in table.rows:
            if row.lines[0].page != self._page:
                self._begin_page(row.lines[0].page, "\n")
            else:
                self._add("\n")
            text = f"| {' | '.join([_cell(row.label), *map(_cell, row.values)])} |"
            self._note(row.lines, text)
            self._add(text)

    def _joint(self, before: Block, line: Line, full: dict[int, float]) -> str:
        """What stands before a line: a space inside a paragraph, a blank line behind one, a line end elsewhere."""
        if isinstance(before, Table) or id(before) in self._found or id(line) in self._found:
            return "\n\n"
        ended = before.text.endswith(_SENTENCE_END)
        if before.region != line.region:
            return " " if not ended and line.text[:1].islower() else "\n\n"
        if len(before.cells) > 1 or len(line.cells) > 1 or _ENTRY.match(line.text):
            return "\n"
        far = _FAR_UNSPACED if not ended and _unspaced(before, line) else _FAR
        if before.y0 - line.y1 > far * min(before.size, line.size) or abs(before.size - line.size) > 0.3 * line.size:
            return "\n\n"
        width = full[before.region]
        wide = before.x1 - before.x0 >= 0.75 * width and len(before.text) > _SHORT // 2
        if wide and not (ended and before.x1 - before.x0 < 0.9 * width):
            return " "
        if before.text.endswith(HYPHEN):
            return " "
        return "\n\n" if ended and len(before.text) > 1 and width > 0 and full[-1] > _SHORT else "\n"

    def _separate(self, joint: str) -> None:
        if joint:
            self._settle_hyphen()
            self._add(joint)

    def _settle_hyphen(self) -> None:
        if self.parts and self.parts[-1].endswith(HYPHEN):
            self._replace_last(self.parts[-1][:-1] + "-")

    def _replace_last(self, text: str) -> None:
        self._length += len(text) - len(self.parts[-1])
        self.parts[-1] = text

    def _add(self, text: str) -> None:
        self.parts.append(text)
        self._length += len(text)


def _unspaced(before: Line, line: Line) -> bool:
    """Whether nothing stands between the end of a line and the next one, because their script has no spaces."""
    end, start = before.text[-1:], line.text[:1]
    if not end or not start:
        return False
    return bool(UNSPACED.match(end) and UNSPACED.match(start)) or beside_ideograph(end, start)


def _plain(text: str, *, whole: bool = False) -> str:
    """A line's text with the mark of a split word at its end alone; ``whole``: not even there."""
    if HYPHEN not in text:
        return text
    end = "" if whole or not text.endswith(HYPHEN) else HYPHEN
    return text.removesuffix(HYPHEN).replace(HYPHEN, "-") + (end or ("-" if text.endswith(HYPHEN) else ""))


def _cell(text: str) -> str:
    return " ".join(_plain(text, whole=True).replace("|", "/").split())


def _full_widths(blocks: Sequence[Block]) -> dict[int, float]:
    """How wide a full line is, by region; and, as -1, how many characters it has."""
    widths: dict[int, list[float]] = {}
    lengths: list[float] = []
    for block in blocks:
        if isinstance(block, Line):
            widths.setdefault(block.region, []).append(block.x1 - block.x0)
            lengths.append(len(block.text))
    full = {region: sorted(found)[len(found) * 3 // 4] for region, found in widths.items()}
    full[-1] = sorted(lengths)[len(lengths) * 3 // 4] if lengths else 0
    return full


# Footnotes: smaller lines at the foot of a page or column that begin with a mark, and the lines that refer to them.
#
# A mark is raised, so that nothing is between it and what it belongs to: `policy1` in the text, `1See chapter 2.` at
# the foot.

_MARK = re.compile(r"(\d{1,3}|[*†‡§]{1,3})(\s{0,2})(?=[^\W\d_]|[„“\"'(«»‘])")
_SMALLER = 0.95
_SAME = 1.08
_MOST_LINES = 40


@dataclass(slots=True)
class Footnotes:
    """The footnotes of a page.

    Attributes:
        body: Everything else.
        behind: The notes that a line refers to, each with its lines, by the line's ``id``.
    """

    body: Sequence[Block]
    behind: Mapping[int, list[list[Line]]] = field(default_factory=dict)


def take_footnotes(blocks: Sequence[Block], known: Mapping[int, object]) -> Footnotes:
    """Takes the notes out of a page that one of its lines refers to; all others stay where they are.

    Args:
        blocks: Of the page, in reading order.
        known: Lines that are headings, by ``id``: they begin no note.
    """
    behind: dict[int, list[list[Line]]] = {}
    taken: set[int] = set()
    for start, end in _feet(blocks):
        lines = [block for block in blocks[start:end] if isinstance(block, Line)]
        for mark, note in _notes(lines, known):
            line = _reference(mark, note[0], blocks[:start])
            if line is not None:
                behind.setdefault(id(line), []).append(note)
                taken.update(id(one) for one in note)
    if not taken:
        return Footnotes(blocks)
    return Footnotes([block for block in blocks if id(block) not in taken], behind)


def _feet(blocks: Sequence[Block]) -> Iterator[tuple[int, int]]:
    """Where the last lines of each column begin and end that are set as its last one."""
    for end in range(1, len(blocks) + 1):
        last = blocks[end - 1]
        following = blocks[end] if end < len(blocks) else None
        if not isinstance(last, Line) or (isinstance(following, Line) and following.region == last.region):
            continue
        start = end - 1
        while start > 0 and end - start < _MOST_LINES:
            above = blocks[start - 1]
            if not isinstance(above, Line) or above.region != last.region or not _is_set_as(above, last):
                break
            start -= 1
        yield start, end


def _is_set_as(line: Line, other: Line) -> bool:
    return line.size < _SAME * other.size and other.size < _SAME * line.size


def _notes(lines: Sequence[Line], known: Mapping[int, object]) -> list[tuple[re.Match[str], list[Line]]]:
    """The notes among lines, each from the line of its mark to the next mark."""
    found: list[tuple[re.Match[str], list[Line]]] = []
    for line in lines:
        mark = None if id(line) in known or len(line.cells) > 2 else _MARK.match(line.text)
        if mark is not None and (not found or _follows(mark[1], found[-1][0][1])):
            found.append((mark, [line]))
        elif found:
            found[-1][1].append(line)
    return found


def _follows(mark: str, before: str) -> bool:
    if mark.isdecimal() and before.isdecimal():
        return int(mark) == int(before) + 1
    return not mark.isdecimal() and mark != before


def _reference(mark: re.Match[str], note: Line, above: Sequence[Block]) -> Line | None:
    """The line that refers to a note: the last word before its mark is set larger than the note."""
    sign = re.escape(mark[1])
    refers = re.compile(rf"[^\W\d_]{{2}}[.,;:!?)”“’\"»]{{0,2}}{sign}(?![\w%*†‡§])")
    for block in above:
        if isinstance(block, Table) or note.size > _SMALLER * block.size:
            continue
        if refers.search(block.text):
            return block
    return None


# Which lines of a PDF are headings: as its outline says, where it has one, else as they are numbered and set.


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
