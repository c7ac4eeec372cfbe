"""OpenDocument spreadsheets, which hold what their cells show.

kreuzberg 4.10 gives stored values in its own form, leaves out cells without a type, and finds no text at all where rows
are repeated to the edges of a sheet before the last that says something.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from typing import Any

from recollect.documents._cells import tables_of_sheet
from recollect.documents._metadata import parse_time
from recollect.documents._parsed import Parsed, TextBuilder, one_line
from recollect.documents._xml import parse_tree
from recollect.documents.formats import UnreadableError

_TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
# Programs repeat what is empty to the edges of a sheet; what says something is repeated by people.
_MOST_REPEATS = 1_000
_WIDEST = 16_384
_VALUES = ("string-value", "date-value", "time-value", "boolean-value", "value")

Element = Any  # of lxml, which has no types


def parse_ods(data: bytes) -> Parsed:
    """A spreadsheet's tables, sheet by sheet.

    Raises:
        UnreadableError: It is damaged.
    """
    builder = TextBuilder()
    names: list[str] = []
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            facts = _facts(archive)
            with archive.open("content.xml") as content:
                for name, rows in _sheets(content):
                    names.append(name)
                    builder.heading(2, name)
                    for table in tables_of_sheet(rows):
                        builder.table(table)
    except MemoryError:
        raise
    except Exception as error:  # zlib.error, struct.error and whatever else a hostile archive provokes
        raise UnreadableError("is damaged: its packed parts cannot be read") from error
    text, headings = builder.result()
    modified = facts.pop("date", None) or facts.pop("creation-date", None)
    return Parsed(
        content=text if len(text) > sum(len(one.title) + len("## \n\n") for one in headings) else "",
        headings=headings,
        title=facts.get("title"),
        event_time=parse_time(modified) if modified else None,
        metadata={"sheets": len(names), **({"author": facts["creator"]} if "creator" in facts else {})},
    )


def _facts(archive: zipfile.ZipFile) -> dict[str, str]:
    root = parse_tree(archive.read("meta.xml")) if "meta.xml" in archive.namelist() else None
    if root is None:
        return {}
    found = {name: root.findtext(f".//{{*}}{name}") for name in ("title", "creator", "date", "creation-date")}
    return {name: one_line(text)[:500] for name, text in found.items() if text and text.strip()}


def _sheets(content: Any) -> Iterator[tuple[str, list[list[str]]]]:  # noqa: ANN401 - an open part of an archive
    """The sheets, by name, with the texts of their cells."""
    from lxml import etree

    rows: list[list[str]] = []
    reaching: dict[int, tuple[str, int]] = {}
    tags = (f"{_TABLE}table", f"{_TABLE}table-row")
    # Not mended: what it would leave out of a damaged sheet, nobody would miss.
    parser = {"resolve_entities": False, "load_dtd": False, "no_network": True, "huge_tree": False}
    for event, one in etree.iterparse(content, events=("start", "end"), tag=tags, **parser):
        if event == "start":
            if one.tag == tags[0]:
                rows, reaching = [], {}
        elif one.tag == tags[1]:
            row = _row(one, reaching)
            rows += [row] * (_repeats(one, "rows") if row else 1)
            one.clear()
        else:
            yield one_line(one.get(f"{_TABLE}name") or ""), rows
            one.clear()


def _row(row: Element, reaching: dict[int, tuple[str, int]]) -> list[str]:
    """The texts of a row, to the last that is not empty.

    Args:
        row: Of cells.
        reaching: What cells of rows above say that reach down here, and over how many rows still, by their columns.
    """
    texts: list[str] = []
    covered: dict[int, str] = {}
    for cell in row:
        if cell.tag not in {f"{_TABLE}table-cell", f"{_TABLE}covered-table-cell"} or len(texts) > _WIDEST:
            continue
        at, text = len(texts), _text(cell)
        if cell.tag.endswith("}covered-table-cell"):
            text = ""
            if at in reaching:
                covered[at], left = reaching.pop(at)
                if left > 1:
                    reaching[at] = (covered[at], left - 1)
        elif text and (below := _number(cell, "number-rows-spanned") - 1) > 0:
            reaching[at] = (text, below)
        texts += [text] * (
            _repeats(cell, "columns") if text else min(_number(cell, "number-columns-repeated"), _WIDEST)
        )
    if any(texts):
        # What has nothing beside it is a frame.
        for at, text in covered.items():
            texts[at] = text
    while texts and not texts[-1]:
        texts.pop()
    return texts


def _text(cell: Element) -> str:
    """What a cell shows; without a text of its own, its value."""
    shown = one_line(" ".join(_words(paragraph) for paragraph in cell.iterchildren(f"{_TEXT}p", f"{_TEXT}h")))
    if shown or cell.get(f"{_OFFICE}value-type") is None:
        return shown
    return next((one_line(value) for name in _VALUES if (value := cell.get(f"{_OFFICE}{name}"))), "")


def _words(paragraph: Element) -> str:
    spaces = {f"{_TEXT}s", f"{_TEXT}tab", f"{_TEXT}line-break"}
    parts: list[str] = []
    for one in paragraph.iter():
        if isinstance(one.tag, str):
            parts.append(" " if one.tag in spaces else one.text or "")
            parts.append(one.tail or "" if one is not paragraph else "")
    return "".join(parts)


def _repeats(one: Element, what: str) -> int:
    return min(_number(one, f"number-{what}-repeated"), _MOST_REPEATS)


def _number(one: Element, name: str) -> int:
    told = one.get(f"{_TABLE}{name}") or ""
    return max(1, int(told)) if told.isascii() and told.isdigit() and len(told) < 10 else 1
