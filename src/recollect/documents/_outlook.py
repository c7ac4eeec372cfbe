"""What kreuzberg leaves out of Outlook's messages ([MS-OXMSG]): what is attached, and where they stand in a thread."""

from __future__ import annotations

import email
import email.policy
from email.message import EmailMessage

from recollect.documents._cfb import CompoundFileError, Storage, read_compound
from recollect.documents._mail import thread_of
from recollect.documents._parsed import AttachedFile
from recollect.model.attached import attached_name

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
