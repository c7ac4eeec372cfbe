"""Hugging Face's wire formats: feature extraction, and the reranking of Text Embeddings Inference."""

from __future__ import annotations

import json

from recollect.providers import Connection, make_embedder, make_scorer

from .server import DIMENSION


def error(status, message):
    return json.dumps({"error": message, "error_type": "Validation"}).encode()


class Embeddings:
    name = "huggingface embeddings"
    kind = "embed"
    cannot = frozenset({"one-twice", "permuted", "unknown-index"})
    content_type = "application/json"
    error = staticmethod(error)

    def make(self, base_url, *, recorder=None, **connection):
        return make_embedder(
            "huggingface",
            "BAAI/bge-m3",
            connection=Connection(base_url=base_url, **connection),
            dimensions=DIMENSION,
            recorder=recorder,
        )

    def texts(self, path, body):
        assert path == "/"
        assert body["truncate"] is True
        return body["inputs"]

    def write(self, result):
        return json.dumps(result.vectors).encode()


class Reranking:
    name = "huggingface reranking"
    kind = "rerank"
    cannot = frozenset()
    content_type = "application/json"
    error = staticmethod(error)

    def make(self, base_url, *, recorder=None, **connection):
        return make_scorer(
            "huggingface",
            "BAAI/bge-reranker-v2-m3",
            connection=Connection(base_url=base_url, **connection),
            recorder=recorder,
        )

    def texts(self, path, body):
        assert path == "/rerank"
        assert body["query"]
        return body["texts"]

    def write(self, result):
        return json.dumps([{"index": index, "score": score} for index, score in result.pairs]).encode()


WIRES = [Embeddings(), Reranking()]
