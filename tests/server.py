"""Where tests keep what an embedded server must reach."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from recollect.store.embedded import EmbeddedServer

_PREFIX = "recollect-run-"
# A database is five hundred files: where they lie in memory, making and dropping one takes a tenth of the time.
_MEMORY = Path("/dev/shm")
_ROOM_BYTES = 3 << 30
_NEW_SECONDS = 60


def _parent() -> Path:
    """The file system in memory where there is one with room for the servers of a few workers."""
    with suppress(OSError):
        room = min(shutil.disk_usage(_MEMORY).free, psutil.virtual_memory().available // 2)
        if room >= _ROOM_BYTES and os.access(_MEMORY, os.W_OK | os.X_OK):
            return _MEMORY
    return Path(tempfile.gettempdir())


@contextmanager
def reachable_folder() -> Iterator[Path]:
    """A temporary folder that root's servers, which run as another user, can pass through.

    It does not lie below pytest's own temporary folder: run as root, every start of pytest anywhere makes that one
    private again, and the servers lose their files.
    """
    with tempfile.TemporaryDirectory(prefix=_PREFIX, dir=_parent(), ignore_cleanup_errors=True) as folder:
        held = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.geteuid() == 0:
                Path(folder).chmod(0o711)
            yield Path(folder)
        finally:
            os.close(held)


@contextmanager
def data_directory() -> Iterator[Path]:
    """A folder for an embedded server, which is stopped in the end, whoever was killed while using it."""
    with reachable_folder() as folder:
        yield folder / "data"
        with EmbeddedServer(folder / "data"):
            pass


def remove_leftovers() -> None:
    """End the servers, and remove the folders, of runs that were killed: they would keep their memory for ever."""
    for parent in {_MEMORY, Path(tempfile.gettempdir())}:
        for folder in parent.glob(f"{_PREFIX}*"):
            # Others' folders cannot be opened, or are held; one that was just made is about to be held.
            with suppress(OSError):
                if time.time() - folder.stat().st_mtime > _NEW_SECONDS:
                    _remove_unless_held(folder)


def _remove_unless_held(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if folder in Path(process.cwd()).parents:
                    process.kill()
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(descriptor)
