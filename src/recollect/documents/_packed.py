"""Office files are archives of XML: parts replaced before they are read, and those named that are not."""

from __future__ import annotations

import io
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Mapping
from posixpath import dirname, join, normpath
from typing import Any

from recollect.documents.formats import UnreadableError

# Drawings of Windows, whose lines and words nothing reads here. Smaller ones are bullets and symbols.
_DRAWING = re.compile(r"(?:word|ppt|xl)/media/[^/]+\.(emf|wmf|emz|wmz)", re.IGNORECASE)
_LEAST_DRAWING_BYTES = 1_000


def drawings_not_read(data: bytes) -> str | None:
    """How many drawings of a kind that is not read are in a file: ``3 EMF, 1 WMF``; None: there is none.

    Args:
        data: The file, an archive that has been opened before.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        kinds = Counter(
            match[1].upper().replace("MZ", "MF")
            for one in archive.infolist()
            if one.file_size >= _LEAST_DRAWING_BYTES and (match := _DRAWING.fullmatch(one.filename))
        )
    return ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())) or None


def with_parts(data: bytes, changed: Callable[[zipfile.ZipFile], Mapping[str, bytes]]) -> bytes:
    """The file with other content of some parts; the file itself where none changes.

    Args:
        data: The file.
        changed: Gives the new content of parts, by their names.

    Raises:
        UnreadableError: A packed part is damaged.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            parts = changed(archive)
            if not parts:
                return data
            out = io.BytesIO()
            with zipfile.ZipFile(out, "w") as copy:
                for entry in archive.infolist():
                    copy.writestr(entry.filename, parts.get(entry.filename) or archive.read(entry))
    except MemoryError:
        raise
    except Exception as error:  # zlib.error, struct.error and whatever else a hostile archive provokes
        raise UnreadableError("is damaged: its packed parts cannot be read") from error
    return out.getvalue()


def relations_of(archive: zipfile.ZipFile, part: str) -> dict[str, tuple[str, str]]:
    """The parts that a part names: by their numbers, what each is to it (``notesSlide``) and its name in the file.

    Args:
        archive: The file.
        part: Such as ``ppt/slides/slide1.xml``.
    """
    folder, _, name = part.rpartition("/")
    held = f"{folder}/_rels/{name}.rels"
    root = parse_tree(archive.read(held)) if held in archive.namelist() else None
    found: dict[str, tuple[str, str]] = {}
    for one in () if root is None else root.iter("{*}Relationship"):
        target = str(one.get("Target", ""))
        whole = target.lstrip("/") if target.startswith("/") else normpath(join(dirname(part), target))
        found[str(one.get("Id", ""))] = (str(one.get("Type", "")).rpartition("/")[2], whole)
    return found


# XML from strangers: nothing that it names is loaded, nothing in it is expanded.


def parse_tree(data: bytes) -> Any:  # noqa: ANN401 - an element of lxml, which has no types
    """The root element; None where there is none. Damage is passed over as far as it can be."""
    return _parsed(data, recover=True)


def parse_whole(data: bytes) -> Any:  # noqa: ANN401 - as above
    """The root element of XML that is to be written again; None where something of it would be lost on the way."""
    root = _parsed(data, recover=False)
    return None if root is None or root.getroottree().docinfo.doctype else root


def _parsed(data: bytes, *, recover: bool) -> Any:  # noqa: ANN401 - as above
    from lxml import etree

    parser = etree.XMLParser(
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        dtd_validation=False,
        huge_tree=False,
        recover=recover,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        return etree.fromstring(data, parser)
    except (etree.XMLSyntaxError, ValueError):
        return None
