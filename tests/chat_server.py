"""A server on loopback that speaks OpenAI's chat completions and says what it is told to."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Script = Callable[[list[dict[str, str]]], str]


class ChatServer:
    """Answers every request with what the script makes of its messages.

    Attributes:
        requests: The messages of every request, oldest first.
        script: From messages to the answer.
    """

    def __init__(self, script: Script) -> None:
        self.script = script
        self.requests: list[list[dict[str, str]]] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.requests.append(body["messages"])
                answer = server.script(body["messages"])
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.end_headers()
                for start in range(0, len(answer), 7):
                    self._event({"choices": [{"index": 0, "delta": {"content": answer[start : start + 7]}}]})
                self._event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
                usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
                self._event({"choices": [], "usage": usage})
                self.wfile.write(b"data: [DONE]\n\n")

            def _event(self, part: dict[str, object]) -> None:
                chunk = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "scripted", **part}
                self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())

            def log_message(self, *_: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}/v1"

    @property
    def settings(self) -> dict[str, str]:
        """The section ``answer`` of a configuration that asks this server."""
        return {"provider": "openai", "api": "chat", "model": "scripted", "base_url": self.base_url, "api_key": "sk-x"}

    @property
    def environment(self) -> dict[str, str]:
        """The same as environment variables."""
        return {f"RECOLLECT_ANSWER__{name.upper()}": value for name, value in self.settings.items()}

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
