"""What kreuzberg leaves out of Word documents: ``&``, ``<`` and ``>``, and comments (see `_docx_body` for the rest).

kreuzberg 4.10 drops entity references from the text of DOCX files ("R&D" becomes "RD"; the other formats are right).
So the references are replaced by stand-ins before it reads the file, and the stand-ins by their characters afterwards.
Stand-ins are single characters of a private plane, so that offsets stay what they are.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

from recollect.documents._charts import Chart, read_chart
from recollect.documents._docx_body import as_seen
from recollect.documents._packed import relations_of, with_parts
from recollect.documents._parsed import one_line
from recollect.documents._xml import parse_tree

_BASE = 0x10F000
_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
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
