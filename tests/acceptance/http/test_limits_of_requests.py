"""Limits and writes that are sent again, as clients meet them."""

from __future__ import annotations

import threading
from collections.abc import Callable

import psycopg
import pytest
from fastapi.testclient import TestClient

from recollect import RAGPipeline
from recollect.server import admission
from recollect.server.admission import MOST_KEPT_BYTES
from recollect.server.app import create_app

HOST = "http://127.0.0.1:8321"


@pytest.fixture
def limited(rag: RAGPipeline) -> Callable[..., TestClient]:
    """A client with a key, of a server with these limits."""

    def made(scopes=("read", "write", "admin"), **settings) -> TestClient:
        limits = rag.config.server.limits.model_copy(update=settings)
        server = rag.config.server.model_copy(update={"limits": limits})
        rag.standpoint.assembly.config = rag.config.model_copy(update={"server": server})
        key = rag.keys.create("one", scopes=scopes).secret
        return TestClient(
            create_app(rag),
            base_url=HOST,
            headers={"Authorization": f"Bearer {key}"},
            raise_server_exceptions=False,
        )

    return made


def test_limits_are_told_with_every_reply_and_one_too_many_is_refused(limited, monkeypatch):
    monkeypatch.setattr("recollect.server.limits.WINDOW_SECONDS", 60_000)
    client = limited(search=2, ingest=5)
    first = client.get("/v1/collections")
    assert first.headers["ratelimit-policy"] == '"search";q=2;w=60000'
    assert first.headers["ratelimit"] == '"search";r=1;t=30000'
    assert client.post("/v1/search", json={"query": ""}).headers["ratelimit"] == '"search";r=0;t=60000'
    refused = client.get("/v1/collections")
    assert refused.status_code == 429
    assert refused.headers["content-type"] == "application/problem+json"
    assert refused.json()["type"] == "urn:recollect:problem:rate-limited"
    assert 1 <= int(refused.headers["retry-after"]) <= 30_000
    assert refused.headers["ratelimit"] == '"search";r=0;t=60000'
    assert client.post("/v1/collections", json={"name": "x"}).status_code == 201
    assert client.get("/healthz").status_code == 200


def test_whoever_is_not_known_or_may_not_is_not_counted(limited):
    client = limited(scopes=("read",), ingest=1, search=1)
    for _ in range(3):
        assert client.post("/v1/collections", json={"name": "x"}).status_code == 403
        assert client.get("/v1/collections", headers={"Authorization": "Bearer rk_x"}).status_code == 401
    assert client.get("/v1/collections").status_code == 200


def test_an_answer_that_has_ended_makes_room_for_the_next(limited, rag):
    rag.ingest("Annual leave is 30 days.")
    client = limited(concurrent_answers=1)
    for accept in ("application/json", "text/event-stream"):
        for _ in range(2):
            reply = client.post("/v1/ask", json={"question": "How long is leave?"}, headers={"Accept": accept})
            assert reply.status_code == 200
    assert client.post("/v1/ask", json={"question": ""}).status_code in {400, 422}
    assert client.post("/v1/ask", json={"question": "How long is leave?"}).status_code == 200


def test_what_is_sent_to_be_stored_is_counted_and_what_was_refused_is_not(limited):
    client = limited(upload_bytes_per_day=40)
    for _ in range(3):
        assert client.post("/v1/collections", json={"nome": "a" * 10}).status_code == 422
    assert client.post("/v1/collections", json={"name": "a" * 10}).status_code == 201
    refused = client.post("/v1/collections", json={"name": "b" * 10})
    assert refused.status_code == 429 and "midnight" in refused.json()["detail"]
    assert client.post("/v1/search", json={"query": "x" * 200}).status_code == 200
    # Nor does it pass uncounted who does not say how much it is.
    unsaid = client.post(
        "/v1/collections", content=iter([b'{"name": "c"}']), headers={"Content-Type": "application/json"}
    )
    assert unsaid.status_code == 411 and "Content-Length" in unsaid.json()["detail"]
    assert client.get("/v1/collections/c").status_code == 404


# Sent again


def once(client: TestClient, name: str, key: str, path: str = "/v1/collections"):
    return client.post(path, json={"name": name}, headers={"Idempotency-Key": key})


def test_a_write_that_is_sent_again_takes_effect_once(client, rag):
    first, again = once(client, "notes", "k1"), once(client, "notes", '"k1"')
    assert first.status_code == again.status_code == 201
    assert first.json() == again.json()
    assert "idempotency-replayed" not in first.headers and again.headers["idempotency-replayed"] == "true"
    assert first.headers["x-request-id"] != again.headers["x-request-id"]
    assert again.headers["content-type"] == "application/json"
    assert once(client, "notes", "k2").status_code == 409, "it was made once"


def test_a_key_is_for_one_request(client):
    once(client, "notes", "k1")
    for reused in (
        once(client, "other", "k1"),
        client.post("/v1/collections?x=1", json={"name": "notes"}, headers={"Idempotency-Key": "k1"}),
        client.delete("/v1/collections/notes", headers={"Idempotency-Key": "k1"}),
    ):
        assert reused.status_code == 422
        assert reused.json()["type"] == "urn:recollect:problem:idempotency-key-reused"


def test_an_upload_that_is_sent_again_is_known_by_what_it_holds(client, rag):
    rag.collections.create("notes")

    def sent(content: bytes, boundary: str, key: str = "k1", name: str = "a.txt"):
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'.encode()
        kind = f"multipart/form-data; boundary={boundary}"
        return client.post(
            "/v1/collections/notes/files",
            content=head + content + f"\r\n--{boundary}--\r\n".encode(),
            headers={"Idempotency-Key": key, "Content-Type": kind},
        )

    large = b"0123456789abcdef" * 200_000
    for number, content in enumerate((b"one", large)):
        first = sent(content, "drawn-first", f"k{number}")
        # Whoever sends a form again draws another boundary.
        again = sent(content, "second", f"k{number}")
        assert first.status_code == again.status_code == 202
        assert again.json() == first.json() and again.headers["idempotency-replayed"] == "true"
        # As long, and something else.
        assert sent(content[:-1] + b"x", "drawn-first", f"k{number}").status_code == 422
        assert sent(content, "drawn-first", f"k{number}", name="b.txt").status_code == 422
    assert len(rag.jobs.list()) == 2


def test_what_failed_may_be_sent_again(client, rag, monkeypatch):
    assert once(client, "", "k1").status_code == 422
    assert once(client, "notes", "k1").status_code == 201
    monkeypatch.setattr("recollect.operations.declaring.Operation.told", lambda *_: 1 / 0)
    assert once(client, "more", "k2").status_code == 500
    monkeypatch.undo()
    assert once(client, "more", "k2").status_code == 409, "which is a conflict with what was made, not with the key"


def test_what_is_no_key_is_refused(client):
    for key in ["", " ", "a" * 256, 'a"b', "é".encode()]:
        reply = client.post("/v1/collections", json={"name": "x"}, headers={"Idempotency-Key": key})
        assert reply.status_code == 400 and "Idempotency-Key" in reply.json()["detail"]


def test_keys_are_a_credentials_own(rag, connect):
    one, two = (connect(rag.keys.create(name, scopes="admin").secret) for name in ("one", "two"))
    assert once(one, "notes", "k1").status_code == 201
    assert once(two, "papers", "k1").status_code == 201
    assert once(connect("rk_nobody"), "notes", "k1").status_code == 401


def test_a_secret_that_is_shown_once_is_not_kept_for_a_second_time(client, rag, dsn):
    first, again = once(client, "reports", "k1", "/v1/keys"), once(client, "reports", "k1", "/v1/keys")
    assert first.status_code == 201 and again.status_code == 409
    assert "not kept" in again.json()["detail"] and len(rag.keys.list()) == 1
    with psycopg.connect(dsn) as connection:
        kept = connection.execute("SELECT to_jsonb(t)::text FROM recollect.idempotent_requests t").fetchall()
    assert first.json()["secret"][20:40] not in str(kept)


def test_of_two_at_once_one_is_made(client, rag, monkeypatch):
    entered, leave = threading.Event(), threading.Event()
    create = type(rag.collections).create

    def slowly(self, *args, **more):
        entered.set()
        assert leave.wait(60)
        return create(self, *args, **more)

    monkeypatch.setattr(type(rag.collections), "create", slowly)
    replies = []
    thread = threading.Thread(target=lambda: replies.append(once(client, "notes", "k1")))
    thread.start()
    assert entered.wait(60)
    meanwhile = once(client, "notes", "k1")
    leave.set()
    thread.join()
    assert (meanwhile.status_code, replies[0].status_code) == (409, 201)
    assert "under way" in meanwhile.json()["detail"]
    assert once(client, "notes", "k1").status_code == 201


def test_a_request_that_died_may_be_made_again_after_a_while(client, rag, dsn):
    once(client, "notes", "k1")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("UPDATE recollect.idempotent_requests SET status = NULL, body = NULL")
        assert once(client, "notes", "k1").status_code == 409
        connection.execute("UPDATE recollect.idempotent_requests SET began_at = now() - interval '11 minutes'")
        assert once(client, "other", "k1").status_code == 422, "another request still"
        rag.collections.delete("notes")
        assert once(client, "notes", "k1").status_code == 201


#: Writes that a repetition would double, and how many there are of what they make.
DOUBLED = {
    "turns": ("/v1/sessions/talk/turns", {"turns": [{"content": "My dog is called Rex."}]}, lambda rag: turns_of(rag)),
    "a question of a conversation": (
        "/v1/chat",
        {"session": "talk", "question": "How many days of annual leave?"},
        lambda rag: turns_of(rag) // 2,
    ),
    "a page of the web": (
        "/v1/collections/default/urls",
        {"url": "https://a.example/"},
        lambda rag: len(rag.jobs.list()),
    ),
    "a key": ("/v1/keys", {"name": "reports"}, lambda rag: len(rag.keys.list())),
    "files": ("/v1/collections/default/files", None, lambda rag: len(rag.jobs.list())),
    "a file": ("/v1/files", None, lambda rag: len(rag.files.list())),
}


def turns_of(rag: RAGPipeline) -> int:
    return sum(one.turn_count for one in rag.memory.list())


def sent_once(client: TestClient, path: str, body: dict | None, key: str = "k1"):
    headers = {"Idempotency-Key": key}
    if body is not None:
        return client.post(path, json=body, headers=headers)
    form = {"purpose": "assistants"} if path == "/v1/files" else {}
    return client.post(path, files={"file": ("a.txt", b"Annual leave is 30 days.")}, data=form, headers=headers)


@pytest.mark.parametrize("name", DOUBLED)
def test_a_request_that_was_killed_behind_its_effect_is_never_made_twice(client, rag, dsn, monkeypatch, name):
    """Whatever kept it from its reply: a process that was killed, or a client that had gone."""
    path, body, count = DOUBLED[name]
    rag.ingest("Annual leave is 30 days.")
    with monkeypatch.context() as killed:
        for method in ("end", "give_up", "_look_after"):  # nothing is noted any more once the effect is there
            killed.setattr(admission.Idempotency, method, lambda *_: None)
        assert sent_once(client, path, body).status_code < 300
    assert count(rag) == 1
    assert "under way" in str(sent_once(client, path, body).json())
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("UPDATE recollect.idempotent_requests SET began_at = now() - interval '11 minutes'")
    again = sent_once(client, path, body)
    assert again.status_code == 409 and "took effect" in str(again.json())
    assert count(rag) == 1
    assert sent_once(client, path, body, "k2").status_code < 300
    assert count(rag) == 2


def test_a_request_that_failed_behind_its_effect_is_not_made_again(client, rag, monkeypatch):
    """Nor taken for one under way: nobody will reply to it."""
    monkeypatch.setattr("recollect.server.routes.people.key_reply", lambda *_: 1 / 0, raising=False)
    monkeypatch.setattr("recollect.server.admission.Idempotency.end", lambda self, begun, _: self.give_up(begun))
    sent_once(client, "/v1/keys", {"name": "reports"})
    again = sent_once(client, "/v1/keys", {"name": "reports"})
    assert again.status_code == 409 and "broken off" in again.json()["detail"]
    assert len(rag.keys.list()) == 1


def test_a_question_of_a_conversation_that_is_asked_again_is_remembered_once(client, rag):
    """As a whole and as a stream."""
    rag.ingest("Annual leave is 30 days.")
    asked = {"session": "talk", "question": "How many days of annual leave?"}
    for kind in ("application/json", "text/event-stream"):
        headers = {"Idempotency-Key": kind, "Accept": kind}
        first, again = (client.post("/v1/chat", json=asked, headers=headers) for _ in range(2))
        assert first.status_code == 200 and again.headers["idempotency-replayed"] == "true"
        assert (again.text, again.headers["content-type"]) == (first.text, first.headers["content-type"])
    assert turns_of(rag) == 4


def test_a_reply_ends_after_a_day_and_is_removed(client, rag, dsn):
    once(client, "notes", "k1")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("UPDATE recollect.idempotent_requests SET expires_at = now()")
        assert once(client, "other", "k1").status_code == 201
        connection.execute("UPDATE recollect.idempotent_requests SET expires_at = now()")
        rag.maintenance.cleanup()
        assert connection.execute("SELECT count(*) FROM recollect.idempotent_requests").fetchone() == (0,)


def test_with_what_is_erased_replies_go_that_may_have_named_it(client, rag):
    once(client, "notes", "k1")
    stored = rag.ingest("Annual leave is 30 days.")
    rag.documents.erase([stored.document_id])
    again = once(client, "notes", "k1")
    assert again.status_code == 409 and "not kept" in again.json()["detail"]


def test_a_reply_that_is_too_large_is_not_kept(client, monkeypatch):
    assert MOST_KEPT_BYTES > 1000
    monkeypatch.setattr("recollect.server.admission.MOST_KEPT_BYTES", 10)
    assert once(client, "notes", "k1").status_code == 201
    assert "not kept" in once(client, "notes", "k1").json()["detail"]


def test_reads_are_made_every_time(client, rag):
    before = client.post("/v1/search", json={"query": "leave"}, headers={"Idempotency-Key": "k1"}).json()
    rag.ingest("Annual leave is 30 days.")
    after = client.post("/v1/search", json={"query": "leave"}, headers={"Idempotency-Key": "k1"}).json()
    assert (len(before["results"]), len(after["results"])) == (0, 1)


def test_keys_are_read_as_the_draft_writes_them():
    assert admission.read_key('"8e03978e-40d5-43dd-bc93-6894a57f9324"') == "8e03978e-40d5-43dd-bc93-6894a57f9324"
    assert admission.fingerprint("POST", "/a", "", b"bc") != admission.fingerprint("POST", "/ab", "", b"c")
