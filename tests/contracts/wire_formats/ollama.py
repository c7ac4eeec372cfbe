"""Ollama's wire formats: ``/api/embed`` and ``/api/chat``, a JSON object a line."""

from __future__ import annotations

import json

from recollect.providers import Connection, make_chat_model, make_embedder

from .server import DIMENSION


def error(status, message):
    return json.dumps({"error": message}).encode()


class Embeddings:
    name = "ollama embeddings"
    kind = "embed"
    cannot = frozenset({"one-twice", "permuted", "unknown-index"})
    content_type = "application/json"
    error = staticmethod(error)

    def make(self, base_url, *, recorder=None, **connection):
        return make_embedder(
            "ollama",
            "unknown-model",
            connection=Connection(base_url=base_url, **connection),
            dimensions=DIMENSION,
            recorder=recorder,
        )

    def texts(self, path, body):
        assert path == "/api/embed"
        assert body["model"] == "unknown-model"
        return body["input"]

    def write(self, result):
        return json.dumps(
            {"model": "unknown-model", "embeddings": result.vectors, "prompt_eval_count": result.tokens}
        ).encode()


class Chat:
    name = "ollama chat"
    kind = "answer"
    cannot = frozenset({"filtered"})
    content_type = "application/x-ndjson"
    error = staticmethod(error)

    def make(self, base_url, *, recorder=None, **connection):
        return make_chat_model("ollama", "m", connection=Connection(base_url=base_url, **connection), recorder=recorder)

    def texts(self, path, body):
        assert path == "/api/chat"
        assert body["stream"] is True
        return [one["content"] for one in body["messages"]]

    def write(self, result):
        def line(text, **extra):
            message = {"role": "assistant", "content": text}
            base = {"model": "m", "created_at": "2026-01-01T00:00:00Z", "message": message, "done": False}
            return json.dumps(base | extra).encode() + b"\n"

        parts = [line(text) for text in result.pieces]
        if result.error is not None:
            return [*parts, json.dumps({"error": result.error}).encode() + b"\n"]
        if result.end is None:
            return parts
        end = line(
            "",
            done=True,
            done_reason=result.end,
            prompt_eval_count=result.input_tokens,
            eval_count=result.output_tokens,
        )
        return [*parts, end]


WIRES = [Embeddings(), Chat()]
