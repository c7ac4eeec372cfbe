"""Processes forked from one that has a pipeline open, while its threads search."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path

import psycopg
import pytest

from recollect import Document, RAGPipeline
from recollect.model import Scope

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]
CHILDREN = 3


@pytest.fixture
def filled(pipeline: RAGPipeline) -> RAGPipeline:
    pipeline.ingest(Document(content=f"The zebrafish number {n} swims.", source=f"{n}.txt") for n in range(8))
    return pipeline


def sources(rag: RAGPipeline, query: str = "zebrafish") -> list[str]:
    return sorted(one.source for one in rag.search(query).results)


@contextmanager
def searching(rag: RAGPipeline, expected: list[str]) -> Iterator[None]:
    """Threads that search all the time, each question a new one, and find what they should."""
    ended = threading.Event()
    wrong: list[object] = []

    def run(name: int) -> None:
        turn = 0
        while not ended.is_set():
            turn += 1
            try:
                found = sources(rag, f"zebrafish t{name}x{turn}")
            except Exception as exc:  # noqa: BLE001 - whatever it is, the test must see it
                found = exc
            if found != expected:
                wrong.append(found)

    threads = [threading.Thread(target=run, args=(name,)) for name in range(2)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    assert wrong == []


def in_child(work: Callable[[], object]) -> Callable[[], object]:
    """Fork, and run something in the child; what is returned waits for its result."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            told = json.dumps({"result": work()})
        except BaseException:  # noqa: BLE001 - the parent raises it
            told = json.dumps({"error": traceback.format_exc()})
        os.write(writer, told.encode())
        os._exit(0)
    os.close(writer)

    def result() -> object:
        with os.fdopen(reader, encoding="utf-8") as file:
            told = json.loads(file.read() or '{"error": "the child ended without a word"}')
        os.waitpid(child, 0)
        assert "error" not in told, told["error"]
        return told["result"]

    return result


def backends(dsn: str) -> set[int]:
    with psycopg.connect(dsn) as connection:
        found = connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() "
            "AND backend_type = 'client backend'"
        )
        return {row[0] for row in found}


def test_children_find_what_the_parent_finds_while_its_threads_search(filled: RAGPipeline):
    expected = sources(filled)
    assert len(expected) == 8
    with searching(filled, expected):
        results = [
            in_child(lambda n=n: [sources(filled, f"zebrafish c{n}x{turn}") for turn in range(5)])
            for n in range(CHILDREN)
        ]
        assert [result() for result in results] == [[expected] * 5] * CHILDREN


def test_what_a_child_stores_the_parent_finds(filled: RAGPipeline):
    sources(filled)

    def store() -> int:
        filled.view(session="chat", user="ann").remember("I like zebrafish.")
        return filled.ingest(Document(content="The zebrafish of a child swims.", source="child.txt")).document_id

    written = in_child(store)()
    assert filled.documents.get("child.txt").document_id == written
    assert "child.txt" in sources(filled, "zebrafish child")


def test_the_parents_connections_stay_as_they_are(filled: RAGPipeline, dsn: str):
    sources(filled)
    before = backends(dsn)
    # A transaction of the parent is open meanwhile; the child leaves it alone, and ends with its interpreter.
    with filled.store.database.transaction(Scope()) as connection:
        connection.execute("CREATE TEMPORARY TABLE mine AS SELECT 1 AS one")
        process = multiprocessing.get_context("fork").Process(target=_search_and_close, args=(filled,))
        process.start()
        process.join(60)
        assert process.exitcode == 0
        assert connection.execute("SELECT one FROM mine").fetchall() == [(1,)]
    assert backends(dsn) >= before > set()
    assert len(sources(filled, "zebrafish again")) == 8


def _search_and_close(rag: RAGPipeline) -> None:
    with rag:
        assert len(sources(rag, "zebrafish in a process")) == 8


def test_a_connection_that_the_parent_had_checked_out_is_of_no_use_in_the_child(filled: RAGPipeline):
    with filled.store.database.transaction(Scope()) as connection:

        def use() -> str:
            try:
                connection.execute("SELECT 1")
            except psycopg.Error as exc:
                return type(exc).__name__
            return "it answered"

        assert in_child(use)() == "OperationalError"
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_store_that_was_held_directly_opens_anew_in_the_child(filled: RAGPipeline):
    store = filled.store
    place = store.collections.get(Scope(), "default")
    found = in_child(lambda: [record.source for record in store.documents.list_page(Scope(), place)])()
    assert len(found) == 8


@pytest.mark.parametrize("name", ["_lock", "embedders._lock"])
def test_a_lock_that_another_thread_held_keeps_nobody_waiting_in_the_child(filled: RAGPipeline, name: str):
    sources(filled)
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with attrgetter(name)(filled.standpoint.assembly):
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    try:
        found = in_child(lambda: sources(filled, "zebrafish behind a lock"))()
    finally:
        done.set()
        thread.join()
    assert len(found) == 8


def test_a_grandchild_works_too(filled: RAGPipeline):
    sources(filled)
    found = in_child(lambda: [sources(filled, "zebrafish c"), in_child(lambda: sources(filled, "zebrafish g"))()])()
    assert [len(one) for one in found] == [8, 8]


def test_a_pipeline_that_was_closed_or_never_opened_works_in_the_child(filled: RAGPipeline):
    filled.close()
    assert len(in_child(lambda: sources(filled))()) == 8
    assert len(sources(filled)) == 8


def test_counts_of_the_parent_are_written_once(filled: RAGPipeline):
    filled.view(session="chat", user="ann").remember("I like zebrafish.")
    filled.view(user="ann").recall("zebrafish")
    in_child(lambda: filled.standpoint.assembly.query_patterns.flush())()
    with filled.store.database.autocommit() as connection:
        assert connection.execute("SELECT count(*) FROM episode_retrievals").fetchone() == (0,)


# A server of a process group, the program itself: it opens the store, forks workers, and goes on.
PROGRAM = """
import os, signal, sys, threading
from recollect import RAGConfig, RAGPipeline, Document

config = RAGConfig.load(storage={"data_dir": sys.argv[1]}, embedding={"provider": "local"})
rag = RAGPipeline(config)
rag.ingest([Document(content=f"The zebrafish number {n} swims.", source=f"{n}.txt") for n in range(8)])

def search(text):
    found = len(rag.search("zebrafish " + text).results)
    assert found == 8, found

search("of the master")
ended = threading.Event()
def serve():
    turn = 0
    while not ended.is_set():
        turn += 1
        search(f"meanwhile {turn}")
servers = [threading.Thread(target=serve) for _ in range(2)]
for server in servers:
    server.start()
workers = []
for number in range(3):
    worker = os.fork()
    if worker == 0:
        servers.clear()
        for turn in range(5):
            search(f"worker {number} {turn}")
        if number == 0:
            rag.close()
        if number == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        sys.exit(0)
    workers.append(worker)
statuses = [os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1]) for worker in workers]
search("after the workers")
ended.set()
for server in servers:
    server.join()
print(statuses)
# The master goes first: what a worker holds stays up for it.
reader, writer = os.pipe()
gone, going = os.pipe()
if os.fork() == 0:
    search("before")
    os.write(writer, b"x")
    os.close(going)
    os.read(gone, 1)
    search("when the master is gone")
    print("found", flush=True)
    rag.close()
    os._exit(0)
os.read(reader, 1)
rag.close()
"""


def test_a_server_that_preloads_and_forks_its_workers(data_dir_of_its_own: Path):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-u", "-c", PROGRAM, str(data_dir_of_its_own)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    # As root the server runs under another account, which is said.
    told = [line for line in done.stderr.splitlines() if "the server's account" not in line]
    assert (done.returncode, told) == (0, [])
    assert done.stdout.splitlines() == ["[0, -9, 0]", "found"]
