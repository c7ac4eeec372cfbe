"""What changes in folders, gathered until it has settled."""

from __future__ import annotations

import logging
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from recollect import interruption

logger = logging.getLogger(__name__)

#: A path is taken up once nothing has happened to it for so long: editors and copies write in several steps.
SETTLE_SECONDS = 0.2

# What has settled waits so long for what has not; longer where much changes, which takes its time to be stored anyway.
_GATHER_SECONDS = 1.0
_GATHER_MANY_SECONDS = 5.0
_MANY = 100
# What never settles, such as a log, is taken up so long after its first change, and then again.
_PATIENCE_SECONDS = 10.0
# So many changes at once are looked for in the whole folder: the kernel's queue of them is bounded, and says nothing
# that reaches us when it has overflowed. Where that happened, it was full of events, and a file makes few of them.
_WHOLE_ABOVE = 2_000
_EVENTS_PER_FILE = 8
_QUEUE_LENGTH = Path("/proc/sys/fs/inotify/max_queued_events")
# Whatever may have been missed otherwise is found by then.
_WHOLE_EVERY_SECONDS = 3_600.0

# How often the loop looks up: whether it is to end, and whether the folders are the same.
_LOOK_MILLISECONDS = 100
_STEP_MILLISECONDS = 50
_AGAIN_SECONDS = 1.0

# How often polling looks, and what that takes to find out that a file is written no longer.
_POLL_MILLISECONDS = 300
_POLLED_SETTLE_SECONDS = 0.7

# File systems whose changes the kernel hears of only where they are made on this machine.
_REMOTE = ("nfs", "cifs", "smb", "9p", "fuse", "afs", "ceph", "glusterfs", "lustre", "vboxsf", "prl_fs")


@dataclass(frozen=True, slots=True)
class FolderChanges:
    """What has changed in a folder.

    Attributes:
        folder: As it was given.
        paths: Files and folders below it that came, changed or went; those whose names say that they are hidden are
            not told of.
        whole: Anything may have changed: the folder is to be looked through.
        gone: The folder is not there. What it holds is not known, so it is not gone.
    """

    folder: Path
    paths: tuple[Path, ...] = ()
    whole: bool = False
    gone: bool = False


@dataclass(slots=True)
class Settling:
    """Paths that change, until they have settled. Knows no clock: every call says what time it is."""

    settle_seconds: float = SETTLE_SECONDS
    _last: dict[Path, float] = field(default_factory=dict)
    _first: dict[Path, float] = field(default_factory=dict)

    def note(self, path: Path, now: float) -> None:
        """Something has happened to a path."""
        self._last[path] = now
        self._first.setdefault(path, now)

    def take(self, now: float) -> list[Path]:
        """The paths that are to be taken up now; the others go on waiting.

        All wait for each other for a while, so that what happens at once is taken up at once.
        """
        late = [path for path, since in self._first.items() if now - since >= _PATIENCE_SECONDS]
        settled = [path for path, last in self._last.items() if now - last >= self.settle_seconds]
        waited = now - min(self._first.values(), default=now)
        gathered = waited >= (_GATHER_MANY_SECONDS if len(self._last) > _MANY else _GATHER_SECONDS)
        if len(settled) < len(self._last) and not gathered:
            settled = []
        taken = list(dict.fromkeys([*settled, *late]))
        for path in taken:
            del self._last[path], self._first[path]
        return taken

    def clear(self) -> None:
        """Forget all of them."""
        self._last.clear()
        self._first.clear()


@dataclass(slots=True)
class _Folder:
    path: Path
    full: Path
    settling: Settling
    #: Which folder it was when it was there last.
    identity: tuple[int, int] | None = None
    there: bool = False
    whole_at: float | None = None
    told_gone: bool = False


class FolderWatch:
    """Tells what changes below folders, for as long as somebody asks.

    Args:
        folders: Which; one that does not exist, or goes while it is watched, is waited for.
        stop: Ends `changes` when it is set.
        polling: Whether to compare times instead of being told by the system; None: on network file systems, and where
            the system has no room for more watches.
        clock: Seconds that never go back.

    Example:
        >>> import tempfile, threading
        >>> stop = threading.Event()
        >>> with tempfile.TemporaryDirectory() as name:
        ...     watch = FolderWatch([Path(name)], stop=stop)
        ...     first = next(watch.changes())
        >>> first.whole
        True
    """

    def __init__(
        self,
        folders: Sequence[Path],
        *,
        stop: threading.Event,
        polling: bool | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stop = stop
        self._clock = clock
        self._polling = any(map(on_network, folders)) if polling is None else polling
        self._queue_length = queue_length()
        settle = _POLLED_SETTLE_SECONDS if self._polling else SETTLE_SECONDS
        self._folders = [_Folder(path, path.resolve(), Settling(settle)) for path in folders]

    def again(self, folder: Path, *, after_seconds: float = _AGAIN_SECONDS) -> None:
        """Have a folder looked through as a whole once more, because what was told could not be taken up."""
        for one in self._folders:
            if one.path == folder:
                one.whole_at = self._clock() + after_seconds

    def changes(self) -> Iterator[FolderChanges]:
        """What has changed, as it settles; first of all each folder as a whole.

        Changes that come while the caller is busy are told together afterwards.
        """
        while not self._stop.is_set():
            interruption.check()
            yield from self._look_up()
            present = [one for one in self._folders if one.there]
            if not present:
                self._stop.wait(_LOOK_MILLISECONDS / 1000)
                continue
            yield from self._watched(present)

    def _watched(self, present: Sequence[_Folder]) -> Iterator[FolderChanges]:
        """Until a folder goes, comes or is replaced."""
        from watchfiles import watch

        told = watch(
            *(one.full for one in present),
            watch_filter=None,
            debounce=_LOOK_MILLISECONDS,
            step=_STEP_MILLISECONDS,
            rust_timeout=_LOOK_MILLISECONDS,
            yield_on_timeout=True,
            stop_event=self._stop,
            force_polling=self._polling,
            poll_delay_ms=_POLL_MILLISECONDS,
            ignore_permission_denied=True,
        )
        began = False
        try:
            for changes in told:
                began = True
                interruption.check()
                self._note(present, [Path(name) for _, name in changes])
                if self._replaced():
                    return
                yield from self._settled(present)
        except FileNotFoundError:
            pass  # it went between the look and the watch, and is waited for
        except (OSError, RuntimeError) as exc:
            self._begin_anew(present, exc, began=began)
        finally:
            told.close()

    def _begin_anew(self, present: Sequence[_Folder], why: Exception, *, began: bool) -> None:
        """After a name that is no text, say; where the system has no room for more watches, files are compared."""
        logger.info("Folders are watched anew: %s", why)
        if not began:
            if self._polling:
                self._stop.wait(_AGAIN_SECONDS)
            self._polling = True
        for one in present:
            one.settling.settle_seconds = _POLLED_SETTLE_SECONDS if self._polling else SETTLE_SECONDS
            one.whole_at = self._clock()

    def _look_up(self) -> Iterator[FolderChanges]:
        """Which folders are there; those that were not, or were others, are to be looked through."""
        for one in self._folders:
            identity = identity_of(one.full, before=one.identity)
            if identity is not None and (identity != one.identity or not one.there):
                one.settling.clear()
                one.whole_at = self._clock()
                one.identity = identity
            one.there = identity is not None
            if one.there or not one.told_gone:
                one.told_gone = not one.there
                if one.told_gone:
                    yield FolderChanges(one.path, gone=True)

    def _replaced(self) -> bool:
        """Whether a folder has come, gone, or is another one."""
        now = [identity_of(one.full, before=one.identity) for one in self._folders]
        return now != [one.identity if one.there else None for one in self._folders]

    def _note(self, present: Sequence[_Folder], paths: Sequence[Path]) -> None:
        now = self._clock()
        for path in paths:
            for one in present:
                # A change of the folder itself is that of something in it, or seen by its identity.
                if one.full in path.parents and told_of(below := path.relative_to(one.full)):
                    one.settling.note(one.path / below, now)

    def _settled(self, present: Sequence[_Folder]) -> Iterator[FolderChanges]:
        for one in present:
            now = self._clock()
            if one.whole_at is not None and now >= one.whole_at:
                one.settling.clear()
                one.whole_at = now + _WHOLE_EVERY_SECONDS
                yield FolderChanges(one.path, whole=True)
                continue
            taken = one.settling.take(now)
            if len(taken) > min(_WHOLE_ABOVE, self._queue_length // _EVENTS_PER_FILE):
                yield FolderChanges(one.path, whole=True)
            elif taken:
                yield FolderChanges(one.path, tuple(taken))


def queue_length() -> int:
    """How many events of changes the kernel keeps for whoever watches, where it says so."""
    try:
        return int(_QUEUE_LENGTH.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return _WHOLE_ABOVE * _EVENTS_PER_FILE


def told_of(below: Path) -> bool:
    """Whether a change of a path is worth a look: hidden files are not read, but for those that say what is not."""
    return not any(part.startswith(".") for part in below.parts[:-1]) and (
        not below.name.startswith(".") or below.name == ".recollectignore"
    )


def identity_of(folder: Path, *, before: tuple[int, int] | None) -> tuple[int, int] | None:
    """Which folder it is; None: there is none.

    One that has come in the place of a file system, and is empty, is where that was mounted: it counts as none.
    """
    try:
        status = folder.stat()
        identity = (status.st_dev, status.st_ino)
        if before is None or before[0] == status.st_dev:
            return identity if stat.S_ISDIR(status.st_mode) else None
        with os.scandir(folder) as entries:
            return None if next(entries, None) is None else identity
    except OSError:
        return None


def on_network(folder: Path) -> bool:
    """Whether a folder is on a file system that other machines change too."""
    full = folder.resolve()
    mounts: list[tuple[int, str]] = []
    with suppress(OSError):
        mounts = [
            (len(part.mountpoint), part.fstype)
            for part in psutil.disk_partitions(all=True)
            if full.is_relative_to(part.mountpoint)
        ]
    return max(mounts, default=(0, ""))[1].startswith(_REMOTE)
