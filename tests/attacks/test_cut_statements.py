"""The connection breaks at every statement of every write: a write happens once or not at all, and can be repeated.

A new method of a group fails here until `WRITES` or `READS` names it. Every third write meets a few cuts; with
``FUZZ_EFFORT=2``, each write meets every cut.
"""

from __future__ import annotations

import inspect
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import chdir, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from hostile import EFFORT
from recollect import Document, RAGConfig, RAGPipeline, View
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import StoreUnavailableError
from recollect.model.original import Original
from recollect.model.tenant import TenantQuota
from recollect.model.uploaded_file import FileUse
from recollect.pipeline.view import Groups

#: Methods that store nothing, or nothing in this store (no language model, no kept originals, no answers).
READS = """
documents: diff diff_evidence duplicates each filter_hints get history list list_duplicates reread resolve
contents: chunks download each_chunk grep list original outline read
files: batch documents files_of get list read unstored_counts
collections: each export_lines get list notes shared
sources: each get list watch
spaces: reembedded status
sessions: default_config documents get list
memory: assemble assembler each_turn get latest list overview retriever turns
facts: get history list search
feedback: judge weights
grants: explain of_collection of_documents
keys: authenticate create_widget get list users
logins: get list revoke revoke_all
tenants: export get isolation list
audit: accesses export list request_totals requests verify verify_accesses
jobs: contextualise each events get list wait
maintenance: check estimate_contexts scrub status verify write_contexts
view: ask ask_events ask_stream augment_context context default_options ingest_url recall retrieve search view why_not
"""

Write = Callable[[RAGPipeline, SimpleNamespace], Any]
WRITES: dict[str, Write] = {
    "view.ingest": lambda rag, at: rag.ingest(Document(content="Dogs may come on Fridays.", source="dogs.md")),
    "view.ingest a new version": lambda rag, at: rag.ingest(Document(content="Now 31 days.", source="leave.md")),
    "view.ingest a folder": lambda rag, at: rag.ingest(Path("more")),
    "view.ingest_files": lambda rag, at: rag.ingest_files("more"),
    "view.chat": lambda rag, at: rag.chat("How many days?", session="talk"),
    "view.chat_events": lambda rag, at: list(rag.chat_events("How many days?", session="talk")),
    "view.remember": lambda rag, at: rag.view(session="chat", user="ada").remember(["My desk is 9.", "Noted."]),
    "documents.update": lambda rag, at: rag.documents.update("leave.md", title="Holidays", tags=["new"]),
    "documents.set_ttl": lambda rag, at: rag.documents.set_ttl("leave.md", "3d"),
    "documents.delete": lambda rag, at: rag.documents.delete(["leave.md", "pay.md"]),
    "documents.erase": lambda rag, at: rag.documents.erase(["leave.md", "pay.md"]),
    "documents.restore": lambda rag, at: rag.documents.restore("leave.md", 1),
    "files.add": lambda rag, at: rag.files.add(
        Original.of_bytes(b"A new file.", mime_type="text/plain", name="new.txt")
    ),
    "files.attach": lambda rag, at: rag.files.attach([at.use]),
    "files.detach": lambda rag, at: rag.files.detach(at.file),
    "files.delete": lambda rag, at: rag.files.delete(at.sent),
    "collections.ensure": lambda rag, at: rag.collections.ensure("fresh"),
    "collections.create": lambda rag, at: rag.collections.create("fresh"),
    "collections.update": lambda rag, at: rag.collections.update("west", description="Of the west."),
    "collections.note": lambda rag, at: rag.collections.note("west", metadata={"a": "b"}, idle_days=3),
    "collections.delete": lambda rag, at: rag.collections.delete("west"),
    "collections.share": lambda rag, at: rag.collections.share("default", "acme"),
    "collections.unshare": lambda rag, at: rag.collections.unshare("west", "acme"),
    "collections.import_file": lambda rag, at: rag.view(collections="fresh").collections.import_file("lines.jsonl"),
    "sources.add": lambda rag, at: rag.sources.add("more", name="more"),
    "sources.refresh": lambda rag, at: rag.sources.refresh("kept", anew=True),
    "sources.refresh_all": lambda rag, at: rag.sources.refresh_all(),
    "sources.remove": lambda rag, at: rag.sources.remove("kept"),
    "spaces.reembed": lambda rag, at: rag.spaces.reembed("hashing:320", samples=0, rest=0),
    "spaces.rollback": lambda rag, at: rag.view(collections="west").spaces.rollback(),
    "spaces.drop": lambda rag, at: rag.view(collections="west").spaces.drop(),
    "sessions.create": lambda rag, at: rag.sessions.create("new"),
    "sessions.renew": lambda rag, at: rag.sessions.renew("desk"),
    "sessions.end": lambda rag, at: rag.sessions.end("desk"),
    "sessions.end_expired": lambda rag, at: rag.sessions.end_expired(),
    "memory.rename": lambda rag, at: rag.memory.rename("chat", "Lockers"),
    "memory.delete": lambda rag, at: rag.memory.delete("chat"),
    "memory.forget": lambda rag, at: rag.memory.forget("chat", [1]),
    "facts.consolidate": lambda rag, at: rag.view(user="ben").facts.consolidate(min_retrievals=1),
    "facts.delete": lambda rag, at: rag.facts.delete(at.fact),
    "feedback.give": lambda rag, at: rag.view(session="chat").feedback.give("leave.md", helpful=True),
    "feedback.reset": lambda rag, at: rag.view(session="talk").feedback.reset(),
    "grants.add": lambda rag, at: rag.grants.add("role:hr", documents="leave.md", only=True),
    "grants.deny": lambda rag, at: rag.grants.deny("user:eve", documents="leave.md"),
    "grants.remove": lambda rag, at: rag.grants.remove("user:ann", documents="pay.md"),
    "grants.set_collection": lambda rag, at: rag.grants.set_collection(readers=["role:hr"], writers=["user:ann"]),
    "keys.create": lambda rag, at: rag.keys.create("new", scopes="read"),
    "keys.rotate": lambda rag, at: rag.keys.rotate(at.key, grace="1h"),
    "keys.revoke": lambda rag, at: rag.keys.revoke(at.key),
    "tenants.create": lambda rag, at: rag.tenants.create("new"),
    "tenants.change": lambda rag, at: rag.tenants.change("acme", lambda one: one),
    "tenants.suspend": lambda rag, at: rag.tenants.suspend("acme"),
    "tenants.resume": lambda rag, at: rag.tenants.resume("asleep"),
    "tenants.set_quota": lambda rag, at: rag.tenants.set_quota("acme", TenantQuota(max_documents=5)),
    "tenants.set_pii": lambda rag, at: rag.tenants.set_pii("acme", None),
    "tenants.share": lambda rag, at: rag.tenants.share("default", "default", "acme"),
    "tenants.unshare": lambda rag, at: rag.tenants.unshare("default", "west", "acme"),
    "tenants.erase": lambda rag, at: rag.tenants.erase("acme"),
    "jobs.ingest": lambda rag, at: rag.jobs.ingest([Path("more")]),
    "jobs.upload": lambda rag, at: rag.jobs.upload(
        Original.of_bytes(b"Uploaded.", mime_type="text/plain", name="up.txt")
    ),
    "jobs.refresh": lambda rag, at: rag.jobs.refresh("kept"),
    "jobs.reembed": lambda rag, at: rag.jobs.reembed("hashing:320"),
    "jobs.rollback": lambda rag, at: rag.view(collections="west").jobs.rollback(),
    "jobs.cancel": lambda rag, at: rag.jobs.cancel(at.job),
    "jobs.retry": lambda rag, at: rag.jobs.retry(at.cancelled),
    "maintenance.close_expired": lambda rag, at: rag.maintenance.close_expired(),
    "maintenance.cleanup": lambda rag, at: rag.maintenance.cleanup(),
}


def opened(dsn: str, folder: Path) -> RAGPipeline:
    config = RAGConfig.load(
        storage={"data_dir": folder / "unused", "dsn": dsn},
        embedding={"provider": "hashing"},
        temporal={"cleanup_interval_hours": 0},
        multi_tenant={"isolation_level": "shared"},
    )
    return RAGPipeline(config, embedder=HashingEmbedder())


@pytest.fixture(scope="module")
def peopled(clone, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimpleNamespace]:
    """A store with something for every write; each of them has a copy of its own."""
    folder = tmp_path_factory.mktemp("folder")
    for name, text in {
        "kept/a.md": "# A\n\nKept.",
        "kept/b.md": "# B\n\nToo.",
        "read/r.md": "# R\n\nRead.",
        "more/c.md": "# C\n\nMore.",
    }.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    with chdir(folder), clone() as dsn:
        with opened(dsn, folder) as rag:
            rag.ingest(Document(content="# Leave\n\nAnnual leave is 30 days.", source="leave.md"))
            rag.ingest(Document(content="# Leave\n\nAnnual leave is 29 days.", source="leave.md"))
            rag.ingest(Document(content="Pay day is Friday.", source="pay.md", permissions=("user:ann",)))
            rag.ingest(Path("read"))
            west = rag.view(collections="west")
            west.ingest(Document(content="The west has rain.", source="rain.md"))
            west.spaces.reembed("hashing:320", samples=0, rest=0)
            for name in ("acme", "asleep"):
                rag.tenants.create(name)
            rag.view(tenant="acme").ingest(Document(content="Of acme.", source="acme.md"))
            rag.tenants.suspend("asleep")
            rag.collections.share("west", "acme")
            rag.view(session="chat", user="ada").remember(["My locker is 17.", "Noted."])
            rag.view(session="talk", user="ben").remember(["My dog is called Rex."])
            rag.view(user="ada").recall("My locker is 17.")
            rag.view(user="ben").recall("My dog is called Rex.")
        # Closing has stored what recalls counted, which facts are made of.
        with opened(dsn, folder) as rag:
            rag.view(user="ada").facts.consolidate(min_retrievals=1)
            rag.view(session="talk").feedback.give("leave.md", helpful=True)
            rag.sessions.create("desk")
            rag.sources.add("kept", name="kept")
            rag.sources.refresh("kept")
            Path("lines.jsonl").write_text(
                "\n".join(rag.view(collections="west").collections.export_lines()), encoding="utf-8"
            )
            (cancelled,) = rag.jobs.ingest([folder / "kept"])
            rag.jobs.cancel(cancelled.job_id)
            ids = SimpleNamespace(
                folder=folder,
                dsn=dsn,
                file=next(one.document_id for one in rag.documents.list() if one.source.endswith("r.md")),
                sent=rag.files.add(Original.of_bytes(b"Sent.", mime_type="text/plain", name="sent.txt")).file_id,
                fact=rag.facts.list()[0].fact_id,
                key=rag.keys.create("old", scopes="read").key.key_id,
                job=rag.jobs.ingest([folder / "more"])[0].job_id,
                cancelled=cancelled.job_id,
            )
            ids.use = FileUse(file_id=ids.sent)
        yield ids


class Cut:
    """Breaks the connection of the k-th statement, before the server has it or when the reply is lost."""

    def __init__(self, dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self._killer = psycopg.connect(dsn, autocommit=True)
        self._wait = psycopg.Connection.wait
        self._lock = threading.Lock()
        self.at, self.reply_lost, self.count = 0, False, 0
        cut = self
        monkeypatch.setattr(psycopg.Connection, "wait", lambda *args, **named: cut._waited(*args, **named))

    def _waited(self, connection: psycopg.Connection, *args: Any, **named: Any) -> Any:
        if connection is self._killer:
            return self._wait(connection, *args, **named)
        with self._lock:
            self.count += 1
            hit = self.count == self.at
        if not hit:
            return self._wait(connection, *args, **named)
        if self.reply_lost:
            self._wait(connection, *args, **named)
        backend = connection.info.backend_pid
        with self._lock:
            self._killer.execute("SELECT pg_terminate_backend(%s, 10000)", [backend])
        if self.reply_lost:
            connection.close()
            raise psycopg.OperationalError("server closed the connection unexpectedly")
        return self._wait(connection, *args, **named)

    @contextmanager
    def within(self, at: int, *, reply_lost: bool = False) -> Iterator[None]:
        self.at, self.reply_lost, self.count = at, reply_lost, 0
        try:
            yield
        finally:
            self.at = 0

    def counts(self) -> dict[str, int]:
        """How many rows each table has, except those that threads write now and then and statistics made later."""
        tables = self._killer.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'recollect'::regnamespace AND relkind = 'r' "
            "AND relname !~ '^(search_health|activity|upkeep|term_stats|access_log_)'"
        ).fetchall()
        query = " UNION ALL ".join(f"SELECT '{name}', count(*) FROM recollect.{name}" for (name,) in tables)
        return dict(self._killer.execute(query).fetchall())

    def close(self) -> None:
        self._killer.close()


def methods() -> Iterator[str]:
    """Every public method of a view and of its groups, as ``group.method``."""
    kinds = {"view": View}
    for name, group in vars(Groups).items():
        if isinstance(group, property):
            kinds[name] = type(group.fget(Groups(None)))
    for group, kind in kinds.items():
        for name, _ in inspect.getmembers(kind, inspect.isfunction):
            if not name.startswith("_"):
                yield f"{group}.{name}"


def test_every_method_is_a_read_or_is_attacked():
    groups = [line.partition(": ") for line in READS.split("\n")]
    reads = {f"{group}.{name}" for group, _, names in groups for name in names.split()}
    assert set(methods()) == reads | {name.split()[0] for name in WRITES}


@dataclass(frozen=True)
class Tried:
    statements: int
    error: Exception | None
    counts: dict[str, int]


@pytest.mark.parametrize("name", list(WRITES)[:: 3 if EFFORT == 1 else 1])
def test_a_write_whose_connection_breaks_happens_once_or_not_at_all(name, peopled, clone):
    def tried(at: int, *, reply_lost: bool = False, done: Tried | None = None) -> Tried:
        with (
            clone(conninfo_to_dict(peopled.dsn)["dbname"]) as dsn,
            opened(dsn, peopled.folder) as rag,
            pytest.MonkeyPatch.context() as patch,
            closing(Cut(dsn, patch)) as cut,
        ):
            rag.documents.list()
            with cut.within(at, reply_lost=reply_lost):
                error = error_of(lambda: WRITES[name](rag, peopled))
            statements, counts = cut.count, cut.counts()
            if done is None:
                assert error is None
            elif error is not None:
                assert isinstance(error, StoreUnavailableError), repr(error)
                if counts != done.counts:
                    assert error_of(lambda: WRITES[name](rag, peopled)) is None
                    counts = cut.counts()
            if done is not None:
                report = rag.maintenance.verify()
                assert report.clean, [check for check in report.checks if check.found]
            assert rag.documents.list(), "the pool gives connections that work"
            return Tried(statements, error, counts)

    done = tried(0)
    chance = random.Random(name)
    cuts = [(at, lost) for at in range(1, done.statements + 1) for lost in (False, True)]
    if EFFORT == 1:
        cuts = [(done.statements, True), *chance.sample(cuts, 1)]
    for at, lost in cuts:
        found = tried(at, reply_lost=lost, done=done)
        assert found.counts == done.counts, (at, lost, found.error)


def error_of(action: Callable[[], Any]) -> Exception | None:
    try:
        action()
    except Exception as error:  # noqa: BLE001 - whatever a method raises
        return error
    return None
