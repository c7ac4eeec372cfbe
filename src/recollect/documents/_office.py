r"""Word, PowerPoint, Excel, OpenDocument, RTF and Outlook files, most of them through kreuzberg's document tree.

The tree is written out by our own builder instead of taking kreuzberg's Markdown: that escapes punctuation
(``1\. Introduction``), embeds images and draws tables with rules, all of which would be quoted to people.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from recollect.documents._cells import tables_of_sheet
from recollect.documents._docx import comments_of, protect, restore
from recollect.documents._kreuzberg import extract, fact
from recollect.documents._mail_marks import marks_of
from recollect.documents._ods import parse_ods
from recollect.documents._outlook import outlook_parts
from recollect.documents._packed import drawings_not_read
from recollect.documents._parsed import Fact, Parsed, TextBuilder, one_line
from recollect.documents._sheets import cells_as_shown
from recollect.documents._slides import with_what_is_seen
from recollect.documents._text import clean
from recollect.documents._times import parse_time
from recollect.documents.formats import DOCX, MSG, ODS, PPTX, XLS, XLSX

if TYPE_CHECKING:
    from recollect.documents.formats import Format
    from recollect.model import Heading

Node = Mapping[str, Any]
_LONGEST_HEADING = 200
_SILENT = frozenset({"group", "image", "page_break", "list"})
_NOTE_MARK = re.compile(r"\[\^(\d{1,5})\]")
_LINK_TARGET = re.compile(r"\]\([^()\s]*\)")

# What is put right in a file before kreuzberg reads it.
_PREPARED = {
    DOCX.mime_type: protect,
    XLSX.mime_type: cells_as_shown,
    PPTX.mime_type: with_what_is_seen,
}


def parse_office(data: bytes, file_format: Format) -> Parsed:
    """An office file's text, its heading styles as headings.

    Raises:
        UnreadableError: It is protected or damaged.
    """
    if file_format is ODS:
        return parse_ods(data)
    comments = comments_of(data) if file_format is DOCX else []
    drawings = drawings_not_read(data) if file_format in {DOCX, PPTX, XLSX} else None
    prepare = _PREPARED.get(file_format.mime_type)
    if prepare is not None:
        data = prepare(data)
    result = extract(data, file_format)
    nodes = result.document["nodes"] if result.document else []
    content, headings = _write(nodes, sheets=file_format in {XLSX, XLS})
    if _letters(content) < 0.9 * _letters(_LINK_TARGET.sub("", result.content)):
        # The tree has lost something that the flat text has: better no structure than no text.
        content, headings = clean(extract(data, file_format, structure=False).content).strip(), []
    if comments:
        content = "\n\n".join([content, *comments])
    headings = [replace(one, title=restore(one.title)) for one in headings]
    metadata = result.metadata
    author = fact(metadata, "authors", "created_by", "from_email")
    title = fact(metadata, "title", "subject") if file_format is MSG else fact(metadata, "title")
    facts: dict[str, Fact] = {"author": restore(author or ""), "drawings_not_read": drawings}
    for name, key in (("slides", "slide_count"), ("sheets", "sheet_count")):
        count = metadata.get(key)
        facts[name] = count if isinstance(count, int) else None
    parsed = Parsed(
        content=restore(content),
        headings=headings,
        title=restore(title or ""),
        event_time=parse_time(fact(metadata, "modified_at")) or parse_time(fact(metadata, "created_at")),
        metadata={name: value for name, value in facts.items() if value},
    )
    return _as_mail(parsed, data) if file_format is MSG else parsed


def _as_mail(parsed: Parsed, data: bytes) -> Parsed:
    """An Outlook message with what other messages have: what is attached, its thread, its quotes and signature."""
    attached, thread = outlook_parts(data)
    names = ", ".join(one_line(one.own_name) for one in attached if one.own_name)[:500]
    told = {"attachments": names, **thread}
    own = parsed.content.find("\n\n") + 2  # behind the header lines
    marks = [
        replace(one, start_offset=one.start_offset + own, end_offset=one.end_offset + own)
        for one in marks_of(parsed.content[own:])
    ]
    return replace(
        parsed,
        headings=sorted([*parsed.headings, *marks], key=lambda one: one.start_offset),
        metadata={**parsed.metadata, **{name: value for name, value in told.items() if value}},
        attached=attached,
    )


def _letters(text: str) -> int:
    return sum(map(str.isalnum, text))


def _write(nodes: Sequence[Node], *, sheets: bool) -> tuple[str, list[Heading]]:
    builder = TextBuilder()
    trusted = _headings_are_plausible(nodes)
    depths = _list_depths(nodes)
    numbers: dict[int, int] = {}
    notes = _footnotes(nodes)
    silent = _SILENT | {"footnote"} if notes else _SILENT
    for index, node in enumerate(nodes):
        content = node["content"]
        kind, text = content.get("node_type"), content.get("text") or ""
        if kind in {"heading", "title"}:
            if trusted and len(text) <= _LONGEST_HEADING:
                builder.heading(content.get("level") or 1, text)
            else:
                builder.paragraph(text)
        elif kind == "slide":
            builder.heading(2, content.get("title") or f"Slide {content.get('number')}")
        elif kind == "list_item":
            parent = -1 if node.get("parent") is None else int(node["parent"])
            numbers[parent] = numbers.get(parent, 0) + 1
            ordered = parent >= 0 and nodes[parent]["content"].get("ordered")
            builder.item(text, marker=f"{numbers[parent]}." if ordered else "-", depth=depths[index])
        elif kind == "table":
            _write_table(builder, _rows(content.get("grid") or {}), is_sheet=sheets)
        elif kind == "code":
            builder.code(text)
        elif kind == "metadata_block":
            builder.paragraph("\n".join(f"{key}: {value}" for key, value in content.get("entries") or ()))
        elif kind not in silent:
            builder.paragraph(text)
        _write_notes(builder, text, notes)
    return builder.result()


def _write_table(builder: TextBuilder, grid: Sequence[Sequence[str]], *, is_sheet: bool) -> None:
    for rows in tables_of_sheet(grid) if is_sheet else [grid]:
        builder.table(rows)


def _write_notes(builder: TextBuilder, text: str, notes: Mapping[str, str]) -> None:
    for mark in _NOTE_MARK.findall(text):
        if mark in notes:
            builder.paragraph(f"[^{mark}]: {notes[mark].strip()}")


def _footnotes(nodes: Sequence[Node]) -> dict[str, str]:
    """Footnotes by their marks in the text, which each follows; none where it is not clear which is whose."""
    texts = [(node["content"].get("node_type"), node["content"].get("text") or "") for node in nodes]
    notes = [text for kind, text in texts if kind == "footnote"]
    marks = [mark for kind, text in texts if kind != "footnote" for mark in _NOTE_MARK.findall(text)]
    return dict(zip(marks, notes, strict=True)) if len(marks) == len(notes) == len(set(marks)) else {}


def _headings_are_plausible(nodes: Sequence[Node]) -> bool:
    """False where most of the blocks claim to be headings.

    kreuzberg takes styles that it does not know for headings of the lowest level in some files, whole texts of them.
    """
    kinds = [node["content"].get("node_type") for node in nodes]
    headings = kinds.count("heading")
    blocks = sum(1 for kind in kinds if kind in {"paragraph", "list_item", "table", "code", "quote"})
    lowest = {node["content"].get("level") for node in nodes if node["content"].get("node_type") == "heading"} == {6}
    return not (lowest or headings > 8) or headings <= 2 * blocks


def _list_depths(nodes: Sequence[Node]) -> list[int]:
    """How many lists each node stands in, less one."""
    inside: list[int] = []
    for node in nodes:
        parent = node.get("parent")
        above = inside[parent] if parent is not None and parent < len(inside) else 0
        inside.append(above + (node["content"].get("node_type") == "list"))
    return [max(0, count - 1) for count in inside]


def _rows(grid: Mapping[str, Any]) -> list[list[str]]:
    rows: dict[int, dict[int, str]] = {}
    for cell in grid.get("cells") or ():
        rows.setdefault(cell["row"], {})[cell["col"]] = cell.get("content") or ""
    return [[row.get(column, "") for column in range(max(row) + 1)] for _, row in sorted(rows.items())]
