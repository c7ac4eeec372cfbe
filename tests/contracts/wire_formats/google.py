"""Google's wire formats: ``batchEmbedContents``, and ``streamGenerateContent`` as server-sent events."""

from __future__ import annotations

import json

from recollect.providers import Connection, make_chat_model, make_embedder

from .server import DIMENSION

DOCUMENT = "title: none | text: "
QUERY = "task: search result | query: "
_NAMES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


def error(status, message, *, details=()):
    about = {"code": status, "message": message, "status": _NAMES.get(status, "UNKNOWN"), "details": list(details)}
    return json.dumps({"error": about}, indent=2).encode()


def event(content):
    return f"data: {json.dumps(content)}\r\n\r\n".encode()


def reply(parts, *, finish=None, usage=None, **extra):
    candidate = {"content": {"parts": parts, "role": "model"}, "index": 0}
    if finish is not None:
        candidate["finishReason"] = finish
    content = {"candidates": [candidate], "modelVersion": "gemini-3.8-flash", "responseId": "mAqVaP"} | extra
    return event(content if usage is None else content | {"usageMetadata": usage})


def usage_of(result):
    return {
        "promptTokenCount": result.input_tokens,
        "candidatesTokenCount": result.output_tokens - 2,
        "thoughtsTokenCount": 2,
        "totalTokenCount": result.input_tokens + result.output_tokens,
    }


class Embeddings:
    name = "google embeddings"
    kind = "embed"
    cannot = frozenset({"one-twice", "permuted", "unknown-index"})
    content_type = "application/json; charset=UTF-8"
    error = staticmethod(error)

    def make(self, base_url, *, recorder=None, model="gemini-embedding-next", dimensions=DIMENSION, **connection):
        return make_embedder(
            "google",
            model,
            connection=Connection(base_url=base_url, **connection),
            dimensions=dimensions,
            recorder=recorder,
        )

    def texts(self, path, body):
        assert path.endswith(":batchEmbedContents")
        assert len(body["requests"]) <= 100
        texts = []
        for one in body["requests"]:
            (part,) = one["content"]["parts"]
            texts.append(part["text"].removeprefix(DOCUMENT).removeprefix(QUERY))
        return texts

    def write(self, result):
        return json.dumps(
            {
                "embeddings": [{"values": vector} for vector in result.vectors],
                "usageMetadata": {"promptTokenCount": result.tokens},
            }
        ).encode()


class Chat:
    name = "google chat"
    kind = "answer"
    cannot = frozenset({"usage-in-words"})
    content_type = "text/event-stream"
    error = staticmethod(error)

    def make(self, base_url, *, recorder=None, temperature=None, **connection):
        return make_chat_model(
            "google", connection=Connection(base_url=base_url, **connection), recorder=recorder, temperature=temperature
        )

    def texts(self, path, body):
        assert path.endswith("/models/gemini-3.8-flash:streamGenerateContent?alt=sse")
        return [part["text"] for one in body["contents"] for part in one["parts"] if "text" in part]

    def write(self, result):
        parts = [reply([{"text": "I think …", "thought": True}])]
        parts += [reply([{"text": text}], usage={"promptTokenCount": result.input_tokens}) for text in result.pieces]
        if result.error is not None:
            about = {"code": 503, "message": result.error, "status": "UNAVAILABLE"}
            return [*parts, event({"error": about})]
        if result.end is None:
            return parts
        finish = {"stop": "STOP", "length": "MAX_TOKENS", "filtered": "SAFETY"}[result.end]
        return [*parts, reply([{"text": ""}], finish=finish, usage=usage_of(result))]


WIRES = [Embeddings(), Chat()]
