"""The text of Word documents as it is seen, put in place before kreuzberg reads it.

kreuzberg 4.10 joins the words beside a tab or a hyphen that never breaks, loses the text of a paragraph that holds a
text box, runs the cells of a table within a cell together, reads what was moved away and what is hidden, and passes
over charts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from recollect.documents._charts import Chart
from recollect.documents._xml import parse_whole

_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_SPACE = "{http://www.w3.org/XML/1998/namespace}space"
_ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
# Parts without any of these are left as they are.
_WORTH_A_LOOK = re.compile(
    rb"<w:p?tab\b|<w:(?:noBreak|soft)Hyphen|<w:moveFrom\b|<w:txbxContent|<w:vanish|<w:del\b|:chart\b|<w:tbl>"
)
_OFF = frozenset({"0", "false", "off"})
_BLOCKS = frozenset({f"{{{_W}}}p", f"{{{_W}}}tbl", f"{{{_W}}}sdt"})

Element = Any  # of lxml, which has no types


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
    _write_charts(root, charts)
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


def _write_charts(root: Element, charts: Callable[[str], Chart | None]) -> None:
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
            row = _added(table, "tr")
            for text in cells:
                _added(row, "tc").append(_paragraph(root, text))
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
        _added(_added(paragraph, "r"), "t").text = text
    return paragraph


def _added(parent: Element, name: str) -> Element:
    one = parent.makeelement(_w(name))
    parent.append(one)
    return one


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
