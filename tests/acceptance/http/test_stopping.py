"""A server that is told to end while requests run, that has no connection left, and whose store is made another."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import httpx2
import psycopg
import pytest

from chat_server import ChatServer
from recollect import RAGConfig, RAGPipeline
from recollect.embedding.hashing import HashingEmbedder
from recollect.server import running
from recollect.store import sql
from recollect.store.migrate import migrate
from serving import serving

LEAVE = "Every employee has thirty days of annual leave."
ANSWER = f"{LEAVE} [1]"


@contextmanager
def opened(dsn: str, folder, **storage) -> Iterator[RAGPipeline]:
    config = RAGConfig.load(
        storage={"data_dir": folder / "unused", "dsn": dsn, **storage},
        embedding={"provider": "hashing"},
        server={"port": 0},
    )
    with RAGPipeline(config, embedder=HashingEmbedder()) as rag:
        yield rag


@pytest.fixture
def rag(dsn: str, tmp_path) -> Iterator[RAGPipeline]:
    with opened(dsn, tmp_path) as one:
        yield one


# Told to end


class Held:
    """A model that begins an answer, and goes on with it when it is let."""

    def __init__(self) -> None:
        self.asked, self.go_on = threading.Event(), threading.Event()

    def __call__(self, messages: object) -> str:
        self.asked.set()
        assert self.go_on.wait(60)
        return ANSWER


def until(url: str, job: int, status: str) -> None:
    """Ask the server for a job until it is so far."""
    while (found := httpx2.get(f"{url}/v1/jobs/{job}", timeout=60).json()["status"]) != status:
        assert found in {"pending", "running"}
        threading.Event().wait(0.02)


def test_it_runs_jobs_and_told_to_end_it_ends_what_runs_takes_nothing_new_and_gives_jobs_back(recollect, tmp_path):
    """SIGTERM: an answer that is written and a stream come to their end, the exit status is 0, a job waits again."""
    recollect.folder.joinpath("leave.md").write_text(LEAVE)
    recollect.folder.joinpath("docs").mkdir()
    # The system's browser: it notes what it was to open.
    browser, noted = tmp_path / "browser", tmp_path / "opened"
    browser.write_text(f'#!/bin/sh\necho "$1" > {noted}.part && mv {noted}.part {noted}\n')
    browser.chmod(0o755)
    recollect.environment["BROWSER"] = f"{browser} %s"
    model = Held()
    chat = ChatServer(model)
    recollect.environment.update(
        RECOLLECT_ANSWER__PROVIDER="openai",
        RECOLLECT_ANSWER__MODEL="scripted",
        RECOLLECT_ANSWER__BASE_URL=chat.base_url,
        RECOLLECT_ANSWER__API_KEY="unused",
    )
    process = recollect.start("serve", "--port", "0", "--json", "--open")
    try:
        url = json.loads("".join(iter(process.stdout.readline, "}\n")) + "}")["url"]
        assert "<title>Chat" in httpx2.get(url, follow_redirects=True, timeout=60).text
        until(url, recollect("ingest", "leave.md", "--background", "--json").json["jobs"][0]["job_id"], "succeeded")
        found = httpx2.post(f"{url}/v1/search", json={"query": "annual leave"}).json()["results"]
        assert [one["content"] for one in found] == [LEAVE]
        assert noted.read_text().strip() == url
        # Watching a folder goes on for as long as its worker does.
        watching = recollect("sources", "add", "docs", "--watch", "--no-refresh", "--json")
        assert watching.json["settings"]["watch"]
        (job,) = (one for one in recollect("jobs", "list", "--json").json["items"] if one["status"] != "succeeded")
        until(url, job["job_id"], "running")
        with ThreadPoolExecutor(2) as threads:
            streams = {"Accept": "text/event-stream"}
            asking = [
                threads.submit(
                    httpx2.post, f"{url}/v1/ask", json={"question": "How many days?"}, headers=headers, timeout=60
                )
                for headers in ({}, streams)
            ]
            while len(chat.requests) < 2:
                pass
            process.send_signal(signal.SIGTERM)
            until_refused(url)
            model.go_on.set()
            whole, events = (one.result() for one in asking)
        assert (whole.status_code, whole.json()["answer"]) == (200, ANSWER)
        assert events.text.count("event: done") == 1 and "thirty days" in events.text
        assert process.wait(60) == 0
        assert "Traceback" not in process.stderr.read()
        assert recollect("jobs", "show", job["job_id"], "--json").json["status"] == "pending"
    finally:
        model.go_on.set()
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()
        chat.close()


def until_refused(url: str) -> None:
    """Ask until nobody listens any more; whoever is let in before is answered, or finds the connection closed."""
    while True:
        try:
            assert httpx2.get(f"{url}/healthz", timeout=30).status_code == 200
        except httpx2.ConnectError:
            return
        except (httpx2.RemoteProtocolError, httpx2.ReadError, httpx2.WriteError):
            continue


def test_what_does_not_end_in_time_is_cut_off(dsn, tmp_path, monkeypatch):
    """The server ends all the same, and so does the model that nobody listens to any more."""

    class Endless:
        model_name = "endless"

        def __init__(self) -> None:
            self.ended = threading.Event()

        async def stream(self, messages: object, **_: object):
            try:
                while True:
                    yield ANSWER
            finally:
                self.ended.set()

    monkeypatch.setattr(running, "_GRACE_SECONDS", 1)
    model = Endless()
    with opened(dsn, tmp_path) as rag, ExitStack() as closing:
        rag.ingest(LEAVE)
        rag.standpoint.assembly.chat_model = model
        with serving(rag, monkeypatch) as url:
            client = closing.enter_context(httpx2.Client(timeout=60))
            headers = {"Accept": "text/event-stream"}
            asked = {"question": "How many days?"}
            reply = closing.enter_context(client.stream("POST", f"{url}/v1/ask", json=asked, headers=headers))
            lines = reply.iter_lines()
            while not next(lines).startswith("event: token"):
                pass
        assert model.ended.wait(30)


# Without a connection


def test_where_every_connection_is_in_use_requests_are_refused_for_a_while(dsn, tmp_path, monkeypatch):
    """They are told when to ask again, do not wait for one another, and are answered when there is one again."""
    with opened(dsn, tmp_path, max_connections=4) as rag, serving(rag, monkeypatch) as url:
        rag.ingest(LEAVE)
        asked = {"json": {"query": "annual leave"}, "timeout": 60}
        with ThreadPoolExecutor(12) as threads:
            with ExitStack() as held:
                for _ in range(3):  # the fourth is for what runs ahead
                    held.enter_context(rag.store.database.transaction(rag.scope))
                # Only now: the server's worker, which has just begun, needs connections too.
                monkeypatch.setattr(rag.store.database, "_wait_seconds", 0.3)
                routes = [("POST", "/v1/search", asked), ("GET", "/v1/collections", {}), ("GET", "/readyz", {})] * 4
                refused = list(threads.map(lambda one: httpx2.request(one[0], url + one[1], **one[2]), routes))
                assert {one.status_code for one in refused} == {503}
                assert {one.headers["retry-after"] for one in refused} == {"5"}
                assert {one.json()["type"] for one in refused} == {"urn:recollect:problem:store-unavailable"}
                assert httpx2.get(f"{url}/healthz").status_code == 200
            answered = list(threads.map(lambda one: httpx2.request(one[0], url + one[1], **one[2]), routes))
        assert {one.status_code for one in answered} == {200}
        assert rag.store.database.usage().waiting == 0


# Made another meanwhile


@pytest.fixture
def newer(monkeypatch):
    """Gives another process a migration that this one does not know."""
    known = sql.migrations()

    def add(text: str) -> None:
        number = known[-1][0] + 1
        later = [*known, (number, f"{number:04}_later", text)]
        monkeypatch.setattr(sql, "migrations", lambda: later)
        monkeypatch.setattr("recollect.store.database.newest_migration", lambda: known[-1][0])

    return add


def test_requests_wait_for_a_migration_and_are_never_answered_wrongly(rag, dsn, newer, monkeypatch):
    """While it runs they wait for its locks. Afterwards nobody knows what the tables mean to this version: 503."""
    rag.ingest(LEAVE)
    lock = 4711
    newer(
        "ALTER TABLE chunks ADD COLUMN later int; ALTER TABLE collections ADD COLUMN later int; "
        f"SELECT pg_advisory_xact_lock({lock})"
    )
    with serving(rag, monkeypatch) as url, ThreadPoolExecutor(4) as threads, psycopg.connect(dsn) as holder:

        def ask():
            return httpx2.post(f"{url}/v1/search", json={"query": "annual leave"}, timeout=60)

        assert [one["content"] for one in ask().json()["results"]] == [LEAVE]
        holder.execute("SELECT pg_advisory_lock(%s)", [lock])
        migrating = threads.submit(migrate, dsn)
        while holder.execute(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        ).fetchone() == (0,):
            pass
        asking = [threads.submit(ask) for _ in range(3)]
        holder.execute("SELECT pg_advisory_unlock(%s)", [lock])
        migrating.result()
        for reply in (one.result() for one in asking):
            assert reply.status_code in {200, 503}
            if reply.status_code == 200:
                assert [one["content"] for one in reply.json()["results"]] == [LEAVE]
        monkeypatch.setattr(rag.store.database, "_schema_known_until", 0.0)
        for _ in range(2):
            later = ask()
            assert (later.status_code, later.headers["retry-after"]) == (503, "5")
        # As a restore of what was before leaves it.
        holder.execute("DELETE FROM recollect.schema_migrations WHERE name LIKE '%later'")
        holder.commit()
        assert ask().status_code == 200
