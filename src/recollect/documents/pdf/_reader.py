"""A PDF's bytes to its text and structure: each step in a module of its own, put together here."""

from __future__ import annotations

import ctypes
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from recollect.documents._parsed import Fact, Parsed, filing_title, parse_time, sensible_title
from recollect.documents._text import clean
from recollect.documents.formats import UnreadableError
from recollect.documents.ocr.readings import PageReading, Readings
from recollect.documents.pdf import _library
from recollect.documents.pdf._grid import Table, in_mirror, rules_in_mirror, runs_leftwards, turn_back, understand
from recollect.documents.pdf._library import is_picture
from recollect.documents.pdf._lines import Line, in_reading_order, segments_of_reading
from recollect.documents.pdf._ruled import MARK, Edge, goes_on, rows_that_follow, take_tables
from recollect.documents.pdf._tables import table_spans
from recollect.documents.pdf._words import Hyphens, Segment, Turn, mend_spaces, says_nothing, segments_of
from recollect.documents.pdf._writer import (
    LEAST_OUTLINE,
    Block,
    Places,
    Writer,
    body_size_of,
    headings_by_outline,
    headings_by_rule,
    largest_type,
    places_of_page,
    places_of_reading,
)

if TYPE_CHECKING:
    from datetime import datetime

    import pypdfium2


#: What is said where nothing was found, by looking for text and, where pages are pictures, by recognising it.
NO_TEXT = "has no text in it"
_SAME_PLACE = 8.0

# One after the other.
_MOST_DAMAGED = 1_000
_Turned = list[tuple[Turn, list[Segment]]]
_NOTHING_READ: Readings = {}


@dataclass(slots=True)
class _Pages:
    """What stands on the pages of a file, by page from 1.

    Attributes:
        turned: The segments of each page, by the direction that they run in.
        edges: The lines that are drawn.
        notes: What forms and readers say.
        unread: Pages that are pictures and were not recognised.
        damaged: Pages that cannot be opened.
        places: Tells where lines stand, of pages that were read or recognised.
    """

    turned: list[_Turned] = field(default_factory=list)
    edges: dict[int, list[Edge]] = field(default_factory=dict)
    notes: dict[int, list[str]] = field(default_factory=dict)
    unread: list[int] = field(default_factory=list)
    damaged: list[int] = field(default_factory=list)
    places: dict[int, Places] = field(default_factory=dict)


def parse_pdf(data: bytes, readings: Readings = _NOTHING_READ) -> Parsed:
    """A PDF's pages, joined by blank lines, with exact page spans.

    Args:
        data: The whole file.
        readings: What was recognised on pages that are pictures.

    Raises:
        UnreadableError: It is protected, damaged, or has no text, and no page that is a picture.
    """
    with _library.opened(data) as document:
        pages = _Pages()
        for number in range(1, len(document) + 1):
            pages.turned.append(_segments(document, number, pages, readings.get(number)))
            if pages.damaged[-_MOST_DAMAGED : -_MOST_DAMAGED + 1] == [number - _MOST_DAMAGED + 1]:
                break  # there are no more pages, whatever the file counts
        facts, entries = _library.facts(document), _library.outline(document)
    author = facts.get("Author")
    parsed = _put_together(pages, entries, title=sensible_title(facts.get("Title")))
    return replace(
        parsed,
        event_time=_time(facts, "CreationDate") or _time(facts, "ModDate"),
        metadata={**({"author": author} if author else {}), **parsed.metadata},
    )


def parse_pages(count: int, readings: Readings) -> Parsed:
    """Pages that are nothing but pictures, as `parse_pdf` would read them.

    Args:
        count: Of pages.
        readings: What was recognised on them.

    Raises:
        UnreadableError: All were recognised, and nothing was found.
    """
    unread = [number for number in range(1, count + 1) if number not in readings]
    pages = _Pages(unread=unread, places={number: places_of_reading(one) for number, one in readings.items()})
    for number in range(1, count + 1):
        reading = readings.get(number)
        pages.turned.append([(0, segments_of_reading(reading))] if reading is not None and reading.lines else [])
    return _put_together(pages, (), title=None)


def _put_together(pages: _Pages, entries: Sequence[_library.OutlineEntry], *, title: str | None) -> Parsed:
    turned, edges, notes = pages.turned, pages.edges, pages.notes
    mend_spaces(segment for page in turned for _, segments in page for segment in segments)
    ruled: list[dict[str, Table]] = []
    for number, page in enumerate(turned, 1):
        ruled.append({})
        if page and page[0][0] == 0 and edges.get(number):
            segments, ruled[-1] = take_tables(page[0][1], edges[number], number)
            page[0] = (0, segments)
    lines = [_lines(page, number) for number, page in enumerate(turned, 1)]
    running = drop_furniture(lines)
    blocks = [_blocks(one, _rules(edges.get(number, ())), ruled[number - 1]) for number, one in enumerate(lines, 1)]
    del lines
    _join_tables(blocks)
    metadata: dict[str, Fact] = {"page_count": len(blocks)}
    if running:
        metadata["running_lines"] = " | ".join(running)
    if pages.damaged:
        metadata["pages_damaged"] = len(pages.damaged)
    if not any(blocks) and not notes:
        if len(pages.damaged) == len(blocks):
            raise UnreadableError("is damaged: none of its pages can be opened")
        if not pages.unread:
            raise UnreadableError(NO_TEXT)
        return Parsed(content="", title=title, metadata=metadata, unread=pages.unread)
    body_size = body_size_of(blocks)
    by_outline = len(entries) >= LEAST_OUTLINE
    found = headings_by_outline(blocks, entries, body_size) if by_outline else headings_by_rule(blocks, body_size)
    writer = Writer(
        found, Hyphens(line.text for page in blocks for line in page if isinstance(line, Line)), pages.places
    )
    for number, written in enumerate(blocks, 1):
        writer.page(number, written, notes.get(number, ()))
    content = writer.result()
    return Parsed(
        content=content,
        headings=writer.headings,
        pages=writer.pages,
        title=filing_title(content) or title or largest_type(blocks[0], body_size),
        metadata=metadata,
        unread=pages.unread,
    )


def _time(facts: Mapping[str, str], name: str) -> datetime | None:
    return parse_time(_library.pdf_time(facts.get(name)))


@contextmanager
def _page(document: pypdfium2.PdfDocument, number: int) -> Iterator[tuple[Any, Any]]:
    """The handles of a page and its text, closed behind the block; None where the page is damaged."""
    import pypdfium2.raw as pdfium

    page = pdfium.FPDF_LoadPage(document.raw, number)
    text = pdfium.FPDFText_LoadPage(page) if page else None
    form = document.formenv.raw if page and document.formenv else None
    if form:
        # Only then it is known which boxes are ticked.
        pdfium.FORM_OnAfterLoadPage(page, form)
    try:
        yield page, text
    finally:
        if form:
            pdfium.FORM_OnBeforeClosePage(page, form)
        if text:
            pdfium.FPDFText_ClosePage(text)
        if page:
            pdfium.FPDF_ClosePage(page)


def _segments(document: pypdfium2.PdfDocument, number: int, pages: _Pages, reading: PageReading | None) -> _Turned:
    """The segments of a page by the direction that they run in.

    Notes what is drawn on a page, what its form and its readers say, and whether it is a picture that nobody has read.
    """
    with _page(document, number - 1) as (page, text):
        if not page:
            pages.damaged.append(number)
        if page and (told := notes_of(page, document.formenv and document.formenv.raw)):
            pages.notes[number] = told
        turned = segments_of(text) if text else []
        words = [one.text for _, segments in turned for one in segments]
        in_vain = bool(text) and says_nothing(text, words)
        if in_vain:
            turned = []
        if page and (in_vain or is_picture(page, sum(map(len, words)))):
            if reading is None:
                pages.unread.append(number)
            elif reading.lines:
                pages.places[number] = places_of_reading(reading)
                return [(0, segments_of_reading(reading))]
        if turned and (place := places_of_page(page)):
            pages.places[number] = place
        if turned and turned[0][0] == 0:
            pages.edges[number] = _library.edges(page)
    return turned


def _rules(edges: Sequence[Edge]) -> list[tuple[float, float, float]]:
    """The level lines: left end, right end and height of each."""
    return [(edge.start, edge.end, edge.place) for edge in edges if edge.level]


def _lines(turned: Sequence[tuple[Turn, list[Segment]]], number: int) -> list[Line]:
    """The lines of a page in reading order; text that runs in another direction comes last."""
    lines: list[Line] = []
    region = 0
    for turn, segments in turned:
        for one in in_reading_order(segments):
            for line in one:
                line.page, line.region, line.turn = number, region, turn
            lines += one
            region += 1
    return lines


def _blocks(
    lines: Sequence[Line], rules: Sequence[tuple[float, float, float]], ruled: Mapping[str, Table]
) -> list[Block]:
    """The lines of a page with those of tables put together."""
    blocks: list[Block] = []
    regions: dict[int, list[Line]] = {}
    for line in lines:
        regions.setdefault(line.region, []).append(line)
    for members in regions.values():
        width = max(line.x1 for line in members) - min(line.x0 for line in members)
        full = sorted(line.x1 - line.x0 for line in members)[len(members) * 3 // 4]
        behind = 0
        for start, end, tables in _tables(members, width, rules):
            blocks += members[behind:start]
            blocks += tables
            behind = end
        blocks += members[behind:]
        for block in blocks:
            if isinstance(block, Line):
                block.close_up(full)
    return [ruled.get(block.text, block) if isinstance(block, Line) else block for block in blocks]


def _tables(
    members: Sequence[Line], width: float, rules: Sequence[tuple[float, float, float]]
) -> Iterator[tuple[int, int, list[Block]]]:
    """The tables among the lines of a region: the first line of each, the one behind its last, and what it became."""
    leftwards = runs_leftwards(cell for line in members for cell in line.cells)
    seen = [in_mirror(line) for line in members] if leftwards else members
    own = {id(one): line for one, line in zip(seen, members, strict=True)}
    for start, end in table_spans(seen, width):
        tables = understand(seen[start:end], rules_in_mirror(rules) if leftwards else rules)
        if tables:
            read = (turn_back(one) if leftwards and isinstance(one, Table) else own.get(id(one), one) for one in tables)
            yield start, end, list(read)


def _join_tables(pages: list[list[Block]]) -> None:
    """Tables that go on at the top of the next page become one."""
    open_table: Table | None = None
    for blocks in pages:
        first = blocks[0] if blocks else None
        if open_table is not None and isinstance(first, Table) and _goes_on(open_table, first):
            open_table.rows += rows_that_follow(open_table, first)
            open_table.lines += first.lines
            del blocks[0]
            if not blocks:
                continue
        last = blocks[-1] if blocks else None
        open_table = last if isinstance(last, Table) else None


def _goes_on(table: Table, following: Table) -> bool:
    if table.head is not None or following.head is not None:
        return goes_on(table, following)
    if len(table.columns) != len(following.columns):
        return False
    if any(following.labels) and following.labels != table.labels:
        return False
    return all(
        abs(one.x1 - other.x1) < _SAME_PLACE or abs(one.x0 - other.x0) < _SAME_PLACE
        for one, other in zip(table.columns, following.columns, strict=True)
    )


# Running headers, footers and page numbers.


_PAGE_NUMBER = re.compile(
    r"(?<=page )\d{1,6}|(?<=seite )\d{1,6}|^\d{1,6}(?=\s|$)|(?<=\s)\d{1,6}$|(?<=[-–|]\s)\d{1,6}|(?<=\b[a-z]-)\d{1,4}$"
)
_LONE_NUMBER = re.compile(r"[-–|\s]*(?:page\s+|[a-z]-)?(?:\d{1,5}|[ivxlc]{1,9})[-–|\s]*", re.IGNORECASE)
_ROMAN = re.compile(r"[-–|\s]*(?:page\s+)?(?=[ivxlc])(c{0,3}(?:xc|xl|l?x{0,3})(?:ix|iv|v?i{0,3}))[-–|\s]*")
_ROMAN_DIGITS = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}
_EDGE_LINES = 2
_OFTEN = 3
_KEPT_CHARACTERS = 300


def drop_furniture(pages: list[list[Line]]) -> list[str]:
    """Takes the lines out of the pages that run through the document, and returns their texts, each once.

    Such a line stands at the upper or lower edge of at least three pages, in the same size of type, and differs
    between them only in a number that grows with the page.

    Args:
        pages: The lines of each page; the list's place tells the page.
    """
    places: list[tuple[int, Line, tuple[str, int]]] = []
    for number, lines in enumerate(pages):
        ordered = sorted(lines, key=lambda line: -line.y1)
        edges = {id(line): line for line in (*ordered[:_EDGE_LINES], *ordered[-_EDGE_LINES:])}
        places += [(number, line, _shape(line, number)) for line in edges.values()]
    often = Counter(shape for _, shape in {(number, shape) for number, _, shape in places})
    dropped: set[int] = set()
    texts: dict[str, None] = {}
    for _, line, shape in places:
        if often[shape] >= (_OFTEN if _LONE_NUMBER.fullmatch(line.text) else max(_OFTEN, len(pages) // 40)):
            dropped.add(id(line))
            if not _LONE_NUMBER.fullmatch(line.text):
                texts.setdefault(_PAGE_NUMBER.sub("", line.text.removeprefix(MARK)).strip(" |-–"))
    if all(id(line) in dropped for lines in pages for line in lines):
        return []  # pages that say the same and nothing else
    for lines in pages:
        lines[:] = [line for line in lines if id(line) not in dropped]
    return _shortened([text for text in texts if text])


def _shortened(texts: Sequence[str]) -> list[str]:
    kept: list[str] = []
    for text in dict.fromkeys(texts):
        if sum(map(len, kept)) + len(text) > _KEPT_CHARACTERS:
            break
        kept.append(text)
    return kept


def _shape(line: Line, page: int) -> tuple[str, int]:
    """A line with its page number replaced by the distance to ``page``, the same on every page; and its size."""
    text = line.text.casefold()
    roman = _ROMAN.fullmatch(text)
    if roman is not None:
        return f"roman #{_value(roman[1]) - page}", round(line.size / 2)
    text = _PAGE_NUMBER.sub(lambda match: f"#{int(match[0]) - page}", text, count=1)
    return text, round(line.size / 2)


def _value(roman: str) -> int:
    values = [_ROMAN_DIGITS[digit] for digit in roman]
    return sum(-one if one < max(values[at:]) else one for at, one in enumerate(values))


# What stands on a page without being part of it: what was filled into its form, and what readers have noted.


_MOST_NOTES = 2_000


def notes_of(page: Any, form: Any) -> list[str]:  # noqa: ANN401 - handles of pdfium
    """The fields of a page that hold something, as ``name: value``, then the texts of its annotations.

    Args:
        page: A page.
        form: The document's form; None: it has none.
    """
    import pypdfium2.raw as pdfium

    fields: list[str] = []
    remarks: list[str] = []
    for index in range(min(pdfium.FPDFPage_GetAnnotCount(page), _MOST_NOTES)):
        note = pdfium.FPDFPage_GetAnnot(page, index)
        if not note:
            continue
        try:
            if pdfium.FPDFAnnot_GetFlags(note) & (pdfium.FPDF_ANNOT_FLAG_HIDDEN | pdfium.FPDF_ANNOT_FLAG_NOVIEW):
                continue
            kind = pdfium.FPDFAnnot_GetSubtype(note)
            if kind == pdfium.FPDF_ANNOT_WIDGET:
                fields += _field(form, note) if form else ()
            elif kind not in {pdfium.FPDF_ANNOT_LINK, pdfium.FPDF_ANNOT_POPUP}:
                remarks += _told(partial(pdfium.FPDFAnnot_GetStringValue, note, b"Contents"))
        finally:
            pdfium.FPDFPage_CloseAnnot(note)
    # A field or a remark may be shown in several places of a page.
    return list(dict.fromkeys([*fields, *remarks]))


def _field(form: Any, note: Any) -> Iterator[str]:  # noqa: ANN401
    import pypdfium2.raw as pdfium

    kind = pdfium.FPDFAnnot_GetFormFieldType(form, note)
    if kind in {pdfium.FPDF_FORMFIELD_CHECKBOX, pdfium.FPDF_FORMFIELD_RADIOBUTTON}:
        if not pdfium.FPDFAnnot_IsChecked(form, note):
            return
        values = _told(partial(pdfium.FPDFAnnot_GetFormFieldExportValue, form, note)) or ["Yes"]
    elif kind in {pdfium.FPDF_FORMFIELD_TEXTFIELD, pdfium.FPDF_FORMFIELD_COMBOBOX, pdfium.FPDF_FORMFIELD_LISTBOX}:
        values = _told(partial(pdfium.FPDFAnnot_GetFormFieldValue, form, note))
    else:
        return
    names = _told(partial(pdfium.FPDFAnnot_GetFormFieldAlternateName, form, note)) or _told(
        partial(pdfium.FPDFAnnot_GetFormFieldName, form, note)
    )
    for value in values:
        yield f"{names[0]}: {value}" if names else value


def _told(ask: Callable[[Any, int], int]) -> list[str]:
    """A text of pdfium's, which is asked for its length first; empty: there is none."""
    size = ask(None, 0)
    if size <= 2:
        return []
    buffer = (ctypes.c_ushort * (size // 2 + 1))()
    ask(buffer, size)
    text = " ".join(clean(bytes(buffer)[: size - 2].decode("utf-16-le", "replace")).split())
    return [text] if text else []
