"""Office files are archives: some of their parts replaced before they are read."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Mapping

from recollect.documents.formats import UnreadableError


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
