"""A mailbox, read from Debian's dovecot: what other sources do not have."""

from __future__ import annotations

import imaplib
import os
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.message import EmailMessage
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect import Principal, RAGConfig, RAGPipeline
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import SourceError, UsageError
from recollect.sources import imap
from recollect.sources.base import Change, Checkpoint, Found, ListingBegins, ListingEnds, Surroundings
from recollect.sources.imap import ImapConnector, ImapSettings, ReplyError, decoded, encoded, quoted, values

_DOVECOT = shutil.which("dovecot", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
_CONFIG = """
base_dir = {work}/run
state_dir = {work}/state
log_path = {work}/log
instance_name = {work}
ssl = yes
ssl_cert = <{work}/cert.pem
ssl_key = <{work}/key.pem
protocols = imap
listen = 127.0.0.1
disable_plaintext_auth = no
mail_location = maildir:{work}/mail/%u
namespace inbox {{
  inbox = yes
  separator = /
}}
first_valid_uid = 1
default_internal_user = {user}
default_login_user = {user}
default_internal_group = {group}
service imap-login {{
  chroot =
  inet_listener imap {{
    port = {plain}
  }}
  inet_listener imaps {{
    port = {secure}
  }}
}}
service anvil {{
  chroot =
}}
service stats {{
  unix_listener stats-writer {{
    mode = 0666
  }}
}}
passdb {{
  driver = static
  args = password=secret
}}
userdb {{
  driver = static
  args = uid={user} gid={group} home={work}/mail/%u
}}
"""


@dataclass
class Mailbox:
    """A mailbox of the test server, filled by a client of its own."""

    user: str
    plain: int
    secure: int
    ca_file: Path
    messages: list[str] = field(default_factory=list)

    @property
    def location(self) -> str:
        return f"imaps://{self.user}@localhost:{self.secure}"

    def client(self) -> imaplib.IMAP4:
        made = imaplib.IMAP4("127.0.0.1", self.plain)
        made.login(self.user, "secret")
        return made

    def put(self, subject: str, text: str, *, folder: str = "INBOX", attached: dict[str, bytes] | None = None) -> None:
        message = EmailMessage()
        message["From"], message["Subject"] = "Ann <ann@example.org>", subject
        message["Date"] = "Mon, 02 Jun 2025 10:00:00 +0000"
        message.set_content(text)
        for name, data in (attached or {}).items():
            message.add_attachment(data, maintype="application", subtype="octet-stream", filename=name)
        self.put_raw(message.as_bytes(), folder=folder)

    def put_raw(self, data: bytes, *, folder: str = "INBOX") -> None:
        with self.client() as client:
            client.create(quoted(folder))
            status, told = client.append(quoted(folder), None, None, data)
            assert status == "OK", told

    def remove(self, uid: int, *, folder: str = "INBOX") -> None:
        with self.client() as client:
            client.select(quoted(folder))
            client.uid("STORE", str(uid), "+FLAGS", r"\Deleted")
            client.expunge()


@pytest.fixture(scope="session")
def dovecot() -> Iterator[Callable[[str], Mailbox]]:
    """Gives mailboxes of an IMAP server with a certificate of its own."""
    if _DOVECOT is None:
        pytest.skip("dovecot is not installed (apt-get install dovecot-imapd)")
    # Not pytest's folder, which other accounts may not enter: the server gives up its rights.
    with tempfile.TemporaryDirectory(prefix="recollect-dovecot-") as folder:
        work = Path(folder)
        work.chmod(0o755)
        with _serving(work) as ports:
            yield lambda name: Mailbox(name, *ports, work / "cert.pem")


@contextmanager
def _serving(work: Path) -> Iterator[list[int]]:
    """A server, and its ports: one that begins without encryption, one that is encrypted."""
    (work / "mail").mkdir()
    (work / "mail").chmod(0o777)
    certificate = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    names = [
        "-addext",
        "subjectAltName=DNS:localhost",
        "-keyout",
        str(work / "key.pem"),
        "-out",
        str(work / "cert.pem"),
    ]
    subprocess.run([*certificate, *names], check=True, capture_output=True)
    ports = []
    for _ in range(2):
        with socket.create_server(("127.0.0.1", 0)) as free:
            ports.append(free.getsockname()[1])
    user, group = ("nobody", "nogroup") if os.geteuid() == 0 else (Path.home().owner(), Path.home().group())
    config = work / "dovecot.conf"
    config.write_text(_CONFIG.format(work=work, user=user, group=group, plain=ports[0], secure=ports[1]))
    server = subprocess.Popen(
        [str(_DOVECOT), "-F", "-c", str(config)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", ports[1]), 1).close()
            break
        except OSError:
            assert server.poll() is None, server.stderr and server.stderr.read()
            threading.Event().wait(0.05)
    yield ports
    server.terminate()
    server.wait()
    if server.stderr:
        server.stderr.close()


@pytest.fixture
def mailbox(dovecot: Callable[[str], Mailbox], request: pytest.FixtureRequest, monkeypatch) -> Mailbox:
    """An empty mailbox, whose password is in the environment."""
    monkeypatch.setenv("IMAP_PASSWORD", "secret")
    return dovecot(f"ann-{abs(hash(request.node.nodeid)) % 10**8}")


def add(pipeline: RAGPipeline, mailbox: Mailbox, location: str | None = None, **settings: object) -> str:
    given = {"ca_file": str(mailbox.ca_file), **settings}
    return pipeline.sources.add(location or mailbox.location, settings=given).name


def stored(pipeline: RAGPipeline) -> dict[str, int]:
    return {one.source: one.version for one in pipeline.documents.list(limit=1_000)}


def test_messages_and_what_is_attached_are_documents_of_their_own(pipeline: RAGPipeline, mailbox: Mailbox):
    mailbox.put("Parking", "The garage opens at seven.", attached={"plan/../é x.md": b"# Plan\n\nLevel two is closed."})
    mailbox.put("Lunch", "The canteen opens at noon.", folder="Büro & mehr/Küche", attached={"photo.raw": b"\xff\xd8"})
    name = add(pipeline, mailbox, folders=["INBOX", "Büro*"])
    report = pipeline.sources.refresh(name)
    assert (report.added, report.failed) == (3, 0)
    found = {one.source: one for one in pipeline.documents.list()}
    assert set(found) == {"INBOX/1.eml", "INBOX/1/2-plan_.._é x.md", "Büro & mehr/Küche/1.eml"}
    assert found["INBOX/1.eml"].title == "Parking"
    assert "garage" in pipeline.documents.get("INBOX/1.eml").content
    plan = pipeline.documents.get("INBOX/1/2-plan_.._é x.md")
    assert plan.content.startswith("# Plan") and plan.metadata["message"] == "INBOX/1.eml"
    # Reading them leaves no trace.
    with mailbox.client() as client:
        assert client.status("INBOX", "(UNSEEN)")[1] == [b"INBOX (UNSEEN 1)"]


def test_a_mailbox_is_its_owners_unless_somebody_says_otherwise(pipeline: RAGPipeline, mailbox: Mailbox):
    mailbox.put("Pay", "The pay scale.")
    mailbox.put("Menu", "The menu.", folder="Shared")
    name = add(pipeline, mailbox, folders=["*"], grants=["Shared/ role:staff"])
    pipeline.sources.refresh(name)
    ann = pipeline.view(principal=Principal(user_id=mailbox.user))
    staff = pipeline.view(principal=Principal(user_id="bob", roles=("staff",)))
    assert {one.source for one in ann.documents.list()} == {"INBOX/1.eml"}
    assert {one.source for one in staff.documents.list()} == {"Shared/1.eml"}
    other = pipeline.view(collections="other")
    other.sources.add(mailbox.location, settings={"ca_file": str(mailbox.ca_file), "owner": "group:office"})
    other.sources.refresh(mailbox.location)
    office = other.view(principal=Principal(user_id="eve", groups=("office",)))
    assert [one.source for one in office.documents.list()] == ["INBOX/1.eml"]


def test_what_goes_is_closed_and_a_folder_that_is_numbered_anew_is_read_anew(pipeline: RAGPipeline, mailbox: Mailbox):
    for number in range(3):
        mailbox.put(f"Note {number}", f"Text {number}", folder="Work", attached={"a.txt": b"attached"})
    name = add(pipeline, mailbox, folders=["Work"])
    assert pipeline.sources.refresh(name).added == 6
    mailbox.remove(2, folder="Work")
    mailbox.put("Note 3", "Text 3", folder="Work")
    report = pipeline.sources.refresh(name)
    assert (report.added, report.removed, report.unchanged) == (1, 2, 4)
    assert "Work/2.eml" not in stored(pipeline) and "Work/4.eml" in stored(pipeline)
    with mailbox.client() as client:
        client.delete("Work")
    with pytest.raises(SourceError, match="no folder 'Work'"):
        pipeline.sources.refresh(name)
    assert len(stored(pipeline)) == 5, "an error closes nothing"
    mailbox.put("Another", "Another text", folder="Work")
    report = pipeline.sources.refresh(name)
    assert (report.added, report.updated, report.removed) == (0, 1, 4)
    assert "Another text" in (pipeline.documents.get("Work/1.eml").content or "")


def connector(mailbox: Mailbox, tmp_path: Path, location: str | None = None, **settings: object) -> ImapConnector:
    surroundings = Surroundings(
        folder=tmp_path,
        addresses=lambda url: ["127.0.0.1"],
        environment={"IMAP_PASSWORD": "secret", "OTHER": "wrong"},
        timeout_seconds=5.0,
    )
    given = {"ca_file": str(mailbox.ca_file), **settings}
    return ImapConnector(ImapSettings(location=location or mailbox.location, **given), surroundings)


def test_an_interrupted_listing_goes_on_behind_its_last_page(mailbox: Mailbox, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(imap, "_PAGE", 2)
    for number in range(5):
        mailbox.put(f"Note {number}", "Text")
    mailbox.put("Note", "Text", folder="Later")
    read = connector(mailbox, tmp_path, folders=["*"])
    changes: list[Change] = []
    for change in read.changes(None):
        changes.append(change)
        if isinstance(change, Checkpoint):
            break
    read.close()
    assert isinstance(changes[-1], Checkpoint)
    read = connector(mailbox, tmp_path, folders=["*"])
    rest = list(read.changes(changes[-1].cursor))
    assert ListingBegins() not in rest and rest[-2:] == [ListingEnds(), Checkpoint(None)]
    named = [one.item.uri for one in (*changes, *rest) if isinstance(one, Found)]
    assert named == [*(f"INBOX/{number}.eml" for number in range(1, 6)), "Later/1.eml"]
    # A cursor of other numbers, or none at all, has everything named.
    for cursor in ('["INBOX", 1, 2]', '["Gone", 1, 2]', "nonsense", "[]", '{"a": 1}'):
        assert next(read.changes(cursor)) == ListingBegins()
    read.close()


def test_a_message_that_attachments_make_too_long_is_its_text(mailbox: Mailbox, tmp_path: Path):
    mailbox.put("Film", "The film is attached.", attached={"film.txt": b"x" * 200_000})
    read = connector(mailbox, tmp_path)
    message, film = [one.item for one in read.changes(None) if isinstance(one, Found)]
    assert message.size is not None and message.size < 10_000 and film.size is not None and film.size > 190_000
    data = read.fetch(message, max_bytes=20_000).data
    assert b"Subject: Film" in data and b"The film is attached." in data and len(data) < 20_000
    assert read.fetch(film, max_bytes=300_000).data == b"x" * 200_000
    read.close()


def test_encryption_and_credentials(pipeline: RAGPipeline, mailbox: Mailbox, monkeypatch):
    mailbox.put("Note", "Text")
    unknown = pipeline.sources.add(mailbox.location).name
    with pytest.raises(SourceError, match="no secure connection"):
        pipeline.sources.refresh(unknown)
    pipeline.sources.remove(unknown)
    monkeypatch.setenv("OTHER", "another-secret")
    wrong = add(pipeline, mailbox, password="env:OTHER")
    with pytest.raises(SourceError, match="refuses the user or the password") as refused:
        pipeline.sources.refresh(wrong)
    assert not refused.value.retryable and "another-secret" not in f"{refused.value} {pipeline.sources.list()}"
    # TLS begins after the greeting, unless somebody says that there is to be none.
    later = add(pipeline, mailbox, f"imap://{mailbox.user}@localhost:{mailbox.plain}")
    assert pipeline.sources.refresh(later).added == 1
    bare = f"imap://{mailbox.user}@127.0.0.1:{mailbox.plain}"
    assert pipeline.sources.refresh(add(pipeline, mailbox, bare, unencrypted=True)).added == 1


@pytest.mark.parametrize(
    "location",
    ["imaps://host", "imaps://ann:secret@host", "imaps://ann@host/INBOX", "imaps://ann@host:0", "imaps://ann@host:x",
     "imaps://ann@/", "http://ann@host"],
)  # fmt: skip
def test_locations_that_are_none(location: str):
    with pytest.raises(ValueError, match=r"mailbox|credentials|folders|URL"):
        ImapSettings(location=location)


def test_private_addresses_are_refused_unless_they_are_allowed(dsn: str, tmp_path: Path, mailbox: Mailbox):
    config = RAGConfig.load(storage={"data_dir": tmp_path, "dsn": dsn}, embedding={"provider": "hashing"})
    pipeline = RAGPipeline(config, embedder=HashingEmbedder())
    with pipeline, pytest.raises(SourceError, match="this machine"):
        pipeline.sources.refresh(add(pipeline, mailbox))


def test_names_of_folders_cannot_be_commands(pipeline: RAGPipeline, mailbox: Mailbox):
    with pytest.raises(UsageError, match="control characters"):
        add(pipeline, mailbox, folders=["INBOX\r\nA1 DELETE INBOX"])


# A hostile server


class Hostile(threading.Thread):
    """Says what it is told to say, whatever it is asked."""

    def __init__(self, answer: Callable[[bytes, bytes], bytes]) -> None:
        super().__init__(daemon=True)
        self._answer = answer
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.start()

    def run(self) -> None:
        while True:
            try:
                talking, _ = self._listening.accept()
            except OSError:
                return
            with talking, talking.makefile("rb") as lines:
                try:
                    talking.sendall(b"* OK ready\r\n")
                    for line in lines:
                        tag, _, command = line.strip().partition(b" ")
                        talking.sendall(self._said(tag, command))
                except OSError:
                    continue

    def _said(self, tag: bytes, command: bytes) -> bytes:
        word = command.upper().split()[0]
        if word == b"CAPABILITY":
            return b"* CAPABILITY IMAP4rev1\r\n" + tag + b" OK done\r\n"
        if word in {b"LOGIN", b"LOGOUT"}:
            return tag + b" OK done\r\n"
        return self._answer(tag, command)

    def stop(self) -> None:
        # Closing alone would leave the thread to answer on this port.
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self.join()


def honest(tag: bytes, command: bytes) -> bytes:
    if command.startswith(b"LIST"):
        return b'* LIST () "/" INBOX\r\n' + tag + b" OK done\r\n"
    if command.startswith(b"EXAMINE"):
        return b"* 1 EXISTS\r\n* OK [UIDVALIDITY 9]\r\n" + tag + b" OK [READ-ONLY]\r\n"
    if b"SEARCH" in command:
        return b"* SEARCH 1\r\n" + tag + b" OK done\r\n"
    return tag + b" OK done\r\n"


HOSTILE: dict[str, tuple[bytes, bytes]] = {
    "a literal of a terabyte": (b"FETCH", b"* 1 FETCH (UID 1 BODYSTRUCTURE {1000000000000}\r\n"),
    "lists in lists": (b"FETCH", b"* 1 FETCH (UID 1 BODYSTRUCTURE " + b"(" * 5_000 + b")" * 5_000 + b")\r\n"),
    "lists that do not end": (b"FETCH", b"* 1 FETCH (UID 1 BODYSTRUCTURE ((\r\n"),
    "lists that did not begin": (b"FETCH", b"* 1 FETCH )))) (UID 1)\r\n"),
    "texts that do not end": (b"FETCH", b'* 1 FETCH (UID 1 BODYSTRUCTURE ("TEXT" "PLAIN)\r\n'),
    "numbers that are none": (b"SEARCH", b"* SEARCH one two\r\n"),
    "folders of its own kind": (b"LIST", b"* LIST INBOX\r\n"),
    "nothing that is known": (b"LIST", b"\x00\xff\xfe garbage\r\n"),
    "no": (b"SEARCH", b""),
}


REASONS = {
    "a literal of a terabyte": "more than was asked for",
    "lists in lists": "nests lists without end",
    "lists that do not end": "does not close what it opened",
    "lists that did not begin": "closes what it did not open",
    "folders of its own kind": "in a way of its own",
    "no": "refuses the request",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_server_is_an_error_and_no_more(kind: str, tmp_path: Path):
    word, said = HOSTILE[kind]

    def answer(tag: bytes, command: bytes) -> bytes:
        if word not in command:
            return honest(tag, command)
        return said + tag + (b" NO done\r\n" if kind == "no" else b" OK done\r\n")

    server = Hostile(answer)
    mailbox = Mailbox("ann", server.port, server.port, tmp_path)
    read = connector(mailbox, tmp_path, f"imap://ann@127.0.0.1:{server.port}", unencrypted=True, ca_file=None)
    with pytest.raises(SourceError, match=REASONS.get(kind, "its server")) as refused:
        list(read.changes(None))
    assert "OK" not in str(refused.value)
    read.close()
    server.stop()


def test_what_is_asked_for_comes_or_is_no_document(tmp_path: Path):
    """Messages that nobody asked for, names that are paths, and a body that is longer than it may be."""
    structure = (
        b'(("TEXT" "PLAIN" NIL NIL NIL "7BIT" 3 1)'
        b'("APPLICATION" "PDF" ("NAME" "../../etc/passwd") NIL NIL "BASE64" 8 NIL '
        b'("ATTACHMENT" ("FILENAME*0*" "utf-8\'\'%2e%2e%2f" "FILENAME*1*" "a%00b.md")))'
        b'("IMAGE" "PNG" NIL NIL NIL "BASE64" 8 NIL ("ATTACHMENT" ("FILENAME" ""))) "MIXED")'
    )
    fetched = b"* 1 FETCH (UID 1 RFC822.SIZE 90 BODYSTRUCTURE " + structure + b")\r\n"

    def answer(tag: bytes, command: bytes) -> bytes:
        if b"BODY.PEEK" in command:
            return b"* 1 FETCH (UID 1 BODY[] {90000}\r\n" + b"x" * 90_000 + b")\r\n" + tag + b" OK done\r\n"
        if b"FETCH" in command:
            return b"* 7 FETCH (UID 7 RFC822.SIZE 3)\r\n" + fetched + fetched + tag + b" OK done\r\n"
        return honest(tag, command)

    server = Hostile(answer)
    location = f"imap://ann@127.0.0.1:{server.port}"
    read = connector(Mailbox("ann", 0, 0, tmp_path), tmp_path, location, unencrypted=True, ca_file=None)
    items = [one.item for one in read.changes(None) if isinstance(one, Found)]
    assert [item.uri for item in items] == ["INBOX/1.eml", "INBOX/1/2-_a_b.md", "INBOX/1/3-attached.png"]
    with pytest.raises(SourceError, match="more than was asked for"):
        read.fetch(items[0], max_bytes=1_000)
    read.close()
    server.stop()


def test_a_server_without_encryption_is_not_told_the_password(tmp_path: Path):
    server = Hostile(honest)
    read = connector(Mailbox("ann", 0, 0, tmp_path), tmp_path, f"imap://ann@127.0.0.1:{server.port}", ca_file=None)
    with pytest.raises(SourceError, match="no encryption"):
        list(read.changes(None))
    server.stop()


# What is said and how


@given(st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=30))
def test_names_of_folders_are_read_as_they_were_written(name: str):
    assert decoded(encoded(name)) == name
    assert encoded(name).isascii() and "\r" not in quoted(name)


@given(st.binary(max_size=200))
def test_whatever_a_server_says_is_read_or_refused(data: bytes):
    with suppress(ReplyError):
        values([data, (data, data), b")"])


def test_replies_are_read():
    assert values([rb'1 (A "b \"c\"" NIL "NIL" (x 2))']) == [
        b"1", [b"A", b'b "c"', None, b"NIL", [b"x", b"2"]],
    ]  # fmt: skip
    assert values([(b"1 (BODY[] {3}", b"a)b"), b" UID 2)"]) == [b"1", [b"BODY[]", b"a)b", b"UID", b"2"]]
