"""``recollect mcp`` as a program starts it: a process, a pipe, and nothing but the protocol on it."""

from __future__ import annotations

import asyncio
import json
import pathlib
import queue
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

from mcp import Client, StdioServerParameters

from program import PROGRAM, Recollect

ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}

# A command whose libraries print what they think: in Python, below Python, and from a process that is started.
CHATTY = """
import os, subprocess, sys
from recollect.pipeline.view import View

search = View.retrieve

def retrieve(*arguments, **options):
    print("a library prints")
    sys.stdout.flush()
    os.write(1, b"and writes\\n")
    subprocess.run(["echo", "a child prints, and reads", sys.stdin.readline() + "nothing"], check=True)
    return search(*arguments, **options)

View.retrieve = retrieve
from recollect_command import main
sys.exit(main())
"""


class Pipe:
    """A client that writes lines as they come to its mind."""

    def __init__(self, recollect: Recollect, command: list[str], *options: str) -> None:
        self.process = subprocess.Popen(
            [*command, "mcp", *options],
            cwd=recollect.folder,
            env=recollect.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        # Lines are taken off the pipe as they come: what waits in a buffer is no news to `select`.
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._errors: list[bytes] = []
        self._threads = [Thread(target=self._take), Thread(target=self._take_errors)]
        for thread in self._threads:
            thread.start()

    def _take(self) -> None:
        for line in self.process.stdout:
            self._lines.put(line)

    def _take_errors(self) -> None:
        self._errors.append(self.process.stderr.read())

    def write(self, line: bytes) -> None:
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def ask(self, number: int, method: str, **params: Any) -> None:
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": {**params, "_meta": ENVELOPE}}
        self.write(json.dumps(message).encode())

    def read(self) -> dict[str, Any]:
        return json.loads(self._lines.get(timeout=60))

    def end(self) -> tuple[int, list[bytes], str]:
        """Close the input and wait: the status, the lines that were not read, and standard error."""
        self.process.stdin.close()
        status = self.process.wait(timeout=60)
        for thread in self._threads:
            thread.join(timeout=60)
        left = [self._lines.get_nowait() for _ in range(self._lines.qsize())]
        return status, left, b"".join(self._errors).decode()


@contextmanager
def opened(recollect: Recollect, command: list[str], *options: str) -> Iterator[Pipe]:
    """A pipe to a command, which leaves no process behind whatever becomes of the test."""
    pipe = Pipe(recollect, command, *options)
    with pipe.process:
        try:
            yield pipe
        finally:
            pipe.process.kill()


def test_a_client_of_the_sdk_searches_adds_and_reads(recollect: Recollect, office):
    recollect("ingest", office)
    server = StdioServerParameters(
        command=str(PROGRAM),
        args=["mcp", "--session", "desk", "--user", "kim"],
        env=recollect.environment,
        cwd=recollect.folder,
    )

    async def main() -> None:
        async with asyncio.timeout(60), Client(server, mode="legacy") as client:
            assert (client.protocol_version, client.server_info.name) == ("2025-11-25", "recollect")
            assert "never an instruction" in client.instructions
            names = {one.name for one in (await client.list_tools()).tools}
            assert {"search", "add", "remember"} <= names
            found = await client.call_tool("search", {"query": "annual leave", "limit": 1})
            assert found.structured_content["results"][0]["source"] == "hr/leave.md"
            added = await client.call_tool("add", {"text": "# Lockers\n\nIn the basement.", "source": "lockers.md"})
            await client.call_tool("remember", {"text": "My locker is 17."})
            (read,) = (
                await client.read_resource(f"recollect://documents/{added.structured_content['document_id']}")
            ).contents
            assert (read.text, read.mime_type) == ("# Lockers\n\nIn the basement.", "text/markdown")

    asyncio.run(main())
    assert [one["session"] for one in recollect("recall", "locker", "--user", "kim", "--json").json["results"]] == [
        "desk"
    ]


def test_nothing_but_messages_goes_over_the_pipe_whatever_comes_over_it(recollect: Recollect, office):
    recollect("ingest", office)
    with opened(recollect, [sys.executable, "-c", CHATTY], "--read-only") as pipe:
        pipe.ask(1, "server/discover")
        assert pipe.read()["result"]["supportedVersions"] == ["2026-07-28"]
        refused = 0
        for line in (b"{", b"\xff\xfe\x00", b"[]", b'"text"', b"[" * 100_000, b'{"jsonrpc": "1.0"}', b"x" * (9 << 20)):
            pipe.write(line)
            refused += 1
        pipe.write(b"")
        pipe.write(b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}}')
        errors = [pipe.read() for _ in range(refused)]
        assert {one["error"]["code"] for one in errors} == {-32700, -32600}
        assert all(one["id"] is None for one in errors)
        pipe.ask(2, "tools/call", name="search", arguments={"query": "leave"})
        assert pipe.read()["result"]["structuredContent"]["results"]
        pipe.ask(3, "tools/call", name="remember", arguments={"text": "x"})
        assert pipe.read()["error"]["code"] == -32602
        pipe.ask(4, "tools/call", name="grep", arguments={"pattern": "leave", "regex": []})
        assert pipe.read()["result"]["isError"]
        # The end of the input ends the command, also with a call under way; what is left over is one message a line.
        pipe.ask(5, "tools/call", name="search", arguments={"query": "leave"})
        status, out, err = pipe.end()
        assert status == 0 and all(json.loads(line)["jsonrpc"] == "2.0" for line in out)
        assert "a library prints" in err and "and writes" in err and "a child prints, and reads nothing" in err
        assert "Traceback" not in err


def test_told_to_end_it_releases_its_database(recollect_embedded: Recollect):
    with opened(recollect_embedded, [str(PROGRAM)]) as pipe:
        pipe.ask(1, "tools/call", name="list_documents", arguments={})
        assert pipe.read()["result"]["structuredContent"]["documents"] == []
        pipe.process.send_signal(signal.SIGTERM)
        status, out, err = pipe.end()
        assert (status, out, err) == (0, [], "")
        data = recollect_embedded.environment["RECOLLECT_DATA_DIR"]
        assert not pathlib.Path(f"{data}/pg/postmaster.pid").exists()


def test_options_that_go_with_nothing_are_refused(recollect: Recollect):
    for options, message in [
        (("--everywhere", "--collection", "x"), "--everywhere goes without --collection"),
        (("--json",), "leave --json out"),
        (("--department", "hr"), "say to whom with --as"),
        (("--as-of", "yesterday-ish"), "--as-of"),
    ]:
        assert message in recollect("mcp", *options, status=2).err


def test_without_the_package_it_says_how_to_get_it(recollect: Recollect, monkeypatch):
    for name in [one for one in sys.modules if one.startswith("recollect.server.mcp")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mcp", None)
    monkeypatch.setitem(sys.modules, "mcp_types", None)
    assert "pip install '.[mcp]'" in recollect("mcp", status=2).err
