"""The names of models: a configured language model by its plain name, collections as a person would pick them."""

from __future__ import annotations

import json

import pytest
from fastapi.testclient import TestClient

from chat_server import ChatServer
from recollect import Document, RAGConfig, RAGPipeline
from recollect.embedding.hashing import HashingEmbedder
from recollect.server.app import create_app
from recollect.ui import install

ASKED = "How many days of leave do employees have?"


@pytest.fixture
def written():
    server = ChatServer(lambda _: "Thirty days of leave [1].")
    yield server
    server.close()


@pytest.fixture
def rag(dsn, tmp_path, written):
    config = RAGConfig.load(
        storage={"data_dir": tmp_path / "unused", "dsn": dsn},
        embedding={"provider": "hashing"},
        answer={
            "provider": "openai",
            "model": "llama3.1",
            "api_key": "x",
            "base_url": written.base_url,
            "api": "chat",
        },
        server={"answer_models": ["openai/gpt-b"]},
    )
    with RAGPipeline(config, embedder=HashingEmbedder()) as opened:
        opened.ingest(Document(content="Employees have thirty days of leave.", source="leave.md"))
        opened.view(collections="hr").ingest(Document(content="Employees have thirty days of leave.", source="hr.md"))
        yield opened


@pytest.fixture
def client(rag):
    app = create_app(rag)
    install(app)
    with TestClient(app, base_url="http://127.0.0.1:8321", raise_server_exceptions=False) as made:
        yield made


def asked_at_every_door(client, model):
    """The model that wrote each door's answer, or the status of its refusal with what it says."""
    said = [{"role": "user", "content": ASKED}]
    replies = {
        "/api/chat": client.post("/api/chat", json={"query": ASKED, "model": model}),
        "/v1/chat/completions": client.post("/v1/chat/completions", json={"model": model, "messages": said}),
        "/v1/responses": client.post("/v1/responses", json={"model": model, "input": ASKED}),
    }
    found = {}
    for door, reply in replies.items():
        if reply.status_code != 200:
            found[door] = (reply.status_code, reply.text)
        elif door == "/api/chat":
            (done,) = (
                line for line in reply.text.splitlines() if line.startswith("data:") and '"generated_by"' in line
            )
            found[door] = json.loads(done.removeprefix("data: "))["generated_by"]
        else:
            found[door] = reply.json()["generated_by"]
    return found


#: Names of models, and which of them writes.
WRITERS = {
    "llama3.1": "llama3.1",
    "openai/llama3.1": "llama3.1",
    "gpt-b": "gpt-b",
    "default@llama3.1": "llama3.1",
    "recollect/hr@gpt-b": "gpt-b",
    "recollect": "llama3.1",
    "recollect/hr": "llama3.1",
    "hr": "llama3.1",
    "*": "llama3.1",
    "*@extractive": None,
}


def test_a_model_is_named_the_same_at_every_door(client):
    for name, writer in WRITERS.items():
        assert set(asked_at_every_door(client, name).values()) == {writer}, name


def test_the_pages_take_the_plain_name_too(client):
    form = {"question": ASKED, "model": "llama3.1"}
    own = {"Sec-Fetch-Site": "same-origin"}
    assert client.post("/conversations/talk/ask", data=form, headers=own, follow_redirects=False).status_code == 303
    (answer,) = [one for one in client.get("/v1/sessions/talk/turns").json()["turns"] if one["role"] == "assistant"]
    assert answer["metadata"]["rag_answer"]["model"] == "llama3.1"
    unknown = client.post("/conversations/talk/ask", data={**form, "model": "gpt-9"}, headers=own)
    assert unknown.status_code == 400 and "openai/llama3.1" in unknown.text


def test_an_unknown_model_lists_those_that_exist(client):
    for door, (status, text) in asked_at_every_door(client, "gpt-9").items():
        assert status == 404, door
        assert all(name in text for name in ("recollect/hr", "openai/llama3.1", "openai/gpt-b", "extractive")), door
    embedding = client.post("/v1/embeddings", json={"input": "leave", "model": "text-embedding-9"})
    assert embedding.status_code == 404
    assert "hashing" in embedding.json()["error"]["message"] and "hr" in embedding.json()["error"]["message"]


def test_the_list_has_names_that_a_person_picks(rag, client):
    listed = [one["id"] for one in client.get("/v1/models").json()["data"]]
    assert listed[:2] == ["recollect", "recollect@extractive"]
    assert "recollect/hr" in listed and "*" not in listed
    for name in listed:
        assert client.get(f"/v1/models/{name.replace('/', '%2F')}").json()["id"] == name
        embedded = client.post("/v1/embeddings", json={"input": "leave", "model": name})
        assert embedded.status_code == (404 if "@" in name else 200), name
    rag.collections.create("recollect")
    named = {"model": "recollect/recollect@extractive", "messages": [{"role": "user", "content": ASKED}]}
    assert client.post("/v1/chat/completions", json=named).json()["recollect"]["refused"]
    everywhere = {**named, "model": "recollect@extractive"}
    assert not client.post("/v1/chat/completions", json=everywhere).json()["recollect"]["refused"]
