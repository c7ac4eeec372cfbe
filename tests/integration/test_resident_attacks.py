"""Copies of collections in memory while servers are promoted, restored, killed and cut off, and while others erase."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from pooler import PROGRAM, bouncing
from recollect import Document, Principal, RAGConfig, RAGPipeline, RetrievalOptions
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import RecollectError, TenantSuspendedError
from recollect.interruption import Interrupted, Interruption, current
from recollect.retrieval import search
from recollect.retrieval.resident import kernels
from recollect.retrieval.resident.collections import ResidentCollections
from recollect.retrieval.resident.source import ResidentCandidates
from recollect.store.backup import backup
from recollect.store.migrate import migrate
from recollect.store.resident import Snapshot
from recollect.store.restore import restore
from replication import TEMPLATE, Server, initialise, new_server, programs, replicated
from resident import settled
from server import reachable_folder

FRESH = RetrievalOptions(use_cache=False)


@pytest.fixture(autouse=True)
def from_the_first_search_on(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(search, "LOADED_AFTER", 0)


def opened(dsn: str, **storage: str) -> RAGPipeline:
    config = RAGConfig.load(
        storage={"dsn": dsn, **storage},
        embedding={"provider": "hashing"},
        retrieval={"resident_memory_mb": 100, "probe_rate": 0},
        access={"mode": "enforce"},
    )
    return RAGPipeline(config, embedder=HashingEmbedder())


def copies(rag: RAGPipeline) -> ResidentCollections:
    held = rag.standpoint.assembly.held
    assert held is not None
    return held


def found(rag: RAGPipeline, query: str = "annual", **view) -> list[str]:
    """The sources of what a search finds, which is answered from memory."""
    for _ in range(3):
        reply = rag.view(**view).search(query, FRESH)
        if set(reply.paths.values()) == {"resident"}:
            return sorted({one.source for one in reply.results})
        settled(copies(rag))
    raise AssertionError(f"The search was answered by {reply.paths}.")


def note(*names: str) -> list[Document]:
    return [Document(content=f"An annual note on {name}.", source=name) for name in names]


# Stores that go back.


@pytest.mark.slow
def test_after_a_failover_the_copy_holds_what_the_promoted_server_does():
    with replicated() as cluster:
        hosts = f"{cluster.primary.folder},{cluster.replica.folder}"
        dsn = make_conninfo(cluster.primary.dsn(TEMPLATE), host=hosts, target_session_attrs="read-write")
        with opened(dsn) as rag:
            rag.ingest(note("kept"))
            cluster.caught_up()
            cluster.replica.stop()
            rag.ingest(note("lost"))
            assert found(rag) == ["kept", "lost"]
            cluster.primary.stop()
            cluster.replica.start()
            cluster.replica.promote()
            # The numbers of what was lost, of its revision and its chunks, are given again.
            with opened(cluster.replica.dsn(TEMPLATE)) as elsewhere:
                elsewhere.ingest(note("news"))
            assert found(rag) == ["kept", "news"]


def test_after_a_restore_the_copy_holds_what_was_restored(dsn: str, tmp_path: Path):
    with opened(dsn) as rag:
        rag.ingest(note("kept"))
        backup(dsn, tmp_path / "store.backup")
        rag.ingest(note("lost"))
        assert found(rag) == ["kept", "lost"]
        restore(dsn, tmp_path / "store.backup", force=True)
        with opened(dsn) as elsewhere:
            elsewhere.ingest(note("news"))
        assert found(rag) == ["kept", "news"]
        copies(rag).follow()
        assert copies(rag).usage().chunks == 2


# Servers that go away.


@pytest.mark.skipif(PROGRAM is None, reason="PgBouncer is not installed (Debian: apt-get install pgbouncer)")
@pytest.mark.parametrize("settings", [{"server_round_robin": "1"}, {"server_reset_query_always": "1"}])
def test_a_copy_is_loaded_and_followed_through_a_pooler(dsn: str, settings: dict[str, str]):
    with bouncing(dsn, "transaction", server_reset_query="DISCARD ALL", **settings) as through, opened(through) as rag:
        tenants = [rag.tenants.create(name).tenant_id for name in ("one", "two")]
        for tenant in tenants:
            rag.view(tenant=tenant).ingest(note(f"of {tenant}"))
        for turn in range(3):
            for tenant in tenants:
                rag.view(tenant=tenant).ingest(note(f"{turn} of {tenant}"))
            for tenant in tenants:
                written = [f"{number} of {tenant}" for number in range(turn + 1)]
                assert found(rag, tenant=tenant) == [*written, f"of {tenant}"]
        copies(rag).follow()
        assert copies(rag).usage().chunks == 8


@pytest.fixture(scope="module")
def mortal() -> Iterator[Server]:
    """A server that may be killed, and a migrated database in it."""
    with reachable_folder() as root:
        server = new_server(root / "mortal", programs(root))
        initialise(server)
        server.start()
        server.ask(f"CREATE DATABASE {TEMPLATE}")
        migrate(server.dsn(TEMPLATE))
        yield server
        server.stop()


def crash(server: Server) -> None:
    """One session is killed, so that all others end too and the server recovers."""
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        os.kill(connection.info.backend_pid, signal.SIGKILL)
        with suppress(psycopg.OperationalError):
            connection.execute("SELECT pg_sleep(60)")
    while True:
        with suppress(psycopg.OperationalError):
            server.ask("SELECT 1")
            return


def cut(server: Server) -> None:
    """All other sessions end."""
    server.ask(f"SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '{TEMPLATE}'")


def once(
    monkeypatch: pytest.MonkeyPatch, owner: type, name: str, harm: Callable[[], object], *, first: bool
) -> list[bool]:
    """Have something happen at the next call of a method, before it or after it; returns what says that it did."""
    method = getattr(owner, name)
    happened: list[bool] = []

    def called(*args, **options):
        result = None if first else method(*args, **options)
        if not happened:
            happened.append(True)
            harm()
        return method(*args, **options) if first else result

    monkeypatch.setattr(owner, name, called)
    return happened


@pytest.mark.slow
@pytest.mark.parametrize("harm", [cut, crash])
@pytest.mark.parametrize("at", ["changes", "contents", "found"])
def test_a_copy_comes_back_after_the_server_went_away_at_any_moment(
    mortal: Server, monkeypatch: pytest.MonkeyPatch, harm: Callable[[Server], None], at: str
):
    with opened(mortal.dsn(TEMPLATE)) as rag:
        name = f"{harm.__name__}-{at}"
        view = rag.view(collections=name)
        view.ingest(note("first"))
        if at in {"changes", "found"}:
            assert found(rag, collections=name) == ["first"]
        view.ingest(note("second"))
        where = (ResidentCandidates, "candidates") if at == "found" else (Snapshot, at)
        happened = once(monkeypatch, *where, lambda: harm(mortal), first=at != "found")
        for _ in range(3):
            with suppress(RecollectError):
                reply = view.search("annual", FRESH)
                assert {one.source for one in reply.results} == {"first", "second"}
            settled(copies(rag))
            if happened:
                break
        assert happened
        assert found(rag, collections=name) == ["first", "second"]
        view.ingest(note("third"))
        assert found(rag, collections=name) == ["first", "second", "third"]
        assert copies(rag).usage().collections == 1


# Others, who erase, suspend and forbid.


def held_texts(rag: RAGPipeline) -> int:
    """How many chunks lie in memory, the ones that are not found any more included."""
    return sum(len(part.segment) for held in copies(rag)._held.values() for part in held.generation.parts)


@pytest.fixture
def two(dsn: str) -> Iterator[tuple[RAGPipeline, RAGPipeline]]:
    """Two processes, as far as the store can tell: the first one searches a tenant's notes from memory."""
    with opened(dsn) as rag, opened(dsn) as other:
        rag.tenants.create("firm")
        rag.view(tenant="firm").ingest(note("kept", "gone"))
        assert found(rag, tenant="firm") == ["gone", "kept"]
        yield rag, other


def test_what_others_erase_after_they_deleted_it_leaves_the_memory(two):
    rag, other = two
    other.view(tenant="firm").documents.delete(["gone"])
    copies(rag).follow()
    assert found(rag, tenant="firm") == ["kept"] and held_texts(rag) == 2
    other.view(tenant="firm").documents.erase(["gone"])
    copies(rag).follow()
    assert held_texts(rag) == 1


def test_what_others_erase_of_older_versions_leaves_the_memory(two):
    rag, other = two
    other.view(tenant="firm").ingest(Document(content="An annual note, written anew.", source="gone"))
    copies(rag).follow()
    other.view(tenant="firm").documents.erase(["gone"])
    other.maintenance.scrub()
    copies(rag).follow()
    assert found(rag, tenant="firm") == ["kept"] and held_texts(rag) == 1


def test_a_tenant_that_others_suspend_or_erase_leaves_the_memory(two):
    rag, other = two
    other.tenants.suspend("firm")
    with pytest.raises(TenantSuspendedError):
        rag.view(tenant="firm").search("annual", FRESH)
    copies(rag).follow()
    assert copies(rag).usage().bytes == 0
    other.tenants.resume("firm")
    assert found(rag, tenant="firm") == ["gone", "kept"]
    other.tenants.erase("firm")
    copies(rag).follow()
    assert copies(rag).usage().bytes == 0


def test_another_tenant_does_not_wait_for_searches_that_compute_and_who_waits_may_give_up(two, monkeypatch):
    rag, _ = two
    rag.tenants.create("shop")
    rag.view(tenant="shop").ingest(note("sold"))
    assert found(rag, tenant="shop") == ["sold"]
    computing, going_on, gave_up = threading.Semaphore(0), threading.Event(), threading.Event()
    compute, told, interruption = kernels.best_by_words, [], Interruption()

    def slow(*arguments, **named):
        if threading.current_thread().name == "slow":
            computing.release()
            assert going_on.wait(30)
        return compute(*arguments, **named)

    def waits() -> None:
        current.set(interruption)
        with pytest.raises(Interrupted):
            found(rag, tenant="firm")
        gave_up.set()

    monkeypatch.setattr(kernels, "best_by_words", slow)
    slow_ones = [threading.Thread(name="slow", target=lambda: told.append(found(rag, tenant="firm"))) for _ in range(2)]
    waiting = threading.Thread(target=waits)
    for thread in slow_ones:
        thread.start()
        assert computing.acquire(timeout=30)
    assert found(rag, tenant="shop") == ["sold"]
    waiting.start()
    assert not gave_up.wait(0.2)
    interruption.interrupt()
    assert gave_up.wait(30)
    going_on.set()
    for thread in (*slow_ones, waiting):
        thread.join()
    assert told == [["gone", "kept"]] * 2
    assert found(rag, tenant="firm") == ["gone", "kept"]


def test_a_collection_that_others_make_anew_under_its_name_is_another(two):
    rag, other = two
    other.view(tenant="firm").collections.delete("default")
    other.view(tenant="firm").ingest(note("new"))
    assert found(rag, tenant="firm") == ["new"]
    copies(rag).follow()
    assert copies(rag).usage().chunks == held_texts(rag) == 1


def test_rights_that_others_change_hold_for_the_next_search(two):
    rag, other = two
    ann = {"tenant": "firm", "principal": Principal(user_id="ann")}
    assert found(rag, **ann) == ["gone", "kept"]
    grants = other.view(tenant="firm").grants
    grants.add(["user:bob"], documents="gone", only=True)
    assert found(rag, **ann) == ["kept"]
    grants.add(["user:ann"], documents="gone")
    assert found(rag, **ann) == ["gone", "kept"]
    grants.deny(["user:ann"], documents="gone")
    assert found(rag, **ann) == ["kept"]
    grants.set_collection(readers=["user:bob"])
    assert rag.view(**ann).search("annual", FRESH).results == ()


def test_what_expires_is_not_found_from_memory(two):
    rag, other = two
    other.view(tenant="firm").documents.set_ttl("gone", timedelta(microseconds=1))
    assert found(rag, tenant="firm") == ["kept"]
    other.view(tenant="firm").maintenance.close_expired()
    assert found(rag, tenant="firm") == ["kept"]
