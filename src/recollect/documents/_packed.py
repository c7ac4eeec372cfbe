"""Office files are archives: some of their parts replaced before they are read, and those named that are not."""

from __future__ import annotations

import io
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Mapping

from recollect.documents.formats import UnreadableError

# Drawings of Windows, whose lines and words nothing reads here. Smaller ones are bullets and symbols.
_DRAWING = re.compile(r"(?:word|ppt|xl)/media/[^/]+\.(emf|wmf|emz|wmz)", re.IGNORECASE)
_LEAST_DRAWING_BYTES = 1_000


def drawings_not_read(data: bytes) -> str | None:
    """How many drawings of a kind that is not read are in a file: ``3 EMF, 1 WMF``; None: there is none.

    Args:
        data: The file; what is no archive has none.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            kinds = Counter(
                match[1].upper().replace("MZ", "MF")
                for one in archive.infolist()
                if one.file_size >= _LEAST_DRAWING_BYTES and (match := _DRAWING.fullmatch(one.filename))
            )
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError):
        return None
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
