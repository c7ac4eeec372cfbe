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
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from email import message_from_bytes
from email.errors import MessageError
from email.header import decode_header, make_header
from email.utils import decode_rfc2231
from itertools import takewhile
from operator import methodcaller
from quopri import decodestring
from typing import ClassVar, TypeAlias
from urllib.parse import unquote, urlsplit

from pydantic import Field, TypeAdapter, ValidationError, field_validator

from recollect.errors import ParseError, SourceError, UsageError
from recollect.model.globs import attached_name, stored_name
from recollect.model.principal import read_permissions
from recollect.sources.base import (
    Change,
    Checkpoint,
    ConnectorSettings,
    Content,
    Found,
    GrantRules,
    Item,
    ItemGoneError,
    ListingBegins,
    ListingEnds,
    SecretReference,
    Surroundings,
)

# A connection to an IMAP server: to a checked address, within a time, and no more than so many bytes a reply.


#: What a reply holds: atoms and texts as bytes, NIL as None, numbers as they are written, lists.
Value: TypeAlias = "bytes | list[Value] | None"

# A list of the numbers of five million messages; nothing else that is asked for is as long, but for what is fetched.
_REPLY_BYTES = 64 * 1024 * 1024
_DEEPEST = 64
_TOO_MUCH = "its server sends more than was asked for"
_TOKEN = re.compile(rb"""(?P<opened>\()|(?P<closed>\))|"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<atom>[^\s()"]+)|(?P<odd>\S)""")
_LITERAL = re.compile(rb"\{\d+\+?\}$")
_ENCODED = re.compile(r"[^\x20-\x7e]+|&")
_SHIFTED = re.compile(r"&([A-Za-z0-9+,]*)-")
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f]")


class ReplyError(Exception):
    """The server says what no server should: more than was asked for, or what cannot be understood."""


class _BoundedStream(io.RawIOBase):
    """What comes over a socket, so long and so much: a server that sends a byte now and then holds nobody up."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self.deadline, self.left = float("inf"), _REPLY_BYTES

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("the server takes too long")
        self._sock.settimeout(min(left, 3600.0))
        came = self._sock.recv_into(buffer)  # type: ignore[arg-type]
        self.left -= came
        if self.left < 0:
            raise ReplyError(_TOO_MUCH)
        return came


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
        self._stream.left = max_bytes
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
        self._stream = _BoundedStream(self.sock)
        self._stream.deadline = time.monotonic() + self._seconds
        self.file = io.BufferedReader(self._stream)

    def read(self, size: int) -> bytes:
        """A literal, no longer than what may come; called by `imaplib`."""
        if size > self._stream.left:
            raise ReplyError(_TOO_MUCH)
        return self.file.read(size)  # type: ignore[return-value]

    def readline(self) -> bytes:
        """A line; called by `imaplib`, which would take a long one for an error."""
        return self.file.readline()  # type: ignore[return-value]


def values(lines: Iterable[object]) -> list[Value]:
    """The values of a command's replies, one after the other; `imaplib` gives a line that ends in a literal with it.

    Raises:
        ReplyError: They are not to be understood.
    """
    stack: list[list[Value]] = [[]]
    for line in lines:
        text, literal = line if isinstance(line, tuple) else (line or b"", None)
        for found in _TOKEN.finditer(text if literal is None else _LITERAL.sub(b"", text)):
            _take(stack, found)
        if literal is not None:
            stack[-1].append(literal)
    if len(stack) > 1:
        raise ReplyError("its server does not close what it opened")
    return stack[0]


def _take(stack: list[list[Value]], found: re.Match[bytes]) -> None:
    match found.lastgroup:
        case "opened":
            stack.append([])
            if len(stack) > _DEEPEST:
                raise ReplyError("its server nests lists without end")
        case "closed":
            if len(stack) == 1:
                raise ReplyError("its server closes what it did not open")
            done = stack.pop()
            stack[-1].append(done)
        case "quoted":
            stack[-1].append(re.sub(rb"\\(.)", rb"\1", found["quoted"]))
        case "atom":
            stack[-1].append(None if found[0].upper() == b"NIL" else found[0])
        case _:
            raise ReplyError("its server sends what is no list")


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
    return _ENCODED.sub(
        lambda found: "&-" if found[0] == "&" else f"&{found[0].encode('utf-7').decode()[1:].replace('/', ',')}", folder
    )


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


def parts_of(structure: Value, at: str = "") -> list[Part]:
    """The leaves of a message's structure (RFC 3501, 7.4.2), with a name where they are attached."""
    if isinstance(structure, list) and structure and isinstance(structure[0], list):
        inner = enumerate(takewhile(lambda one: isinstance(one, list), structure), 1)
        return [part for index, one in inner for part in parts_of(one, f"{at}.{index}" if at else str(index))]
    if not isinstance(structure, list) or len(structure) < 7:
        return []
    kind, subtype, given, _, _, encoding, size = structure[:7]
    media = f"{_text(kind)}/{_text(subtype)}".lower()
    placed, how = next(
        (one for one in structure[7:] if isinstance(one, list) and len(one) == 2 and _is_word(one[0])), (b"", None)
    )
    name = _params(how).get("filename") or _params(given).get("name")
    attached = name or _text(placed).lower() == "attachment" or media == "message/rfc822"
    safe = attached_name(name, media) if attached else ""
    return [Part(at or "1", safe, _text(encoding).lower(), number(size), media.startswith("text/"))]


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


# Messages whose structure is asked for at once.
_PAGE = 200
_MOST_MESSAGES = 5_000_000
_MOST_ATTACHMENTS = 100
_STRUCTURE_BYTES = 16 * 1024 * 1024
# What a literal brings beside its bytes, and what is read of it ahead.
_BESIDE_BYTES = 16_384
_PORTS = {"imaps": 993, "imap": 143}
# Which message of which folder, with that folder's UIDVALIDITY, a listing had come to.
_CURSOR: TypeAdapter[tuple[str, int, int]] = TypeAdapter(tuple[str, int, int])


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
        self._selected = ("", 0)
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close the connection."""
        session, self._session, self._selected = self._session, None, ("", 0)
        if session is not None:
            session.shutdown()

    def changes(self, cursor: str | None) -> Iterator[Change]:
        """As `Connector.changes`; the cursor says which message of which folder an interrupted listing had come to."""
        folders = self._folders()
        after = self._behind(cursor, folders)
        if after is None:
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
            replies = self._done(methodcaller("list", '""', quoted(pattern)))
            for start in range(0, len(replies), 3):
                flags, parted, name = [*replies[start : start + 3], None, None][:3]
                if not isinstance(flags, list) or not isinstance(name, bytes):
                    raise self._error("its server names folders in a way of its own", retryable=False)
                if not {b"\\noselect", b"\\nonexistent"} & {flag.lower() for flag in flags if isinstance(flag, bytes)}:
                    found[decoded(_text(name))] = _text(parted)
            if len(found) == named and not set("*%") & set(pattern) and pattern not in found:
                raise self._error(f"it has no folder {pattern!r}", retryable=False)
        return found

    def _behind(self, cursor: str | None, folders: dict[str, str]) -> tuple[str, int, int] | None:
        """Where an interrupted listing can be gone on with: its folder is there, and is numbered as it was."""
        try:
            folder, validity, uid = _CURSOR.validate_json(cursor or "")
        except ValidationError:
            return None
        stands = folder in folders and self._numbers(folder, uid)[0] == validity
        return (folder, validity, uid) if stands else None

    def _numbers(self, folder: str, after: int) -> tuple[int, list[int]]:
        """A folder's UIDVALIDITY, and the numbers of its messages behind one, in order."""
        validity, told = self._about(folder, None, "SEARCH", f"UID {after + 1}:*")
        found = sorted(set(map(number, told)))
        if len(found) > _MOST_MESSAGES or 0 in found:
            raise self._error("its server names messages without end, or without a number", retryable=False)
        # The range names the last message also where its number is smaller.
        return validity, [one for one in found if one > after]

    def _page(self, folder: str, parted: str, validity: int, uids: Sequence[int]) -> Iterator[Item]:
        wanted = ("FETCH", ",".join(map(str, uids)), "(UID RFC822.SIZE BODYSTRUCTURE)")
        _, replies = self._about(folder, validity, *wanted, max_bytes=_STRUCTURE_BYTES)
        place = "/".join(stored_name(part) for part in (folder.split(parted) if parted else [folder]) if part)
        asked = set(uids)
        for told in _told(replies):
            uid, size = number(told.get(b"UID")), number(told.get(b"RFC822.SIZE"))
            if uid not in asked:
                continue  # what other clients do there is told too
            asked.discard(uid)
            yield from self._items(folder, place, validity, uid, size, told.get(b"BODYSTRUCTURE"))

    def _items(self, folder: str, place: str, validity: int, uid: int, size: int, structure: Value) -> Iterator[Item]:
        parts = parts_of(structure)
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
        # A byte more than may be, so that it is seen that there are more.
        wanted = ("FETCH", str(uid), f"(UID BODY.PEEK[{section}]<0.{max_bytes + 1}>)")
        _, replies = self._about(folder, validity, *wanted, max_bytes=max_bytes + _BESIDE_BYTES)
        for told in _told(replies):
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

    def _about(
        self, folder: str, validity: int | None, *command: str, max_bytes: int = _REPLY_BYTES
    ) -> tuple[int, list[Value]]:
        """A folder's UIDVALIDITY, and what the server replies to a command about its messages.

        Args:
            folder: Which; it is opened for reading alone.
            validity: As it was numbered before; None: it is looked up.
            command: With its arguments.
            max_bytes: How long the reply may be.
        """
        numbered = 0

        def ask(session: Session) -> tuple[str, Sequence[object]]:
            nonlocal numbered
            if validity is None or self._selected != (folder, validity):
                self._select(session, folder)
            numbered = self._selected[1]
            if validity not in {None, numbered}:
                raise self._error(f"the folder {folder!r} was numbered anew meanwhile", retryable=True)
            session.begin(max_bytes=max_bytes)
            return session.uid(*command)

        replies = self._done(ask)
        return numbered, replies

    def _select(self, session: Session, folder: str) -> None:
        """A folder is what the next commands are about."""
        status, _ = session.select(quoted(folder), readonly=True)
        if status != "OK":
            raise self._error(f"it has no folder {folder!r} that may be read", retryable=False)
        _, told = session.response("UIDVALIDITY")
        self._selected = (folder, number(told[0]) if told else 0)

    def _done(self, ask: Callable[[Session], tuple[str, Sequence[object]]]) -> list[Value]:
        """Ask the server; once more over a new connection, where it has let go of the one that there was."""
        with self._lock, self._told():
            fresh = self._session is None
            try:
                return _replies(ask, self._connected())
            except (imaplib.IMAP4.abort, OSError):
                self.close()
                if fresh:
                    raise
                return _replies(ask, self._connected())
            except (ReplyError, imaplib.IMAP4.error, ValueError):
                # What comes next over it would be taken for another command's reply.
                self.close()
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


def _replies(ask: Callable[[Session], tuple[str, Sequence[object]]], session: Session) -> list[Value]:
    session.begin()
    status, lines = ask(session)
    if status != "OK":
        raise _RefusedError(status)
    return values(lines)


def _told(replies: Sequence[Value]) -> Iterator[dict[bytes, Value]]:
    """The items of replies to FETCH: ``12 (UID 7 RFC822.SIZE 300 …)``."""
    for listed in replies:
        if isinstance(listed, list):
            pairs = zip(listed[::2], listed[1::2], strict=False)
            yield {name.upper(): value for name, value in pairs if isinstance(name, bytes)}


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
