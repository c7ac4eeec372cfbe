r"""Word, PowerPoint, Excel, OpenDocument, RTF and Outlook files, most of them through kreuzberg's document tree.

The tree is written out by our own builder instead of taking kreuzberg's Markdown: that escapes punctuation
(``1\. Introduction``), embeds images and draws tables with rules, all of which would be quoted to people.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from recollect.documents._docx import comments_of, protect, restore
from recollect.documents._mail import marks_of, outlook_parts
from recollect.documents._metadata import parse_time
from recollect.documents._packed import drawings_not_read, parse_tree, parse_whole, relations_of, with_parts
from recollect.documents._parsed import Fact, Parsed, TextBuilder, one_line, tables_of_sheet
from recollect.documents._sheets import cells_as_shown, parse_ods, read_chart
from recollect.documents._text import clean
from recollect.documents.formats import DOCX, MSG, ODS, PPTX, XLS, XLSX, Format, UnreadableError

if TYPE_CHECKING:
    from kreuzberg import ExtractionResult

    from recollect.model import Heading


# The one place that calls kreuzberg.


_TIMEOUT_SECONDS = 300
_MEMORY = re.compile(r"out of memory|cannot allocate memory", re.IGNORECASE)
_PROTECTED = re.compile(r"password|encrypt|protected|decrypt", re.IGNORECASE)


def extract(data: bytes, file_format: Format, *, structure: bool = True) -> ExtractionResult:
    """Parses a file, without OCR, network or cache.

    Args:
        data: The whole file.
        file_format: What it is.
        structure: Whether the result has the tree of the document, and its content is Markdown; otherwise the
            content is plain text. (The tree knows headings only beside Markdown.)

    Raises:
        UnreadableError: It is protected or damaged.
        MemoryError: It needs more memory than this process may take.
    """
    import kreuzberg

    config = kreuzberg.ExtractionConfig(
        use_cache=False,
        enable_quality_processing=False,
        output_format="markdown" if structure else "plain",
        include_document_structure=structure,
        extraction_timeout_secs=_TIMEOUT_SECONDS,
    )
    try:
        return kreuzberg.extract_bytes_sync(data, file_format.mime_type, config)
    except Exception as error:  # its errors share no root, and plain ValueError or OSError come through as well
        raise _translate(error, file_format) from error
    except BaseException as error:
        # A panic in Rust arrives as a BaseException that is nobody's wish to stop the program.
        if type(error).__name__ != "PanicException":
            raise
        raise _translate(error, file_format) from error


def _translate(error: BaseException, file_format: Format) -> UnreadableError | MemoryError:
    message = str(error)
    if _MEMORY.search(message):
        return MemoryError(message)
    if _PROTECTED.search(message):
        return UnreadableError("is protected by a password; save it without one")
    if "timeout" in message.lower() or "timed out" in message.lower():
        return UnreadableError(f"took longer than {_TIMEOUT_SECONDS} s to parse")
    detail = " ".join(message.split())[:160]
    return UnreadableError(f"is damaged, or not {file_format.label} ({detail or type(error).__name__})")


def fact(metadata: Mapping[str, object], *names: str) -> str | None:
    """The first of the named entries of kreuzberg's metadata that is text, or a list of texts, and not blank."""
    for name in names:
        value = metadata.get(name)
        if isinstance(value, list):
            value = ", ".join(item for item in value if isinstance(item, str) and item.strip())
        if isinstance(value, str) and value.strip():
            return " ".join(value.split())[:500]
    return None


# What kreuzberg leaves out of slides, put in place before the file is read.
#
# Those are notes of speakers, charts (as tables), and the texts of cells that reach over several rows.


_SLIDE = re.compile(r"ppt/slides/([^/]+)\.xml")
_A = "http://schemas.openxmlformats.org/drawingml/2006/main"
_ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
# Far below everything else, because shapes are read from top to bottom.
_SHAPE = (
    '<p:sp xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" xmlns:a="{}"><p:nvSpPr>'
    '<p:cNvPr id="99999" name="notes"/><p:cNvSpPr/><p:nvPr/></p:nvSpPr><p:spPr><a:xfrm><a:off x="0" y="999999999"/>'
    '<a:ext cx="9000000" cy="900000"/></a:xfrm></p:spPr><p:txBody><a:bodyPr/></p:txBody></p:sp>'
)

Element = Any  # of lxml, which has no types


def with_what_is_seen(data: bytes) -> bytes:
    """The presentation with notes behind the text of slides, tables for charts, and merged cells in each of their rows.

    The file itself where it has none of them.

    Raises:
        UnreadableError: A packed part is damaged.
    """
    return with_parts(data, _changed)


def _changed(archive: zipfile.ZipFile) -> dict[str, bytes]:
    from lxml import etree

    names = set(archive.namelist())
    changed: dict[str, bytes] = {}
    for name in filter(_SLIDE.fullmatch, names):
        related = {number: one for number, one in relations_of(archive, name).items() if one[1] in names}
        slide = archive.read(name)
        if b"vMerge=" not in slide and not {"notesSlide", "chart"} & {kind for kind, _ in related.values()}:
            continue
        root = parse_whole(slide)
        tree = None if root is None else next(root.iter("{*}spTree"), None)
        if tree is None:
            continue
        notes = [part for kind, part in related.values() if kind == "notesSlide"]
        lines = _lines(parse_tree(archive.read(notes[0]))) if notes else []
        charts = {number: archive.read(part) for number, (kind, part) in related.items() if kind == "chart"}
        if lines:
            tree.append(_shape_of(lines))
        if _write_charts(tree, charts) + _fill_merged(tree) or lines:
            changed[name] = bytes(etree.tostring(root, encoding="UTF-8", xml_declaration=True, standalone=True))
    return changed


def _write_charts(tree: Element, parts: dict[str, bytes]) -> bool:
    """A table in the place of each chart; whether there is any."""
    written = False
    for one in list(tree.iter("{*}chart")):
        chart = read_chart(parts.pop(one.get(_ID) or "", b""))
        if chart is None:
            continue
        table = one.makeelement(f"{{{_A}}}tbl")
        titles = [[chart.title, *[""] * (len(chart.rows[0]) - 1)]] if chart.title else []
        for cells in [*titles, *chart.rows]:
            row = _added(table, "tr")
            for text in cells:
                body = _added(_added(row, "tc"), "txBody")
                _added(body, "bodyPr")
                _write_line(body, text)
        data = one.getparent()
        data.set("uri", "http://schemas.openxmlformats.org/drawingml/2006/table")
        data.replace(one, table)
        written = True
    return written


def _fill_merged(tree: Element) -> bool:
    """The text of a cell that reaches over several rows in each of them; whether there is any."""
    filled = False
    for table in tree.iter(f"{{{_A}}}tbl"):
        above: list[Element] = []
        for row in table.iterchildren(f"{{{_A}}}tr"):
            cells = list(row.iterchildren(f"{{{_A}}}tc"))
            for at, cell in enumerate(cells[: len(above)]):
                if cell.get("vMerge") in {"1", "true"}:
                    body, held = cell.find(f"{{{_A}}}txBody"), above[at].find(f"{{{_A}}}txBody")
                    if body is not None and held is not None:
                        cell.replace(body, deepcopy(held))
                        filled = True
            above = cells
    return filled


def _shape_of(lines: list[str]) -> Element:
    shape = parse_whole(_SHAPE.format(_A).encode())
    for line in lines:
        _write_line(next(shape.iter("{*}txBody")), line)
    return shape


def _write_line(body: Element, text: str) -> None:
    _added(_added(_added(body, "p"), "r"), "t").text = text


def _added(parent: Element, name: str) -> Element:
    one = parent.makeelement(f"{{{_A}}}{name}")
    parent.append(one)
    return one


def _lines(root: Element) -> list[str]:
    """The paragraphs of the notes, without the slide's picture and number."""
    lines: list[str] = []
    for shape in () if root is None else root.iter("{*}sp"):
        place = next(shape.iter("{*}ph"), None)
        if place is None or place.get("type") != "body":
            continue
        for paragraph in shape.iter("{*}p"):
            text = "".join(one.text or "" for one in paragraph.iter("{*}t", "{*}br")).strip()
            if text:
                lines.append(text)
    return [f"Notes: {lines[0]}", *lines[1:]] if lines else []


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
