"""The other side of `recollect.documents.workers`: processes that parse files and may be killed for it.

Two of them stand behind one another. The *supervisor* is what the parent starts; it never looks at a file, so nothing
can make it hang. It forks the *parser*, which reads requests and writes replies over the supervisor's own pipes. The
supervisor ends a parser that takes too much memory, or whose parent is gone, answers in place of one that died, and
forks the next.

The kernel holds the limits where it can: an interval timer that kills by itself ends a parser that never comes back
from C code, RLIMIT_DATA refuses memory before it is used. The supervisor's look at the resident memory is the fallback
where the kernel does not count (macOS), and for memory that RLIMIT_DATA leaves out.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import signal
import sys
from pathlib import Path
from typing import Any

from recollect.documents._parsed import as_message, receive, send
from recollect.documents.formats import UnreadableError, format_of_name, format_of_type, is_picture_name
from recollect.documents.ocr.readings import can_recognise, readings_of_json
from recollect.documents.reader import parse

_WATCH_MILLISECONDS = 20
# A parser that has grown is replaced rather than kept: what its libraries hold on to is never given back.
_RETIRE_BYTES = 192 << 20
# But not between two pages of a file that are recognised: the models would be loaded for each.
_RETIRE_RECOGNISING_BYTES = 1280 << 20
_RETIRED = 3
_IDLE, _READING, _PARSING, _REPLYING = b"i", b"r", b"p", b"w"
_COMPLAINT_BYTES = 4096
_OUT_OF_MEMORY = (b"memory allocation of", b"out of memory", b"MemoryError")
_PR_SET_PDEATHSIG = 1
_PROC = os.path.exists("/proc/self/statm")  # noqa: PTH110 - pathlib costs a start more than this module


def main() -> None:
    """Supervise parsers until the parent closes the pipe or is gone."""
    requests, replies = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    # Libraries that print must not print into the replies.
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    # An interrupt at the terminal is the parent's: it closes the pipe.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    die_with_parent = _death_signal()
    supervisor = os.getpid()
    while True:
        told, tells = os.pipe()
        complaints, complain = os.pipe()
        parser = os.fork()
        if parser == 0:
            os.close(told)
            os.close(complaints)
            os.set_blocking(complain, False)
            os.dup2(complain, 2)
            die_with_parent()
            if os.getppid() != supervisor:
                os._exit(0)
            _serve(requests, replies, tells)
            os._exit(0)
        os.close(tells)
        os.close(complain)
        if not _Watch(parser, requests, replies, told, complaints).until_it_ends():
            os._exit(0)


class _Watch:
    """The supervisor's view of one parser."""

    def __init__(self, parser: int, requests: int, replies: int, told: int, complaints: int) -> None:
        self._parser = parser
        self._requests = requests
        self._replies = replies
        self._told = told
        self._complaints = complaints
        self._state = _IDLE
        self._limit = 0
        self._grew_too_large = False

    def until_it_ends(self) -> bool:
        """Wait for the parser's end; True where another one is wanted."""
        poller = select.poll()
        poller.register(self._told, select.POLLIN)
        poller.register(self._requests, 0)
        try:
            while True:
                ready = dict(poller.poll(_WATCH_MILLISECONDS if self._state == _PARSING else None))
                if self._requests in ready:
                    self._kill()
                    os.waitpid(self._parser, 0)
                    return False
                if self._told in ready and not self._hear():
                    return self._bury()
                if self._state == _PARSING and _resident_bytes(self._parser) > self._limit:
                    self._grew_too_large = True
                    self._kill()
        finally:
            os.close(self._told)
            os.close(self._complaints)

    def _hear(self) -> bool:
        news = os.read(self._told, 9 * 1024)
        if news:
            last = news[-9:]
            self._state, self._limit = last[:1], int.from_bytes(last[1:], "big")
        return bool(news)

    def _bury(self) -> bool:
        _, status, usage = os.wait4(self._parser, 0)
        if self._state == _IDLE:
            return not os.WIFEXITED(status) or os.WEXITSTATUS(status) == _RETIRED
        if self._state != _PARSING:
            return False  # a message is cut off: the parent must see an end
        peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        send(self._replies, {"died": self._cause(status, peak)})
        return True

    def _cause(self, status: int, peak: int) -> str:
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        if number == signal.SIGALRM:
            return "time"
        os.set_blocking(self._complaints, False)
        said = b""
        with contextlib.suppress(BlockingIOError):
            said = os.read(self._complaints, _COMPLAINT_BYTES)
        if self._grew_too_large or any(sign in said for sign in _OUT_OF_MEMORY) or peak > self._limit * 3 // 4:
            return "memory"
        return signal.Signals(number).name if number else f"exit status {os.WEXITSTATUS(status)}"

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._parser, signal.SIGKILL)


def _serve(requests: int, replies: int, tells: int) -> None:
    """The parser: one request after the other, until there are no more."""

    def tell(state: bytes, limit: int = 0) -> None:
        os.write(tells, state + limit.to_bytes(8, "big"))

    libraries = _data_bytes()
    while True:
        select.select([requests], [], [])
        tell(_READING)
        message = receive(requests)
        if message is None:
            tell(_IDLE)
            return
        request, data = message
        before = _data_bytes()
        _import_parser(request)
        libraries += _data_bytes() - before
        limit = request["memory_bytes"] + libraries
        tell(_PARSING, limit)
        _limit_memory(limit)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, request["seconds"])
        try:
            reply, content = _answer(data, request)
        except MemoryError:
            reply, content = {"died": "memory"}, b""
        signal.setitimer(signal.ITIMER_REAL, 0)
        _limit_memory(resource.RLIM_INFINITY)
        del data, message
        tell(_REPLYING)
        send(replies, reply, content)
        tell(_IDLE)
        most = _RETIRE_RECOGNISING_BYTES if request.get("more_pages") else _RETIRE_BYTES
        if reply.get("died") or _resident_bytes(os.getpid()) > most:
            os._exit(_RETIRED)


def _import_parser(request: dict[str, Any]) -> None:
    """Import the libraries for a file, so that what they take is not counted as the file's.

    What a file is goes by its name here: to look into it is the parser's, under its limits.
    """
    if request.get("page"):
        from recollect.documents.ocr import recognising

        recognising.load()
        return
    promised = format_of_type(request["mime_type"] or "") or format_of_name(request["name"])
    if is_picture_name(request["name"]) and can_recognise():
        import PIL.Image  # noqa: F401
    if promised is not None and promised.kind == "pdf":
        import pypdfium2.raw  # noqa: F401
    if promised is not None and promised.kind == "office":
        import kreuzberg  # noqa: F401
    if request["main_content"]:
        import trafilatura  # noqa: F401


def _answer(data: bytes, request: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    try:
        if request.get("page"):
            return _recognised(data, request)
        if request.get("pictures"):
            return _pictures(data, request)
        parsed = parse(
            data,
            request["name"],
            request["mime_type"],
            main_content=request["main_content"],
            readings=readings_of_json(request["readings"]),
        )
    except UnreadableError as error:
        if _is_memory(error):
            return {"died": "memory"}, b""
        return {"error": str(error)}, b""
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a hostile file provokes costs that file, not the parser
        return {"error": f"is damaged, or not what its name says ({type(error).__name__})"}, b""
    if len(parsed.content) > request["max_characters"]:
        return {"died": "characters"}, b""
    return as_message(parsed)


def _recognised(data: bytes, request: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    from recollect.documents.ocr.recognising import recognise_page

    cache = None if request["cache"] is None else Path(request["cache"])
    page = int(request["page"])
    reading = recognise_page(data, request["name"], request["mime_type"], page, cache=cache, owner=request["owner"])
    return {}, json.dumps(reading.as_json()).encode()


def _pictures(data: bytes, request: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    from recollect.documents.pictures import find_pictures

    found = find_pictures(data, request["name"], request["mime_type"])
    told = [[one.mime_type, one.page, one.box, len(one.data)] for one in found]
    return {"pictures": told}, b"".join(one.data for one in found)


def _is_memory(error: BaseException | None) -> bool:
    """Whether a parser ran out of memory and its reader took that for damage."""
    while error is not None:
        if isinstance(error, MemoryError):
            return True
        error = error.__cause__ or error.__context__
    return False


def _limit_memory(limit: int) -> None:
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_DATA, (limit, resource.RLIM_INFINITY))


def _data_bytes() -> int:
    """What RLIMIT_DATA counts of this process; 0 where the kernel does not say."""
    try:
        with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - as below
            return int(file.read().split()[5]) * resource.getpagesize()
    except (OSError, IndexError):
        return 0


def _resident_bytes(process: int) -> int:
    """What a process has in memory; 0 where it is gone."""
    if not _PROC:
        import psutil

        try:
            return int(psutil.Process(process).memory_info().rss)
        except psutil.Error:
            return 0
    try:
        with open(f"/proc/{process}/statm", "rb") as file:  # noqa: PTH123 - fifty times a second
            return int(file.read().split()[1]) * resource.getpagesize()
    except (OSError, IndexError):
        return 0


def _death_signal() -> Any:  # noqa: ANN401 - a function without arguments
    """What has the kernel end this process with the one that forked it, where the kernel can."""
    if sys.platform != "linux":
        return lambda: None
    import ctypes

    prctl = ctypes.CDLL(None).prctl
    return lambda: prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
