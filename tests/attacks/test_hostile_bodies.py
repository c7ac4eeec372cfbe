"""Bodies that are small to send and costly to refuse: the server refuses each of them cheaply."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from recollect import RAGConfig, RAGPipeline
from recollect.embedding.hashing import HashingEmbedder
from recollect.server.app import MOST_VALUES, create_app

JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def client(clone, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    with clone() as dsn:
        storage = {"data_dir": tmp_path_factory.mktemp("data") / "unused", "dsn": dsn}
        config = RAGConfig.load(storage=storage, embedding={"provider": "hashing"})
        with RAGPipeline(config, embedder=HashingEmbedder()) as rag:
            yield TestClient(create_app(rag), base_url="http://localhost", raise_server_exceptions=False)


@pytest.mark.parametrize("item", ["{}", "[]", "0", '""', '"\\\\"'])
@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "application/problem+json"])
def test_a_body_of_too_many_values_is_refused_unread(client, item, kind):
    values = ",".join([item] * (MOST_VALUES + 1))
    sent = f'{{"query": "leave", "filter": [{values}]}}'
    refused = client.post("/v1/search", content=sent, headers={"content-type": kind})
    assert refused.status_code == 413
    assert "JSON values" in refused.json()["detail"]


@pytest.mark.parametrize("text", [",[{", '\\",', "\\\\,", '\\\\\\"{'])
def test_what_stands_within_a_text_does_not_count(client, text):
    sent = f'{{"query": "leave", "unknown": "{text * MOST_VALUES}"}}'
    refused = client.post("/v1/search", content=sent, headers=JSON)
    assert [one["location"] for one in refused.json()["errors"]] == [["body", "unknown"]]


def test_a_body_has_few_errors_however_much_of_it_is_invalid(client):
    many = {f"field{number}": 0 for number in range(5_000)}
    for path in ("/v1/search", "/v1/chat/completions", "/v1/collections/default/documents"):
        refused = client.post(path, json=many)
        assert refused.status_code in {400, 422} and "1,000 fields" in refused.text, path
    refused = client.post("/v1/search", json={"query": "leave", "with": [0] * 5_000})
    assert [one["location"] for one in refused.json()["errors"]] == [["body", "with", 0]]


@pytest.mark.parametrize(
    "sent",
    [b"[" * 1_000_000, b"{" * 1_000_000, b'{"query": "' + b"a" * 1_000_000, b'"' + b"a" * 1_000_000 + b'"'],
    ids=["deep", "broken", "unfinished", "no object"],
)
@pytest.mark.parametrize("path", ["/v1/search", "/v1/chat/completions"])
def test_refused_bodies_do_not_stay_in_memory(client, path, sent):
    def refuse() -> None:
        assert client.post(path, content=sent, headers=JSON).status_code in {400, 413, 422}

    refuse()
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        for _ in range(10):
            refuse()
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        gc.enable()
    assert kept < 3_000_000


def test_only_json_is_parsed_whatever_door_it_comes_to(client):
    sent = b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"a": [' + b",".join([b"{}"] * 1_000_000) + b"]}}"
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
    with client:
        tracemalloc.start()
        try:
            refused = client.post("/mcp", content=sent, headers={**headers, "Content-Type": "application/jsonl"})
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert 400 <= refused.status_code < 500
    assert peak < 8 * len(sent)
