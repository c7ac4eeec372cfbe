"""An open pipeline outlives its server: whoever notices that it was killed starts it again."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import psycopg
import pytest

from conftest import postmaster, value
from recollect import Document, RAGConfig, RAGPipeline
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import StoreUnavailableError
from recollect.store.embedded import EmbeddedServer


@pytest.fixture
def embedded(data_dir: Path) -> Iterator[RAGPipeline]:
    """A pipeline on an embedded server of its own, with one document."""
    config = RAGConfig.load(storage={"data_dir": data_dir}, embedding={"provider": "hashing"})
    with RAGPipeline(config, embedder=HashingEmbedder()) as opened:
        opened.ingest(Document(source="a", content="Trains leave from the northern station."))
        yield opened


def finds(pipeline: RAGPipeline) -> bool:
    return len(pipeline.search("northern station").results) == 1


def kill_everything(process: psutil.Process) -> None:
    for member in (process, *process.children(recursive=True)):
        member.kill()


def kill_a_session(process: psutil.Process) -> None:
    sessions = [child for child in process.children() if "recollect" in " ".join(child.cmdline())]
    sessions[0].kill()


KILLS = [psutil.Process.kill, kill_everything, kill_a_session, lambda process: process.send_signal(signal.SIGINT)]


@pytest.mark.parametrize("kill", KILLS, ids=["server", "all", "session", "stop"])
def test_whoever_needs_a_killed_server_starts_it(embedded, data_dir, kill: Callable[[psutil.Process], None]):
    assert finds(embedded)
    barrier = threading.Barrier(5)

    def search(_: int) -> tuple[int, bool]:
        barrier.wait()
        errors = 0
        while True:
            try:
                return errors, finds(embedded)
            except StoreUnavailableError:
                errors += 1

    with ThreadPoolExecutor(4) as pool:
        searches = pool.map(search, range(4))
        process = postmaster(data_dir)
        assert process is not None
        kill(process)
        barrier.wait()
        outcomes = list(searches)
    assert all(found for _, found in outcomes)
    assert max(errors for errors, _ in outcomes) <= 1
    embedded.ingest(Document(source="b", content="Buses leave from the southern station."))
    embedded.close()
    assert postmaster(data_dir) is None


def test_a_pipeline_that_was_closed_starts_nothing(embedded, data_dir):
    assert finds(embedded)
    database = embedded.store.database
    embedded.close()
    with pytest.raises(Exception, match="pool"), database.untenanted():
        pass
    assert postmaster(data_dir) is None


def test_connections_that_broke_in_the_pool_reach_nobody(pipeline):
    pipeline.ingest(Document(source="a", content="Trains leave from the northern station."))
    barrier = threading.Barrier(4)

    def search(_: int) -> bool:
        with pipeline.store.database.untenanted():
            barrier.wait()
        return finds(pipeline)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(search, range(4)))
    sessions = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    with psycopg.connect(pipeline.store.dsn) as connection:
        connection.execute(f"SELECT pg_terminate_backend(pid, 10_000) {sessions}")
    assert all(finds(pipeline) for _ in range(8))


def test_what_hinders_the_start_is_what_callers_hear(embedded, data_dir, monkeypatch):
    with (data_dir / "pg" / "postgresql.auto.conf").open("a", encoding="ascii") as file:
        file.write("no_such_setting = 1\n")
    # Whoever waits for a connection until the time is over never hears of it.
    monkeypatch.setattr(embedded.store.database, "_wait_seconds", 3_600.0)
    process = postmaster(data_dir)
    assert process is not None
    kill_everything(process)
    # The first may still have had a connection, and say that it broke; whoever comes next is told why.
    with pytest.raises(StoreUnavailableError):
        finds(embedded)

    def told(_: int) -> str:
        with pytest.raises(StoreUnavailableError) as caught:
            finds(embedded)
        return str(caught.value)

    with ThreadPoolExecutor(4) as pool:
        assert all("no_such_setting" in reason for reason in pool.map(told, range(4)))
    with (data_dir / "pg" / "postgresql.auto.conf").open("w", encoding="ascii"):
        pass
    assert finds(embedded)


def test_a_start_that_fails_leaves_no_server(data_dir):
    with EmbeddedServer(data_dir) as dsn:
        file = data_dir / "pg" / str(value(dsn, "SELECT pg_relation_filepath('pg_class')"))
    if os.geteuid() == 0:
        os.chown(file, 0, 0)
    file.chmod(0o000)
    with pytest.raises(StoreUnavailableError):
        EmbeddedServer(data_dir).start()
    assert postmaster(data_dir) is None
