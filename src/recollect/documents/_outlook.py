"""What kreuzberg leaves out of Outlook's messages ([MS-OXMSG]): what is attached, and where they stand in a thread."""

from __future__ import annotations

import email
import email.policy
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.message import EmailMessage

from recollect.documents._mail import thread_of
from recollect.documents._parsed import AttachedFile
from recollect.model.attached import attached_name

# Compound files ([MS-CFB]), which Outlook's messages are: storages with streams, like folders with files.


_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_LAST = 0xFFFFFFFA  # and what is above it says that there is no further sector
_NONE = 0xFFFFFFFF
_ENTRY = 128
_MOST_ENTRIES = 100_000
_DEEPEST_STORAGE = 20


class CompoundFileError(ValueError):
    """The file is damaged."""


@dataclass(slots=True)
class Storage:
    """A storage.

    Attributes:
        streams: What its streams hold, by name.
        storages: Those in it, by name.
    """

    streams: dict[str, bytes] = field(default_factory=dict)
    storages: dict[str, Storage] = field(default_factory=dict)


def read_compound(data: bytes) -> Storage:
    """The root storage of a compound file, with all that is in it.

    No sector is read for two streams' sake more often than the file has sectors, so what comes out is no longer than
    what went in.

    Raises:
        CompoundFileError: It is none, or damaged.
    """
    try:
        return _Reader(data).root()
    except (struct.error, IndexError, UnicodeDecodeError) as exc:
        raise CompoundFileError("it is damaged") from exc


class _Reader:
    def __init__(self, data: bytes) -> None:
        if not data.startswith(_MAGIC) or len(data) < 512:
            raise CompoundFileError("it is no compound file")
        self._data = data
        shift, mini_shift = struct.unpack_from("<HH", data, 30)
        if shift not in {9, 12} or mini_shift != 6:
            raise CompoundFileError("its sectors have an impossible size")
        self._sector, self._mini_sector = 1 << shift, 1 << mini_shift
        self._left = 2 * len(data) + self._sector
        directory, _, self._cutoff, mini_table = struct.unpack_from("<4I", data, 48)
        self._table = self._numbers(b"".join(self._at(number) for number in self._tables()))
        self._entries = self._chain(directory)
        self._mini_table = self._numbers(self._chain(mini_table)) if mini_table < _LAST else ()
        start, size = self._extent(0)
        self._mini = self._chain(start)[:size] if start < _LAST else b""
        self._seen: set[int] = set()

    def root(self) -> Storage:
        return self._storage(0, 0)

    def _tables(self) -> Iterator[int]:
        """The sectors that say which sector follows which."""
        first, count = struct.unpack_from("<2I", self._data, 68)
        numbers = list(struct.unpack_from("<109I", self._data, 76))
        seen: set[int] = set()
        while first < _LAST and count and first not in seen:
            seen.add(first)
            *more, first = self._numbers(self._at(first))
            numbers += more
            count -= 1
        return (one for one in numbers if one < _LAST)

    def _at(self, number: int) -> bytes:
        """A sector; each time one is read counts."""
        self._left -= self._sector
        start = (number + 1) * self._sector
        if self._left < 0 or start >= len(self._data):
            raise CompoundFileError("its sectors refer to one another")
        return self._data[start : start + self._sector]

    def _chain(self, number: int) -> bytes:
        parts: list[bytes] = []
        while number < _LAST:
            parts.append(self._at(number))
            number = self._table[number]
        return b"".join(parts)

    def _mini_chain(self, number: int) -> bytes:
        parts: list[bytes] = []
        while number < _LAST:
            self._left -= self._mini_sector
            if self._left < 0:
                raise CompoundFileError("its sectors refer to one another")
            parts.append(self._mini[number * self._mini_sector : (number + 1) * self._mini_sector])
            number = self._mini_table[number]
        return b"".join(parts)

    def _storage(self, number: int, depth: int) -> Storage:
        storage = Storage()
        for child in self._children(number):
            name, kind = self._named(child)
            if kind == 2:
                start, size = self._extent(child)
                whole = self._chain(start) if size >= self._cutoff else self._mini_chain(start)
                storage.streams[name] = whole[:size]
            elif kind == 1 and depth < _DEEPEST_STORAGE:
                storage.storages[name] = self._storage(child, depth + 1)
        return storage

    def _children(self, number: int) -> list[int]:
        """The entries of a storage, which hang on one another as a tree."""
        found: list[int] = []
        waiting = [struct.unpack_from("<I", self._entries, number * _ENTRY + 76)[0]]
        while waiting:
            one = waiting.pop()
            if one == _NONE or one in self._seen or len(self._seen) >= _MOST_ENTRIES:
                continue
            self._seen.add(one)
            found.append(one)
            waiting += struct.unpack_from("<2I", self._entries, one * _ENTRY + 68)
        return found

    def _named(self, number: int) -> tuple[str, int]:
        at = number * _ENTRY
        length = min(struct.unpack_from("<H", self._entries, at + 64)[0], 64)
        return self._entries[at : at + max(length - 2, 0)].decode("utf-16-le"), self._entries[at + 66]

    def _extent(self, number: int) -> tuple[int, int]:
        start, size = struct.unpack_from("<II", self._entries, number * _ENTRY + 116)
        return start, size

    @staticmethod
    def _numbers(data: bytes) -> tuple[int, ...]:
        return struct.unpack(f"<{len(data) // 4}I", data[: len(data) // 4 * 4])


_ATTACHMENT = "__attach_version1.0_#"
_EMBEDDED = "__substg1.0_3701000D"
_MOST_LETTERS = 5_000_000
_DEEPEST = 6


def outlook_parts(data: bytes) -> tuple[list[AttachedFile], dict[str, str]]:
    """What is attached to a message, and its place in a thread; nothing of one that is damaged.

    Messages that are attached to it are given as EML files, with what is attached to them.
    """
    try:
        root = read_compound(data)
    except CompoundFileError:
        return [], {}
    headers = email.message_from_string(_text(root, "007D")[:200_000], policy=email.policy.compat32)
    raw = {name.title(): str(value) for name, value in reversed(list(headers.raw_items()))}
    raw.setdefault("Message-Id", _text(root, "1035"))
    raw.setdefault("In-Reply-To", _text(root, "1042"))
    raw.setdefault("References", _text(root, "1039"))
    return _attached(root, 0), thread_of(raw)


def _attached(storage: Storage, depth: int) -> list[AttachedFile]:
    found: list[AttachedFile] = []
    for key in sorted(name for name in storage.storages if name.startswith(_ATTACHMENT)):
        part = storage.storages[key]
        own_name, media = _text(part, "3707") or _text(part, "3704"), _text(part, "370E").lower()
        content = part.streams.get("__substg1.0_37010102", b"")
        if _EMBEDDED in part.storages and depth < _DEEPEST:
            media = "message/rfc822"
            content = _as_eml(part.storages[_EMBEDDED], depth + 1)
            own_name = own_name or _text(part, "3001")
        name = own_name.removesuffix(".msg") + ".eml" if media == "message/rfc822" and own_name else own_name
        named = f"{len(found) + 1}-{attached_name(name or None, media)}"
        found.append(AttachedFile(name=named, own_name=own_name, mime_type=media, data=content))
    return found


def _as_eml(storage: Storage, depth: int) -> bytes:
    """A message in a message, as one of the Internet."""
    message = EmailMessage()
    for name, key in (("Subject", "0037"), ("From", "0C1A"), ("To", "0E04")):
        value = " ".join(_text(storage, key).split())[:500]
        if value:
            # As text: names without addresses are what Outlook keeps of senders within a company.
            message[name] = value.replace("<", "").replace(">", "") if name != "Subject" else value
    if "Subject" not in message:
        message["Subject"] = "Message"
    message.set_content(_text(storage, "1000") or _html(storage), subtype="plain" if _text(storage, "1000") else "html")
    for one in _attached(storage, depth):
        main, _, sub = (one.mime_type or "application/octet-stream").partition("/")
        if main in {"message", "multipart"}:
            main, sub = "application", "octet-stream"
        message.add_attachment(
            one.data, maintype=main, subtype=sub or "octet-stream", filename=one.own_name or one.name
        )
    return message.as_bytes()


def _html(storage: Storage) -> str:
    data = storage.streams.get("__substg1.0_10130102", b"") or storage.streams.get("__substg1.0_1013001F", b"")
    return data.decode("utf-8", "replace")[:_MOST_LETTERS] or " "


def _text(storage: Storage, key: str) -> str:
    """A property that is text, in either of the forms that it is kept in."""
    wide = storage.streams.get(f"__substg1.0_{key}001F")
    if wide is not None:
        return wide.decode("utf-16-le", "replace").rstrip("\0")[:_MOST_LETTERS]
    return storage.streams.get(f"__substg1.0_{key}001E", b"").decode("cp1252", "replace").rstrip("\0")[:_MOST_LETTERS]
