"""Anthropic's wire format: ``/v1/messages`` as server-sent events."""

from __future__ import annotations

import json

from recollect.providers import Connection, make_chat_model

_NAMES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}


def error(status, message, *, name=None):
    about = {"type": name or _NAMES.get(status, "api_error"), "message": message}
    return json.dumps({"type": "error", "error": about, "request_id": "req_011CSHoEeqs5C35K2UUqR7Fy"}).encode()


def event(name, **fields):
    return f"event: {name}\ndata: {json.dumps({'type': name} | fields)}\n\n".encode()


def text_block(index, pieces):
    return [
        event("content_block_start", index=index, content_block={"type": "text", "text": ""}),
        *(event("content_block_delta", index=index, delta={"type": "text_delta", "text": one}) for one in pieces),
        event("content_block_stop", index=index),
    ]


def thinking_block(index):
    thought = {"type": "thinking_delta", "thinking": "The user wants …"}
    signature = {"type": "signature_delta", "signature": "EqQBCgIYAhIM"}
    return [
        event("content_block_start", index=index, content_block={"type": "thinking", "thinking": "", "signature": ""}),
        event("content_block_delta", index=index, delta=thought),
        event("content_block_delta", index=index, delta=signature),
        event("content_block_stop", index=index),
    ]


def beginning(input_tokens):
    message = {
        "id": "msg_1nZdL29xx5MUA1yADyHTEsnR8uuvGzszyY",
        "type": "message",
        "role": "assistant",
        "content": [],
        "model": "claude-sonnet-5-5",
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {
            "input_tokens": input_tokens - 4,
            "cache_creation_input_tokens": 1,
            "cache_read_input_tokens": 3,
            "output_tokens": 1,
        },
    }
    return [event("message_start", message=message), event("ping")]


def ending(reason, output_tokens):
    return [
        event(
            "message_delta",
            delta={"stop_reason": reason, "stop_sequence": None},
            usage={"output_tokens": output_tokens},
        ),
        event("message_stop"),
    ]


class Chat:
    name = "anthropic chat"
    kind = "answer"
    cannot = frozenset({"usage-in-words"})
    content_type = "text/event-stream"
    error = staticmethod(error)

    def make(self, base_url, *, recorder=None, temperature=None, **connection):
        return make_chat_model(
            "anthropic",
            connection=Connection(base_url=base_url, **connection),
            recorder=recorder,
            temperature=temperature,
        )

    def texts(self, path, body):
        assert path == "/v1/messages"
        assert (body["model"], body["stream"]) == ("claude-sonnet-5-5", True)
        assert body["max_tokens"] > 0
        return [one["content"] for one in body["messages"]]

    def write(self, result):
        parts = [*beginning(result.input_tokens), *thinking_block(0)]
        if result.error is not None:
            broken = {"type": "overloaded_error", "message": result.error}
            return [*parts, *text_block(1, result.pieces)[:-1], event("error", error=broken)]
        if result.end is None:
            return [*parts, *text_block(1, result.pieces)]
        reason = {"stop": "end_turn", "length": "max_tokens", "filtered": "refusal"}[result.end]
        return [*parts, *text_block(1, result.pieces), *ending(reason, result.output_tokens)]


WIRES = [Chat()]
