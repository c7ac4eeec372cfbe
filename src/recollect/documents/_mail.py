"""E-mail messages (RFC 5322), read by the standard library."""

from __future__ import annotations

import email
import email.policy
import re
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from email.message import EmailMessage, Message, MIMEPart

from recollect.documents._html import parse_html
from recollect.documents._mail_marks import marks_of
from recollect.documents._parsed import AttachedFile, Parsed, TextBuilder, one_line
from recollect.documents._text import NotTextError, clean, decode, decode_declared
from recollect.documents._times import plausible
from recollect.documents._tnef import is_tnef, unpack_tnef
from recollect.documents.formats import UnreadableError
from recollect.model.attached import attached_name

_LONGEST_HEADER = 5000
_SHOWN = ("Subject", "From", "To", "Cc", "Date")
_MESSAGE = "message/rfc822"
_ID = re.compile(r"<[^<>\s]{1,250}>")
_MOST_REFERENCES = 50
# Of the letters of the HTML part: a plain one with fewer is a stand-in.
_HARDLY_ANY = 0.25
_AS_MUCH, _TABLE = 0.9, "\n|---|"
# A picture of a signature or a letterhead: shown inside the text, and too small to say much.
_ORNAMENT_BYTES = 50_000


def parse_mail(data: bytes) -> Parsed:
    """A message: its main header lines, then its text (see `_body` for which, where it comes in several forms).

    What it quotes at its end and its signature stay in the text, each under a heading of its own. What is attached is
    not part of the text; it is given in ``attached``.

    Raises:
        UnreadableError: It is no message.
    """
    try:
        message = email.message_from_bytes(data, policy=email.policy.default)
        raw = {name.title(): str(value) for name, value in reversed(list(message.raw_items()))}
        shown = {name: text for name in _SHOWN if name in raw and (text := _header(message, name, raw[name]))}
        texts, attached = _parts(message)
        sent = message["Date"].datetime if len(raw.get("Date", "")) in range(1, _LONGEST_HEADER) else None
    except RecursionError as error:
        raise UnreadableError(
            "has parts within parts, too deep to be read; save what is innermost on its own"
        ) from error
    except Exception as error:  # the standard library's header parser raises almost anything on hostile headers
        raise UnreadableError("is damaged, or not an e-mail") from error
    if not shown:
        raise UnreadableError("is damaged, or not an e-mail: it has no header lines")
    builder = TextBuilder()
    builder.paragraph("\n".join(f"{name}: {value}" for name, value in shown.items()))
    for one in texts:
        builder.extend(one)
    content, headings = builder.result()
    names = [one_line(file.own_name) for file in attached if file.own_name]
    facts = {"author": shown.get("From", "")[:500], "attachments": ", ".join(names)[:500], **thread_of(raw)}
    return Parsed(
        content=content,
        headings=headings,
        title=shown.get("Subject") or _opening(texts),
        event_time=plausible(sent),
        metadata={name: value for name, value in facts.items() if value},
        attached=attached,
    )


def _header(message: EmailMessage, name: str, raw: str) -> str:
    """A header line decoded; a very long one as it stands, cut off, because parsing takes quadratic time."""
    return one_line(str(message[name]) if len(raw) <= _LONGEST_HEADER else raw[:_LONGEST_HEADER])


def thread_of(raw: Mapping[str, str]) -> dict[str, str]:
    """What a message says of those before it.

    ``thread`` is the same in all messages of one: the first that the message refers to, or itself.
    """
    own, answered, before = (
        _ID.findall(raw.get(name, "")[: 10 * _LONGEST_HEADER]) for name in ("Message-Id", "In-Reply-To", "References")
    )
    # Of a long thread the first says which one it is, and the last what is answered.
    kept = before if len(before) <= _MOST_REFERENCES else [before[0], *before[1 - _MOST_REFERENCES :]]
    first = next(iter([*before, *answered, *own]), "")
    return {
        "message_id": own[0] if own else "",
        "in_reply_to": answered[0] if answered else "",
        "references": " ".join(kept),
        "thread": first,
    }


def _opening(texts: Sequence[Parsed]) -> str | None:
    """The first line of the text of a message without a subject."""
    own = next((text.content for text in texts), "").lstrip()
    return own.partition("\n")[0][:80].strip() or None


def _parts(message: EmailMessage) -> tuple[list[Parsed], list[AttachedFile]]:
    """The texts of a message, and what is attached to it."""
    body = _body(message)
    texts: list[Parsed] = []
    attached: list[AttachedFile] = []
    for section, part, alternative in _leaves(message):
        media = part.get_content_type()
        given = _name(part)
        if part is body:
            texts += [text for text in [_text(part)] if text is not None]
        elif is_tnef(media, given):
            attached += unpack_tnef(_bytes(part), section)
        elif given is not None or media == _MESSAGE or part.get_content_disposition() == "attachment":
            if not _is_ornament(part):
                name = f"{section}-{attached_name(given, media)}"
                attached.append(AttachedFile(name=name, own_name=given or "", mime_type=media, data=_bytes(part)))
        elif media in {"text/plain", "text/html"} and not alternative:
            # What mailing lists append, and texts between pictures.
            texts += [text for text in [_text(part)] if text is not None]
    return texts, attached


def _body(message: EmailMessage) -> MIMEPart | None:
    """The part that holds a message's own text: the plain one, unless the HTML one says more.

    It does where the plain one is blank or asks for another program, and where it holds a table that is lines in the
    plain one.
    """
    plain, html = (message.get_body(preferencelist=(kind,)) for kind in ("plain", "html"))
    if plain is None or html is None:
        return html if plain is None else plain
    (said, shown) = (one.content if (one := _text(part)) is not None else "" for part in (plain, html))
    letters, more = (sum(map(str.isalnum, text)) for text in (said, shown))
    has_table = _TABLE in shown and _TABLE not in said and more >= _AS_MUCH * letters
    return html if letters < _HARDLY_ANY * more or has_table else plain


def _leaves(part: Message, at: str = "", *, alternative: bool = False) -> Iterator[tuple[str, EmailMessage, bool]]:
    """The parts of a message that are not made of parts, numbered as IMAP does (RFC 3501, 6.4.5).

    An attached message is one of them. With each: whether it says in another form what its neighbour says.
    """
    if part.get_content_maintype() == "multipart" and isinstance(part.get_payload(), list):
        inner = alternative or part.get_content_subtype() == "alternative"
        for index, one in enumerate(part.get_payload(), 1):
            yield from _leaves(one, f"{at}.{index}" if at else str(index), alternative=inner)
    elif isinstance(part, EmailMessage):
        yield at or "1", part, alternative


def _name(part: EmailMessage) -> str | None:
    try:
        return part.get_filename() or None
    except (LookupError, ValueError, UnicodeError):
        return None


def _is_ornament(part: EmailMessage) -> bool:
    if part.get_content_maintype() != "image" or part.get_content_disposition() == "attachment":
        return False
    return len(_bytes(part)) < _ORNAMENT_BYTES


def _bytes(part: EmailMessage) -> bytes:
    if part.get_content_type() != _MESSAGE:
        payload = part.get_payload(decode=True)
        return payload if isinstance(payload, bytes) else b""
    inner = part.get_payload(0) if part.is_multipart() else None
    if not isinstance(inner, Message):
        return b""
    if str(part.get("Content-Transfer-Encoding", "")).strip().lower() == "base64":
        # Against the standard, and sent nevertheless: the parser has taken the encoded lines for a message's text.
        return b64decode(str(inner.get_payload()))
    return inner.as_bytes(policy=email.policy.compat32)


def _text(part: MIMEPart) -> Parsed | None:
    payload = part.get_payload(decode=True)
    if not isinstance(payload, bytes) or not payload.strip():
        return None
    if part.get_content_type() == "text/html":
        read = parse_html(payload)
    else:
        text = decode_declared(payload, part.get_content_charset() or "utf-8")
        if text is None:
            try:
                text = decode(payload)
            except NotTextError:
                return None
        if str(part.get_param("format", "")).lower() == "flowed":
            text = _unflowed(text, without_spaces=str(part.get_param("delsp", "")).lower() == "yes")
        read = Parsed(content=clean(text).strip())
    return with_marks(read)


def _unflowed(text: str, *, without_spaces: bool) -> str:
    """Lines that a program has broken to be sent, whole again (RFC 3676): those end with a space.

    Args:
        text: Of a part whose format is ``flowed``.
        without_spaces: Whether those spaces are no part of the text.
    """
    whole: list[str] = []
    open_depth: int | None = None
    for line in text.splitlines():
        bare = line.lstrip(">")
        depth = len(line) - len(bare)
        bare = bare.removeprefix(" ")
        flows = bare.endswith(" ") and bare != "-- "
        if open_depth == depth and bare != "-- ":
            whole[-1] += bare
        else:
            whole.append(f"{'>' * depth} {bare}" if depth else bare)
        open_depth = depth if flows else None
        if flows and without_spaces:
            whole[-1] = whole[-1][:-1]
    return "\n".join(line.rstrip() if line != "-- " else line for line in whole)


def with_marks(read: Parsed) -> Parsed:
    """A message's text with headings where what it quotes begins, and its signature."""
    marks = marks_of(read.content)
    if not marks:
        return read
    return replace(read, headings=sorted([*read.headings, *marks], key=lambda one: one.start_offset))
