"""What programs expect of any server: origins, HEAD, a description where they look for it, errors they can read."""

from __future__ import annotations

import openai
import pytest
from fastapi.testclient import TestClient

from recollect import Document, RAGConfig, RAGPipeline
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import ConfigurationError
from recollect.server.app import create_app
from recollect.ui import install

APP = "https://app.example.com"
ASKED = [{"role": "user", "content": "How many days of leave?"}]


@pytest.fixture
def rag(dsn, tmp_path):
    config = RAGConfig.load(
        storage={"data_dir": tmp_path / "unused", "dsn": dsn},
        embedding={"provider": "hashing"},
        server={"host": "0.0.0.0", "allow_origins": [APP, "tauri://localhost"]},
    )
    with RAGPipeline(config, embedder=HashingEmbedder()) as opened:
        opened.ingest(Document(content="Employees have thirty days of leave.", source="leave.md"))
        yield opened


@pytest.fixture
def client(rag):
    app = create_app(rag)
    install(app)
    with TestClient(app, base_url="http://knowledge.example", raise_server_exceptions=False) as made:
        yield made


@pytest.fixture
def key(rag):
    return {"Authorization": f"Bearer {rag.keys.create('all', scopes=['read', 'write', 'admin']).secret}"}


@pytest.mark.parametrize("origin", [APP, "tauri://localhost"])
def test_pages_of_allowed_origins_use_the_api_with_a_key(client, key, origin):
    asked = {
        "Origin": origin,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type",
    }
    ahead = client.options("/v1/chat/completions", headers=asked)
    assert (ahead.status_code, ahead.headers["access-control-allow-origin"]) == (204, origin)
    assert ahead.headers["access-control-allow-headers"] == "authorization,content-type"
    assert "POST" in ahead.headers["access-control-allow-methods"] and "origin" in ahead.headers["vary"].lower()
    found = client.post("/v1/search", json={"query": "leave"}, headers={**key, "Origin": origin})
    assert (found.status_code, found.headers["access-control-allow-origin"]) == (200, origin)
    refused = client.get("/v1/stats", headers={"Origin": origin})
    assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (401, origin)
    for reply in (ahead, found, refused):
        assert "access-control-allow-credentials" not in reply.headers


def test_a_login_counts_for_no_page_of_another_origin(client, key):
    secret = key["Authorization"].removeprefix("Bearer ")
    cookie = client.post("/login", data={"key": secret}, follow_redirects=False).headers["set-cookie"].partition(";")[0]
    assert client.get("/v1/stats", headers={"Cookie": cookie}).status_code == 200
    theirs = {"Cookie": cookie, "Origin": APP, "Sec-Fetch-Site": "cross-site"}
    assert client.get("/v1/stats", headers=theirs).status_code == 401
    assert client.post("/v1/search", json={"query": "leave"}, headers=theirs).status_code == 401
    for path in ("/login", "/chat", "/"):
        assert client.get(path, headers=theirs).status_code == 403
    assert client.post("/login", data={"key": secret}, headers={"Origin": APP}).status_code == 403


def test_other_origins_are_refused(client, key):
    for origin in ["https://evil.example", "null", f"{APP}.evil.example", "http://app.example.com"]:
        asked = {"Origin": origin, "Access-Control-Request-Method": "POST"}
        for reply in (
            client.options("/v1/search", headers=asked),
            client.post("/v1/search", json={"query": "leave"}, headers={**key, "Origin": origin}),
        ):
            assert reply.status_code == 403 and "access-control-allow-origin" not in reply.headers


@pytest.mark.parametrize(
    "origin", ["*", "null", "https://*.example.com", "https://app.example.com/", "app.example.com"]
)
def test_what_is_no_origin_cannot_be_allowed(origin):
    with pytest.raises(ConfigurationError, match="is no origin"):
        RAGConfig.load(server={"allow_origins": [origin]})


def test_head_works_wherever_get_does(client, key):
    document = client.get("/v1/openapi.json").json()
    paths = [path for path, operations in document["paths"].items() if "get" in operations and "{" not in path]
    for path in (*paths, "/v1/documents/1", "/v1/documents/1/content", "/v1/collections/default", "/docs", "/login"):
        got, head = client.get(path, headers=key), client.head(path, headers=key)
        assert (head.status_code, head.content) == (got.status_code, b""), path
        assert head.headers.get("content-type") == got.headers.get("content-type"), path
    refused = client.head("/v1/search", headers=key)
    assert (refused.status_code, refused.headers["allow"]) == (405, "POST")
    assert client.put("/v1/stats", headers=key).headers["allow"] == "GET, HEAD"
    assert client.head("/v1/stats").status_code == 401


def test_the_api_is_described_where_people_look(client):
    assert client.get("/openapi.json").json() == client.get("/v1/openapi.json").json()
    page = client.get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    assert "/v1/chat/completions" in page.text and "<script" not in page.text


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/vector_stores/default/search", {"query": "leave", "max_num_results": None, "ranking_options": None}),
        ("/v1/embeddings", {"model": "default", "input": ["leave"], "encoding_format": None, "dimensions": None}),
        ("/v1/chat/completions", {"model": "default", "messages": ASKED, "stream_options": {"include_usage": None}}),
        ("/v1/vector_stores", {"name": "empty", "file_ids": None, "expires_after": None, "metadata": None}),
    ],
)
def test_null_is_taken_for_left_out_as_litellm_sends_it(client, key, path, body):
    assert client.post(path, json=body, headers=key).status_code == 200


@pytest.mark.parametrize("path", ["/chat/completions", "/v1/v1/chat/completions", "/embeddings", "/responses"])
def test_a_base_url_without_v1_is_told_of_it(client, key, path):
    refused = client.post(path, json={"model": "recollect", "messages": ASKED}, headers=key)
    meant = f"/v1{path}".replace("/v1/v1/v1/", "/v1/")
    assert refused.status_code in {404, 405} and refused.json()["error"]["code"] == "unknown_url"
    assert f"at {meant}, not here" in refused.json()["error"]["message"]
    assert refused.json()["detail"] in refused.json()["error"]["message"]


def test_an_unknown_address_is_an_error_that_openais_clients_read(client, key):
    unknown = client.get("/v1/assistants", headers=key)
    assert unknown.json()["error"]["code"] == "unknown_url"
    assert unknown.json()["type"].endswith("http-404")
    secret = key["Authorization"].removeprefix("Bearer ")
    with openai.OpenAI(base_url="http://knowledge.example/v1", api_key=secret, max_retries=0) as theirs:
        # The SDK makes its error of the reply as it came.
        told = theirs._make_status_error_from_response(unknown)
        assert isinstance(told, openai.NotFoundError)
        assert (told.code, told.type) == ("unknown_url", "invalid_request_error")
        assert "/v1/assistants" in told.message
    wrong_method = client.get("/v1/chat/completions", headers=key)
    assert (wrong_method.status_code, wrong_method.json()["error"]["type"]) == (405, "invalid_request_error")
    assert "error" not in client.get("/nowhere", headers=key).json()
