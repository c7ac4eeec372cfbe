"""What a server may do to whoever waits for it, beyond the faults that all wire formats have in common."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from wire_formats.openai import ChatCompletions, Embeddings, Responses, event
from wire_formats.server import KEY, REPLY, ModelServer, Response

from recollect.errors import ProviderError
from recollect.llm.base import ChatMessage
from recollect.providers.connection import Secret

MESSAGES = [ChatMessage("user", "Where?")]


@pytest.fixture
def serve():
    servers = []

    def start(wire):
        servers.append(ModelServer(wire))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def model_of(server, **connection):
    settings = {"max_retries": 0, "timeout_seconds": 20.0, "api_key": Secret(KEY), "backoff_seconds": 0.001}
    return server.wire.make(server.base_url, **settings | connection)


async def collected(model):
    return [piece async for piece in model.stream(MESSAGES) if isinstance(piece, str)]


def test_signs_of_life_without_a_piece_are_no_answer(serve, monkeypatch):
    server = serve(ChatCompletions())

    def pings(self):
        self._head(200, "text/event-stream", {"Transfer-Encoding": "chunked"})
        part = b": ping\n\n"
        try:
            while not server.released.wait(0.005):
                self.handler.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
        except OSError:
            pass
        self.handler.close_connection = True

    monkeypatch.setattr(Response, "_pings", pings, raising=False)
    server.fault = "pings"
    with pytest.raises(ProviderError) as caught:
        asyncio.run(collected(model_of(server, timeout_seconds=0.1)))
    assert caught.value.kind == "timeout"


def test_a_vector_that_trickles_in_is_not_waited_for_beyond_the_time(serve, monkeypatch):
    server = serve(Embeddings())

    def trickle(self):
        self._head(200, "application/json", {"Content-Length": "1000000"})
        try:
            while not server.released.wait(0.005):
                self.handler.wfile.write(b" ")
        except OSError:
            pass
        self.handler.close_connection = True

    monkeypatch.setattr(Response, "_trickle", trickle, raising=False)
    server.fault = "trickle"
    model = model_of(server, timeout_seconds=0.1)
    with pytest.raises(ProviderError) as caught:
        model.embed_query("pump")
    assert caught.value.kind == "timeout"
    model.close()


def test_a_huge_error_is_short_and_holds_no_key(serve):
    wire = Embeddings()
    wire.error = lambda status, message: (message + KEY * 100_000).encode()
    server = serve(wire)
    server.fault = "400"
    model = model_of(server)
    with pytest.raises(ProviderError) as caught:
        model.embed_query("pump")
    assert len(str(caught.value)) < 1_000
    assert KEY[:8] not in str(caught.value)
    model.close()


def test_a_piece_that_is_huge_or_strange_is_the_piece(serve):
    class Wire(ChatCompletions):
        def write(self, result):
            piece = {"index": 0, "delta": {"content": "\x1b[2J" + "x" * 300_000}, "finish_reason": "stop"}
            return [
                event({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [piece]})
            ]

    assert len("".join(asyncio.run(collected(model_of(serve(Wire())))))) == 300_004


@pytest.mark.parametrize("wire", [ChatCompletions, Responses])
@pytest.mark.parametrize(
    ("code", "kind", "retryable"),
    [
        ("invalid_api_key", "authentication", False),
        (403, "authentication", False),
        ("rate_limit_exceeded", "rate_limit", True),
        ("429", "rate_limit", True),
        ("context_length_exceeded", "invalid_request", False),
        ("something_else", "server", True),
    ],
)
def test_an_error_in_place_of_the_first_piece_is_what_its_code_says(serve, wire, code, kind, retryable):
    class Wire(wire):
        def write(self, result):
            if wire is Responses:
                return [
                    event({"type": "error", "sequence_number": 0, "code": str(code), "message": "no", "param": None})
                ]
            return [event({"error": {"message": "no", "type": "error", "code": code}})]

    server = serve(Wire())
    with pytest.raises(ProviderError) as caught:
        asyncio.run(collected(model_of(server, max_retries=1)))
    assert (caught.value.kind, caught.value.retryable, caught.value.status) == (kind, retryable, None)
    assert len(server.requests) == (2 if retryable else 1)


def test_a_cancelled_answer_leaves_nothing_open(serve):
    server = serve(ChatCompletions())
    server.fault = "stall"

    async def cancelled():
        rest = asyncio.create_task(collected(model_of(server)))
        await asyncio.sleep(0)
        rest.cancel()
        with pytest.raises(asyncio.CancelledError):
            await rest

    asyncio.run(cancelled())
    server.fault = ""
    assert "".join(asyncio.run(collected(model_of(server)))) == REPLY


def test_many_threads_share_a_model_whose_server_comes_and_goes(serve):
    server = serve(Embeddings())
    server.faults = ["500", "", "reset", "", "429", "half-a-batch", ""] * 6
    model = model_of(server, max_retries=10, breaker_failures=1000)
    sound = model_of(serve(Embeddings()))
    expected = sound.embed_documents([str(number) for number in range(40)])
    with ThreadPoolExecutor(12) as pool:
        for number, vectors in enumerate(pool.map(lambda number: model.embed_documents([str(number)]), range(40))):
            np.testing.assert_allclose(vectors[0], expected[number], atol=1e-6)
    model.close()
    sound.close()
