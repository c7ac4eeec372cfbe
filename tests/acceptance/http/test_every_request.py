"""What every request has: an id, headers, limits, one shape of errors; and who may come near the server at all."""

from __future__ import annotations

import gzip
import json

import psycopg
from fastapi.testclient import TestClient

from recollect.errors import StoreUnavailableError
from recollect.server.app import create_app


def test_it_says_whether_it_lives_and_whether_it_can_work(rag, client, monkeypatch):
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/readyz").json() == {"status": "ok"}

    def away() -> None:
        raise StoreUnavailableError("/secret/path is not there")

    monkeypatch.setattr(rag.store.database, "ping", away)
    refused = client.get("/readyz")
    assert refused.status_code == 503
    assert refused.headers["retry-after"] == "5"
    assert "secret" not in refused.text
    assert client.get("/healthz").status_code == 200


def test_a_server_whose_store_another_version_has_changed_says_so(rag, client):
    with psycopg.connect(rag.store.dsn, autocommit=True, options="-c search_path=recollect,public") as connection:
        connection.execute("INSERT INTO schema_migrations VALUES (9999, '9999_of_the_future', '')")
        refused = client.get("/readyz")
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
        # Whatever it asks for that is there no longer.
        connection.execute("ALTER TABLE facts RENAME TO statements")
        gone = client.get("/v1/facts")
    assert (gone.status_code, gone.json()["type"]) == (503, "urn:recollect:problem:store-unavailable")
    assert client.get("/healthz").status_code == 200


def test_a_request_has_the_id_it_came_with_or_one_of_its_own(client):
    assert client.get("/healthz", headers={"X-Request-ID": "abcdef-123456"}).headers["x-request-id"] == "abcdef-123456"
    for bad in ("short", "with blanks in it", "x" * 65, "evil\x7f12345678"):
        assert client.get("/healthz", headers={"X-Request-ID": bad}).headers["x-request-id"] != bad


def test_responses_are_kept_from_browsers_and_their_caches(client):
    headers = client.get("/v1/collections").headers
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "access-control-allow-origin" not in headers
    assert "server" not in headers


def test_every_error_is_a_problem(client):
    for method, path, status in [
        ("GET", "/v1/nothing", 404),
        ("DELETE", "/v1/search", 405),
        ("GET", "/", 404),
        ("GET", "/v1/collections/none", 404),
    ]:
        reply = client.request(method, path)
        assert reply.status_code == status
        assert reply.headers["content-type"] == "application/problem+json"
        told = reply.json()
        assert (told["status"], told["request_id"]) == (status, reply.headers["x-request-id"])
        assert set(told) >= {"type", "title", "detail"}


def test_a_defect_tells_nothing_of_itself(rag, client, monkeypatch):
    def broken(*_: object) -> None:
        raise ZeroDivisionError("password=hunter2")

    monkeypatch.setattr(rag.store.database, "ping", broken)
    reply = client.get("/readyz")
    assert reply.status_code == 500
    assert reply.headers["content-type"] == "application/problem+json"
    assert "hunter2" not in reply.text


def test_a_body_that_is_too_long_is_not_read(rag):
    small = rag.config.model_copy(update={"server": rag.config.server.model_copy(update={"max_body_bytes": 2_000})})
    rag.standpoint.assembly.config = small
    client = TestClient(create_app(rag), base_url="http://localhost", raise_server_exceptions=False)
    given = json.dumps({"query": "x" * 3_000})
    told = client.post("/v1/search", content=given, headers={"content-type": "application/json"})
    assert told.status_code == 413
    assert told.headers["content-type"] == "application/problem+json"

    def pieces():
        yield given.encode()

    streamed = client.post("/v1/search", content=pieces(), headers={"content-type": "application/json"})
    assert streamed.status_code == 413


def test_long_replies_are_compressed_where_the_client_takes_that(rag, client):
    rag.ingest("Leave. " * 500)
    with client.stream("POST", "/v1/search", json={"query": "leave"}, headers={"Accept-Encoding": "gzip"}) as reply:
        assert reply.headers["content-encoding"] == "gzip"
        assert json.loads(gzip.decompress(b"".join(reply.iter_raw())))["results"]


def test_pages_of_other_sites_cannot_use_a_browser_to_reach_the_local_server(client):
    for headers in [
        {"Host": "evil.example"},
        {"Host": "evil.example:8321", "Origin": "http://evil.example:8321"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Host": ""},
        {"Host": "127.0.0.1.evil.example"},
        {"Host": "user@evil.example"},
        {"Host": "[::1"},
    ]:
        reply = client.get("/v1/collections", headers=headers)
        assert reply.status_code == 403
        assert reply.json()["type"] == "urn:recollect:problem:foreign-origin"


def test_a_server_for_others_asks_everybody_who_they_are(rag):
    open_to_all = rag.config.server.model_copy(update={"host": "0.0.0.0", "authentication": "required"})
    rag.standpoint.assembly.config = rag.config.model_copy(update={"server": open_to_all})
    client = TestClient(create_app(rag), base_url="http://knowledge.example", raise_server_exceptions=False)
    refused = client.get("/v1/collections")
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"].startswith("Bearer")
    key = rag.keys.create("one", scopes=["read"]).secret
    assert client.get("/v1/collections", headers={"Authorization": f"Bearer {key}"}).status_code == 200
    assert client.get("/v1/collections", headers={"X-API-Key": key}).status_code == 200
    both = client.get("/v1/collections", headers={"X-API-Key": key, "Authorization": f"Bearer {key}"})
    assert both.status_code == 401
    assert (
        client.get("/v1/collections", headers={"X-API-Key": key[:-1] + ("B" if key.endswith("A") else "A")}).status_code
        == 401
    )
    assert client.post("/v1/collections", json={"name": "x"}, headers={"X-API-Key": key}).status_code == 403
    assert key not in refused.text


def test_its_document_names_every_scope(client):
    document = client.get("/v1/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            assert operation["summary"], (method, path)
            if path.startswith("/v1/") and path != "/v1/me":  # whoever has a credential may see what it opens
                assert {tuple(needed) for needed in operation["security"]} == {("bearer",), ("apiKey",)}
                assert all(scopes for needed in operation["security"] for scopes in needed.values()), (method, path)
