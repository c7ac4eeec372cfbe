"""Office files are archives: some of their parts replaced before they are read, and those named that are not."""

from __future__ import annotations

import io
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Mapping
from posixpath import dirname, join, normpath

from recollect.documents._xml import parse_tree
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
