"""E-mail messages (RFC 5322), read by the standard library."""

from __future__ import annotations

import email
import email.policy
from email.message import EmailMessage

from recollect.documents._html import parse_html
from recollect.documents._parsed import Parsed, TextBuilder, one_line
from recollect.documents._text import NotTextError, decode
from recollect.documents._times import plausible
from recollect.documents.formats import UnreadableError

_LONGEST_HEADER = 5000
_SHOWN = ("Subject", "From", "To", "Cc", "Date")


def parse_mail(data: bytes) -> Parsed:
    """A message: its main header lines, then its text (the plain part where there is one, else the HTML part).

    Attachments are named in the metadata and not read.

    Raises:
        UnreadableError: It is no message.
    """
    try:
        message = email.message_from_bytes(data, policy=email.policy.default)
        raw = {name.title(): str(value) for name, value in reversed(list(message.raw_items()))}
        shown = {name: text for name in _SHOWN if name in raw and (text := _header(message, name, raw[name]))}
        body = _body(message)
        attached = [name for part in message.iter_attachments() if (name := part.get_filename())]
        sent = message["Date"].datetime if len(raw.get("Date", "")) in range(1, _LONGEST_HEADER) else None
    except Exception as error:  # the standard library's header parser raises almost anything on hostile headers
        raise UnreadableError("is damaged, or not an e-mail") from error
    if not shown:
        raise UnreadableError("is damaged, or not an e-mail: it has no header lines")
    builder = TextBuilder()
    builder.paragraph("\n".join(f"{name}: {value}" for name, value in shown.items()))
    if body is not None:
        builder.extend(body)
    content, headings = builder.result()
    facts = {"author": shown.get("From"), "attachments": ", ".join(map(one_line, attached))[:500]}
    return Parsed(
        content=content,
        headings=headings,
        title=shown.get("Subject"),
        event_time=plausible(sent),
        metadata={name: value for name, value in facts.items() if value},
    )


def _header(message: EmailMessage, name: str, raw: str) -> str:
    """A header line decoded; a very long one as it stands, cut off, because parsing takes quadratic time."""
    return one_line(str(message[name]) if len(raw) <= _LONGEST_HEADER else raw[:_LONGEST_HEADER])


def _body(message: EmailMessage) -> Parsed | None:
    part = message.get_body(preferencelist=("plain", "html"))
    if part is None:
        return None
    payload = part.get_payload(decode=True)
    if not isinstance(payload, bytes) or not payload.strip():
        return None
    if part.get_content_type() == "text/html":
        return parse_html(payload)
    try:
        text = payload.decode(part.get_content_charset() or "utf-8")
    except (UnicodeDecodeError, LookupError, ValueError):
        try:
            text = decode(payload)
        except NotTextError:
            return None
    return Parsed(content=decode(text.encode("utf-8", "replace")).strip())
