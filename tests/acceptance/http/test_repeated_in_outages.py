"""Writes with an idempotency key whose database connections are cut: replies stay, and each takes effect once."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import psycopg
import pytest
from fastapi.testclient import TestClient

from hostile import EFFORT
from recollect import RAGPipeline
from recollect.server import admission

# Ends its own session, so many times: whatever the statement does is undone, and nobody replies to it.
CUT = """
CREATE SEQUENCE public.cuts;
GRANT USAGE ON public.cuts TO public;
CREATE FUNCTION public.cut() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF nextval('public.cuts') <= {times} THEN
        PERFORM pg_terminate_backend(pg_backend_pid());
    END IF;
    RETURN coalesce(NEW, OLD);
END $$;
CREATE TRIGGER cut {event} ON recollect.idempotent_requests FOR EACH ROW {condition} EXECUTE FUNCTION public.cut();
"""


def cut(dsn: str, event: str, *, condition: str = "", times: int = 2) -> None:
    """Have the connection break while a statement runs."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(CUT.format(event=event, condition=condition, times=times))


def sent(client: TestClient, path: str, body: dict, key: str = "k1"):
    return client.post(path, json=body, headers={"Idempotency-Key": key})


def settled(client: TestClient, path: str, body: dict, key: str = "k1"):
    """The reply to a request that is sent again until it is not under way any more."""
    give_up = time.monotonic() + 60
    while True:
        reply = sent(client, path, body, key)
        if reply.status_code != 409 or "under way" not in reply.json()["detail"] or time.monotonic() > give_up:
            return reply


def test_a_reply_stays_where_it_cannot_be_kept_at_once(client, rag, dsn):
    cut(dsn, "BEFORE UPDATE", condition="WHEN (NEW.status IS NOT NULL)")
    first = sent(client, "/v1/keys", {"name": "reports"})
    assert first.status_code == 201
    turns = {"turns": [{"content": "My dog is called Rex."}]}
    remembered = sent(client, "/v1/sessions/talk/turns", turns, "k2")
    assert remembered.status_code == 201
    again = settled(client, "/v1/sessions/talk/turns", turns, "k2")
    assert again.json() == remembered.json() and again.headers["idempotency-replayed"] == "true"
    assert "not kept" in settled(client, "/v1/keys", {"name": "reports"}).json()["detail"], "a secret is shown once"
    assert len(rag.keys.list()) == 1
    assert [one.turn_count for one in rag.memory.list()] == [1]


def test_what_failed_is_told_as_it_was_and_may_be_sent_again(client, rag, dsn):
    rag.collections.create("notes")
    cut(dsn, "BEFORE DELETE")
    refused = sent(client, "/v1/collections", {"name": "notes"})
    assert refused.status_code == 409 and "There is a collection" in refused.json()["detail"]
    rag.collections.delete("notes")
    assert settled(client, "/v1/collections", {"name": "notes"}).status_code == 201


def test_a_request_that_could_not_be_begun_holds_its_key_no_longer_than_the_outage(client, rag, dsn):
    cut(dsn, "BEFORE INSERT", times=1)
    assert sent(client, "/v1/collections", {"name": "notes"}).status_code == 503
    assert settled(client, "/v1/collections", {"name": "notes"}).status_code == 201


@pytest.mark.parametrize("path", ["/v1/collections", "/v1/keys"])
def test_a_request_is_under_way_as_long_as_its_process_lives(client, rag, dsn, monkeypatch, path):
    """A process that is gone is noticed at once on its own machine; on another one when its lease is over."""
    with monkeypatch.context() as killed:
        for method in ("end", "give_up", "_look_after"):
            killed.setattr(admission.Idempotency, method, lambda *_: None)
        assert sent(client, path, {"name": "reports"}).status_code == 201
    assert "under way" in sent(client, path, {"name": "reports"}).json()["detail"]
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    with psycopg.connect(dsn, autocommit=True) as connection:
        process = f"jsonb_set(headers, '{{process}}', '{gone.pid}')"
        connection.execute(f"UPDATE recollect.idempotent_requests SET headers = {process}")
    again = sent(client, path, {"name": "reports"})
    assert again.status_code == 409
    # A collection is made again, and exists; a key is not, for there would be two.
    assert ("There is a collection" if path == "/v1/collections" else "took effect") in again.json()["detail"]


def test_an_attempt_that_was_taken_for_dead_stores_nothing_any_more(client, rag, dsn, monkeypatch):
    """Its process was asleep: the other attempt has the key, and the effect."""
    entered, leave = threading.Event(), threading.Event()
    create = type(rag.keys).create

    def asleep(self, *args, **more):
        if not entered.is_set():
            entered.set()
            assert leave.wait(60)
        return create(self, *args, **more)

    monkeypatch.setattr(type(rag.keys), "create", asleep)
    monkeypatch.setattr(admission, "_BEAT_SECONDS", 3600)
    replies = []
    thread = threading.Thread(target=lambda: replies.append(sent(client, "/v1/keys", {"name": "reports"})))
    thread.start()
    assert entered.wait(60)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("UPDATE recollect.idempotent_requests SET began_at = now() - interval '1 minute'")
    assert sent(client, "/v1/keys", {"name": "reports"}).status_code == 201
    leave.set()
    thread.join()
    assert replies[0].status_code == 409 and "sent again" in replies[0].json()["detail"]
    assert len(rag.keys.list()) == 1


def test_a_long_request_says_that_it_lives(client, rag, dsn, monkeypatch):
    entered, leave = threading.Event(), threading.Event()
    create = type(rag.collections).create

    def slowly(self, *args, **more):
        entered.set()
        assert leave.wait(60)
        return create(self, *args, **more)

    monkeypatch.setattr(type(rag.collections), "create", slowly)
    monkeypatch.setattr(admission, "_BEAT_SECONDS", 0.01)
    thread = threading.Thread(target=lambda: sent(client, "/v1/collections", {"name": "notes"}))
    thread.start()
    assert entered.wait(60)
    give_up = time.monotonic() + 60
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("UPDATE recollect.idempotent_requests SET began_at = '2000-01-01'")
        lives = "SELECT began_at > now() - interval '1 minute' FROM recollect.idempotent_requests"
        while connection.execute(lives).fetchone() != (True,):
            assert time.monotonic() < give_up
    leave.set()
    thread.join()


@contextmanager
def connections_cut(dsn: str) -> Iterator[None]:
    """Every connection to the database is cut, again and again, 0.3 to 1 s apart."""
    over = threading.Event()
    drawn = random.Random(25)

    def cutting() -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            while not over.wait(drawn.uniform(0.3, 1)):
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )

    thread = threading.Thread(target=cutting)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class Writing:
    """Sends writes of one kind, each again until it is replied to, and keeps what became of them."""

    def __init__(self, connect, kind: str, until: float) -> None:
        self.client, self.kind, self.until = connect(), kind, until
        self.statuses: list[int] = []
        self.made: list[str] = []

    def __call__(self) -> None:
        while time.monotonic() < self.until:
            name = f"{self.kind}-{uuid4()}"
            self.made.append(name)
            self._send(name)
            if random.random() < 0.5:
                self._send(name)

    def _send(self, name: str) -> None:
        path, body = {
            "key": ("/v1/keys", {"name": name}),
            "turns": (f"/v1/sessions/{name}/turns", {"turns": [{"content": "My dog is called Rex."}]}),
            "collection": ("/v1/collections", {"name": name}),
        }[self.kind]
        while True:
            reply = sent(self.client, path, body, name)
            self.statuses.append(reply.status_code)
            under_way = reply.status_code == 409 and reply.json()["type"].endswith("under-way")
            if reply.status_code != 503 and not under_way:
                assert reply.status_code in {201, 409}, reply.text
                return


def made_by(rag: RAGPipeline, kind: str) -> list[str]:
    if kind == "key":
        return [one.name for one in rag.keys.list(limit=1000)]
    if kind == "turns":
        return [one.name for one in rag.memory.list(limit=1000) for _ in range(one.turn_count)]
    return [one.name for one in rag.collections.each() if one.name.startswith("collection-")]


@pytest.mark.slow
def test_while_connections_are_cut_each_write_is_made_once(connect, rag, dsn):
    until = time.monotonic() + 6 * EFFORT
    writings = [Writing(connect, kind, until) for kind in ("key", "turns", "collection") for _ in range(2)]
    threads = [threading.Thread(target=one) for one in writings]
    with connections_cut(dsn):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert {status for one in writings for status in one.statuses} <= {201, 409, 503}
    for kind in ("key", "turns", "collection"):
        assert sorted(made_by(rag, kind)) == sorted(name for one in writings if one.kind == kind for name in one.made)
