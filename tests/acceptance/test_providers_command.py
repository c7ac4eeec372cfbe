"""Models of providers, as a person meets them: configured, tried, found, logged; through the real SDKs."""

from __future__ import annotations

import json

import psycopg
import pytest

from contracts.wire_formats import huggingface, ollama, openai
from contracts.wire_formats.server import DIMENSION, KEY, REPLY, ModelServer

TEXT = "# Pumps\n\nThe pump in hall C leaked on the ninth of May.\n"


@pytest.fixture
def serve():
    servers = []

    def start(wire):
        servers.append(ModelServer(wire))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def servers(serve):
    """One of each kind of model."""
    wires = {"embedding": openai.Embeddings(), "reranking": huggingface.Reranking(), "answer": openai.ChatCompletions()}
    return {section: serve(wire) for section, wire in wires.items()}


@pytest.fixture
def hosted(recollect, servers, tmp_path):
    """A store whose models are these servers, with a document."""
    settings = {
        "embedding": {
            "provider": "openai",
            "model": "unknown-model",
            "dimensions": DIMENSION,
            "base_url": f"{servers['embedding'].base_url}/v1",
        },
        "reranking": {"provider": "huggingface", "model": "bge-reranker", "base_url": servers["reranking"].base_url},
        "answer": {
            "provider": "openai",
            "model": "m",
            "base_url": f"{servers['answer'].base_url}/v1",
            "input_price": 2.0,
        },
    }
    for section, values in settings.items():
        for name, value in ({"api_key": KEY, "max_retries": 0} | values).items():
            recollect.environment[f"RECOLLECT_{section.upper()}__{name.upper()}"] = str(value)
    (tmp_path / "a.md").write_text(TEXT, encoding="utf-8")
    recollect("ingest", tmp_path / "a.md")
    return recollect


def test_a_store_lives_on_providers_models_and_logs_what_they_were_asked(hosted, dsn):
    (passage,) = hosted("query", "leaking pump", "--json").json["results"]
    assert passage["source"] == "a.md"
    answer = hosted("ask", "Where did the pump leak?", "--json").json
    assert answer["answer"].startswith(REPLY[:20])
    logged = hosted("requests", "list", "--json").json
    # The first search asks the model where its similarities lie: all questions in one request, all passages in another.
    # The store keeps it, so that no process after it asks again.
    scale = ["embed", "embed"]
    search = ["embed", "rerank"]
    assert [one["kind"] for one in reversed(logged["items"])] == ["embed", *search, *scale, *search, "answer"]
    assert logged["next_cursor"] is None
    first = logged["items"][0]
    assert (first["provider"], first["model"], first["success"], first["error"]) == ("openai", "m", True, None)
    assert (first["input_tokens"], first["output_tokens"], first["cost"]) == (11, 7, 22e-6)
    with psycopg.connect(dsn) as connection:
        (rows,) = connection.execute("SELECT string_agg(to_jsonb(r)::text, '') FROM recollect.request_log r").fetchone()
    assert not [word for word in ("pump", "leak", "30 days", KEY) if word in rows]
    totals = hosted("requests", "stats", "--json").json["models"]
    assert [(one["kind"], one["requests"], one["failures"]) for one in totals] == [
        ("answer", 1, 0),
        ("embed", 5, 0),
        ("rerank", 2, 0),
    ]
    assert "openai/m" in hosted("requests", "stats").out
    assert len(hosted("requests", "list", "--kind", "embed", "--limit", 2).out.splitlines()) == 2


def test_a_reranker_that_fails_leaves_the_first_order_and_says_so(hosted, servers):
    servers["reranking"].fault = "500"
    reply = hosted("query", "leaking pump", "--explain", "--json").json
    assert len(reply["results"]) == 1
    assert reply["reranked"] is False
    assert "HTTP 500" in reply["explain"]["rerank_reason"]
    (failed,) = hosted("requests", "list", "--failed", "--json").json["items"]
    assert (failed["kind"], failed["error"], failed["status"]) == ("rerank", "server", 500)
    assert "server (HTTP 500)" in hosted("requests", "list", "--failed").out


def test_another_length_that_is_configured_is_that_of_new_collections(hosted, tmp_path):
    hosted.environment["RECOLLECT_EMBEDDING__DIMENSIONS"] = "4"
    hosted.environment["RECOLLECT_EMBEDDING__TRUNCATE"] = "true"
    (tmp_path / "b.md").write_text("# Fans\n\nThe pump has a fan.\n", encoding="utf-8")
    hosted("ingest", "b.md")
    hosted("ingest", "b.md", "--collection", "cut")
    models = {one["name"]: one["embedding_model"] for one in hosted("collections", "list", "--json").json["items"]}
    assert models == {"default": "openai/unknown-model:8", "cut": "openai/unknown-model:4"}
    assert "b.md" in hosted("query", "pump").out


def test_what_is_configured_is_listed_and_tried(hosted, servers):
    rows = {one["name"]: one for one in hosted("providers", "list", "--json").json["providers"]}
    assert rows["openai"]["configured"] == {"embedding": "unknown-model", "answer": "m"}
    assert rows["openai"]["installed"] and rows["openai"]["extra"] == "openai"
    assert "[rag.reranking] bge-reranker" in hosted("providers", "list").out
    tests = hosted("providers", "test", "--json").json["tests"]
    assert [(one["section"], one["ok"]) for one in tests] == [
        ("embedding", True),
        ("reranking", True),
        ("answer", True),
    ]
    servers["answer"].fault = "401"
    tried = hosted("providers", "test", status=1)
    assert "[rag.embedding] openai/unknown-model ok" in tried.out
    assert "check the API key" in tried.out
    assert KEY not in tried.out + tried.err
    assert "ok" in hosted("providers", "test", "embedding").out


def test_servers_and_keys_are_found_and_given_as_settings(recollect, serve, monkeypatch):
    from recollect.providers import catalogue

    found = serve(ollama.Chat())
    monkeypatch.setattr(
        catalogue,
        "KNOWN_SERVERS",
        (
            catalogue.KnownServer("Ollama", int(found.base_url.rpartition(":")[2]), "ollama", "/api/tags"),
            catalogue.KnownServer("vLLM", int(serve(openai.Embeddings()).base_url.rpartition(":")[2]), "openai", "/"),
        ),
    )
    for name in ("OPENAI_API_KEY", "VOYAGE_API_KEY", "HF_TOKEN", "CO_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
        recollect.environment.pop(name, None)
    recollect.environment["VOYAGE_API_KEY"] = KEY
    found.models = ["llama3.2:latest", 'odd"name', "nomic-embed-text"]
    reply = recollect("providers", "detect", "--json").json
    assert [(one["name"], one["models"]) for one in reply["servers"]] == [("Ollama", found.models)]
    assert {"provider": "voyage", "variable": "VOYAGE_API_KEY"} in reply["keys"]
    shown = recollect("providers", "detect").out
    assert '[rag.answer]\nprovider = "ollama"\nmodel = "llama3.2:latest"\n' in shown
    assert '[rag.embedding]\nprovider = "ollama"\nmodel = "nomic-embed-text"\n' in shown
    assert 'model = "voyage-4-large"' in shown
    assert KEY not in shown + json.dumps(reply)


def test_a_package_that_is_missing_is_named(recollect, monkeypatch):
    from recollect.providers import registry

    monkeypatch.setattr(registry, "find_spec", lambda name: None)
    recollect.environment["RECOLLECT_ANSWER__PROVIDER"] = "ollama"
    assert "pip install '.[ollama]'" in recollect("providers", "test", "answer", status=1).out
    assert "pip install '.[cohere]'" in recollect("providers", "list").out
