"""Cuts a text into what can be quoted: sentences, list items and table rows. Headings are not quoted alone."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise, takewhile
from typing import Literal

from recollect.chunking.sentences import sentence_spans

# What the lines of a text are: headings, prose, list items, rows of tables, also of tables that lost their lines.


Kind = Literal["blank", "rule", "heading", "row", "item", "prose"]

LINE = re.compile(r"[^\n]*(?:\n|\Z)")
_BULLET = re.compile(r"\s*(?:[-*+•‣◦▪–—]|\(?\d{1,3}[.)]|\(?[a-zA-Z][.)])\s+(?:\[[ xX]\]\s+)?")
TABLE_ROW = re.compile(r"\s*\|.*\S|[^|\n]*\S\s+\|\s+\S.*|[^\t\n]+\t[^\t\n]*\S.*")
_COLUMNS = re.compile(r"[^\s.:;!?] {3,}\S| {4,}\S")
# A table's row as the readers write it where the format has no other: "Country: Norway; Full rate: 75".
_RECORD = re.compile(r"\s*[^:;\n]{1,60}: [^;\n]+(?:; [^:;\n]{1,60}: [^;\n]+)+")
_ENDS_SENTENCE = re.compile(r"[.!?:;,。！？؟।…][\"'”’)\]*_]*\s*\Z")
_ENDS_PROSE = re.compile(r"[.!?。！？؟।…][\"'”’)\]*_]*\s*\Z")
_PAGE_FOOT = re.compile(r"[^.!?\n]{0,60}\bpage \d+ (?:of|/) \d+\s*", re.IGNORECASE)
# What a table's rows are looked up by: "max_sessions", "E-17", "B20".
_KEY = re.compile(r"\s*(?:[^\W\d]+(?:_\w+)+|[A-Z]{1,5}-?\d+)(?!\S)")
# A line is full where the next word would not have fitted: what follows continues it.
_FULL = 0.88
# Cells of a lost table that are shorter are read together with what follows.
_STUB_CHARS = 45
_KEYED_CHARS = 120
_CONTINUATION_INDENT = 10
# The lines are rows where so many of them hold figures, and rows begin with keys where so many lines do.
_COMPLETE = 0.6
_FEWEST_KEYS = 2
_FEWEST_ROWS = 4


@dataclass(frozen=True, slots=True)
class Block:
    """Lines that belong together."""

    kind: Kind
    start: int
    end: int


def blocks(text: str, headings: frozenset[str]) -> Iterator[Block]:
    """Lines grouped: rows and headings stand alone, an item or a paragraph takes its continuation lines.

    Lines that were not broken for want of room (a PDF's table, an address) stand alone too, as rows.

    Args:
        text: Any text.
        headings: Titles known to be headings, casefolded.
    """
    run: list[Block] = []
    for match in LINE.finditer(text):
        line = Block(_line_kind(match.group(), headings), match.start(), match.end())
        # What begins far to the right continues the row above it.
        hangs = len(match.group()) - len(match.group().lstrip()) >= _CONTINUATION_INDENT
        if line.kind == "prose" and run and (run[0].kind != "row" or hangs):
            run.append(line)
            continue
        yield from _grouped(text, run)
        run = [line] if line.kind in {"prose", "item", "row"} else []
        if line.kind in {"rule", "heading"}:
            yield line
    yield from _grouped(text, run)


def _line_kind(line: str, headings: frozenset[str]) -> Kind:
    bare = line.strip()
    if not bare or _PAGE_FOOT.fullmatch(bare):
        return "blank"
    if not any(character.isalnum() for character in bare):
        return "rule"
    if bare.startswith("#") or bare.strip("*_# ").casefold() in headings or _is_capitals(bare):
        return "heading"
    if TABLE_ROW.fullmatch(line.rstrip("\n")):
        return "row"
    if _BULLET.match(line) or _RECORD.fullmatch(line.rstrip()):
        return "item"
    return "row" if _COLUMNS.search(bare) else "prose"


def _is_capitals(line: str) -> bool:
    """A short line all in capitals that does not end as a sentence does."""
    letters = [character for character in line if character.isalpha()]
    return len(letters) > 3 and len(line) <= 80 and all(map(str.isupper, letters)) and not _ENDS_SENTENCE.search(line)


def _grouped(text: str, run: Sequence[Block]) -> Iterator[Block]:
    """A run of lines as one block, or as several where its lines end before they are full."""
    if not run:
        return
    if run[0].kind == "row":
        yield Block("row", run[0].start, run[-1].end)
        return

    def is_cell(part: Block) -> bool:
        return part.kind == "prose" and not _ENDS_PROSE.search(text[part.start : part.end])

    for are_cells, group in groupby(_parted(text, run), is_cell):
        parts = list(group)
        yield from _rows(text, parts) if are_cells and len(parts) > 1 else parts


def _parted(text: str, run: Sequence[Block]) -> list[Block]:
    """The run cut behind lines that end though the next word would have fitted."""
    lines = [text[line.start : line.end].strip() for line in run]
    room = _FULL * max(map(len, lines))
    full = [len(before) + 1 + len(line.split(None, 1)[0]) > room for before, line in pairwise(lines)]
    # Where few lines are full, those that are happen to be long.
    wrapped = 2 * sum(full) >= len(full) and not _look_like_rows(lines)
    parts = [run[0]]
    for (before, line), is_full, block in zip(pairwise(lines), full, run[1:], strict=True):
        goes_on = line[0].islower() and not _KEY.match(line) and not _ENDS_SENTENCE.search(before)
        if (is_full and wrapped) or goes_on or before.endswith((",", "-", "\u00ad")):
            parts[-1] = Block(parts[-1].kind, parts[-1].start, block.end)
        else:
            parts.append(Block("prose", block.start, block.end))
    return parts


def _look_like_rows(lines: Sequence[str]) -> bool:
    """Whether line after line begins with a key or a capital, and none ends a sentence: no prose wraps like that."""
    if sum(bool(_KEY.match(line)) for line in lines) >= _FEWEST_KEYS:
        return True
    if len(lines) < _FEWEST_ROWS or any(_ENDS_PROSE.search(line) for line in lines[:-1]):
        return False
    letters = [line[0] for line in lines if line[0].isalpha()]
    return bool(letters) and all(map(str.isupper, letters))


def _rows(text: str, cells: Sequence[Block]) -> Iterator[Block]:
    """The rows of a table of which only the lines are left: each line one, or cells read on until they say enough.

    Where the rows are looked up by keys, one begins at every key.
    """
    with_figures = sum(any(map(str.isdigit, text[cell.start : cell.end])) for cell in cells)
    complete = with_figures >= _COMPLETE * len(cells)
    keys = [bool(_KEY.match(text, cell.start, cell.end)) for cell in cells]
    keyed = sum(keys) >= _FEWEST_KEYS
    start, end, in_keys = cells[0].start, cells[0].end, keyed and keys[0]
    for cell, is_key in zip(cells[1:], keys[1:], strict=True):
        most = _KEYED_CHARS if in_keys else 0 if complete else _STUB_CHARS
        if not (keyed and is_key) and len(text[start:end].strip()) < most:
            end = cell.end
            continue
        yield Block("row", start, end)
        start, end, in_keys = cell.start, cell.end, keyed and is_key
    yield Block("row", start, end)


MAX_UNIT_CHARS = 600
# An item that is longer is quoted by sentences.
_LONGEST_ITEM = 240
_QUOTE_MARK = re.compile(r"\s*(?:>\s*)+")
# A fenced block, or the paragraph, list or table below a label.
_LABELLED = re.compile(r"[*_`]*\s*(?:(```|~~~).*?\1|(?:(?!\s*\n\s*\n\s*[^\s*+\d•-]).)+)", re.DOTALL)
# A line of a table of contents: where something is told, and nothing of it.
_ONLY_LINKS = re.compile(r"(?:\[[^\[\]]*\]\(#[^()\s]*\)[\s·|,;:–—-]*)+")
_COLUMN_GAP = re.compile(r"(?<=\S) {3,}(?=\S)")
_ENDS_IN_ORDINAL = re.compile(r"(?<![\w.,])\d{1,2}\.\Z")
_GOES_ON = re.compile(
    r"[^\W\d_A-Z]|(?:Januar|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember)\b"
)
_LEANS_BACK = re.compile(
    r"[\"'“‘(*_]*(?:it|its|they|them|their|this|these|those|that|such|he|she|his|her|both|either|neither|"
    r"however|also|therefore|thus|otherwise|instead|in addition|in that case|if so|then)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Unit:
    """A piece of text that can be quoted.

    Attributes:
        start: Offset of its first character in the text it was cut from.
        end: Offset just behind its last character.
        quote_start: Where a quote of it begins: at ``start``, or at the sentence before where it begins with a word
            that points back ("It must …").
        lead: What it needs to be understood: a table's header, a list's opening line.
        heading: The heading that it stands under, if that is in the text.
        lead_start: Where ``lead`` begins; equal to ``lead_end`` where there is none.
        lead_end: Just behind its last character.
        kind: A sentence, a list's item or a table's row.
    """

    start: int
    end: int
    quote_start: int
    lead: str = ""
    heading: str = ""
    lead_start: int = 0
    lead_end: int = 0
    kind: Literal["sentence", "item", "row"] = "sentence"


def quotable_units(text: str, *, language: str = "en", headings: Collection[str] = ()) -> list[Unit]:
    """The quotable pieces of a text, in order and without overlap; edges hold neither whitespace nor bullets.

    Args:
        text: A passage, or several that were joined.
        language: ISO 639-1 code, for sentence boundaries.
        headings: Titles known to be headings; such lines, lines of Markdown ``#`` and lines in capitals alone
            are left out.
    """
    units: list[Unit] = []
    heading, lead, header = "", (0, 0), (0, 0)
    found = list(blocks(text, frozenset(title.strip().casefold() for title in headings)))
    for index, block in enumerate(found):
        own: list[Unit] = []
        if block.kind == "heading":
            heading, lead = text[block.start : block.end].strip().strip("#*_ "), (0, 0)
        elif block.kind == "row":
            before = found[index - 1] if index else None
            if before is None or before.kind not in {"row", "rule"} or before.end < block.start:
                header = _header(text, found, index)
            if not _stands_above_rule(found, index):
                own = list(_row(text, block, header))
        elif block.kind == "item":
            own = [_led(unit, text, lead) for unit in _sentences(text, block, language)]
        elif block.kind == "prose":
            own = list(_sentences(text, block, language))
            introduces = own and text[block.start : block.end].rstrip().rstrip("*_").endswith((":", "："))
            lead = (own[-1].quote_start, own[-1].end) if introduces else (0, 0)
        units += [replace(unit, heading=heading) for unit in own]
    return units


def following(text: str, unit: Unit) -> int:
    """Where a unit ends together with what it labels: of "To install:" the command, list or table below it.

    Args:
        text: That the unit was cut from.
        unit: One of its quotable pieces.

    Returns:
        The unit's own end, where it is no label, or where what follows is too long to quote.
    """
    labels = text[unit.start : unit.end].rstrip("*_`").endswith((":", "："))
    behind = text[unit.end : unit.end + MAX_UNIT_CHARS]
    match = _LABELLED.match(behind) if labels else None
    if match is None or (match.end() == len(behind) and unit.end + MAX_UNIT_CHARS < len(text)):
        return unit.end
    return unit.end + len(match.group().rstrip())


def _header(text: str, found: Sequence[Block], index: int) -> tuple[int, int]:
    """The head of the table that begins with this row: above a rule; or without figures, where most rows have some.

    Two columns without a rule are names and what they stand for: they have no head.
    """
    own = trimmed(text, found[index].start, found[index].end, edge="|")
    if _stands_above_rule(found, index):
        return own
    table = takewhile(lambda pair: pair[1].kind == "row" and pair[0].end >= pair[1].start, pairwise(found[index:]))
    rows = [text[block.start : block.end] for _, block in table]
    with_figures = sum(any(map(str.isdigit, row)) for row in rows)
    head = text[slice(*own)]
    plain = not any(map(str.isdigit, head)) and len(_COLUMN_GAP.findall(head)) != 1
    return own if plain and len(rows) > 1 and 2 * with_figures >= len(rows) else (0, 0)


def _stands_above_rule(found: Sequence[Block], index: int) -> bool:
    return index + 1 < len(found) and found[index + 1].kind == "rule"


def _led(unit: Unit, text: str, lead: tuple[int, int]) -> Unit:
    return replace(unit, lead=text[slice(*lead)], lead_start=lead[0], lead_end=lead[1])


def _row(text: str, block: Block, lead: tuple[int, int]) -> Iterator[Unit]:
    for start, end in _bounded(text, *trimmed(text, block.start, block.end, edge="|")):
        unit = Unit(start, end, start, kind="row")
        yield unit if lead[0] <= start < lead[1] else _led(unit, text, lead)


def _sentences(text: str, block: Block, language: str) -> Iterator[Unit]:
    """The block's sentences; an item is cut only where it is long."""
    item = block.kind == "item"
    marker = (_BULLET if item else _QUOTE_MARK).match(text, block.start, block.end)
    begin = marker.end() if marker else block.start
    start, end = trimmed(text, begin, block.end)
    if item and end - start <= _LONGEST_ITEM:
        spans = [(start, end)]
    else:
        spans = [(begin + a, begin + b) for a, b in sentence_spans(text[begin : block.end], language)]
    before: int | None = None
    for span in _with_ordinals(text, spans):
        for start, end in _bounded(text, *trimmed(text, *span)):
            if _ONLY_LINKS.fullmatch(text, start, end):
                continue
            quote_start = before if before is not None and _LEANS_BACK.match(text, start, end) else start
            yield Unit(start, end, quote_start, kind="item" if item else "sentence")
            before = start


def _with_ordinals(text: str, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The spans, where "bis zum 10. des Monats" was cut behind the ordinal joined again."""
    joined: list[tuple[int, int]] = []
    for start, end in spans:
        if joined and _ENDS_IN_ORDINAL.search(text, *joined[-1]) and _GOES_ON.match(text, start, end):
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined


def trimmed(text: str, start: int, end: int, *, edge: str = "") -> tuple[int, int]:
    """The span without whitespace (and the characters of ``edge``) at its ends."""
    while start < end and (text[start].isspace() or text[start] in edge):
        start += 1
    while end > start and (text[end - 1].isspace() or text[end - 1] in edge):
        end -= 1
    return start, end


def _bounded(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The span, cut at spaces (or anywhere, where there are none) into pieces that are short enough to quote."""
    while end - start > MAX_UNIT_CHARS:
        cut = text.rfind(" ", start + MAX_UNIT_CHARS // 2, start + MAX_UNIT_CHARS)
        cut = start + MAX_UNIT_CHARS if cut < 0 else cut
        yield trimmed(text, start, cut)
        start, _ = trimmed(text, cut, end)
    if end > start:
        yield start, end
