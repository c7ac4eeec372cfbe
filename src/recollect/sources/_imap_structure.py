"""What a message on an IMAP server consists of, without its contents being read (RFC 3501, 7.4.2)."""

from __future__ import annotations

from dataclasses import dataclass
from email.errors import MessageError
from email.header import decode_header, make_header
from email.utils import decode_rfc2231
from urllib.parse import unquote

from recollect.model.attached import attached_name
from recollect.sources._imap_session import Value


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a message: its number, what it is called, how it is encoded, and how long it is."""

    section: str
    name: str
    encoding: str
    size: int
    is_text: bool


def parts_of(structure: list[Value], at: str = "") -> list[Part]:
    """The leaves of a message's structure (RFC 3501, 7.4.2), with a name where they are attached."""
    if structure and isinstance(structure[0], list):
        found: list[Part] = []
        for index, inner in enumerate(structure, 1):
            if not isinstance(inner, list):
                break
            found += parts_of(inner, f"{at}.{index}" if at else str(index))
        return found
    if len(structure) < 7:
        return []
    kind, subtype, given, _, _, encoding, size = structure[:7]
    media = f"{_text(kind)}/{_text(subtype)}".lower()
    params = _params(given)
    disposition = next(
        (one for one in structure[7:] if isinstance(one, list) and len(one) == 2 and _is_word(one[0])), None
    )
    placed, how = (_text(disposition[0]).lower(), _params(disposition[1])) if disposition else ("", {})
    name = how.get("filename") or params.get("name")
    if name is None and (placed == "attachment" or media == "message/rfc822"):
        name = "attached"
    section = at or "1"
    safe = attached_name(name, media) if name else ""
    return [Part(section, safe, _text(encoding).lower(), number(size), media.startswith("text/"))]


def _is_word(value: Value) -> bool:
    return isinstance(value, bytes) and value.lower() in {b"attachment", b"inline"}


def _text(value: Value) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""


def _params(given: Value) -> dict[str, str]:
    if not isinstance(given, list):
        return {}
    found: dict[str, str] = {}
    for name, value in zip(given[::2], given[1::2], strict=False):
        key, text = _text(name).lower(), _text(value)
        # Long ones come in numbered pieces: filename*0*, filename*1*.
        plain, marked, _ = key.partition("*")
        found[plain] = found.get(plain, "") + text if marked else text
        if marked and key.endswith("*"):
            found[plain + "*"] = "encoded"
    return {name: _readable(text, encoded=f"{name}*" in found) for name, text in found.items()}


def _readable(text: str, *, encoded: bool) -> str:
    try:
        if encoded:
            charset, _, rest = decode_rfc2231(text)
            return unquote(rest, charset or "utf-8", "replace")
        return str(make_header(decode_header(text)))
    except (MessageError, LookupError, ValueError):
        return text


def number(value: Value) -> int:
    """A number as a server writes it; 0 where it writes none."""
    return int(value) if isinstance(value, bytes) and value.isdigit() and len(value) < 20 else 0
