"""A lock between processes, held on a file."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on ``path`` for the length of the block; wait for it as long as it takes.

    The operating system releases the lock when its holder dies, so a killed process blocks nobody. The file stays.

    Args:
        path: Created where it does not exist; its directory must.
    """
    with path.open("a+b") as handle:
        if sys.platform == "win32":
            import msvcrt
            import time

            while True:
                try:
                    handle.seek(0)
                    msvcrt.locking(handle.fileno(), msvcrt.LK_NBLCK, 1)
                    break
                except OSError:
                    time.sleep(0.1)
            try:
                yield
            finally:
                handle.seek(0)
                msvcrt.locking(handle.fileno(), msvcrt.LK_UNLCK, 1)
        else:
            import fcntl

            # Closing the file releases the lock.
            fcntl.flock(handle.fileno(), fcntl.LOCK_EX)
            yield
