"""Word, PowerPoint, Excel, OpenDocument, RTF and Outlook files, most of them through kreuzberg's document tree.

The tree is written out by our own builder instead of taking kreuzberg's Markdown: that escapes punctuation, embeds
images and draws tables with rules, all of which would be quoted to people.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from recollect.documents._mail import marks_of, outlook_parts
from recollect.documents._packed import drawings_not_read, parse_tree, parse_whole, relations_of, with_parts
from recollect.documents._parsed import Fact, Parsed, TextBuilder, one_line, parse_time, tables_of_sheet
from recollect.documents._sheets import Chart, cells_as_shown, parse_ods, read_chart
from recollect.documents._text import clean
from recollect.documents.formats import DOCX, MSG, ODS, PPTX, XLS, XLSX, Format, UnreadableError

if TYPE_CHECKING:
    from kreuzberg import ExtractionResult

    from recollect.model import Heading


# What kreuzberg leaves out of Word documents: `&`, `<` and `>`, and comments; the rest is below.
#
# kreuzberg 4.10 drops entity references from the text of DOCX files ("R&D" becomes "RD"; the other formats are
# right). So the references are replaced by stand-ins before it reads the file, and the stand-ins by their characters
# afterwards. Stand-ins are single characters of a private plane, so that offsets stay what they are.


# The text of Word documents as it is seen, put in place before kreuzberg reads it.
#
# kreuzberg 4.10 joins the words beside a tab or a hyphen that never breaks, loses the text of a paragraph that holds a
# text box, runs the cells of a table within a cell together, reads what was moved away and what is hidden, and passes
# over charts.

_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_SPACE = "{http://www.w3.org/XML/1998/namespace}space"
# Parts without any of these are left as they are.
_WORTH_A_LOOK = re.compile(
    rb"<w:p?tab\b|<w:(?:noBreak|soft)Hyphen|<w:moveFrom\b|<w:txbxContent|<w:vanish|<w:del\b|:chart\b|<w:tbl>"
)
_OFF = frozenset({"0", "false", "off"})
_BLOCKS = frozenset({f"{{{_W}}}p", f"{{{_W}}}tbl", f"{{{_W}}}sdt"})


def as_seen(part: bytes, charts: Callable[[str], Chart | None]) -> bytes:
    """A part of a document as its readers see it; the part itself where nothing has to be done, or it is damaged.

    Args:
        part: ``word/document.xml``, a header, footnotes and the like.
        charts: Gives the chart that the part shows under a number.
    """
    if not _WORTH_A_LOOK.search(part):
        return part
    from lxml import etree

    root = parse_whole(part)
    if root is None:
        return part
    _drop_unseen(root)
    _write_characters(root)
    _show_charts(root, charts)
    _lift_text_boxes(root)
    _lift_tables(root)
    return bytes(etree.tostring(root, encoding="UTF-8", xml_declaration=True, standalone=True))


def _drop_unseen(root: Element) -> None:
    for gone in _all(root, "moveFrom"):
        _remove(gone)
    for mark in _all(root, "vanish"):
        run = mark.getparent().getparent() if mark.getparent() is not None else None
        if run is not None and run.tag == _w("r") and (mark.get(_w("val")) or "") not in _OFF:
            _remove(run)
    for row in _all(root, "tr"):
        if row.find(f"{_w('trPr')}/{_w('del')}") is not None:
            _remove(row)


def _write_characters(root: Element) -> None:
    for name, char in (("tab", " "), ("ptab", " "), ("noBreakHyphen", "-"), ("softHyphen", "")):
        for one in _all(root, name):
            if one.getparent() is not None and one.getparent().tag == _w("r"):
                one.tag = _w("t")
                one.attrib.clear()
                one.set(_SPACE, "preserve")
                one.text = char


def _show_charts(root: Element, charts: Callable[[str], Chart | None]) -> None:
    """Behind the first paragraph of each chart what it is called, and its numbers as a table."""
    seen: set[str] = set()
    for one in list(root.iter("{*}chart")):
        host, number = next(one.iterancestors(_w("p")), None), one.get(_ID) or ""
        chart = charts(number) if host is not None and number not in seen else None
        seen.add(number)
        if chart is None:
            continue
        blocks = [_paragraph(root, chart.title)] if chart.title else []
        table = root.makeelement(_w("tbl"))
        for cells in chart.rows:
            row = _added(table, _w("tr"))
            for text in cells:
                _added(row, _w("tc")).append(_paragraph(root, text))
        _put_behind(host, [*blocks, table, _paragraph(root, "")])


def _lift_text_boxes(root: Element) -> None:
    """Behind the paragraph that holds it what stands in a text box."""
    for either in list(root.iter("{*}AlternateContent")):
        # Both say the same, to programs of two ages.
        choice = next(either.iter("{*}Choice"), None)
        if choice is not None and next(choice.iter(_w("txbxContent")), None) is not None:
            for old in list(either.iterchildren("{*}Fallback")):
                either.remove(old)
    for box in _all(root, "txbxContent"):
        host = next(box.iterancestors(_w("p")), None)
        if host is not None:
            _put_behind(host, [one for one in box if one.tag in _BLOCKS])


def _lift_tables(root: Element) -> None:
    """Out of the cells of other tables: a table that is there to frame its text gives way to it, others come first."""
    for table in _all(root, "tbl"):
        cells = [list(row.iterchildren(_w("tc"))) for row in table.iterchildren(_w("tr"))]
        blocks = [[one for one in row[0] if one.tag in _BLOCKS] for row in cells if len(row) == 1]
        if cells and len(blocks) == len(cells) and any(map(_is_more_than_a_line, blocks)):
            _put_behind(table, [one for row in blocks for one in row])
            _remove(table)
    for table in _all(root, "tbl"):
        inner = [one for one in table.iterdescendants(_w("tbl")) if next(one.iterancestors(_w("tbl"))) is table]
        # Two tables without a paragraph between them are one.
        _put_behind(table, [block for one in inner for block in (_paragraph(root, ""), one)])


def _is_more_than_a_line(blocks: Sequence[Element]) -> bool:
    return any(one.tag == _w("tbl") for one in blocks) or sum(any(_texts(one)) for one in blocks) > 1


def _texts(block: Element) -> Iterator[str]:
    return (one.text.strip() for one in block.iter(_w("t")) if one.text)


def _paragraph(root: Element, text: str) -> Element:
    paragraph = root.makeelement(_w("p"))
    if text:
        _added(_added(paragraph, _w("r")), _w("t")).text = text
    return paragraph


def _put_behind(place: Element, blocks: Sequence[Element]) -> None:
    for one in reversed(blocks):
        place.addnext(one)


def _remove(one: Element) -> None:
    parent = one.getparent()
    if parent is not None:
        parent.remove(one)


def _all(root: Element, name: str) -> list[Element]:
    return list(root.iter(_w(name)))


def _w(name: str) -> str:
    return f"{{{_W}}}{name}"


_BASE = 0x10F000
_LONGEST_WORDS = 200
_MOST_OPEN = 20
_NAMED = {b"amp": "&", b"lt": "<", b"gt": ">", b"quot": '"', b"apos": "'"}
_STAND_INS = {_BASE + ord(char): char for char in _NAMED.values()}
_REFERENCE = re.compile(rb"&(?:(amp|lt|gt|quot|apos)|#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6}));")
_PART = re.compile(r"(?:word/[^/]+|docProps/core)\.xml$")


def protect(data: bytes) -> bytes:
    """The file as its readers see it, with a stand-in for each entity reference; the file itself if nothing changes.

    Raises:
        UnreadableError: A packed part is damaged.
    """

    def changed(archive: zipfile.ZipFile) -> dict[str, bytes]:
        parts: dict[str, bytes] = {}
        for name in filter(_PART.match, archive.namelist()):
            part = archive.read(name)
            seen = as_seen(part, _charts_of(archive, name)) if name.startswith("word/") else part
            written = _REFERENCE.sub(_stand_in, seen) if b"&" in seen else seen
            if written != part:
                parts[name] = written
        return parts

    return with_parts(data, changed)


def _charts_of(archive: zipfile.ZipFile, part: str) -> Callable[[str], Chart | None]:
    def chart(number: str) -> Chart | None:
        kind, target = relations_of(archive, part).get(number, ("", ""))
        return read_chart(archive.read(target)) if kind == "chart" and target in archive.namelist() else None

    return chart


def comments_of(data: bytes) -> list[str]:
    """What readers have noted on a document: who, on which words, and what.

    Raises:
        UnreadableError: A packed part is damaged.
    """
    found: list[str] = []

    def look(archive: zipfile.ZipFile) -> dict[str, bytes]:
        if "word/comments.xml" in archive.namelist() and "word/document.xml" in archive.namelist():
            found.extend(_comments(parse_tree(archive.read("word/comments.xml")), archive.read("word/document.xml")))
        return {}

    with_parts(data, look)
    return found


def _comments(root: Any, text: bytes) -> Iterator[str]:  # noqa: ANN401 - elements of lxml, which has no types
    words = _commented(text)
    for one in () if root is None else root.iter("{*}comment"):
        said = " ".join(filter(None, (_words(part) for part in one.iter("{*}p"))))
        who, on = (one.get(f"{{{_W}}}author") or "").strip(), words.get(one.get(f"{{{_W}}}id") or "", "")
        by = f" by {one_line(who)}" if who else ""
        if said:
            yield f"Comment{by} on “{on}”: {said}" if on else f"Comment{by}: {said}"


def _commented(text: bytes) -> dict[str, str]:
    """The words that comments are on, by number."""
    found: dict[str, str] = {}
    opened: dict[str, list[str]] = {}
    root = parse_tree(text)
    for one in () if root is None else root.iter("{*}commentRangeStart", "{*}commentRangeEnd", "{*}t"):
        number = one.get(f"{{{_W}}}id") or ""
        if one.tag.endswith("Start") and len(opened) < _MOST_OPEN:
            opened[number] = []
        elif one.tag.endswith("End"):
            words = one_line("".join(opened.pop(number, [])))
            found[number] = words if len(words) <= _LONGEST_WORDS else f"{words[:_LONGEST_WORDS]}…"
        else:
            for words_ in opened.values():
                words_.append(one.text or "")
    return found


def _words(paragraph: Any) -> str:  # noqa: ANN401 - as above
    return one_line("".join(one.text or "" for one in paragraph.iter("{*}t")))


def restore(text: str) -> str:
    """``text`` with the characters that stand-ins stand for; as long as before."""
    return text.translate(_STAND_INS)


def _stand_in(match: re.Match[bytes]) -> bytes:
    if match[1]:
        char = _NAMED[match[1]]
    else:
        code = int(match[2]) if match[2] else int(match[3], 16)
        if not 0x20 <= code <= 0x10FFFF or 0xD800 <= code < 0xE000:
            return match[0]
        char = chr(code)
    return (chr(_BASE + ord(char)) if char in _NAMED.values() else char).encode()


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
        table = one.makeelement(_a("tbl"))
        titles = [[chart.title, *[""] * (len(chart.rows[0]) - 1)]] if chart.title else []
        for cells in [*titles, *chart.rows]:
            row = _added(table, _a("tr"))
            for text in cells:
                body = _added(_added(row, _a("tc")), _a("txBody"))
                _added(body, _a("bodyPr"))
                _write_line(body, text)
        data = one.getparent()
        data.set("uri", "http://schemas.openxmlformats.org/drawingml/2006/table")
        data.replace(one, table)
        written = True
    return written


def _fill_merged(tree: Element) -> bool:
    """The text of a cell that reaches over several rows in each of them; whether there is any."""
    filled = False
    for table in tree.iter(_a("tbl")):
        above: list[Element] = []
        for row in table.iterchildren(_a("tr")):
            cells = list(row.iterchildren(_a("tc")))
            for at, cell in enumerate(cells[: len(above)]):
                if cell.get("vMerge") in {"1", "true"}:
                    body, held = cell.find(_a("txBody")), above[at].find(_a("txBody"))
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
    _added(_added(_added(body, _a("p")), _a("r")), _a("t")).text = text


def _a(name: str) -> str:
    return f"{{{_A}}}{name}"


def _added(parent: Element, tag: str) -> Element:
    one = parent.makeelement(tag)
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
