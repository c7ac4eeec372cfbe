"""The protocol over a pipe: a message a line on standard input and output, and nothing else on either.

The SDK's own transport cannot be ended while it waits for a line, and reads lines of any length. So the pipes are read
and written here, each by a thread that nobody has to wait for; what the messages mean is the SDK's.
"""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Semaphore, Thread
from typing import Any

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectSendStream
from mcp.server import Server
from mcp.shared.message import SessionMessage

logger = logging.getLogger(__name__)

#: Bytes of a message at most; the longest text that a tool takes is a tenth of it, in whatever script.
MAX_MESSAGE_BYTES = 8 << 20

# Lines that are read ahead of what has been begun, and messages that wait to be written before no more are read.
_AHEAD = 16
_MOST_UNSENT = 64
_CHUNK = 1 << 16

Incoming = SessionMessage | Exception


async def serve(server: Server[Any], read_fd: int, write_fd: int) -> None:
    """Serve one client until it closes its end, or this is cancelled.

    Args:
        server: What answers.
        read_fd: Where messages come from.
        write_fd: Where they go.
    """
    incoming, read_stream = anyio.create_memory_object_stream[Incoming](0)
    async with anyio.create_task_group() as group:
        outgoing = _Outgoing(_Writer(write_fd), on_gone=group.cancel_scope.cancel)
        group.start_soon(_read, _Reader(read_fd), incoming, outgoing)
        await server.run(read_stream, outgoing, server.create_initialization_options())
        group.cancel_scope.cancel()


async def _read(reader: _Reader, incoming: MemoryObjectSendStream[Incoming], outgoing: _Outgoing) -> None:
    """Pass messages on as they come, and refuse what is none."""
    async with incoming:
        while (line := await reader.line()) is not None:
            await outgoing.room()
            if isinstance(line, _TooLong):
                await outgoing.send(_refusal(types.INVALID_REQUEST))
                continue
            try:
                message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValueError:
                await outgoing.send(_refusal(types.PARSE_ERROR))
                continue
            with suppress(anyio.BrokenResourceError):
                await incoming.send(SessionMessage(message))


def _refusal(code: int) -> SessionMessage:
    """What is said of a line that is no message: its id is not known."""
    text = (
        "This line is no message of JSON-RPC 2.0."
        if code == types.PARSE_ERROR
        else f"A message has {MAX_MESSAGE_BYTES:,} bytes at most."
    )
    return SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=None, error=types.ErrorData(code=code, message=text)))


class _TooLong:
    """Stands for a line of too many bytes."""


class _Reader:
    """Lines of a pipe, read by a thread that ends with the process."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[bytes | _TooLong | None] = asyncio.Queue()
        self._room = Semaphore(_AHEAD)
        Thread(target=self._run, name="recollect-mcp-read", daemon=True).start()

    async def line(self) -> bytes | _TooLong | None:
        """The next one that is not empty; None: there are no more."""
        found = await self._lines.get()
        self._room.release()
        return found

    def _run(self) -> None:
        for line in _split(self._chunks()):
            self._put(line)
        self._put(None)

    def _put(self, line: bytes | _TooLong | None) -> None:
        self._room.acquire()
        with suppress(RuntimeError):  # the loop is closed: nobody reads on
            self._loop.call_soon_threadsafe(self._lines.put_nowait, line)

    def _chunks(self) -> Iterator[bytes]:
        with suppress(OSError):
            while chunk := os.read(self._fd, _CHUNK):
                yield chunk


def _split(chunks: Iterator[bytes]) -> Iterator[bytes | _TooLong]:
    """Lines that are not empty; of one that is too long nothing is kept."""
    pieces: list[bytes] = []
    size = 0
    for chunk in chunks:
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            line = b"".join([*pieces, piece]) if size + len(piece) <= MAX_MESSAGE_BYTES else None
            pieces, size = [], 0
            if line is None:
                yield _TooLong()
            elif line.strip():
                yield line
        size += len(rest)
        pieces = [*pieces, rest] if size <= MAX_MESSAGE_BYTES else []
    last = b"".join(pieces)
    if last.strip():
        yield last


class _Outgoing:
    """What is sent to the client, as the SDK wants such a stream.

    Args:
        writer: Writes it.
        on_gone: Called where nobody reads it any more.
    """

    def __init__(self, writer: _Writer, *, on_gone: Callable[[], None]) -> None:
        self._writer = writer
        self._on_gone = on_gone
        self._unsent = 0
        self._fewer = anyio.Event()

    async def room(self) -> None:
        """Wait while so much is unsent that nothing more should be asked for: the client does not read."""
        while self._unsent >= _MOST_UNSENT:
            await self._fewer.wait()

    async def send(self, item: SessionMessage, /) -> None:
        """Send a message.

        Raises:
            BrokenResourceError: Nobody reads it.
        """
        self._unsent += 1
        try:
            await self._writer.write(item.message.model_dump_json(by_alias=True, exclude_unset=True))
        except OSError as exc:
            logger.info("The client has gone: %s.", exc)
            self._on_gone()
            raise anyio.BrokenResourceError from exc
        finally:
            self._unsent -= 1
            self._fewer.set()
            self._fewer = anyio.Event()

    async def aclose(self) -> None:
        """Nothing: the pipe is somebody else's to close."""

    async def __aenter__(self) -> _Outgoing:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class _Writer:
    """Writes lines to a pipe in a thread that ends with the process, one after the other."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._loop = asyncio.get_running_loop()
        self._jobs: queue.SimpleQueue[tuple[bytes, asyncio.Future[None]]] = queue.SimpleQueue()
        Thread(target=self._run, name="recollect-mcp-write", daemon=True).start()

    async def write(self, line: str) -> None:
        """Write a line.

        Raises:
            OSError: Nobody reads it.
        """
        done = self._loop.create_future()
        self._jobs.put((line.encode() + b"\n", done))
        await done

    def _run(self) -> None:
        while True:
            data, done = self._jobs.get()
            error: OSError | None = None
            try:
                left = memoryview(data)
                while left:
                    left = left[os.write(self._fd, left) :]
            except OSError as exc:
                error = exc
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(_settle, done, error)


def _settle(done: asyncio.Future[None], error: OSError | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)


@contextmanager
def private_streams() -> Iterator[tuple[int, int]]:
    """Descriptors of the client's pipe, which nothing else in the process reads or writes meanwhile.

    Whatever a library prints, and a process that it starts, goes to standard error; what reads standard input finds it
    empty.
    """
    sys.stdout.flush()
    own = [os.dup(0), os.dup(1)]
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        os.dup2(nothing, 0)
        os.dup2(2, 1)
        yield own[0], own[1]
        sys.stdout.flush()
    finally:
        os.close(nothing)
        # They stay open: a thread may still read or write there, and the number must not become another file's.
        os.dup2(own[0], 0)
        os.dup2(own[1], 1)


def serve_stdio(server: Server[Any]) -> None:
    """Serve the client at standard input and output until it closes its end, or the process is told to end."""
    with private_streams() as (read_fd, write_fd):
        asyncio.run(_until_told(lambda: serve(server, read_fd, write_fd)))


async def _until_told(work: Callable[[], Any]) -> None:
    """Do something until it is done, or a signal tells the process to end; then what is under way is stopped."""
    task = asyncio.ensure_future(work())
    loop = asyncio.get_running_loop()
    before = {
        number: signal.getsignal(number)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        # What nohup, or a shell in the background, leaves ignored stays so.
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    for number in before:
        loop.add_signal_handler(number, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        logger.info("Told to end.")
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)
