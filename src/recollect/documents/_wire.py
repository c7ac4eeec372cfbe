"""What travels between a parent and its parsers: a JSON object and bytes, each with its length before it."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from recollect.documents._parsed import AttachedFile, Parsed
from recollect.model import Heading, PageSpan

#: Lengths of a message's two parts.
LENGTHS = struct.Struct(">IQ")


def as_message(parsed: Parsed) -> tuple[dict[str, Any], bytes]:
    """What was parsed, as what travels: no pickle, because a parser that was taken over may write anything."""
    return {
        "headings": [[one.level, one.title, one.start_offset, one.end_offset] for one in parsed.headings],
        "pages": [page.as_list() for page in parsed.pages],
        "title": parsed.title,
        "event_time": parsed.event_time.isoformat() if parsed.event_time else None,
        "metadata": dict(parsed.metadata),
        "permissions": parsed.permissions,
        "mime_type": parsed.mime_type,
        "unread": list(parsed.unread),
        "attached": [[one.name, one.own_name, one.mime_type, len(one.data)] for one in parsed.attached],
    }, b"".join([parsed.content.encode("utf-8", "surrogatepass"), *(one.data for one in parsed.attached)])


def from_message(message: dict[str, Any], data: bytes) -> Parsed:
    """The other way round.

    Raises:
        ValueError: It is not what `as_message` writes. (So are KeyError, TypeError and OverflowError.)
    """
    lengths = [int(length) for *_, length in message["attached"]]
    if min(lengths, default=0) < 0 or sum(lengths) > len(data):
        raise ValueError("attached files of impossible lengths")
    end = len(data) - sum(lengths)
    content = data[:end].decode("utf-8", "surrogatepass")
    time, permissions = message["event_time"], message["permissions"]
    parsed = Parsed(
        content=content,
        headings=[Heading(level, title, start, end) for level, title, start, end in message["headings"]],
        pages=[PageSpan.of_list(page) for page in message["pages"]],
        title=message["title"],
        event_time=None if time is None else datetime.fromisoformat(time),
        metadata=message["metadata"],
        permissions=None if permissions is None else tuple(permissions),
        mime_type=message["mime_type"],
        unread=[int(number) for number in message["unread"]],
        attached=list(_attached(message["attached"], data[end:])),
    )
    spans = [(heading.start_offset, heading.end_offset) for heading in parsed.headings]
    spans += [(line.start_offset, line.end_offset) for page in parsed.pages for line in page.lines]
    spans += [(page.start_offset, page.end_offset) for page in parsed.pages]
    if not all(0 <= start <= end <= len(content) for start, end in spans):
        raise ValueError("offsets outside the content")
    return parsed


def _attached(told: list[list[Any]], data: bytes) -> Iterator[AttachedFile]:
    at = 0
    for name, own_name, mime_type, length in told:
        yield AttachedFile(
            name=str(name), own_name=str(own_name), mime_type=str(mime_type), data=data[at : at + length]
        )
        at += length


def send(descriptor: int, message: dict[str, Any], data: bytes = b"") -> None:
    """Write a message."""
    for part in (packed(message, len(data)), data):
        view = memoryview(part)
        while view:
            view = view[os.write(descriptor, view) :]


def packed(message: Mapping[str, object], data_length: int) -> bytes:
    """A message as far as its bytes."""
    head = json.dumps(message).encode()
    return LENGTHS.pack(len(head), data_length) + head


def receive(descriptor: int) -> tuple[dict[str, Any], bytes] | None:
    """Read a message; None where there is no more."""
    lengths = _exactly(descriptor, LENGTHS.size)
    if lengths is None:
        return None
    head_length, data_length = LENGTHS.unpack(lengths)
    head, data = _exactly(descriptor, head_length), _exactly(descriptor, data_length)
    return None if head is None or data is None else (json.loads(head), bytes(data))


def _exactly(descriptor: int, length: int) -> bytearray | None:
    found = bytearray(length)
    view = memoryview(found)
    while view:
        count = os.readv(descriptor, [view])
        if not count:
            return None
        view = view[count:]
    return found
