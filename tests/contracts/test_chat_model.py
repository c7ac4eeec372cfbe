"""One set of promises, kept by the scripted model and by the real SDK against a real HTTP server."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from recollect.answer.synchronous import iterate
from recollect.errors import ProviderError
from recollect.llm import ChatMessage, ScriptedChatModel
from recollect.llm.openai_compatible import OpenAICompatibleChatModel

MESSAGES = [ChatMessage("system", "Be brief."), ChatMessage("user", "Wie viele Tage? ‏שלום")]
REPLY = "Employees receive 30 days [1].\nמנוחה 🙂"


class ChatServer:
    """Speaks the chat-completions protocol on 127.0.0.1, with faults on demand."""

    def __init__(self):
        self.mode = "ok"
        self.reply = REPLY
        self.requests = []
        self.released = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.requests.append((self.path, dict(self.headers), body))
                outer.respond(self, body)

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()

    @property
    def base_url(self):
        return f"http://127.0.0.1:{self.http.server_address[1]}/v1"

    def close(self):
        self.released.set()
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()

    def respond(self, handler, body):
        mode = self.mode
        if mode == "fail-once":
            self.mode = "ok"
            mode = "429"
        if mode.isdigit():
            return self._error(handler, int(mode))
        if mode == "html":
            return self._send(handler, 200, "text/html", b"<html>no such service</html>")
        if mode == "silent":
            self.released.wait(10)
            handler.close_connection = True
            return None
        return self._stream(handler, mode, body)

    def _error(self, handler, status):
        key = handler.headers.get("Authorization", "").removeprefix("Bearer ")
        text = json.dumps({"error": {"message": f"refused for key {key}", "type": "x", "code": "y"}})
        return self._send(handler, status, "application/json", text.encode())

    def _send(self, handler, status, kind, payload):
        handler.send_response(status)
        handler.send_header("Content-Type", kind)
        handler.send_header("Content-Length", str(len(payload)))
        handler.send_header("retry-after-ms", "1")
        handler.end_headers()
        handler.wfile.write(payload)

    def _stream(self, handler, mode, body):
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()

        def event(data):
            payload = f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode()
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(payload), payload))
            handler.wfile.flush()

        def chunk(choices, **extra):
            event(
                {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices} | extra
            )

        def piece(text, finish=None):
            chunk([{"index": 0, "delta": {"content": text}, "finish_reason": finish}])

        chunk([])  # Azure sends its filter report like this
        chunk([{"index": 0, "delta": {"role": "assistant"}, "finish_reason": None}])
        pieces = [self.reply[i : i + 8] for i in range(0, len(self.reply), 8)]
        pieces = [] if mode == "empty" else pieces[: body.get("max_tokens")]
        for number, text in enumerate(pieces):
            if number == 2 and mode == "cut":
                handler.connection.shutdown(2)
                handler.close_connection = True
                return
            if number == 2 and mode == "stall":
                self.released.wait(10)
                return
            if number == 2 and mode == "error-event":
                event({"error": {"message": "the model crashed", "type": "server_error"}})
                break
            if number == 2 and mode == "quiet-end":
                break
            piece(text)
        else:
            finish = {"filtered": "content_filter", "length": "length", "empty-length": "length"}.get(mode, "stop")
            chunk([{"index": 0, "delta": {}, "finish_reason": finish}])
            chunk([], usage={"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2})
            event("[DONE]")
        handler.wfile.write(b"0\r\n\r\n")
        handler.wfile.flush()


@pytest.fixture
def server():
    server = ChatServer()
    yield server
    server.close()


def openai_model(server, **options):
    settings = {"api_key": "sk-very-secret", "base_url": server.base_url, "max_retries": 0, "timeout_seconds": 20}
    return OpenAICompatibleChatModel("m", **settings | options)


async def collect(model, messages=MESSAGES, **options):
    return [piece async for piece in model.stream(messages, **options)]


class TestChatModelContract:
    @pytest.fixture(params=["scripted", "openai_compatible"])
    def make(self, request, server):
        def make(reply=REPLY, *, broken=False):
            if request.param == "scripted":
                error = ProviderError("broke off", provider="scripted", retryable=True) if broken else None
                return ScriptedChatModel(reply, error=error, error_after=2)
            server.reply = reply
            server.mode = "cut" if broken else "ok"
            return openai_model(server)

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
            return list(iterate(make().stream(MESSAGES)))

        assert "".join(asyncio.run(notebook_cell())) == REPLY


class TestOpenAICompatibleFaults:
    @pytest.mark.parametrize(
        ("mode", "retryable", "words"),
        [
            ("400", False, "refused"),
            ("401", False, "API key"),
            ("404", False, "model name 'm'"),
            ("429", True, "rate limit"),
            ("500", True, "try again later"),
        ],
    )
    def test_http_errors(self, server, mode, retryable, words):
        server.mode = mode
        with pytest.raises(ProviderError, match=words) as caught:
            asyncio.run(collect(openai_model(server)))
        assert caught.value.status == int(mode)
        assert caught.value.retryable is retryable
        assert caught.value.model == "m"

    def test_the_key_appears_in_no_message(self, server):
        server.mode = "401"
        model = openai_model(server)
        with pytest.raises(ProviderError) as caught:
            asyncio.run(collect(model))
        assert "refused for key ***" in str(caught.value)
        assert "sk-very-secret" not in str(caught.value) + repr(model)

    @pytest.mark.parametrize(
        ("mode", "retryable", "words"),
        [
            ("quiet-end", True, "before the answer was complete"),
            ("error-event", True, "the model crashed"),
            ("filtered", False, "content filter"),
            ("empty", True, "empty answer"),
            ("html", False, "check the base URL"),
        ],
    )
    def test_faults_in_the_stream(self, server, mode, retryable, words):
        server.mode = mode
        with pytest.raises(ProviderError, match=words) as caught:
            asyncio.run(collect(openai_model(server)))
        assert caught.value.retryable is retryable

    def test_an_answer_cut_at_its_token_limit_is_kept_and_logged(self, server, caplog):
        server.mode = "length"
        assert "".join(asyncio.run(collect(openai_model(server)))) == REPLY
        assert "cut off" in caplog.text

    @pytest.mark.parametrize("mode", ["silent", "stall"])
    def test_silence_ends_in_a_timeout(self, server, mode):
        server.mode = mode
        started = time.monotonic()
        with pytest.raises(ProviderError, match=r"within 0\.3 s") as caught:
            asyncio.run(collect(openai_model(server, timeout_seconds=0.3)))
        assert caught.value.retryable
        assert time.monotonic() - started < 9, "the server was waited for, not the timeout"

    def test_a_server_that_is_not_there(self, server):
        model = openai_model(server)
        server.http.server_close()
        with pytest.raises(ProviderError, match="cannot reach") as caught:
            asyncio.run(collect(model))
        assert caught.value.retryable

    def test_a_busy_server_is_asked_again(self, server):
        server.mode = "fail-once"
        assert "".join(asyncio.run(collect(openai_model(server, max_retries=1)))) == REPLY
        assert len(server.requests) == 2

    def test_what_is_sent(self, server, monkeypatch):
        monkeypatch.setenv("OPENAI_API_KEY", "sk-from-the-environment")
        asyncio.run(collect(openai_model(server, api_key=None, temperature=0.0), max_tokens=5))
        path, headers, body = server.requests[0]
        assert path == "/v1/chat/completions"
        assert body["messages"] == [{"role": m.role, "content": m.content} for m in MESSAGES]
        assert (body["model"], body["stream"], body["max_tokens"], body["temperature"]) == ("m", True, 5, 0.0)
        assert "sk-from-the-environment" not in json.dumps(headers)
