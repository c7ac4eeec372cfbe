"""What kreuzberg leaves out of Word documents: ``&``, ``<`` and ``>``, and comments; the rest is below.

kreuzberg 4.10 drops entity references from the text of DOCX files ("R&D" becomes "RD"; the other formats are right).
So the references are replaced by stand-ins before it reads the file, and the stand-ins by their characters afterwards.
Stand-ins are single characters of a private plane, so that offsets stay what they are.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from recollect.documents._packed import parse_tree, parse_whole, relations_of, with_parts
from recollect.documents._parsed import one_line
from recollect.documents._sheets import Chart, read_chart

# The text of Word documents as it is seen, put in place before kreuzberg reads it.
#
# kreuzberg 4.10 joins the words beside a tab or a hyphen that never breaks, loses the text of a paragraph that holds a
# text box, runs the cells of a table within a cell together, reads what was moved away and what is hidden, and passes
# over charts.


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
