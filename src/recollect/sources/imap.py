"""Mailboxes on a server that speaks IMAP: messages, and what is attached to them."""

from __future__ import annotations

import imaplib
import json
import ssl
import threading
from base64 import b64decode
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from email import message_from_bytes
from functools import partial
from quopri import decodestring
from typing import ClassVar, TypeVar
from urllib.parse import unquote, urlsplit

from pydantic import Field, field_validator

from recollect.errors import ParseError, SourceError, UsageError
from recollect.model.attached import stored_name
from recollect.model.principal import read_permissions
from recollect.sources._imap_session import ReplyError, Session, Value, decoded, quoted, replies
from recollect.sources._imap_structure import number, parts_of
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
