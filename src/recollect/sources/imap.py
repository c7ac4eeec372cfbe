"""Mailboxes on a server that speaks IMAP: messages, and what is attached to them."""

from __future__ import annotations

import imaplib
import io
import json
import re
import socket
import ssl
import threading
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from email import message_from_bytes
from email.errors import MessageError
from email.header import decode_header, make_header
from email.utils import decode_rfc2231
from functools import partial
from quopri import decodestring
from typing import ClassVar, TypeAlias, TypeVar
from urllib.parse import unquote, urlsplit

from pydantic import Field, field_validator

from recollect.errors import ParseError, SourceError, UsageError
from recollect.model.attached import attached_name, stored_name
from recollect.model.principal import read_permissions
from recollect.sources.base import (
    Change,
    Checkpoint,
    ConnectorSettings,
    Content,
    Found,
    Item,
    ItemGoneError,
    ListingBegins,
    ListingEnds,
    SecretReference,
    Surroundings,
)
from recollect.sources.rules import GrantRules

# A connection to an IMAP server: to a checked address, within a time, and no more than so many bytes a reply.


#: What a reply holds: atoms and texts as bytes, NIL as None, numbers as they are written, lists.
Value: TypeAlias = "bytes | list[Value] | None"

# A list of the numbers of five million messages; nothing else that is asked for is as long, but for what is fetched.
_REPLY_BYTES = 64 * 1024 * 1024
_DEEPEST = 64
_TOKEN = re.compile(rb'\s*(?:(\()|(\))|"((?:[^"\\]|\\.)*)"|([^\s()"]+))')
_LITERAL = re.compile(rb"\{(\d+)\+?\}$")
_ENCODED = re.compile(r"[^\x20-\x7e]+|&")
_SHIFTED = re.compile(r"&([A-Za-z0-9+,]*)-")
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f]")


class ReplyError(Exception):
    """The server says what no server should: more than was asked for, or what cannot be understood."""


class _TimedStream(io.RawIOBase):
    """What comes over a socket, until a moment: a server that sends a byte now and then does not hold anybody up."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self.deadline = float("inf")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("the server takes too long")
        self._sock.settimeout(min(left, 3600.0))
        return self._sock.recv_into(buffer)  # type: ignore[arg-type]


class Session(imaplib.IMAP4):
    """An IMAP connection.

    Args:
        host: The server's name, which its certificate is for.
        addresses: What to connect to, in order.
        port: Of the server.
        context: For TLS; None: as it is.
        starttls: Whether TLS begins after the greeting.
        timeout_seconds: For each command.
    """

    def __init__(
        self,
        host: str,
        addresses: Sequence[str],
        port: int,
        *,
        context: ssl.SSLContext | None,
        starttls: bool,
        timeout_seconds: float,
    ) -> None:
        self._addresses, self._context, self._starttls = addresses, context, starttls
        self._seconds = timeout_seconds
        self._left = _REPLY_BYTES
        super().__init__(host, port, timeout=timeout_seconds)
        if starttls and context is not None:
            self.begin()
            if "STARTTLS" not in self.capabilities:
                self.shutdown()
                raise ReplyError("its server offers no encryption, which somebody in between may have taken out")
            self.starttls(context)
            self.file.close()  # which `imaplib` has made, and which waits for ever
            self._listen()

    def begin(self, *, max_bytes: int = _REPLY_BYTES) -> None:
        """The next command has its own time, and its reply its own length."""
        self._stream.deadline = time.monotonic() + self._seconds
        self._left = max_bytes
        self.untagged_responses.clear()

    def open(self, host: str = "", port: int = 143, timeout: float | None = None) -> None:
        """Connect to the addresses that were checked; called by `imaplib`."""
        self.host, self.port = host, port
        self.sock = self._connected(port, timeout)
        if self._context is not None and not self._starttls:
            self.sock = self._context.wrap_socket(self.sock, server_hostname=host)
        self._listen()

    def _connected(self, port: int, timeout: float | None) -> socket.socket:
        problem = OSError("it has no address")
        for address in self._addresses:
            try:
                return socket.create_connection((address, port), timeout)
            except OSError as exc:
                problem = exc
        raise problem

    def _listen(self) -> None:
        self._stream = _TimedStream(self.sock)
        self._stream.deadline = time.monotonic() + self._seconds
        self.file = io.BufferedReader(self._stream)

    def read(self, size: int) -> bytes:
        """A literal, no longer than what may come; called by `imaplib`."""
        return self._counted(self.file.read(self._room(size)))  # type: ignore[arg-type]

    def readline(self) -> bytes:
        """A line, likewise."""
        return self._counted(self.file.readline(self._left + 1))  # type: ignore[arg-type]

    def _counted(self, data: bytes) -> bytes:
        self._left -= len(data)
        self._room(0)
        return data

    def _room(self, size: int) -> int:
        if size > self._left or self._left < 0:
            raise ReplyError("its server sends more than was asked for")
        return size


def values(parts: Sequence[object]) -> list[Value]:
    """The values of one reply of `imaplib`, whose literals are pairs of a line and bytes.

    Raises:
        ReplyError: It is not to be understood.
    """
    stack: list[list[Value]] = [[]]
    for part in parts:
        line, literal = part if isinstance(part, tuple) else (part, None)
        for token in _tokens(line if literal is None else _LITERAL.sub(b"", line)):
            _take(stack, token)
        if literal is not None:
            stack[-1].append(literal)
    if len(stack) > 1:
        raise ReplyError("its server does not close what it opened")
    return stack[0]


def _take(stack: list[list[Value]], token: bytes) -> None:
    if token == b"(":
        stack.append([])
        if len(stack) > _DEEPEST:
            raise ReplyError("its server nests lists without end")
    elif token == b")":
        done = stack.pop()
        if not stack:
            raise ReplyError("its server closes what it did not open")
        stack[-1].append(done)
    elif token[:1] == b'"':
        stack[-1].append(token[1:])
    else:
        stack[-1].append(None if token.upper() == b"NIL" else token)


def _tokens(line: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(line):
        found = _TOKEN.match(line, at)
        if found is None:
            if line[at:].strip():
                raise ReplyError("its server sends what is no list")
            return
        at = found.end()
        opened, closed, quoted, atom = found.groups()
        # A text keeps its first quotation mark: "NIL" is one, NIL is nothing.
        yield opened or closed or atom or b'"' + re.sub(rb"\\(.)", rb"\1", quoted)


def replies(lines: Sequence[object]) -> Iterator[list[Value]]:
    """The replies to one command, each as its values; `imaplib` puts what follows a literal behind it."""
    waiting: list[object] = []
    for line in lines:
        if line is None:
            continue
        waiting.append(line)
        if isinstance(line, tuple):
            continue
        yield values(waiting)
        waiting = []
    if waiting:
        yield values(waiting)


def quoted(folder: str) -> str:
    """A folder's name, or a pattern of names, as it is sent.

    Raises:
        ValueError: It holds control characters, which would end the command.
    """
    if _FORBIDDEN.search(folder):
        raise ValueError("a folder's name has no control characters")
    return '"' + encoded(folder).replace("\\", "\\\\").replace('"', '\\"') + '"'


def encoded(folder: str) -> str:
    """A folder's name in IMAP's UTF-7 (RFC 3501, 5.1.3).

    Example:
        >>> encoded("Entwürfe & mehr"), decoded("Entw&APw-rfe &- mehr")
        ('Entw&APw-rfe &- mehr', 'Entwürfe & mehr')
    """

    def shifted(found: re.Match[str]) -> str:
        if found[0] == "&":
            return "&-"
        data = b64encode(found[0].encode("utf-16-be")).decode().rstrip("=").replace("/", ",")
        return f"&{data}-"

    return _ENCODED.sub(shifted, folder)


def decoded(folder: str) -> str:
    """The name that `encoded` made; what is none stays as it is."""

    def plain(found: re.Match[str]) -> str:
        data = found[1].replace(",", "/")
        try:
            return b64decode(data + "=" * (-len(data) % 4)).decode("utf-16-be") if data else "&"
        except ValueError:
            return found[0]

    return _SHIFTED.sub(plain, folder)


# What a message on an IMAP server consists of, without its contents being read (RFC 3501, 7.4.2).


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


_Result = TypeVar("_Result")

# Messages whose structure is asked for at once.
_PAGE = 200
_MOST_MESSAGES = 5_000_000
_MOST_ATTACHMENTS = 100
_STRUCTURE_BYTES = 16 * 1024 * 1024
# What a literal brings beside its bytes.
_BESIDE_BYTES = 4_096
_PORTS = {"imaps": 993, "imap": 143}


class ImapSettings(ConnectorSettings):
    """What is read of a mailbox (``imaps://USER@HOST``), and how.

    Attributes:
        folders: Their names, with ``*`` for any and ``%`` for any of one level.
        password: ``env:NAME``.
        token: ``env:NAME``: an access token (XOAUTH2), in place of a password.
        owner: Who may read what no rule matches: ``user:ann``; default: the user of the location. Empty: as the
            collection says.
        attachments: Whether what is attached is read, each as a document of its own.
        ca_file: Certificates of the authorities that the server's is checked by; None: the system's.
        unencrypted: With ``imap://``: read it, and send the password, without TLS.
    """

    folders: tuple[str, ...] = Field(("INBOX",), min_length=1)
    password: SecretReference = "env:IMAP_PASSWORD"
    token: SecretReference | None = None
    owner: str | None = None
    attachments: bool = True
    ca_file: str | None = None
    unencrypted: bool = False

    @field_validator("location")
    @classmethod
    def _mailbox(cls, location: str) -> str:
        try:
            parts = urlsplit(location)
            port = parts.port
        except ValueError as exc:
            raise ValueError("it is no URL") from exc
        if parts.scheme not in _PORTS or not parts.hostname or not parts.username or port == 0:
            raise ValueError("a mailbox is named imaps://USER@HOST, or imap://USER@HOST")
        if parts.password is not None:
            raise ValueError("credentials do not belong into the URL: set password=env:NAME")
        if parts.path.strip("/") or parts.query or parts.fragment:
            raise ValueError("which folders are read is a setting: folders")
        return location

    @field_validator("folders")
    @classmethod
    def _sendable(cls, folders: tuple[str, ...]) -> tuple[str, ...]:
        for folder in folders:
            quoted(folder)
        return folders

    @field_validator("owner")
    @classmethod
    def _somebody(cls, owner: str | None) -> str | None:
        if owner:
            try:
                read_permissions([owner], name="owner")
            except UsageError as exc:
                raise ValueError(str(exc)) from exc
        return owner

    @property
    def user(self) -> str:
        """Who logs in."""
        return unquote(urlsplit(self.location).username or "")


class ImapConnector:
    """Messages of a mailbox, and what is attached to them, each as a document of its own.

    A message's URI is its folder and its number there (UID), its revision that number with the folder's UIDVALIDITY: it
    never changes. Each run names every message, and what is not named has gone; an interrupted one goes on behind the
    last page, unless the folder was numbered anew meanwhile. Nothing is written there, not even what was seen.

    Args:
        settings: Which mailbox, and how.
        surroundings: What it may use.
    """

    Settings: ClassVar[type[ConnectorSettings]] = ImapSettings
    names_attachments: ClassVar[bool] = True

    def __init__(self, settings: ImapSettings, surroundings: Surroundings) -> None:
        self._settings, self._surroundings = settings, surroundings
        parts = urlsplit(settings.location)
        self._host, self._scheme = parts.hostname or "", parts.scheme
        self._port = parts.port or _PORTS[parts.scheme]
        self._secret = surroundings.secret(settings.token or settings.password)
        self._rules = GrantRules.read(settings.grants)
        owner = f"user:{settings.user}" if settings.owner is None else settings.owner
        self._owner = read_permissions([owner], name="owner").as_tokens() if owner else None
        self._context = None if settings.unencrypted and self._scheme == "imap" else _context(settings)
        self._session: Session | None = None
        self._selected: tuple[str, int] | None = None
        self._lock = threading.Lock()

    def close(self) -> None:
        """Log out."""
        session, self._session, self._selected = self._session, None, None
        if session is not None:
            try:
                session.begin()
                session.logout()
            except (imaplib.IMAP4.error, OSError, ReplyError):
                session.shutdown()

    def changes(self, cursor: str | None) -> Iterator[Change]:
        """As `Connector.changes`; the cursor says which message of which folder an interrupted listing had come to."""
        folders = self._folders()
        after = _after(cursor)
        if after is None or not self._stands(after, folders):
            after = None
            yield ListingBegins()
        for folder in sorted(folders):
            if after is not None and folder < after[0]:
                continue
            validity, uids = self._numbers(folder, after[2] if after is not None and folder == after[0] else 0)
            for start in range(0, len(uids), _PAGE):
                page = uids[start : start + _PAGE]
                for item in self._page(folder, folders[folder], validity, page):
                    yield Found(item)
                yield Checkpoint(json.dumps([folder, validity, page[-1]]))
        yield ListingEnds()
        yield Checkpoint(None)

    def fetch(self, item: Item, *, max_bytes: int) -> Content:
        """As `Connector.fetch`."""
        folder, validity, uid, section, encoding, size = json.loads(item.key)
        if section:
            data = self._body(folder, validity, uid, section, max_bytes=_decoded_from(max_bytes, encoding))
            return Content(data=_plain(data, encoding, item), metadata={"message": item.attached_to})
        if size <= max_bytes:
            data = self._body(folder, validity, uid, "", max_bytes=max_bytes)
        else:
            data = self._without_attachments(folder, validity, uid, encoding, max_bytes=max_bytes)
        # What is attached is named by the listing.
        return Content(data=data, content_type="message/rfc822", attachments=False)

    def grants(self, item: Item) -> tuple[str, ...] | None:
        """As `Connector.grants`: the last rule that matches, else the mailbox's owner."""
        return self._rules.of(item.uri) or self._owner

    # What is asked of the server

    def _folders(self) -> dict[str, str]:
        """The folders that are read, with what their names are parted by."""
        found: dict[str, str] = {}
        for pattern in self._settings.folders:
            named = len(found)
            for reply in self._done(partial(_list, quoted(pattern))):
                if len(reply) != 3 or not isinstance(reply[0], list) or not isinstance(reply[2], bytes):
                    raise self._error("its server names folders in a way of its own", retryable=False)
                flags = {flag.lower() for flag in reply[0] if isinstance(flag, bytes)}
                if not flags & {b"\\noselect", b"\\nonexistent"}:
                    parted = reply[1].decode("latin-1") if isinstance(reply[1], bytes) else ""
                    found[decoded(reply[2].decode("utf-8", "replace"))] = parted
            if len(found) == named and not set("*%") & set(pattern) and pattern not in found:
                raise self._error(f"it has no folder {pattern!r}", retryable=False)
        return found

    def _stands(self, after: tuple[str, int, int], folders: dict[str, str]) -> bool:
        """Whether an interrupted listing can be gone on with: its folder is there, and is numbered as it was."""
        return after[0] in folders and self._numbers(after[0], after[2])[0] == after[1]

    def _numbers(self, folder: str, after: int) -> tuple[int, list[int]]:
        """A folder's UIDVALIDITY, and the numbers of its messages behind one, in order."""

        def ask(session: Session) -> tuple[int, list[int]]:
            validity = self._select(session, folder)
            lines = _of(session.uid("SEARCH", f"UID {after + 1}:*"))
            # The range names the last message also where its number is smaller.
            numbers = sorted({int(one) for line in lines if isinstance(line, bytes) for one in line.split()})
            return validity, [one for one in numbers if one > after]

        validity, found = self._done(ask)
        if len(found) > _MOST_MESSAGES:
            raise self._error("its server names messages without end", retryable=False)
        return validity, found

    def _page(self, folder: str, parted: str, validity: int, uids: Sequence[int]) -> Iterator[Item]:
        wanted = "(UID RFC822.SIZE BODYSTRUCTURE)"

        def ask(session: Session) -> list[list[Value]]:
            self._require(session, folder, validity)
            session.begin(max_bytes=_STRUCTURE_BYTES)
            return list(replies(_of(session.uid("FETCH", ",".join(map(str, uids)), wanted))))

        place = "/".join(stored_name(part) for part in (folder.split(parted) if parted else [folder]) if part)
        asked = set(uids)
        for reply in self._done(ask):
            told = _told(reply)
            uid, size = number(told.get(b"UID")), number(told.get(b"RFC822.SIZE"))
            if uid not in asked:
                continue  # what other clients do there is told too
            asked.discard(uid)
            yield from self._items(folder, place, validity, uid, size, told.get(b"BODYSTRUCTURE"))

    def _items(self, folder: str, place: str, validity: int, uid: int, size: int, structure: Value) -> Iterator[Item]:
        parts = parts_of(structure) if isinstance(structure, list) else []
        attached = [part for part in parts if part.name][:_MOST_ATTACHMENTS]
        revision, uri = f"{validity}.{uid}", f"{place}/{uid}"
        text = next((part.section for part in parts if part.is_text and not part.name), "1")
        left = max(size - sum(part.size for part in attached), 0)
        key = json.dumps([folder, validity, uid, "", text, size])
        yield Item(uri=f"{uri}.eml", revision=revision, size=left, key=key)
        for part in attached if self._settings.attachments else ():
            key = json.dumps([folder, validity, uid, part.section, part.encoding, part.size])
            length = part.size * 3 // 4 if part.encoding == "base64" else part.size
            name = f"{uri}/{part.section}-{part.name}"
            yield Item(uri=name, revision=revision, size=length, key=key, attached_to=f"{uri}.eml")

    def _body(self, folder: str, validity: int, uid: int, section: str, *, max_bytes: int) -> bytes:
        def ask(session: Session) -> list[list[Value]]:
            self._require(session, folder, validity)
            # A byte more than may be, so that it is seen that there are more.
            session.begin(max_bytes=max_bytes + _BESIDE_BYTES)
            wanted = f"(UID BODY.PEEK[{section}]<0.{max_bytes + 1}>)"
            return list(replies(_of(session.uid("FETCH", str(uid), wanted))))

        for reply in self._done(ask):
            told = _told(reply)
            data = next((value or b"" for name, value in told.items() if name.startswith(b"BODY[")), None)
            if number(told.get(b"UID")) == uid and isinstance(data, bytes):
                return data
        raise ItemGoneError

    def _without_attachments(self, folder: str, validity: int, uid: int, text: str, *, max_bytes: int) -> bytes:
        """A message whose attachments make it too long: its own header with its text."""
        header, own = (
            message_from_bytes(self._body(folder, validity, uid, section, max_bytes=max_bytes))
            for section in ("HEADER", f"{text}.MIME")
        )
        for name in ("Content-Type", "Content-Transfer-Encoding", "Content-Disposition"):
            del header[name]
            if own[name] is not None:
                header[name] = own[name]
        return header.as_bytes() + self._body(folder, validity, uid, text, max_bytes=max_bytes)

    # The connection

    def _select(self, session: Session, folder: str) -> int:
        """A folder is what the next commands are about; its UIDVALIDITY. It is opened for reading alone."""
        session.begin()
        try:
            _of(session.select(quoted(folder), readonly=True))
        except _RefusedError as exc:
            raise self._error(f"it has no folder {folder!r} that may be read", retryable=False) from exc
        _, told = session.response("UIDVALIDITY")
        validity = int(told[0]) if told and isinstance(told[0], bytes) and told[0].isdigit() else 0
        self._selected = (folder, validity)
        session.begin()
        return validity

    def _require(self, session: Session, folder: str, validity: int) -> None:
        if self._selected != (folder, validity) and self._select(session, folder) != validity:
            raise self._error(f"the folder {folder!r} was numbered anew meanwhile", retryable=True)
        session.begin()

    def _done(self, ask: Callable[[Session], _Result]) -> _Result:
        """Ask the server; once more over a new connection, where it has let go of the one that there was."""
        with self._lock, self._told():
            fresh = self._session is None
            try:
                return ask(self._connected())
            except (imaplib.IMAP4.abort, OSError):
                self._drop()
                if fresh:
                    raise
                return ask(self._connected())
            except (ReplyError, imaplib.IMAP4.error, ValueError):
                # What comes next over it would be taken for another command's reply.
                self._drop()
                raise

    def _connected(self) -> Session:
        if self._session is None:
            # What may be contacted is decided by host and port, whatever is spoken there.
            addresses = self._surroundings.addresses(f"https://{_bracketed(self._host)}:{self._port}/")
            session = Session(
                self._host,
                addresses,
                self._port,
                context=self._context,
                starttls=self._scheme == "imap",
                timeout_seconds=self._surroundings.timeout_seconds,
            )
            try:
                self._log_in(session)
            except BaseException:
                session.shutdown()
                raise
            self._session = session
        return self._session

    def _log_in(self, session: Session) -> None:
        user, secret = self._settings.user, self._secret
        session.begin()
        try:
            if self._settings.token is not None:
                words = f"user={user}\1auth=Bearer {secret}\1\1"
                session.authenticate("XOAUTH2", lambda challenge: None if challenge else words.encode())
            elif "AUTH=PLAIN" in session.capabilities:
                session.authenticate("PLAIN", lambda _: f"\0{user}\0{secret}".encode())
            else:
                session.login(user, secret)
        except imaplib.IMAP4.abort:
            raise
        except imaplib.IMAP4.error as exc:
            raise self._error("its server refuses the user or the password", retryable=False) from exc

    def _drop(self) -> None:
        session, self._session, self._selected = self._session, None, None
        if session is not None:
            session.shutdown()

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Foreign errors as ours. What the server says is not repeated: it may be what it was told."""
        try:
            yield
        except ssl.SSLError as exc:
            raise self._error(f"no secure connection ({exc.reason or type(exc).__name__})", retryable=False) from exc
        except (imaplib.IMAP4.abort, OSError) as exc:
            raise self._error(f"its server does not answer ({type(exc).__name__})", retryable=True) from exc
        except _RefusedError as exc:
            raise self._error("its server refuses the request", retryable=True) from exc
        except (ReplyError, imaplib.IMAP4.error, ValueError) as exc:
            reason = str(exc) if isinstance(exc, ReplyError) else f"its server answers oddly ({type(exc).__name__})"
            raise self._error(reason, retryable=False) from exc

    def _error(self, reason: str, *, retryable: bool) -> SourceError:
        return SourceError(self._settings.location, reason, retryable=retryable)


class _RefusedError(imaplib.IMAP4.error):
    """The server answers a command with NO."""


def _context(settings: ImapSettings) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=settings.ca_file)
    except (OSError, ssl.SSLError) as exc:
        raise UsageError(f"ca_file cannot be read: {type(exc).__name__}.") from exc


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _list(pattern: str, session: Session) -> list[list[Value]]:
    session.begin()
    return list(replies(_of(session.list('""', pattern))))


def _of(reply: tuple[str, Sequence[object]]) -> list[object]:
    status, lines = reply
    if status != "OK":
        raise _RefusedError(status)
    return list(lines)


def _told(reply: list[Value]) -> dict[bytes, Value]:
    """The items of a FETCH reply: ``12 (UID 7 RFC822.SIZE 300 …)``."""
    listed = next((value for value in reply if isinstance(value, list)), [])
    return {
        name.upper(): value for name, value in zip(listed[::2], listed[1::2], strict=False) if isinstance(name, bytes)
    }


def _after(cursor: str | None) -> tuple[str, int, int] | None:
    try:
        folder, validity, uid = json.loads(cursor or "")
    except (ValueError, TypeError):
        return None
    return (
        (folder, validity, uid)
        if isinstance(folder, str) and isinstance(validity, int) and isinstance(uid, int)
        else None
    )


def _decoded_from(max_bytes: int, encoding: str) -> int:
    """How many encoded bytes hold so many: Base64 takes four for three, and a line's end every 76."""
    return max_bytes * 3 if encoding == "quoted-printable" else max_bytes * 3 // 2 + 100


def _plain(data: bytes, encoding: str, item: Item) -> bytes:
    try:
        if encoding == "base64":
            return b64decode(data)
    except ValueError as exc:
        raise ParseError(item.uri, "it is not encoded as it says") from exc
    return decodestring(data) if encoding == "quoted-printable" else data
