"""What Outlook wraps attachments in where it thinks that its own kind reads them: ``winmail.dat`` ([MS-OXTNEF])."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from recollect.documents._parsed import AttachedFile
from recollect.model.attached import attached_name

_MAGIC = 0x223E9F78
_HEAD = struct.Struct("<BII")
_ATTACHMENT_BEGINS = 0x00069002
_TITLE = 0x00018010
_DATA = 0x0006800F
_PROPERTIES = 0x00069005
_LONG_NAME = b"\x1f\x00\x07\x37"  # PidTagAttachLongFilename as UTF-16
_NAMES = {"winmail.dat", "win.dat"}
_TYPES = {"application/ms-tnef", "application/vnd.ms-tnef"}


def is_tnef(mime_type: str, name: str | None) -> bool:
    """Whether a part of a message is such a wrapping."""
    return mime_type in _TYPES or (name or "").lower() in _NAMES


def unpack_tnef(data: bytes, section: str) -> list[AttachedFile]:
    """What is attached inside; what is damaged ends where the damage begins.

    Args:
        data: The wrapping.
        section: Its number in the message: what is in it is numbered below that.
    """
    found: list[tuple[str, bytes]] = []
    for kind, value in _attributes(data):
        if kind == _ATTACHMENT_BEGINS:
            found.append(("", b""))
        elif not found:
            continue
        elif kind == _TITLE and not found[-1][0]:
            found[-1] = (value.rstrip(b"\0").decode("cp1252", "replace"), found[-1][1])
        elif kind == _DATA:
            found[-1] = (found[-1][0], value)
        elif kind == _PROPERTIES:
            found[-1] = (_long_name(value) or found[-1][0], found[-1][1])
    return [
        AttachedFile(
            name=f"{section}.{number}-{attached_name(name or None, '')}", own_name=name, mime_type="", data=content
        )
        for number, (name, content) in enumerate(found, 1)
    ]


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    if len(data) < 6 or int.from_bytes(data[:4], "little") != _MAGIC:
        return
    at = 6
    while at + _HEAD.size <= len(data):
        _, kind, length = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        if length > len(data) - at:
            return
        yield kind, data[at : at + length]
        at += length + 2  # its checksum


def _long_name(properties: bytes) -> str:
    """The name among an attachment's properties: one value, its length in bytes, UTF-16 with a zero at its end."""
    at = properties.find(_LONG_NAME)
    if at < 0 or properties[at + 4 : at + 8] != b"\x01\0\0\0":
        return ""
    length = int.from_bytes(properties[at + 8 : at + 12], "little")
    return properties[at + 12 : at + 12 + min(length, 1024)].decode("utf-16-le", "replace").rstrip("\0")
