"""Voyage's wire formats: embeddings and reranking."""

from __future__ import annotations

import json

from recollect.providers import Connection, make_embedder, make_scorer

from .server import DIMENSION


def error(status, message):
    return json.dumps({"detail": message}).encode()


class Embeddings:
    name = "voyage embeddings"
    kind = "embed"
    cannot = frozenset()
    content_type = "application/json"
    error = staticmethod(error)

    def make(self, base_url, *, recorder=None, **connection):
        return make_embedder(
            "voyage",
            "unknown-model",
            connection=Connection(base_url=f"{base_url}/v1", **connection),
            dimensions=DIMENSION,
            recorder=recorder,
        )

    def texts(self, path, body):
        assert path == "/v1/embeddings"
        assert body["input_type"] in {"document", "query"}
        assert body["output_dimension"] == DIMENSION
        return body["input"]

    def write(self, result):
        rows = [
            {"object": "embedding", "index": index, "embedding": vector}
            for index, vector in zip(result.indexes, result.vectors, strict=True)
        ]
        usage = {"total_tokens": result.tokens}
        return json.dumps({"object": "list", "data": rows, "model": "unknown-model", "usage": usage}).encode()


class Reranking:
    name = "voyage reranking"
    kind = "rerank"
    cannot = frozenset()
    content_type = "application/json"
    error = staticmethod(error)

    def make(self, base_url, *, recorder=None, **connection):
        return make_scorer(
            "voyage", "rerank-2.5", connection=Connection(base_url=f"{base_url}/v1", **connection), recorder=recorder
        )

    def texts(self, path, body):
        assert path == "/v1/rerank"
        assert body["query"]
        return body["documents"]

    def write(self, result):
        rows = [{"index": index, "relevance_score": score} for index, score in result.pairs]
        usage = {"total_tokens": result.tokens}
        return json.dumps({"object": "list", "data": rows, "model": "rerank-2.5", "usage": usage}).encode()


WIRES = [Embeddings(), Reranking()]
