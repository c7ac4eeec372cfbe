"""What is imported while a request's time runs: nothing of an SDK, or a first request on a busy machine would fail."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from wire_formats import WIRES

_SCRIPT = """
import asyncio, json, sys, threading
from importlib.abc import MetaPathFinder
sys.path.insert(0, {contracts!r})
import wire_formats
from wire_formats.server import KEY, ModelServer
from recollect.llm.base import ChatMessage
from recollect.providers.connection import Secret

(wire,) = [wire for wire in wire_formats.WIRES if wire.name == {name!r}]
late = []

class Watching(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        frame, functions = sys._getframe(), set()
        while frame is not None:
            functions.add(frame.f_code.co_name)
            frame = frame.f_back
        # The thread that a time limit waits for, and the coroutine that has one.
        if threading.current_thread().name in ("recollect-request", "recollect-stream") or "_next_piece" in functions:
            late.append(name)

sys.meta_path.insert(0, Watching())
server = ModelServer(wire)
model = wire.make(server.base_url, api_key=Secret(KEY), max_retries=0)

async def collected():
    return [piece async for piece in model.stream([ChatMessage("user", "Where?")])]

if wire.kind == "embed":
    model.embed_query("pump")
elif wire.kind == "rerank":
    model.scores("pump", ["pump"])
else:
    asyncio.run(collected())
assert server.requests
print(json.dumps(late))
"""


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
def test_the_time_limit_of_a_request_leaves_out_the_import_of_its_sdk(wire):
    script = _SCRIPT.format(contracts=str(Path(__file__).parent), name=wire.name)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    package = {"bedrock": ("boto3", "botocore"), "google": ("google",), "voyage": ("voyageai",)}.get(
        wire.name.split()[0], (wire.name.split()[0],)
    )
    package = {("huggingface",): ("huggingface_hub",)}.get(package, package)
    late = json.loads(done.stdout)
    assert [name for name in late if name.partition(".")[0] in package] == []
