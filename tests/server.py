"""Where tests keep what an embedded server must reach."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from recollect.store.embedded import EmbeddedServer


@contextmanager
def reachable_folder() -> Iterator[Path]:
    """A temporary folder that root's servers, which run as another user, can pass through.

    It does not lie below pytest's own temporary folder: run as root, every start of pytest anywhere makes that one
    private again, and the servers lose their files.
    """
    with tempfile.TemporaryDirectory(prefix="recollect-test-", ignore_cleanup_errors=True) as folder:
        if os.geteuid() == 0:
            Path(folder).chmod(0o711)
        yield Path(folder)


@contextmanager
def data_directory() -> Iterator[Path]:
    """A folder for an embedded server, which is stopped in the end, whoever was killed while using it."""
    with reachable_folder() as folder:
        yield folder / "data"
        with EmbeddedServer(folder / "data"):
            pass
