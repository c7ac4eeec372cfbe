"""Amazon's binary event stream, as its services send it: a prelude, headers and a payload, each with a CRC-32."""

from __future__ import annotations

import json
import struct
import zlib

_STRING = 7


def _header(name: str, value: str) -> bytes:
    key, text = name.encode(), value.encode()
    return struct.pack("!B", len(key)) + key + struct.pack("!BH", _STRING, len(text)) + text


def message(headers: dict[str, str], payload: bytes) -> bytes:
    block = b"".join(_header(name, value) for name, value in headers.items())
    total = 12 + len(block) + len(payload) + 4
    prelude = struct.pack("!II", total, len(block))
    prelude += struct.pack("!I", zlib.crc32(prelude))
    body = prelude + block + payload
    return body + struct.pack("!I", zlib.crc32(body))


def event(kind: str, content: dict[str, object]) -> bytes:
    headers = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
    return message(headers, json.dumps(content, ensure_ascii=False).encode())


def exception(kind: str, text: str) -> bytes:
    """A failure that the service's model declares, such as ``throttlingException``."""
    headers = {":exception-type": kind, ":content-type": "application/json", ":message-type": "exception"}
    return message(headers, json.dumps({"message": text}).encode())


def error(code: str, text: str) -> bytes:
    """A failure that it does not declare."""
    return message({":error-code": code, ":error-message": text, ":message-type": "error"}, b"")
