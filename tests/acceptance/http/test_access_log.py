"""What was shown to whom: recorded of every door's requests, kept as the policy says, and hashed into the audit."""

from __future__ import annotations

import json
from collections.abc import Callable

import psycopg
import pytest
from fastapi.testclient import TestClient

from recollect import Document, Principal, RAGPipeline
from recollect.model.activity import ShownDocument
from recollect.server.app import create_app

HOST = "http://127.0.0.1:8321"
ANN = Principal(user_id="ann", roles=("clerk",))


@pytest.fixture
def stored(rag: RAGPipeline) -> int:
    return rag.ingest(Document(content="Annual leave is 30 days.", source="leave.md")).document_id


@pytest.fixture
def as_ann(rag: RAGPipeline) -> Callable[..., TestClient]:
    """A client of hers, of a server with this policy."""

    def made(questions: str = "keep") -> TestClient:
        server = rag.config.server
        server = server.model_copy(update={"audit": server.audit.model_copy(update={"questions": questions})})
        rag.standpoint.assembly.config = rag.config.model_copy(update={"server": server})
        key = rag.keys.create("laptop", scopes=("read", "write", "admin"), principal=ANN).secret
        headers = {"Authorization": f"Bearer {key}", "X-Request-ID": "request-0001"}
        return TestClient(create_app(rag), base_url=HOST, headers=headers, raise_server_exceptions=False)

    return made


def test_who_asked_what_and_what_was_shown(rag, as_ann, stored, dsn):
    client = as_ann()
    version = rag.retrieve("leave")[0].version_id
    for path, body in (
        ("/v1/search", {"query": "leave"}),
        ("/v1/ask", {"question": "How long is parental leave?"}),
        ("/v1/context", {"query": "annual leave"}),
        ("/v1/ask", {"question": "zyx?"}),
    ):
        assert client.post(path, json=body).status_code == 200
    with client.stream(
        "POST", "/v1/ask", json={"question": "And streamed?"}, headers={"Accept": "text/event-stream"}
    ) as reply:
        reply.read()
    found = list(reversed(rag.audit.accesses()))
    # That there was no answer is told beside its question, with why, and shows nothing more.
    assert [(one.action, one.question) for one in found] == [
        ("search", "leave"),
        ("ask", "How long is parental leave?"),
        ("refuse/threshold", "How long is parental leave?"),
        ("context", "annual leave"),
        ("ask", "zyx?"),
        ("refuse/threshold", "zyx?"),
        ("ask", "And streamed?"),
        ("refuse/threshold", "And streamed?"),
    ]
    assert [one.documents for one in found if one.action == "refuse/threshold"] == [()] * 3
    with psycopg.connect(dsn) as connection:
        outcomes = connection.execute(
            "SELECT question, outcome FROM recollect.access_log WHERE action = 'refuse/threshold' ORDER BY access_id"
        ).fetchall()
    assert outcomes == [("How long is parental leave?", "passages"), ("zyx?", "refused"), ("And streamed?", "refused")]
    for one in (found[0], found[1], found[3]):
        assert (one.documents, one.request_id) == ((ShownDocument(stored, version),), "request-0001")
        assert one.actor.startswith("user:ann (key:")


def test_what_is_changed_is_recorded_and_what_is_refused_is_not(rag, connect):
    client = connect()
    client.post("/v1/collections", json={"name": "notes"})
    client.post("/v1/collections", json={"name": "notes"})
    client.delete("/v1/collections/notes")
    assert [(one.action, one.actor) for one in rag.audit.accesses()] == [
        ("DELETE /v1/collections/{name}", "local"),
        ("POST /v1/collections", "local"),
    ]


def test_nobody_is_recorded_where_nobody_is_served(rag, stored):
    rag.search("leave")
    rag.ask("How long is leave?")
    assert len(rag.audit.accesses()) == 0


def test_of_one_document_and_of_one_user(rag, as_ann, connect, stored):
    other = rag.ingest(Document(content="Pumps are greased.", source="pump.md")).document_id
    as_ann().post("/v1/search", json={"query": "leave", "top_k": 1})
    connect().post("/v1/search", json={"query": "pumps", "top_k": 1})
    assert [one.question for one in rag.audit.accesses(document=stored)] == ["leave"]
    assert [one.question for one in rag.audit.accesses(document=other)] == ["pumps"]
    assert [one.question for one in rag.audit.accesses(actor="user:ann")] == ["leave"]
    assert len(rag.audit.accesses(actor="user:an")) == 0
    # What was shown is known when it is not there any more.
    rag.documents.erase([stored])
    told = connect().get(f"/v1/audit/accesses?document={stored}&limit=1").json()
    assert [one["documents"] for one in told["items"]] == [[{"document_id": stored, "version_id": told_version(told)}]]
    first = connect().get("/v1/audit/accesses?limit=1").json()
    following = connect().get(f"/v1/audit/accesses?limit=1&cursor={first['next_cursor']}").json()
    assert first["items"][0]["access_id"] > following["items"][0]["access_id"]


def told_version(told: dict) -> int:
    return told["items"][0]["documents"][0]["version_id"]


def test_another_tenants_accesses_are_not_told(rag, connect, stored):
    rag.tenants.create("acme")
    connect().post("/v1/search", json={"query": "leave"})
    key = rag.view(tenant="acme").keys.create("admin", scopes="admin").secret
    assert connect(key).get("/v1/audit/accesses").json()["items"] == []


@pytest.mark.parametrize("policy", ["keep", "hash", "off"])
def test_questions_are_kept_hashed_or_left_out(rag, as_ann, stored, dsn, policy):
    client = as_ann(policy)
    for query in ("is leave paid", "is leave paid", "another one"):
        client.post("/v1/search", json={"query": query})
    found = rag.audit.accesses()
    kept = {"keep": {"is leave paid", "another one"}}.get(policy, {None})
    assert {one.question for one in found} == kept
    assert len({one.question_hash for one in found}) == (1 if policy == "off" else 2)
    if policy != "keep":
        with psycopg.connect(dsn) as connection:
            for table in ("access_log", "audit"):
                rows = connection.execute(f"SELECT to_jsonb(t)::text FROM recollect.{table} t").fetchall()
                assert "is leave paid" not in str(rows)


def test_a_hash_is_another_tenants_own(rag, connect, stored):
    rag.tenants.create("acme")
    key = rag.view(tenant="acme").keys.create("reader").secret
    for client in (connect(), connect(key)):
        client.post("/v1/search", json={"query": "leave"})
    ours, theirs = (rag.view(tenant=tenant).audit.accesses()[0].question_hash for tenant in (1, 2))
    assert ours and theirs and ours != theirs


def test_what_is_changed_in_the_log_is_noticed_and_a_question_past_its_retention_is_not(rag, as_ann, stored, dsn):
    client = as_ann()
    client.post("/v1/search", json={"query": "leave"})
    rag.audit.accesses()
    client.post("/v1/search", json={"query": "annual"})
    assert [one.intact for one in rag.audit.verify_accesses()] == [True, True]
    assert all(chain.intact for chain in rag.audit.verify().chains)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("UPDATE recollect.access_log SET question = NULL")
        assert [one.intact for one in rag.audit.verify_accesses()] == [True, True]
        connection.execute("UPDATE recollect.access_log SET actor = 'user:bob' WHERE question_hash IS NOT NULL")
        assert [one.intact for one in rag.audit.verify_accesses()] == [False, False]
        connection.execute("DELETE FROM recollect.access_log")
        assert [one.intact for one in rag.audit.verify_accesses()] == [None, None]


def test_retention(rag, as_ann, stored, dsn):
    client = as_ann()
    client.post("/v1/search", json={"query": "leave"})
    rag.audit.accesses()
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("UPDATE recollect.access_log SET at = at - interval '91 days'")
        rag.maintenance.cleanup()
        (kept,) = rag.audit.accesses()
        assert (kept.question, kept.documents[0].document_id) == (None, stored) and kept.question_hash
        connection.execute("UPDATE recollect.access_log SET at = at - interval '600 days'")
        rag.maintenance.cleanup()
        rag.maintenance.cleanup()
        assert len(rag.audit.accesses()) == 0


def test_what_cannot_be_stored_now_is_stored_later(rag, as_ann, stored, dsn, caplog):
    client = as_ann()
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("ALTER TABLE recollect.access_log RENAME TO elsewhere")
        client.post("/v1/search", json={"query": "leave"})
        rag.standpoint.assembly.access_log.flush()
        assert "1 accesses are not in their log yet" in caplog.text
        connection.execute("ALTER TABLE recollect.elsewhere RENAME TO access_log")
    assert [one.question for one in rag.audit.accesses()] == ["leave"]


def test_a_suspended_tenants_accesses_are_stored_and_an_erased_ones_are_forgotten(rag, connect, stored):
    rag.tenants.create("acme")
    key = rag.view(tenant="acme").keys.create("reader").secret
    client, log = connect(key), rag.standpoint.assembly.access_log
    client.post("/v1/search", json={"query": "leave"})
    rag.tenants.suspend("acme")
    log.flush()
    rag.tenants.resume("acme")
    assert [one.question for one in rag.view(tenant="acme").audit.accesses()] == ["leave"]
    client.post("/v1/search", json={"query": "again"})
    rag.tenants.erase("acme")
    log.flush()
    assert log.waiting == 0


def test_an_export_has_them_and_holds_no_secret(rag, as_ann, stored, tmp_path):
    as_ann().post("/v1/search", json={"query": "leave"})
    rag.audit.accesses()
    rag.tenants.export("default", tmp_path / "out")
    (line,) = (tmp_path / "out/tables/access_log.jsonl").read_text().splitlines()
    assert json.loads(line)["question"] == "leave"


# Before it is told


@pytest.fixture
def strict(rag: RAGPipeline) -> TestClient:
    """A client of a server that tells nothing which is not in the log yet; nothing is stored by time here."""
    server = rag.config.server
    server = server.model_copy(update={"audit": server.audit.model_copy(update={"before_reply": True})})
    rag.standpoint.assembly.config = rag.config.model_copy(update={"server": server})
    rag.standpoint.assembly.access_log._flush_seconds = 3600
    return TestClient(create_app(rag), base_url=HOST, raise_server_exceptions=False)


def logged(dsn: str) -> list[tuple[str, str | None]]:
    """What the database holds, whatever a process has in mind."""
    with psycopg.connect(dsn) as connection:
        query = "SELECT action, question FROM recollect.access_log ORDER BY access_id"
        return connection.execute(query).fetchall()


def test_what_is_told_is_in_the_log_before_it_is_told(rag, strict, stored, dsn):
    assert strict.post("/v1/search", json={"query": "leave"}).status_code == 200
    assert logged(dsn) == [("search", "leave")]
    assert strict.post("/v1/collections", json={"name": "x"}).status_code == 201
    assert logged(dsn)[1:] == [("POST /v1/collections", None)]
    assert strict.post("/v1/collections", json={"name": "x"}).status_code == 409
    assert strict.get(f"/v1/documents/{stored}/content").status_code == 200
    assert [action for action, _ in logged(dsn)[2:]] == ["read"]
    rag.standpoint.assembly.access_log.flush()
    assert len(logged(dsn)) == 3 and all(one.intact for one in rag.audit.verify_accesses())


def test_a_stream_shows_no_source_that_is_not_in_the_log(rag, strict, stored, dsn):
    """Looked at from within, at the moment that an event which names a source is sent."""
    seen = []
    app = strict.app

    async def looking(scope, receive, send):
        async def look(message):
            if message["type"] == "http.response.body" and b"leave.md" in message.get("body", b""):
                seen.append(len(logged(dsn)))
            await send(message)

        await app(scope, receive, look)

    client = TestClient(looking, base_url=HOST)
    events = {"Accept": "text/event-stream", "Accept-Encoding": "identity"}
    reply = client.post("/v1/ask", json={"question": "How long is leave?"}, headers=events)
    assert "event: sources" in reply.text and seen and min(seen) == 1


def test_what_cannot_be_logged_is_not_told(rag, strict, stored, dsn):
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("ALTER TABLE recollect.access_log RENAME TO elsewhere")
        for refused in (
            strict.post("/v1/search", json={"query": "leave"}),
            strict.post("/v1/collections", json={"name": "x"}, headers={"Idempotency-Key": "k"}),
        ):
            assert refused.status_code in {500, 503} and "30 days" not in refused.text, refused.text
            assert refused.headers["content-type"] == "application/problem+json"
        events = {"Accept": "text/event-stream", "Accept-Encoding": "identity"}
        cut = strict.post("/v1/ask", json={"question": "How long?"}, headers=events)
        assert "leave.md" not in cut.text and "event: done" not in cut.text
        assert strict.get("/healthz").status_code == 200
        connection.execute("ALTER TABLE recollect.elsewhere RENAME TO access_log")
    assert strict.post("/v1/search", json={"query": "leave"}).status_code == 200
    assert logged(dsn)[-1] == ("search", "leave")


def test_many_at_once_are_stored_together(rag, strict, stored, dsn):
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(8) as threads:
        ask = lambda number: strict.post("/v1/search", json={"query": f"leave {number}"}).status_code  # noqa: E731
        assert set(threads.map(ask, range(40))) == {200}
    assert len(logged(dsn)) == 40
    assert 1 <= len(rag.audit.verify_accesses()) <= 40
