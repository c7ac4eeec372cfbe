"""What kreuzberg leaves out of slides, put in place before the file is read.

Those are notes of speakers, charts (as tables), and the texts of cells that reach over several rows.
"""

from __future__ import annotations

import re
import zipfile
from copy import deepcopy
from typing import Any

from recollect.documents._charts import read_chart
from recollect.documents._packed import relations_of, with_parts
from recollect.documents._xml import parse_tree, parse_whole

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
