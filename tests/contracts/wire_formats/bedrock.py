"""AWS Bedrock's wire formats: ``InvokeModel`` for embeddings and reranking, ``ConverseStream`` as an event stream."""

from __future__ import annotations

import json
from urllib.parse import unquote

from recollect.providers import Connection, make_chat_model, make_embedder, make_scorer

from .eventstream import event, exception
from .server import DIMENSION

CHAT_MODEL = "global.anthropic.claude-sonnet-5-5"
_NAMES = {
    400: "ValidationException",
    401: "UnrecognizedClientException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    408: "ModelTimeoutException",
    424: "ModelErrorException",
    429: "ThrottlingException",
    500: "InternalServerException",
    503: "ServiceUnavailableException",
}


def error(status, message):
    return json.dumps({"__type": _NAMES.get(status, "UnknownException"), "message": message}).encode()


def connection(base_url, *, region="eu-central-1", **settings):
    return Connection(base_url=base_url, region=region, **settings)


class Embeddings:
    name = "bedrock embeddings"
    kind = "embed"
    cannot = frozenset({"one-twice", "permuted", "unknown-index"})
    content_type = "application/json"
    error = staticmethod(error)

    def make(self, base_url, *, recorder=None, model="us.cohere.embed-next:0", dimensions=DIMENSION, **settings):
        return make_embedder(
            "bedrock", model, connection=connection(base_url, **settings), dimensions=dimensions, recorder=recorder
        )

    def texts(self, path, body):
        assert unquote(path) == "/model/us.cohere.embed-next:0/invoke"
        assert body["embedding_types"] == ["float"]
        assert body["input_type"] in {"search_document", "search_query"}
        return body["texts"]

    def write(self, result):
        return json.dumps(
            {
                "id": "c6f5e6b6-3f0e-4b8c-9b7e-1f1c8c0f6e1b",
                "embeddings": {"float": result.vectors},
                "texts": [""] * len(result.vectors),
                "response_type": "embeddings_by_type",
            }
        ).encode()


class Reranking:
    name = "bedrock reranking"
    kind = "rerank"
    cannot = frozenset()
    content_type = "application/json"
    error = staticmethod(error)

    def make(self, base_url, *, recorder=None, **settings):
        return make_scorer("bedrock", connection=connection(base_url, **settings), recorder=recorder)

    def texts(self, path, body):
        assert unquote(path) == "/model/cohere.rerank-v3-5:0/invoke"
        assert (body["api_version"], body["query"]) == (2, "How many days?")
        return body["documents"]

    def write(self, result):
        results = [{"index": index, "relevance_score": score} for index, score in result.pairs]
        return json.dumps({"results": results}).encode()


class Chat:
    name = "bedrock chat"
    kind = "answer"
    cannot = frozenset({"usage-in-words"})
    content_type = "application/vnd.amazon.eventstream"
    error = staticmethod(error)

    def make(self, base_url, *, recorder=None, temperature=None, **settings):
        return make_chat_model(
            "bedrock",
            CHAT_MODEL,
            connection=connection(base_url, **settings),
            recorder=recorder,
            temperature=temperature,
        )

    def texts(self, path, body):
        assert unquote(path) == f"/model/{CHAT_MODEL}/converse-stream"
        return [part["text"] for one in body["messages"] for part in one["content"] if "text" in part]

    def write(self, result):
        thought = {"reasoningContent": {"text": "The user wants …"}}
        parts = [
            event("messageStart", {"role": "assistant"}),
            event("contentBlockDelta", {"contentBlockIndex": 0, "delta": thought}),
            event("contentBlockStop", {"contentBlockIndex": 0}),
            *(event("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"text": text}}) for text in result.pieces),
        ]
        if result.error is not None:
            return [*parts, exception("internalServerException", result.error)]
        if result.end is None:
            return parts
        reason = {"stop": "end_turn", "length": "max_tokens", "filtered": "guardrail_intervened"}[result.end]
        usage = {
            "inputTokens": result.input_tokens - 5,
            "outputTokens": result.output_tokens,
            "totalTokens": result.input_tokens + result.output_tokens,
            "cacheReadInputTokens": 3,
            "cacheWriteInputTokens": 2,
        }
        return [
            *parts,
            event("contentBlockStop", {"contentBlockIndex": 1}),
            event("messageStop", {"stopReason": reason}),
            event("metadata", {"usage": usage, "metrics": {"latencyMs": 1234}}),
        ]


WIRES = [Embeddings(), Reranking(), Chat()]
