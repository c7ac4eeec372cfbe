"""One set of promises, kept by the scripted model and by a provider's through its real SDK."""

from __future__ import annotations

import asyncio
import json
import threading

import pytest
from wire_formats.openai import ChatCompletions
from wire_formats.server import REPLY, ModelServer

from recollect.errors import ProviderError
from recollect.llm import ChatMessage, ScriptedChatModel
from recollect.llm.base import complete, iterate
from recollect.model import Scope, asked_for
from recollect.model.scope import asking_tenant

MESSAGES = [ChatMessage("system", "Be brief."), ChatMessage("user", "Wie viele Tage? ‏שלום")]


@pytest.fixture
def server():
    server = ModelServer(ChatCompletions())
    yield server
    server.close()


async def collect(model, messages=MESSAGES, **options):
    return [piece async for piece in model.stream(messages, **options) if isinstance(piece, str)]


class TestChatModelContract:
    @pytest.fixture(params=["scripted", "hosted"])
    def make(self, request, server):
        def make(reply=REPLY, *, broken=False):
            if request.param == "scripted":
                error = ProviderError("broke off", provider="scripted", retryable=True) if broken else None
                return ScriptedChatModel(reply, error=error, error_after=2)
            server.fault = "cut-stream" if broken else ""
            return server.wire.make(server.base_url, max_retries=0)

        return make

    def test_pieces_join_to_the_whole_reply(self, make):
        pieces = asyncio.run(collect(make()))
        assert "".join(pieces) == REPLY
        assert len(pieces) > 1
        assert all(pieces)

    def test_has_a_name(self, make):
        assert make().model_name

    def test_max_tokens_shortens(self, make):
        short = "".join(asyncio.run(collect(make(), max_tokens=2)))
        assert short
        assert REPLY.startswith(short)
        assert len(short) < len(REPLY)

    def test_one_object_serves_several_event_loops_and_threads(self, make):
        model = make()
        replies = []
        threads = [
            threading.Thread(target=lambda: replies.append("".join(asyncio.run(collect(model))))) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert replies == [REPLY] * 4

    def test_concurrent_streams_do_not_mix(self, make):
        async def both():
            model = make()
            return await asyncio.gather(collect(model), collect(model))

        first, second = asyncio.run(both())
        assert "".join(first) == "".join(second) == REPLY

    def test_a_break_raises_a_provider_error_after_the_pieces_that_came(self, make):
        async def read():
            pieces = []
            with pytest.raises(ProviderError) as caught:
                pieces.extend([piece async for piece in make(broken=True).stream(MESSAGES)])
            return pieces, caught.value

        pieces, error = asyncio.run(read())
        assert REPLY.startswith("".join(pieces))
        assert len("".join(pieces)) < len(REPLY)
        assert error.retryable
        assert error.provider

    def test_can_be_abandoned_half_way(self, make):
        async def first():
            stream = make().stream(MESSAGES)
            piece = await anext(stream)
            await stream.aclose()
            return piece

        assert REPLY.startswith(asyncio.run(first()))

    def test_works_through_the_synchronous_wrapper_inside_a_running_loop(self, make):
        async def notebook_cell():
            return [piece for piece in iterate(make().stream(MESSAGES)) if isinstance(piece, str)]

        assert "".join(asyncio.run(notebook_cell())) == REPLY


def test_what_is_sent(server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-from-the-environment")
    asyncio.run(collect(server.wire.make(server.base_url, temperature=0.0), max_tokens=5))
    (request,) = server.requests
    assert request.path == "/v1/chat/completions"
    assert request.body["messages"] == [{"role": m.role, "content": m.content} for m in MESSAGES]
    body = request.body
    assert (body["model"], body["stream"], body["max_tokens"], body["temperature"]) == ("m", True, 5, 0.0)
    assert "sk-from-the-environment" not in json.dumps(request.headers)


def test_a_completion_is_asked_for_whom_the_caller_asks_for():
    asked_for(Scope(tenant_id=7))
    seen = []
    model = ScriptedChatModel(lambda _: seen.append(asking_tenant()) or "yes")
    try:
        assert complete(model, MESSAGES, timeout_seconds=10, max_characters=100) == "yes"
    finally:
        asked_for(Scope())
    assert seen == [7]
