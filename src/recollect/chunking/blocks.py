"""What the lines of a text are: headings, prose, list items, code, and rows of tables, even if their lines are lost."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Literal

Kind = Literal["blank", "rule", "heading", "row", "item", "prose", "code"]

LINE = re.compile(r"[^\n]*(?:\n|\Z)")
#: The line above or below a block of code; of the first, the language may be said.
FENCE = re.compile(r"^[ \t>]*(?:```|~~~)([^`\n]*)(?:\n|\Z)", re.MULTILINE)
# reStructuredText says that code is below, and indents it.
_DIRECTIVE = re.compile(r"^([ \t]*)\.\. (?:code|code-block|sourcecode|prompt)::[^\n]*(?:\n|\Z)", re.MULTILINE)
#: Any line that says where code begins or ends.
CODE_MARK = re.compile(f"{FENCE.pattern}|{_DIRECTIVE.pattern}", re.MULTILINE)
_INDENTED = re.compile(r"([ \t]*)(\S?)[^\n]*(?:\n|\Z)")
BULLET = re.compile(r"\s*(?:[-*+•‣◦▪–—]|\(?\d{1,3}[.)]|\(?[a-zA-Z][.)])\s+(?:\[[ xX]\]\s+)?")
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
    """Lines grouped: rows and headings stand alone, items and paragraphs take the lines that go on, code all its lines.

    Lines that were not broken for want of room (a PDF's table, an address) stand alone too, as rows.

    Args:
        text: Any text.
        headings: Titles known to be headings, casefolded.
    """
    end = 0
    for code in code_in(text):
        yield from _without_code(text, end, code.start, headings)
        yield code
        end = code.end
    yield from _without_code(text, end, len(text), headings)


def code_in(text: str) -> Iterator[Block]:
    """The blocks of code: between fences, or below a directive. A text that was cut may begin or end within one."""
    end = 0
    for block in sorted([*_fenced(text), *_below_directives(text)], key=lambda block: block.start):
        if block.start >= end:
            yield block
            end = block.end


def _fenced(text: str) -> Iterator[Block]:
    fences = list(FENCE.finditer(text))
    # Where a language is said code begins, so that every other fence before it begins code, too. Where none is said and
    # one fence is alone, the text begins with code, or with prose, which ends as sentences do.
    named = next((place for place, fence in enumerate(fences) if fence[1].strip()), len(fences))
    prose = named == len(fences) and text[: fences[0].start() if fences else 0].rstrip().endswith((".", ":", "!", "?"))
    edges = [0] if named % 2 and not prose else []
    for fence in fences:
        edges.append(fence.start() if len(edges) % 2 else fence.end())
    edges += [len(text)] * (len(edges) % 2)
    return (Block("code", *span) for span in zip(edges[::2], edges[1::2], strict=True))


def _below_directives(text: str) -> Iterator[Block]:
    end = 0
    for directive in _DIRECTIVE.finditer(text):
        if directive.start() < end:
            continue  # it is code itself
        end = directive.end()
        while end < len(text) and (line := _INDENTED.match(text, end)):
            if line[2] and len(line[1]) <= len(directive[1]):
                break
            end = line.end()
        yield Block("code", directive.end(), end)


def _without_code(text: str, begin: int, end: int, headings: frozenset[str]) -> Iterator[Block]:
    run: list[Block] = []
    for match in LINE.finditer(text, begin, end):
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
    if not any(character.isalnum() for character in bare) or CODE_MARK.match(line):
        return "rule"
    if bare.startswith("#") or bare.strip("*_# ").casefold() in headings or _is_capitals(bare):
        return "heading"
    if TABLE_ROW.fullmatch(line.rstrip("\n")):
        return "row"
    if BULLET.match(line) or _RECORD.fullmatch(line.rstrip()):
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
