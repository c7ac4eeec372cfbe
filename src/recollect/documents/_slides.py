"""What speakers note below their slides, put behind the text of each before the file is read."""

from __future__ import annotations

import re
import zipfile
from posixpath import dirname, join, normpath
from typing import Any
from xml.sax.saxutils import escape

from recollect.documents._packed import with_parts
from recollect.documents._xml import parse_tree

_SLIDE = re.compile(r"ppt/slides/([^/]+)\.xml")
_END = b"</p:spTree>"
# Far below everything else, because shapes are read from top to bottom.
_SHAPE = (
    '<p:sp><p:nvSpPr><p:cNvPr id="99999" name="notes"/><p:cNvSpPr/><p:nvPr/></p:nvSpPr><p:spPr><a:xfrm>'
    '<a:off x="0" y="999999999"/><a:ext cx="9000000" cy="900000"/></a:xfrm></p:spPr>'
    "<p:txBody><a:bodyPr/>{}</p:txBody></p:sp>"
)


def with_notes(data: bytes) -> bytes:
    """The presentation with the notes of each slide behind its text; the file itself where it has none.

    Raises:
        UnreadableError: A packed part is damaged.
    """
    return with_parts(data, _changed)


def _changed(archive: zipfile.ZipFile) -> dict[str, bytes]:
    names = set(archive.namelist())
    changed: dict[str, bytes] = {}
    for name in names:
        relations = f"ppt/slides/_rels/{name.rpartition('/')[2]}.rels"
        if not _SLIDE.fullmatch(name) or relations not in names:
            continue
        target = _notes_of(parse_tree(archive.read(relations)), name)
        lines = _lines(parse_tree(archive.read(target))) if target in names else []
        slide = archive.read(name)
        at = slide.rfind(_END)
        if lines and at >= 0:
            text = "".join(f"<a:p><a:r><a:t>{escape(line)}</a:t></a:r></a:p>" for line in lines)
            changed[name] = slide[:at] + _SHAPE.format(text).encode() + slide[at:]
    return changed


def _notes_of(root: Any, slide: str) -> str:  # noqa: ANN401 - elements of lxml, which has no types
    for one in () if root is None else root.iter("{*}Relationship"):
        if str(one.get("Type", "")).endswith("/notesSlide"):
            target = str(one.get("Target", ""))
            return target.lstrip("/") if target.startswith("/") else normpath(join(dirname(slide), target))
    return ""


def _lines(root: Any) -> list[str]:  # noqa: ANN401 - as above
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
