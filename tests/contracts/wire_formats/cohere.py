"""Cohere's wire formats: ``/v2/embed`` and ``/v2/rerank``."""

from __future__ import annotations

import json

from recollect.providers import Connection, make_embedder, make_scorer

from .server import DIMENSION


def error(status, message):
    return json.dumps({"id": "58a0c4d1-3f2f-4e5b-9a55-5d1f0b3f7c11", "message": message}).encode()


def meta(**billed):
    return {"api_version": {"version": "2", "is_experimental": False}, "billed_units": billed}


class Embeddings:
    name = "cohere embeddings"
    kind = "embed"
    cannot = frozenset({"one-twice", "permuted", "unknown-index"})
    content_type = "application/json"
    error = staticmethod(error)

    def make(self, base_url, *, recorder=None, model="embed-next", dimensions=DIMENSION, **connection):
        return make_embedder(
            "cohere",
            model,
            connection=Connection(base_url=base_url, **connection),
            dimensions=dimensions,
            recorder=recorder,
        )

    def texts(self, path, body):
        assert path == "/v2/embed"
        assert body["embedding_types"] == ["float"]
        assert body["input_type"] in {"search_document", "search_query"}
        assert len(body["texts"]) <= 96
        return body["texts"]

    def write(self, result):
        return json.dumps(
            {
                "id": "0d6f9f6c-6d5f-4b4c-9d3c-6b0f5f7f0f10",
                "embeddings": {"float": result.vectors},
                "texts": ["in lower case"] * len(result.vectors),
                "meta": meta(input_tokens=result.tokens),
                "response_type": "embeddings_by_type",
            }
        ).encode()


class Reranking:
    name = "cohere reranking"
    kind = "rerank"
    cannot = frozenset()
    content_type = "application/json"
    error = staticmethod(error)

    def make(self, base_url, *, recorder=None, **connection):
        return make_scorer("cohere", connection=Connection(base_url=base_url, **connection), recorder=recorder)

    def texts(self, path, body):
        assert path == "/v2/rerank"
        assert (body["model"], body["query"]) == ("rerank-v4.0-pro", "How many days?")
        return body["documents"]

    def write(self, result):
        return json.dumps(
            {
                "id": "07734bd2-2473-4f07-94e1-0d9f0e6843cf",
                "results": [{"index": index, "relevance_score": score} for index, score in result.pairs],
                "meta": meta(search_units=1),
            }
        ).encode()


WIRES = [Embeddings(), Reranking()]
