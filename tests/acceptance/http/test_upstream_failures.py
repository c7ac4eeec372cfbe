"""A model's provider that refuses: what clients of this server get to know of it, at every door."""

from __future__ import annotations

import logging
from contextlib import contextmanager

import openai
import pytest
from fastapi.testclient import TestClient

from contracts.wire_formats.openai import ChatCompletions, Embeddings
from contracts.wire_formats.server import DIMENSION, FOREIGN_KEYS, KEY, ModelServer
from recollect import Client, Document, RAGConfig, RAGPipeline
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import ProviderError
from recollect.server.app import create_app
from served import listening

ASKED = "How many days of annual leave?"
SAID = [{"role": "user", "content": ASKED}]
PAUSE = "17"

#: Requests that need the language model.
ANSWERS = [
    ("/v1/ask", {"question": ASKED}),
    ("/v1/chat/completions", {"model": "default", "messages": SAID}),
    ("/v1/chat/completions", {"model": "default", "messages": SAID, "stream": True}),
    ("/v1/responses", {"model": "default", "input": ASKED}),
    ("/v1/responses", {"model": "default", "input": ASKED, "stream": True}),
]
#: An answer whose status is sent before the model is asked.
STREAM = ("/api/chat", {"query": ASKED})
#: Requests that need the embedding model.
SEARCHES = [
    ("/v1/search", {"query": ASKED, "mode": "dense"}),
    ("/v1/context", {"query": ASKED, "mode": "dense"}),
    ("/v1/embeddings", {"model": "default", "input": ASKED}),
]


@pytest.fixture
def chat():
    yield from started(ChatCompletions())


@pytest.fixture
def embeddings():
    yield from started(Embeddings())


def started(wire):
    wire.headers = {"Retry-After": PAUSE}
    server = ModelServer(wire)
    yield server
    server.close()


@contextmanager
def asking(dsn, tmp_path, **settings):
    config = RAGConfig.load(storage={"data_dir": tmp_path / "unused", "dsn": dsn}, **settings)
    own = None if "embedding" in settings else HashingEmbedder()
    with RAGPipeline(config, embedder=own) as rag:
        rag.ingest(Document(content="Every employee has thirty days of annual leave.", source="leave.md"))
        yield create_app(rag)


def reached(server):
    return {
        "provider": "openai",
        "model": "unknown-model" if server.wire.kind == "embed" else "m",
        "base_url": f"{server.base_url}/v1",
        "api_key": KEY,
        "max_retries": 0,
    }


@pytest.fixture
def answering(dsn, tmp_path, chat):
    """A server whose language model is the provider's."""
    with asking(dsn, tmp_path, answer=reached(chat)) as app:
        yield app


@pytest.fixture
def searching(dsn, tmp_path, embeddings):
    """A server whose embedding model is the provider's."""
    with asking(dsn, tmp_path, embedding=reached(embeddings) | {"dimensions": DIMENSION}) as app:
        yield app


def refused(app, server, path, body, fault):
    """What a client is told, with one request to the provider."""
    server.fault = fault
    server.requests.clear()
    client = TestClient(app, base_url="http://127.0.0.1:8321", raise_server_exceptions=False)
    reply = client.post(path, json=body)
    client.close()
    assert server.requests, reply.text
    return reply


def require_told(reply, status, name):
    assert reply.status_code == status, reply.text
    told = reply.json()
    if "error" in told:
        assert told["error"]["code"] == name.replace("-", "_")
    else:
        assert told["type"] == f"urn:recollect:problem:{name}"


def test_a_provider_that_has_had_enough_of_questions(answering, chat):
    for path, body in ANSWERS:
        reply = refused(answering, chat, path, body, "429")
        require_told(reply, 429, "model-rate-limited")
        assert reply.headers["Retry-After"] == PAUSE


def test_a_provider_that_has_had_enough_of_texts(searching, embeddings):
    for path, body in SEARCHES:
        reply = refused(searching, embeddings, path, body, "429")
        require_told(reply, 429, "model-rate-limited")
        assert reply.headers["Retry-After"] == PAUSE


@pytest.mark.parametrize("fault", ["401", "403"])
def test_a_rejected_key_is_asked_with_once(answering, chat, fault):
    for path, body in ANSWERS:
        reply = refused(answering, chat, path, body, fault)
        require_told(reply, 502, "model-failed")
        assert reply.headers["X-Should-Retry"] == "false"
        assert "Retry-After" not in reply.headers
        assert reply.json().get("retryable", False) is False


def test_the_packages_of_openai_and_recollect_ask_once_with_a_rejected_key(answering, chat):
    chat.fault = "401"
    with listening(answering) as url:
        with (
            openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=2) as client,
            pytest.raises(openai.InternalServerError),
        ):
            client.chat.completions.create(model="default", messages=SAID)
        assert len(chat.requests) == 1
        with Client(url) as client, pytest.raises(ProviderError) as caught:
            client.ask(ASKED)
        assert (caught.value.retryable, len(chat.requests)) == (False, 2)


def test_clients_know_when_to_come_back(answering, chat):
    chat.fault = "429"
    with listening(answering) as url:
        with (
            openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client,
            pytest.raises(openai.RateLimitError) as limited,
        ):
            client.chat.completions.create(model="default", messages=SAID)
        assert limited.value.response.headers["Retry-After"] == PAUSE
        with Client(url, retries=0) as client, pytest.raises(ProviderError) as caught:
            client.ask(ASKED)
        assert (caught.value.retryable, caught.value.retry_after_seconds) == (True, float(PAUSE))


def test_a_stream_of_events_tells_when_to_come_back(answering, chat):
    chat.fault = "429"
    with listening(answering) as url, Client(url, retries=0) as client, pytest.raises(ProviderError) as caught:
        list(client.ask_stream(ASKED))
    assert (caught.value.retryable, caught.value.retry_after_seconds) == (True, float(PAUSE))


def test_nobody_reads_a_key_that_a_provider_repeats(answering, chat, caplog):
    caplog.set_level(logging.DEBUG)
    asked = [(*one, fault) for fault in ("401", "429", "500") for one in (*ANSWERS, STREAM)]
    shown = [refused(answering, chat, path, body, fault).text for path, body, fault in asked]
    for text in (*shown, caplog.text):
        assert not [one for one in (KEY, *FOREIGN_KEYS) if one in text]
