"""Files are parsed in processes that may be killed: one that hangs, explodes or crashes costs that file and no more.

A file is a stranger's program for its parser. PDF, office files, books, web pages, mail and tables go to a worker
(`recollect.documents._worker`) over pipes, and so does text of more than 64 KB. Shorter text, Markdown and the like
stay in the process: there is nothing to explode in them.

Workers are started when they are first needed and kept. They are started by ``exec``, so that they are safe beside
threads, and import the parsers only, which takes a tenth of a second. No reply is ever unpickled.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any, TypeVar

from recollect.documents._parsed import LENGTHS, Parsed, from_message, packed
from recollect.documents.formats import UnreadableError
from recollect.documents.ocr.readings import PageReading, ReadingCache, Readings, readings_json
from recollect.documents.pictures import MOST_PICTURE_BYTES, Picture, PictureDescriber, pictures_of
from recollect.model.scope import asking_tenant

# Large files may take more than small ones: so many bytes more for each of their own.
_MEMORY_PER_BYTE = 8
# The worker's own timer ends a parser first; this is for a worker that was stopped from outside.
_GRACE_SECONDS = 5.0
# A worker loads its models before its timer is set.
_LOADING_SECONDS = 40.0
_PAGE_TIMES = 3
_PAGE_BYTES = 1 << 30
_LOOK_UP_SECONDS = 0.1
_END_SECONDS = 5.0
_HEAD_BYTES = 64 << 20
#: After which no further page of a file is recognised.
OCR_SECONDS = 1800.0
_BLOCK_BYTES = 1 << 20

# The package's own `__init__` imports everything; a worker stands in for it and imports what parses.
_BOOT = """
import json, sys, types
sys.path[:], sys.pycache_prefix, sys.dont_write_bytecode = json.loads(sys.argv[1])
package = types.ModuleType("recollect")
package.__path__ = [sys.argv[2]]
sys.modules["recollect"] = package
from recollect.documents._worker import main
main()
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParseLimits:
    """What a file may cost.

    Attributes:
        seconds: Until its parser is killed.
        memory_bytes: What its parser may take; large files get 8 bytes more for each of their own.
        characters: What it may give; as many as it has bytes are always allowed.
    """

    seconds: float = 50.0
    memory_bytes: int = 384 << 20
    characters: int = 5_000_000


#: What is said of a file whose ingest was ended.
INTERRUPTED = "was not read: the ingest was interrupted"
_Read = TypeVar("_Read")
_Reader = Callable[[dict[str, Any], bytes], _Read]


class _GoneError(Exception):
    """The worker is not there any more, or does not say what a worker says."""


class _CancelledError(Exception):
    """The reply is not wanted any more."""


def _never() -> bool:
    return False


class ParserWorkers:
    """Processes that parse files, each one file at a time. Safe to share between threads, and with forked children.

    Args:
        limits: What a file may cost.
        at_once: Files parsed at the same time; None: one a core.
        readings: The folder where it is kept what was recognised on pages; None: nowhere.
        ocr: Whether the text of pages that are pictures is recognised, where that can be.
        ocr_seconds: After which no further page of a file is recognised.
        describer: Describes pictures in files; None: nobody does.
    """

    def __init__(
        self,
        limits: ParseLimits | None = None,
        *,
        at_once: int | None = None,
        readings: Path | None = None,
        ocr: bool = True,
        ocr_seconds: float = OCR_SECONDS,
        describer: PictureDescriber | None = None,
    ) -> None:
        self.limits = limits or ParseLimits()
        self.ocr, self.ocr_seconds = ocr, ocr_seconds
        self.describer = describer
        self.at_once = at_once or os.cpu_count() or 1
        self._cache = readings
        self._workers: set[_Worker] = set()
        self._idle: list[_Worker] = []
        self._reset()
        # Also at the interpreter's end, and when nobody refers to the object any more.
        self._finalizer = weakref.finalize(self, _end, self._workers)
        _POOLS.add(self)

    def close(self) -> None:
        """End the workers. Who parses afterwards starts new ones."""
        with self._lock:
            workers = list(self._workers)
            self._workers.clear()
            self._idle.clear()
        _end(workers)

    def parse(
        self,
        data: bytes,
        *,
        name: str,
        mime_type: str | None = None,
        main_content: bool = False,
        readings: Readings | None = None,
        cancelled: Callable[[], bool] = _never,
    ) -> Parsed:
        """Parse a file in a worker.

        Args:
            data: The whole file.
            name: Its name, which says what it is.
            mime_type: As its sender declared it.
            main_content: Whether a web page is cut down to its main content.
            readings: What was recognised on its pages.
            cancelled: Asked now and then; once it says so, the parser is ended.

        Raises:
            UnreadableError: The file cannot be read, or costs more than it may.
        """
        request = self._request(data, name, mime_type) | {
            "main_content": main_content,
            "readings": readings_json(readings or {}),
        }
        died = self._in_turn(request, data, from_message, cancelled)
        if isinstance(died, Parsed):
            return died
        raise UnreadableError(self._explained(died, len(data)))

    def recognise(
        self,
        data: bytes,
        page: int,
        *,
        name: str,
        mime_type: str | None = None,
        more_pages: bool = False,
        owner: str = "",
        cancelled: Callable[[], bool] = _never,
    ) -> PageReading:
        """Recognise the text of a page in a worker, where it was not recognised before.

        A page may take three times what a file may, and a GiB more: its models are large.

        Args:
            data: The whole file.
            page: From 1.
            name: As for `parse`.
            mime_type: As for `parse`.
            more_pages: Whether others of the file follow: then the worker keeps its models.
            owner: For whom: what was recognised for others is not looked at.
            cancelled: As for `parse`.

        Raises:
            UnreadableError: The page cannot be read, or costs more than it may.
        """
        request = self._request(data, name, mime_type) | {
            "page": page,
            "more_pages": more_pages,
            "owner": owner,
            "cache": None if self._cache is None else str(self._cache),
            "seconds": _PAGE_TIMES * self.limits.seconds,
            "memory_bytes": self._memory(len(data)) + _PAGE_BYTES,
        }
        died = self._in_turn(request, data, _reading_of, cancelled)
        if isinstance(died, PageReading):
            return died
        raise UnreadableError(f"page {page}: {self._explained(died, len(data), page=True)}")

    def find_pictures(
        self, data: bytes, *, name: str, mime_type: str | None = None, cancelled: Callable[[], bool] = _never
    ) -> list[Picture]:
        """The pictures in a file that show something, found in a worker.

        Args:
            data: The whole file.
            name: As for `parse`.
            mime_type: As for `parse`.
            cancelled: As for `parse`.

        Raises:
            UnreadableError: The file cannot be read, or costs more than it may.
        """
        request = self._request(data, name, mime_type)
        most = max(self.limits.characters, len(data), MOST_PICTURE_BYTES)
        died = self._in_turn(request | {"pictures": True, "max_characters": most}, data, pictures_of, cancelled)
        if isinstance(died, str):
            raise UnreadableError(self._explained(died, len(data)))
        return died

    def tidy(self) -> None:
        """Remove what was recognised long ago and not asked for since."""
        if self._cache is not None:
            ReadingCache(self._cache).tidy()

    def _request(self, data: bytes, name: str, mime_type: str | None) -> dict[str, object]:
        """What a parser is told of a file, and what it may cost, unless it is told otherwise."""
        return {
            "name": name,
            "mime_type": mime_type,
            "main_content": False,
            "seconds": self.limits.seconds,
            "memory_bytes": self._memory(len(data)),
            "max_characters": max(self.limits.characters, len(data)),
        }

    def _in_turn(
        self, request: Mapping[str, object], data: bytes, read: _Reader[_Read], cancelled: Callable[[], bool]
    ) -> _Read | str:
        """What was read of a reply, or what the parser died of, once a worker is free."""
        while not self._free.acquire(timeout=_LOOK_UP_SECONDS):
            if cancelled():
                raise UnreadableError(INTERRUPTED)
        try:
            return self._ask(request, data, read, cancelled)
        except _CancelledError:
            raise UnreadableError(INTERRUPTED) from None
        finally:
            self._free.release()

    def _ask(
        self, request: Mapping[str, object], data: bytes, read: _Reader[_Read], cancelled: Callable[[], bool]
    ) -> _Read | str:
        while True:
            worker, used = self._take()
            grace = _LOADING_SECONDS if "page" in request else _GRACE_SECONDS
            deadline = time.monotonic() + float(str(request["seconds"])) + grace
            try:
                reply, content = worker.ask(request, data, deadline, cancelled)
                if "error" in reply:
                    raise UnreadableError(str(reply["error"]))
                found = str(reply["died"]) if "died" in reply else read(reply, content)
            except UnreadableError:
                self._give_back(worker)
                raise
            except (_GoneError, OSError, ValueError, KeyError, TypeError, OverflowError, AttributeError):
                self._discard(worker)
                # One that has waited may have been ended by anybody; one that was just made was ended by the file.
                if used:
                    continue
                return "its worker"
            except TimeoutError:
                self._discard(worker)
                return "time"
            except BaseException:
                self._discard(worker)
                raise
            self._give_back(worker)
            return found

    def _take(self) -> tuple[_Worker, bool]:
        with self._lock:
            if self._idle:
                return self._idle.pop(), True
        try:
            worker = _Worker()
        except OSError as error:
            raise UnreadableError(f"was not read: no process for its parser can be started ({error})") from error
        with self._lock:
            self._workers.add(worker)
        return worker, False

    def _give_back(self, worker: _Worker) -> None:
        with self._lock:
            if worker in self._workers:
                self._idle.append(worker)

    def _discard(self, worker: _Worker) -> None:
        with self._lock:
            self._workers.discard(worker)
        worker.end()

    def _memory(self, size: int) -> int:
        return self.limits.memory_bytes + _MEMORY_PER_BYTE * size

    def _explained(self, died: str, size: int, *, page: bool = False) -> str:
        limits = self.limits
        match died:
            case "time":
                seconds = limits.seconds * (_PAGE_TIMES if page else 1)
                return f"took longer than {seconds:g} s to parse (rag.ingest.parse_seconds)"
            case "memory":
                mebibytes = (self._memory(size) + (_PAGE_BYTES if page else 0)) >> 20
                return f"takes more than {mebibytes:,} MiB of memory to parse (rag.ingest.parse_memory_bytes)"
            case "characters":
                return f"gives more than {max(limits.characters, size):,} characters (rag.ingest.max_characters)"
            case _:
                return f"is damaged: its parser died of it ({died})"

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._free = threading.BoundedSemaphore(self.at_once)
        self._idle.clear()

    def forget(self) -> None:
        """Let go of the workers without ending them: in a forked child they are the parent's."""
        for worker in self._workers:
            worker.forget()
        self._workers.clear()
        self._reset()


class _Worker:
    """One process at the other end of two pipes."""

    def __init__(self) -> None:
        package = Path(__file__).resolve().parents[1]
        # -I keeps out what the shell says, so where bytecode is kept is said too: to compile the parsers' libraries
        # takes as much memory as a small file may.
        inherited = [sys.path, sys.pycache_prefix, sys.dont_write_bytecode]
        self._process = subprocess.Popen(
            [_interpreter(), "-I", "-c", _BOOT, json.dumps(inherited), str(package)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._requests, self._replies = _pipe(self._process.stdin), _pipe(self._process.stdout)
        os.set_blocking(self._requests.fileno(), False)
        os.set_blocking(self._replies.fileno(), False)

    def ask(
        self, request: Mapping[str, object], data: bytes, deadline: float, cancelled: Callable[[], bool]
    ) -> tuple[dict[str, object], bytes]:
        """Send a request and wait for its reply."""
        wait = _Wait(deadline, cancelled)
        for part in (packed(request, len(data)), data):
            view = memoryview(part)
            while view:
                wait.until(self._requests.fileno(), select.POLLOUT)
                view = view[os.write(self._requests.fileno(), view[:_BLOCK_BYTES]) :]
        head_length, length = LENGTHS.unpack(self._read(LENGTHS.size, wait))
        most = 4 * int(str(request["max_characters"])) + 2 * len(data)  # of its text, and of what is attached
        if head_length > _HEAD_BYTES + len(data) or length > most:
            raise _GoneError
        head = json.loads(self._read(head_length, wait))
        if not isinstance(head, dict):
            raise _GoneError
        return head, self._read(length, wait)

    def _read(self, length: int, wait: _Wait) -> bytes:
        found = bytearray()
        while len(found) < length:
            wait.until(self._replies.fileno(), select.POLLIN)
            part = os.read(self._replies.fileno(), min(length - len(found), _BLOCK_BYTES))
            if not part:
                raise _GoneError
            found += part
        return bytes(found)

    def end(self) -> None:
        """End the process and what it started: it does so itself once its pipe is closed."""
        self._close()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def forget(self) -> None:
        """Close this process's ends; nothing happens to the worker while somebody else holds others."""
        self._close()
        self._process.returncode = 0  # or its destructor would wait for another's child

    def _close(self) -> None:
        for pipe in (self._requests, self._replies):
            with contextlib.suppress(OSError):
                pipe.close()


class _Wait:
    def __init__(self, deadline: float, cancelled: Callable[[], bool]) -> None:
        self._deadline = deadline
        self._cancelled = cancelled

    def until(self, descriptor: int, events: int) -> None:
        """Wait until a pipe can be used."""
        poller = select.poll()
        poller.register(descriptor, events)
        while not poller.poll(_LOOK_UP_SECONDS * 1000):
            if self._cancelled():
                raise _CancelledError
            if time.monotonic() > self._deadline:
                raise TimeoutError


def _reading_of(_: Mapping[str, Any], content: bytes) -> PageReading:
    return PageReading.of_json(json.loads(content))


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe


def _interpreter() -> str:
    # Where Python is embedded, its "executable" is another program.
    given = Path(sys.executable or "python")
    own = Path(sys.exec_prefix) / "bin" / "python3"
    return str(given if given.name.startswith(("python", "pypy")) or not own.exists() else own)


def _end(workers: set[_Worker] | list[_Worker]) -> None:
    for worker in list(workers):
        worker.end()


_POOLS: weakref.WeakSet[ParserWorkers] = weakref.WeakSet()


def _forget_all() -> None:
    for pool in list(_POOLS):
        pool.forget()


os.register_at_fork(after_in_child=_forget_all)


@cache
def shared_workers() -> ParserWorkers:
    """The workers of those who bring none, with the limits as they are by default."""
    return ParserWorkers()


# The pages of a file that are pictures, recognised side by side in the processes that parse.


#: Told how many pages of a file were recognised, and how many are to be.
PageCallback = Callable[[int, int], None]


def recognise_pages(
    workers: ParserWorkers,
    data: bytes,
    pages: Sequence[int],
    *,
    name: str,
    mime_type: str | None,
    cancelled: Callable[[], bool],
    on_page: PageCallback | None = None,
) -> tuple[dict[int, PageReading], list[str]]:
    """What is written on some pages, and why others could not be read; pages that the time did not suffice for first.

    Args:
        workers: Who recognises; each page is one process's.
        data: The whole file.
        pages: From 1.
        name: As for `recollect.documents.workers.ParserWorkers.parse`.
        mime_type: The same.
        cancelled: The same.
        on_page: Told before the first page and after each, in the thread of the caller; what it raises ends all.

    Raises:
        UnreadableError: It was cancelled. What was recognised until then is kept, where the workers keep it.
    """
    workers.tidy()
    stopped = threading.Event()
    owner, ends = str(asking_tenant()), time.monotonic() + workers.ocr_seconds

    def unwanted() -> bool:
        return stopped.is_set() or cancelled()

    def read(page: int) -> PageReading | str | None:
        if time.monotonic() >= ends:
            return None
        follows = page not in pages[-workers.at_once :]
        try:
            return workers.recognise(
                data, page, name=name, mime_type=mime_type, more_pages=follows, owner=owner, cancelled=unwanted
            )
        except UnreadableError as error:
            return str(error)

    outcomes: dict[int, PageReading | str | None] = {}
    tell = on_page or _say_nothing
    tell(0, len(pages))
    with ThreadPoolExecutor(min(workers.at_once, len(pages)), thread_name_prefix="pages") as pool:
        numbers = {pool.submit(read, page): page for page in pages}
        try:
            for done, future in enumerate(as_completed(numbers), 1):
                outcomes[numbers[future]] = future.result()
                tell(done, len(pages))
        except BaseException:
            stopped.set()
            raise
    if cancelled():
        raise UnreadableError(INTERRUPTED)
    failed = [one for one in outcomes.values() if isinstance(one, str)]
    late = sorted(page for page, one in outcomes.items() if one is None)
    if late:
        left = f"{', '.join(map(_span, _runs(late)))} were left when {workers.ocr_seconds:g} s were over"
        failed.insert(0, f"pages {left} (rag.documents.ocr_seconds)")
    return {page: one for page, one in outcomes.items() if isinstance(one, PageReading)}, failed


def _runs(pages: Sequence[int]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for page in pages:
        if runs and runs[-1][1] == page - 1:
            runs[-1] = (runs[-1][0], page)
        else:
            runs.append((page, page))
    return runs


def _span(run: tuple[int, int]) -> str:
    return str(run[0]) if run[0] == run[1] else f"{run[0]}-{run[1]}"


def _say_nothing(done: int, total: int) -> None:
    del done, total
