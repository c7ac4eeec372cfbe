"""Keeps ``&``, ``<`` and ``>`` in Word documents.

kreuzberg 4.10 drops entity references from the text of DOCX files ("R&D" becomes "RD"; the other formats are right).
So the references are replaced by stand-ins before it reads the file, and the stand-ins by their characters afterwards.
Stand-ins are single characters of a private plane, so that offsets stay what they are.
"""

from __future__ import annotations

import io
import re
import zipfile

from recollect.documents.formats import UnreadableError

_BASE = 0x10F000
_NAMED = {b"amp": "&", b"lt": "<", b"gt": ">", b"quot": '"', b"apos": "'"}
_STAND_INS = {_BASE + ord(char): char for char in _NAMED.values()}
_REFERENCE = re.compile(rb"&(?:(amp|lt|gt|quot|apos)|#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6}));")
_PART = re.compile(r"(?:word/[^/]+|docProps/core)\.xml$")


def protect(data: bytes) -> bytes:
    """The file with a stand-in for each entity reference; the file itself where it has none.

    Raises:
        UnreadableError: A packed part is damaged.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            parts = {entry.filename: archive.read(entry) for entry in archive.infolist() if _PART.match(entry.filename)}
            changed = {name: _REFERENCE.sub(_stand_in, part) for name, part in parts.items() if b"&" in part}
            if not changed:
                return data
            out = io.BytesIO()
            with zipfile.ZipFile(out, "w") as copy:
                for entry in archive.infolist():
                    copy.writestr(entry.filename, changed.get(entry.filename) or archive.read(entry))
    except Exception as error:  # zlib.error, struct.error and whatever else a hostile archive provokes
        raise UnreadableError("is damaged: its packed parts cannot be read") from error
    return out.getvalue()


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
