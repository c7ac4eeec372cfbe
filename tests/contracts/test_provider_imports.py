"""What is imported while a request's time runs: nothing of an SDK, or a first request on a busy machine would fail."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from importlib.abc import MetaPathFinder
from pathlib import Path

_SDKS = ("anthropic", "boto3", "botocore", "cohere", "google", "huggingface_hub", "ollama", "openai", "voyageai")


class _Watching(MetaPathFinder):
    """Notes what is imported in the thread that a time limit waits for, or the coroutine that has one."""

    def __init__(self):
        self.late = []
        self.completing = False

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in _SDKS:
            return
        frame, functions = sys._getframe(), set()
        while frame is not None:
            functions.add(frame.f_code.co_name)
            frame = frame.f_back
        thread = threading.current_thread()
        limited = thread.name in {"recollect-request", "recollect-stream"} or "_next_piece" in functions
        if limited or (self.completing and thread is not threading.main_thread()):
            self.late.append(name)


def ask_everybody():
    """Ask each model once, and print by its name what was imported while its time ran."""
    watching = _Watching()
    sys.meta_path.insert(0, watching)
    from wire_formats import WIRES
    from wire_formats.server import KEY, ModelServer

    from recollect.llm.base import ChatMessage, complete
    from recollect.providers.connection import Secret

    async def collected(model):
        return [piece async for piece in model.stream([ChatMessage("user", "Where?")])]

    late = {}
    for wire in WIRES:
        server = ModelServer(wire)
        model = wire.make(server.base_url, api_key=Secret(KEY), max_retries=0)
        watching.late.clear()
        watching.completing = wire.name == "anthropic chat"
        if wire.kind == "embed":
            model.embed_query("How many days?")
        elif wire.kind == "rerank":
            model.scores("How many days?", ["pump"])
        elif watching.completing:
            complete(model, [ChatMessage("user", "Where?")], timeout_seconds=60.0, max_characters=1_000)
        else:
            asyncio.run(collected(model))
        late[wire.name] = sorted(watching.late)
        server.close()
    sys.stdout.write(json.dumps(late))


def test_the_time_limit_of_a_request_leaves_out_the_import_of_its_sdk():
    done = subprocess.run([sys.executable, __file__], capture_output=True, text=True, cwd=Path(__file__).parent)
    assert done.returncode == 0, done.stderr
    late = json.loads(done.stdout)
    assert len(late) > 10
    assert {name: modules for name, modules in late.items() if modules} == {}


if __name__ == "__main__":
    ask_everybody()
