"""The embedded server's processes: which they are, what they are doing, and how they are ended."""

from __future__ import annotations

import logging
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import psutil

from recollect.errors import StoreUnavailableError
from recollect.store._folder import Folder
from recollect.store._server_files import PGDATA, Layout

if TYPE_CHECKING:
    pass

_LOGGER = logging.getLogger(__name__)

Phase = Literal["down", "starting", "ready", "stopping"]

# A server that shuts down writes, and often waits for a slow disk; one that does neither for so long never will.
_IDLE_SECONDS = 3.0
# However busy it is: what it still had to write, the next start takes from the write-ahead log.
_LONGEST_SHUTDOWN_SECONDS = 120.0
_QUIT_SECONDS = 2.0
_KILL_SECONDS = 10.0
_LOOK_SECONDS = 0.25

# Lines of postmaster.pid, counted from zero.
_FOLDER_LINE = 1
_STATUS_LINE = 7
_NOTE = "postmaster.pid"


@dataclass(frozen=True, slots=True)
class ServerProcess:
    """The processes of one store's server.

    Attributes:
        folder: Where it lives.
    """

    folder: Folder

    @property
    def layout(self) -> Layout:
        """What lies where, for messages."""
        return Layout(self.folder.path)

    def phase(self) -> Phase:
        """What the server is doing, by its own note; no connection is made, which would leave a line in its log."""
        if self.postmaster() is None:
            return "down"
        match self._note()[_STATUS_LINE:]:
            case [status, *_] if status.strip() in {"ready", "standby"}:
                return "ready"
            case [status, *_] if status.strip() == "stopping":
                return "stopping"
            case _:
                return "starting"

    def postmaster(self) -> psutil.Process | None:
        """The running server, also one on its way up or down."""
        pid = self._noted_pid()
        if pid is None:
            return None
        try:
            process = psutil.Process(pid)
            return process if self._belongs_here(process) else None
        except psutil.NoSuchProcess:
            return None

    def stop(self, *, wait_seconds: float, insist: bool = False) -> None:
        """Ask the server to stop, and wait a while for it; one that hangs is ended.

        A server that is recovering is left alone, whoever comes next finds it ready. One that still has much to write
        goes on by itself.

        Args:
            wait_seconds: How long to wait.
            insist: End it also if it goes on: nobody can use it.
        """
        deadline = time.monotonic() + wait_seconds
        while (phase := self.phase()) == "starting" and time.monotonic() < deadline:
            time.sleep(0.02)
        process = self.postmaster()
        if process is None:
            return
        if phase == "starting":
            _LOGGER.info("the server in %s is recovering: left to it", self.layout.root)
            return
        if phase == "ready":
            # SIGINT asks for a fast shutdown: sessions are ended, everything is written, nothing is lost.
            _signal(process, signal.SIGINT)
        while _alive(process) and time.monotonic() < deadline:
            time.sleep(0.005)
        if _alive(process) and (insist or Shutdown(self, process).hangs_within(_IDLE_SECONDS)):
            self.end(process)

    def end(self, postmaster: psutil.Process) -> None:
        """End a server that hangs while it shuts down, at once: what was committed is in the write-ahead log.

        Raises:
            StoreUnavailableError: It cannot be ended: a process of it waits for a device that does not answer.
        """
        _LOGGER.warning(
            "The server in %s hung while shutting down, and was ended. Nothing that was committed is lost.",
            self.layout.root,
        )
        family = _family(postmaster)
        _signal(postmaster, signal.SIGQUIT)
        if not _all_gone(family, _QUIT_SECONDS):
            self._kill(family)

    def end_orphans(self) -> bool:
        """End sessions that outlived a server which was killed: nobody can reach them, and they hold its memory.

        Returns:
            Whether there were any.
        """
        orphans = [process for process in self._all() if _signal(process, signal.SIGQUIT)]
        if orphans and not _all_gone(orphans, _QUIT_SECONDS):
            self._kill(orphans)
        return bool(orphans)

    def _kill(self, processes: list[psutil.Process]) -> None:
        for process in processes:
            _signal(process, signal.SIGKILL)
        if not _all_gone(processes, _KILL_SECONDS):
            numbers = ", ".join(str(process.pid) for process in processes if _alive(process))
            raise StoreUnavailableError(
                f"The server in {str(self.layout.root)!r} cannot be ended: its processes {numbers} wait for a device "
                "that does not answer. See to the disk under the data directory, or restart the machine."
            )

    def remove_stale_note(self) -> None:
        """Remove a process note that PostgreSQL would trip over: its number is another process's now, or it is garbage.

        The note also guards against sessions that outlived a killed server, so it stays while there are any.

        Raises:
            StoreUnavailableError: The note is that of another store's running server: this one is a copy of it.
        """
        pid = self._noted_pid()
        with suppress(FileNotFoundError), self.folder.folder(PGDATA) as cluster:
            if cluster.status(_NOTE) is None or (pid is not None and not psutil.pid_exists(pid)):
                return
            if next(self._all(), None) is not None:
                return
            if pid is not None:
                self._refuse_copy_of_running(pid)
            _LOGGER.info("%s is stale (process %s is not its server): removed", self.layout.pid_file, pid)
            cluster.remove(_NOTE)

    def _refuse_copy_of_running(self, pid: int) -> None:
        note = self._note()
        original = Path(note[_FOLDER_LINE]) if len(note) > _FOLDER_LINE else None
        with suppress(psutil.Error):
            process = psutil.Process(pid)
            if original and process.name().startswith("postgres") and Path(process.cwd()) == original:
                raise StoreUnavailableError(
                    f"{str(self.layout.root)!r} is a copy of {str(original.parent)!r}, made while its server ran: "
                    "files of different moments do not fit together. Copy the store with recollect db backup and "
                    "recollect db restore, or once no command uses it. If the copy is a snapshot of one moment, remove "
                    f"{str(self.layout.pid_file)!r}."
                )

    def _all(self) -> Iterator[psutil.Process]:
        for process in psutil.process_iter():
            with suppress(psutil.NoSuchProcess):
                if self._belongs_here(process):
                    yield process

    def _noted_pid(self) -> int | None:
        first = self._note()[0].strip()
        return int(first) if first.isdecimal() and 0 < int(first) < 2**31 else None

    def _note(self) -> list[str]:
        with suppress(FileNotFoundError), self.folder.folder(PGDATA) as cluster:
            return cluster.read(_NOTE).decode("utf-8", errors="replace").split("\n")
        return [""]

    def _belongs_here(self, process: psutil.Process) -> bool:
        """Whether a process is of this cluster: process numbers are used again, and a zombie is nobody."""
        if not process.name().startswith("postgres") or process.status() == psutil.STATUS_ZOMBIE:
            return False
        with suppress(psutil.AccessDenied, FileNotFoundError), self.folder.folder(PGDATA) as cluster:
            # The note is the server's own and may name anybody: root signals nobody else's processes.
            return cluster.is_at(process.cwd()) and process.uids().effective == cluster.owner.uid
        return False


class Shutdown:
    """Watches a server shut down, and says when it hangs.

    Args:
        server: Whose.
        postmaster: Its first process.
    """

    def __init__(self, server: ServerProcess, postmaster: psutil.Process) -> None:
        self.postmaster = postmaster
        self._server = server
        self._begun = self._moved = time.monotonic()
        self._last: tuple[float, int, int] | None = None

    def hangs(self) -> bool:
        """Whether it has done nothing for too long, or has taken too long altogether; to be asked again and again."""
        now = time.monotonic()
        work, waits_for_disk = _work(_family(self.postmaster))
        if work != self._last or waits_for_disk:
            self._last, self._moved = work, now
        return now - self._moved > _IDLE_SECONDS or now - self._begun > _LONGEST_SHUTDOWN_SECONDS

    def hangs_within(self, seconds: float) -> bool:
        """Watch until it hangs, ends, or goes on working for longer than this."""
        deadline = time.monotonic() + seconds + _LOOK_SECONDS * 2
        while _alive(self.postmaster) and time.monotonic() < deadline:
            if self.hangs():
                return True
            time.sleep(min(_LOOK_SECONDS, seconds / 4))
        return False


def _work(processes: list[psutil.Process]) -> tuple[tuple[float, int, int], bool]:
    """What processes have done so far, to be compared with a later look, and whether one is waiting for a disk."""
    seconds, written, waits = 0.0, 0, False
    for process in processes:
        with suppress(psutil.Error):
            times = process.cpu_times()
            seconds += times.user + times.system
            waits = waits or process.status() == psutil.STATUS_DISK_SLEEP
            if hasattr(process, "io_counters"):
                written += process.io_counters().write_count
    return (seconds, written, len(processes)), waits


def _family(postmaster: psutil.Process) -> list[psutil.Process]:
    with suppress(psutil.NoSuchProcess):
        return [postmaster, *postmaster.children(recursive=True)]
    return [postmaster]


def _signal(process: psutil.Process, number: signal.Signals) -> bool:
    with suppress(psutil.NoSuchProcess):
        process.send_signal(number)
        return True
    return False


def _all_gone(processes: list[psutil.Process], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while any(_alive(process) for process in processes):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def _alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
