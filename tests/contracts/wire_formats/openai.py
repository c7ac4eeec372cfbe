"""OpenAI's wire formats: embeddings, chat completions, responses."""

from __future__ import annotations

import json

from recollect.providers import Connection, make_chat_model, make_embedder

from .server import DIMENSION, Answer


def error(status, message):
    return json.dumps({"error": {"message": message, "type": "error", "param": None, "code": str(status)}}).encode()


def event(data, name=None):
    text = data if isinstance(data, str) else json.dumps(data)
    return ((f"event: {name}\n" if name else "") + f"data: {text}\n\n").encode()


class Embeddings:
    name = "openai embeddings"
    kind = "embed"
    cannot = frozenset()
    content_type = "application/json"
    error = staticmethod(error)

    def make(self, base_url, *, recorder=None, **connection):
        return make_embedder(
            "openai",
            "unknown-model",
            connection=Connection(base_url=f"{base_url}/v1", **connection),
            dimensions=DIMENSION,
            recorder=recorder,
        )

    def texts(self, path, body):
        assert path == "/v1/embeddings"
        assert body["model"] == "unknown-model"
        return body["input"]

    def write(self, result):
        rows = [
            {"object": "embedding", "index": index, "embedding": vector}
            for index, vector in zip(result.indexes, result.vectors, strict=True)
        ]
        usage = {"prompt_tokens": result.tokens, "total_tokens": result.tokens}
        return json.dumps({"object": "list", "data": rows, "model": "unknown-model", "usage": usage}).encode()


class ChatCompletions:
    name = "openai chat"
    kind = "answer"
    cannot = frozenset()
    content_type = "text/event-stream"
    error = staticmethod(error)

    def make(self, base_url, *, recorder=None, temperature=None, **connection):
        return make_chat_model(
            "openai",
            "m",
            connection=Connection(base_url=f"{base_url}/v1", **connection),
            recorder=recorder,
            temperature=temperature,
        )

    def texts(self, path, body):
        assert path == "/v1/chat/completions"
        assert body["stream"] is True
        return [one["content"] for one in body["messages"]]

    def write(self, result: Answer):
        def chunk(choices, **extra):
            base = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices}
            return event(base | extra)

        def piece(delta, finish=None):
            return chunk([{"index": 0, "delta": delta, "finish_reason": finish}])

        # The first as Azure sends its filter's report.
        parts = [chunk([]), piece({"role": "assistant"}), *(piece({"content": text}) for text in result.pieces)]
        if result.error is not None:
            return [*parts, event({"error": {"message": result.error, "type": "server_error"}})]
        if result.end is None:
            return parts
        finish = "content_filter" if result.end == "filtered" else result.end
        usage = {
            "prompt_tokens": result.input_tokens,
            "completion_tokens": result.output_tokens,
            "total_tokens": result.input_tokens + result.output_tokens,
        }
        return [*parts, piece({}, finish), chunk([], usage=usage), event("[DONE]")]


class Responses:
    name = "openai responses"
    kind = "answer"
    cannot = frozenset()
    content_type = "text/event-stream"
    error = staticmethod(error)

    def make(self, base_url, *, recorder=None, **connection):
        return make_chat_model(
            "openai",
            "m",
            connection=Connection(base_url=f"{base_url}/v1", **connection),
            api="responses",
            recorder=recorder,
        )

    def texts(self, path, body):
        assert path == "/v1/responses"
        assert (body["stream"], body["store"]) == (True, False)
        return [one["content"] for one in body["input"]]

    def write(self, result: Answer):
        numbers = iter(range(1000))

        def step(kind, **fields):
            return event({"type": kind, "sequence_number": next(numbers)} | fields, kind)

        def response(status, **fields):
            return {
                "id": "r",
                "object": "response",
                "created_at": 1,
                "model": "m",
                "status": status,
                "output": [],
                "parallel_tool_calls": True,
                "tool_choice": "auto",
                "tools": [],
            } | fields

        parts = [step("response.created", response=response("in_progress"))]
        parts += [
            step("response.output_text.delta", item_id="i", output_index=0, content_index=0, delta=text, logprobs=[])
            for text in result.pieces
        ]
        if result.error is not None:
            failed = response("failed", error={"code": "server_error", "message": result.error})
            return [*parts, step("response.failed", response=failed)]
        if result.end is None:
            return parts
        usage = {
            "input_tokens": result.input_tokens,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": result.output_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": result.input_tokens + result.output_tokens,
        }
        if result.end == "stop":
            return [*parts, step("response.completed", response=response("completed", usage=usage))]
        reason = {"length": "max_output_tokens", "filtered": "content_filter"}[result.end]
        ended = response("incomplete", usage=usage, incomplete_details={"reason": reason})
        return [*parts, step("response.incomplete", response=ended)]


WIRES = [Embeddings(), ChatCompletions(), Responses()]
