"""EPUB books: the chapters of the spine, in reading order."""

from __future__ import annotations

import io
import posixpath
import zipfile
from urllib.parse import unquote
from xml.etree import ElementTree as ET

from recollect.documents._html import parse_html
from recollect.documents._metadata import parse_time
from recollect.documents._parsed import Parsed, TextBuilder, one_line
from recollect.documents.formats import UnreadableError

_CONTAINER = "META-INF/container.xml"
_DC = "{http://purl.org/dc/elements/1.1/}"


def parse_epub(data: bytes) -> Parsed:
    """A book's chapters with their headings.

    Raises:
        UnreadableError: Its table of parts is damaged.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = set(archive.namelist())
            package_path = _package_path(archive)
            package = ET.fromstring(archive.read(package_path))
            builder = TextBuilder()
            # The standard has a spine name each part once; read again for each time, a few bytes would be a library.
            for path in dict.fromkeys(_spine(package, posixpath.dirname(package_path))):
                if path in names:
                    builder.extend(parse_html(archive.read(path)))
    except Exception as error:  # zlib.error, struct.error, expat's and whatever else a hostile archive provokes
        raise UnreadableError("is damaged: the chapters of the book cannot be read") from error
    content, headings = builder.result()
    author = _dublin_core(package, "creator")
    return Parsed(
        content=content,
        headings=headings,
        title=_dublin_core(package, "title"),
        event_time=parse_time(_dublin_core(package, "date")),
        metadata={"author": author} if author else {},
    )


def _package_path(archive: zipfile.ZipFile) -> str:
    container = ET.fromstring(archive.read(_CONTAINER))
    for element in container.iter():
        if element.tag.endswith("}rootfile") and element.get("full-path"):
            return element.attrib["full-path"]
    raise UnreadableError("names no package")


def _spine(package: ET.Element, folder: str) -> list[str]:
    parts = {
        item.get("id"): item.get("href", "")
        for item in package.iter()
        if item.tag.endswith("}item") and "nav" not in item.get("properties", "").split()
    }
    order = [item.get("idref") for item in package.iter() if item.tag.endswith("}itemref")]
    return [posixpath.normpath(posixpath.join(folder, unquote(parts[part]))) for part in order if part in parts]


def _dublin_core(package: ET.Element, name: str) -> str | None:
    element = package.find(f".//{_DC}{name}")
    return one_line(element.text or "")[:500] or None if element is not None else None
