"""E-mail: messages with their threads, quotes, signatures and attachments, and what Outlook stores of them."""

from __future__ import annotations

import email
import email.policy
import re
import struct
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from email.message import EmailMessage, Message, MIMEPart

from recollect.documents._html import parse_html
from recollect.documents._parsed import AttachedFile, Parsed, TextBuilder, one_line, plausible
from recollect.documents._text import NotTextError, clean, decode, decode_declared
from recollect.documents.formats import UnreadableError
from recollect.model import Heading
from recollect.model.globs import attached_name

# Where a message's own text ends: its signature, and what it quotes or forwards.
#
# Neither is taken out of the text, and both begin a section of their own. So a passage is either what somebody wrote or
# what they quote, and says which; and who signs where can be found still. A quote that is answered line by line stays
# where it is: an answer says nothing without its question.

_LONGEST_LINE = 300
_LONGEST_SIGNATURE_LINES = 12
_LONGEST_SIGNATURE_LINE = 90
_HEADER_LINES = 6
# Each is looked at with all that follows it.
_MOST_ATTRIBUTIONS = 50

# What programs write above a message that they quote whole.
_BANNER = re.compile(
    r"[-_*= ]{2,}\s*(?:original message|original appointment|forwarded message|begin forwarded message|"
    r"ursprüngliche nachricht|weitergeleitete nachricht|message d'origine|message transféré|mensaje original|"
    r"mensaje reenviado|messaggio originale|messaggio inoltrato|oorspronkelijk bericht|doorgestuurd bericht|"
    r"mensagem original|mensagem encaminhada|oprindelig meddelelse|ursprungligt meddelande|wiadomość oryginalna|"
    r"исходное сообщение|пересылаемое сообщение|原始邮件|转发邮件|元のメッセージ)\s*[-_*= ]{2,}",
    re.IGNORECASE,
)
_ATTRIBUTION = re.compile(
    r".*(?:\bwrote|\bschrieb(?:en)?\b.*|\ba écrit|\bescribió|\bha scritto|\bschreef\b.*|\bescreveu|\bskrev\b.*|"
    r"\bnapisał(?:a|\(a\))?|\bпишет|\bнаписал(?:а|\(а\))?|写道|のメール|さんは書きました)\s*[:：]",
    re.IGNORECASE,
)
# The first lines of a message as Outlook repeats them: who, when, to whom.
_WHO = re.compile(r"(?:from|von|de|da|van|от|发件人|差出人)\s?[:：]\s*\S", re.IGNORECASE)
_WHEN = re.compile(
    r"(?:sent|date|gesendet|datum|envoyé|enviado(?: el)?|fecha|inviato|data|verzonden|enviada em|отправлено|дата|"
    r"发送时间|送信日時)\s?[:：]",
    re.IGNORECASE,
)
_WHOM = re.compile(
    r"(?:to|an|à|para|a|aan|кому|收件人|宛先|subject|betreff|objet|asunto|oggetto)\s?[:：]", re.IGNORECASE
)
_CLOSING = re.compile(
    r"(?:(?:with\s+)?(?:best|kind|kindest|warm|warmest|many)\s+(?:regards|wishes|thanks)|regards|best|cheers|"
    r"(?:yours\s+)?(?:sincerely|faithfully|truly)(?:\s+yours)?|thanks|thank you|"
    r"(?:mit\s+)?(?:freundlichen?|besten?|herzlichen?|lieben?|vielen?|schönen?)\s+gr(?:ü|ue)(?:ß|ss)e?n?|mfg|gruß|"
    r"(?:bien\s+)?cordialement|salutations|saludos(?: cordiales)?|atentamente|(?:cordiali|distinti)\s+saluti|"
    r"met vriendelijke groet(?:en)?|atenciosamente|med vänlig hälsning|с уважением|此致|よろしくお願いします)\s*[,.!]?",
    re.IGNORECASE,
)
_SENT_FROM = re.compile(r"(?:sent from my|von meinem|envoyé de mon|get outlook for)\b.{0,40}", re.IGNORECASE)


def marks_of(text: str) -> list[Heading]:
    """Headings where a message's signature and what it quotes begin, in order; none where there is neither.

    Args:
        text: Of the message, without its header lines.
    """
    lines, starts = _lines(text)
    quoted = _quote_begins(lines)
    end = len(lines) if quoted is None else quoted
    signed = _signature_begins(lines[:end])
    marks: list[Heading] = []
    if signed is not None:
        marks.append(_mark("Signature", starts[signed], lines[signed]))
    if quoted is not None and any(line.strip() for line in lines[:quoted]):
        title = lines[quoted].strip().strip("-_*= ")[:100]
        named = title if title and not title.startswith(">") else "Quoted message"
        marks.append(_mark(named, starts[quoted], lines[quoted]))
    return marks


def _mark(title: str, start: int, line: str) -> Heading:
    return Heading(1, title, start, start + len(line))


def _lines(text: str) -> tuple[list[str], list[int]]:
    lines = text.split("\n")
    starts: list[int] = []
    at = 0
    for line in lines:
        starts.append(at)
        at += len(line) + 1
    return lines, starts


def _quote_begins(lines: list[str]) -> int | None:
    """The line from which on a message says what others said."""
    looked = 0
    for at, line in enumerate(lines):
        if len(line) > _LONGEST_LINE:
            continue
        plain = line.strip()
        if _BANNER.fullmatch(plain) or _is_header(lines, at):
            return at
        if looked < _MOST_ATTRIBUTIONS and not plain.startswith(">") and _ATTRIBUTION.fullmatch(plain):
            looked += 1
            if _only_quotes(lines, at + 1, html=True):
                return at
    return _trailing_quote(lines)


def _is_header(lines: list[str], at: int) -> bool:
    """Whether the header of another message stands here."""
    if not _WHO.match(lines[at].strip().lstrip("*")):
        return False
    below = [line.strip().lstrip("*")[:_LONGEST_LINE] for line in lines[at + 1 : at + _HEADER_LINES]]
    return any(map(_WHEN.match, below)) and any(map(_WHOM.match, below))


def _only_quotes(lines: list[str], at: int, *, html: bool = False) -> bool:
    """Whether nothing of the message's own follows, but a signature.

    Args:
        lines: Of the message.
        at: From here on.
        html: Whether lines may be quoted without a mark: then none of them has one.
    """
    below = [line for line in lines[at:] if line.strip()]
    marked = [line.startswith(">") for line in below]
    if html and below and not any(marked):
        return True
    if True not in marked:
        return False
    last = len(marked) - 1 - marked[::-1].index(True)
    own = [line for line, is_marked in zip(below[:last], marked[:last], strict=True) if not is_marked]
    return not own and len(below) - last - 1 <= _LONGEST_SIGNATURE_LINES


def _trailing_quote(lines: list[str]) -> int | None:
    """Where the quote begins that a message ends with, with the line above it that says whose it is."""
    at = len(lines)
    while at and (not lines[at - 1].strip() or lines[at - 1].startswith(">")):
        at -= 1
    first = next((index for index in range(at, len(lines)) if lines[index].startswith(">")), None)
    if first is None:
        return None
    above = at - 1
    while above >= 0 and first - above <= 2 and lines[above].strip().endswith((":", "：")):
        return above
    return first


def _signature_begins(lines: list[str]) -> int | None:
    """The line that a signature begins with: ``-- ``, or a closing phrase over a few short lines."""
    for at in range(len(lines) - 1, max(-1, len(lines) - 60), -1):
        if lines[at].rstrip() == "--" and at:
            return at
    for at in range(len(lines) - 1, max(0, len(lines) - _LONGEST_SIGNATURE_LINES - 8), -1):
        plain = lines[at].strip()
        if len(plain) > _LONGEST_SIGNATURE_LINE:
            return None
        if _CLOSING.fullmatch(plain) or _SENT_FROM.fullmatch(plain):
            below = [line for line in lines[at + 1 :] if line.strip()]
            return at if len(below) <= _LONGEST_SIGNATURE_LINES else None
    return None


# What Outlook wraps attachments in where it thinks that its own kind reads them: ``winmail.dat`` ([MS-OXTNEF]).

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


# What kreuzberg leaves out of Outlook's messages ([MS-OXMSG]): what is attached, and where they stand in a thread.


# Compound files ([MS-CFB]), which Outlook's messages are: storages with streams, like folders with files.

_COMPOUND_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
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
        if not data.startswith(_COMPOUND_MAGIC) or len(data) < 512:
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
    headers = email.message_from_string(_property(root, "007D")[:200_000], policy=email.policy.compat32)
    raw = {name.title(): str(value) for name, value in reversed(list(headers.raw_items()))}
    raw.setdefault("Message-Id", _property(root, "1035"))
    raw.setdefault("In-Reply-To", _property(root, "1042"))
    raw.setdefault("References", _property(root, "1039"))
    return _attached(root, 0), thread_of(raw)


def _attached(storage: Storage, depth: int) -> list[AttachedFile]:
    found: list[AttachedFile] = []
    for key in sorted(name for name in storage.storages if name.startswith(_ATTACHMENT)):
        part = storage.storages[key]
        own_name, media = _property(part, "3707") or _property(part, "3704"), _property(part, "370E").lower()
        content = part.streams.get("__substg1.0_37010102", b"")
        if _EMBEDDED in part.storages and depth < _DEEPEST:
            media = "message/rfc822"
            content = _as_eml(part.storages[_EMBEDDED], depth + 1)
            own_name = own_name or _property(part, "3001")
        name = own_name.removesuffix(".msg") + ".eml" if media == "message/rfc822" and own_name else own_name
        named = f"{len(found) + 1}-{attached_name(name or None, media)}"
        found.append(AttachedFile(name=named, own_name=own_name, mime_type=media, data=content))
    return found


def _as_eml(storage: Storage, depth: int) -> bytes:
    """A message in a message, as one of the Internet."""
    message = EmailMessage()
    for name, key in (("Subject", "0037"), ("From", "0C1A"), ("To", "0E04")):
        value = " ".join(_property(storage, key).split())[:500]
        if value:
            # As text: names without addresses are what Outlook keeps of senders within a company.
            message[name] = value.replace("<", "").replace(">", "") if name != "Subject" else value
    if "Subject" not in message:
        message["Subject"] = "Message"
    plain = _property(storage, "1000")
    message.set_content(plain or _html(storage), subtype="plain" if plain else "html")
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


def _property(storage: Storage, key: str) -> str:
    """A property that is text, in either of the forms that it is kept in."""
    wide = storage.streams.get(f"__substg1.0_{key}001F")
    if wide is not None:
        return wide.decode("utf-16-le", "replace").rstrip("\0")[:_MOST_LETTERS]
    return storage.streams.get(f"__substg1.0_{key}001E", b"").decode("cp1252", "replace").rstrip("\0")[:_MOST_LETTERS]
