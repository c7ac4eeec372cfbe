"""The embedded store's folder: what lies where in it, its locks, and where clients find the server's socket.

::

    <data dir>/
      pg/           the cluster (PGDATA)
      run/          the server's socket, readable by its owner only
      server.log    what the server says; server.log.old is the one before
      .lock         held while the server is being created, started or stopped
      .users        held, shared, by everyone who uses the server

Both locks are the kernel's (``flock``): they end with the process that holds them, however it ends, so nobody has to
recognise a dead holder by its process number.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from psycopg.conninfo import make_conninfo

from recollect.errors import StoreUnavailableError

PORT = 5432
"""Names the socket file; no network port is opened."""

SOCKET_NAME = f".s.PGSQL.{PORT}"
"""The socket's file; PostgreSQL notes its server's process beside it, in a file with ``.lock`` appended."""
# sockaddr_un holds 104 bytes on macOS and 108 on Linux, the terminating zero included.
_LONGEST_SOCKET_PATH = 103


@dataclass(frozen=True, slots=True)
class Layout:
    """The paths of one store.

    Attributes:
        root: The data directory, absolute.
    """

    root: Path

    @property
    def pgdata(self) -> Path:
        """The cluster."""
        return self.root / "pg"

    @property
    def socket_dir(self) -> Path:
        """Where the server puts its socket."""
        return self.root / "run"

    @property
    def log(self) -> Path:
        """What the server says."""
        return self.root / "server.log"

    @property
    def pid_file(self) -> Path:
        """The server's own note of its process."""
        return self.pgdata / "postmaster.pid"

    @property
    def lock(self) -> Path:
        """Held while the server is being created, started or stopped."""
        return self.root / ".lock"

    @property
    def users(self) -> Path:
        """Held by everyone who uses the server."""
        return self.root / ".users"


class UserHold:
    """A shared lock that says: the server is in use.

    A process made by ``fork`` shares its parent's hold, which therefore lasts until both are gone.

    Args:
        layout: The store.
    """

    def __init__(self, layout: Layout) -> None:
        self._descriptor = _open_lock(layout.users)
        fcntl.flock(self._descriptor, fcntl.LOCK_SH)

    def abandon(self) -> None:
        """Forget this process's copy; another process's copy of the same hold stays valid."""
        os.close(self._descriptor)

    def release(self) -> None:
        """Give the hold up, also for processes forked from this one."""
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        os.close(self._descriptor)


def in_use(layout: Layout) -> bool:
    """Whether anybody holds the server. Call it with :func:`exclusive` held, so that the answer stays true."""
    descriptor = _open_lock(layout.users)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(descriptor)


@contextmanager
def exclusive(layout: Layout, *, timeout_seconds: float) -> Iterator[None]:
    """Be the only one who creates, starts or stops this store's server.

    Args:
        layout: The store.
        timeout_seconds: How long to wait for another who does so.

    Raises:
        StoreUnavailableError: The wait was in vain.
    """
    descriptor = _open_lock(layout.lock)
    try:
        _wait_for(descriptor, layout, timeout_seconds)
        yield
    finally:
        os.close(descriptor)


def _wait_for(descriptor: int, layout: Layout, timeout_seconds: float) -> None:
    deadline = time.monotonic() + timeout_seconds
    pause = 0.002
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                msg = (
                    f"Another process has been starting or stopping the server in {str(layout.root)!r} for more than "
                    f"{timeout_seconds:.0f} s. If it hangs, end it (it holds {str(layout.lock)!r}) and try again."
                )
                raise StoreUnavailableError(msg) from None
            time.sleep(pause)
            pause = min(pause * 2, 0.05)
        else:
            return


def _open_lock(file: Path) -> int:
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    give_to_owner_of(file.parent, file)
    return descriptor


def give_to_owner_of(folder: Path, path: Path) -> None:
    """When root works in somebody's store, what it makes there must stay usable for its owner."""
    if os.geteuid() == 0:
        owner = folder.stat()
        if owner.st_uid != 0:
            os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)


def connection_string(layout: Layout, *, database: str) -> str:
    """The libpq connection string for a database of this store's server.

    Args:
        layout: The store.
        database: The database's name.

    Raises:
        StoreUnavailableError: The socket's path is too long and there is no place for a shorter name of it.
    """
    host = str(layout.socket_dir)
    if not _fits(layout.socket_dir):
        host = str(_short_name(layout))
    return make_conninfo("", host=host, port=PORT, user="postgres", dbname=database)


def _fits(folder: Path) -> bool:
    """Whether libpq can be given a folder as its host: short enough, and without its list separator."""
    text = str(folder)
    try:
        length = len(text.encode("utf-8")) + 1 + len(SOCKET_NAME)
    except UnicodeEncodeError:
        return False
    return length <= _LONGEST_SOCKET_PATH and "," not in text


def _short_name(layout: Layout) -> Path:
    """A symbolic link to the socket's folder, in a folder that belongs to this user alone."""
    tried: list[str] = []
    name = _link_name(layout)
    for folder in _link_folders():
        if not _fits(folder / name):
            tried.append(f"{str(folder)!r} is too long as well")
            continue
        try:
            return _link(folder, name, layout.socket_dir)
        except OSError as exc:
            tried.append(f"{str(folder)!r}: {exc.strerror}")
    msg = (
        f"The path of the server's socket, {str(layout.socket_dir / SOCKET_NAME)!r}, cannot be used: it is longer "
        f"than {_LONGEST_SOCKET_PATH} bytes or has a comma in it, and no short name can be made for it "
        f"({'; '.join(tried)}). Choose a shorter data directory: --data-dir or RECOLLECT_DATA_DIR."
    )
    raise StoreUnavailableError(msg)


def remove_short_name(layout: Layout) -> None:
    """Take away the link that :func:`connection_string` may have made. Call it when the server has stopped."""
    if _fits(layout.socket_dir):
        return
    for folder in _link_folders():
        with suppress(OSError):
            (folder / _link_name(layout)).unlink()


def _link_name(layout: Layout) -> str:
    return hashlib.sha256(os.fsencode(layout.socket_dir)).hexdigest()[:16]


def _link_folders() -> list[Path]:
    bases = dict.fromkeys((os.environ.get("XDG_RUNTIME_DIR"), tempfile.gettempdir(), "/tmp"))
    return [Path(base) / f"recollect-{os.geteuid()}" for base in bases if base]


def _link(folder: Path, name: str, target: Path) -> Path:
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    info = folder.lstat()
    if folder.is_symlink() or info.st_uid != os.geteuid() or info.st_mode & 0o077:
        raise PermissionError(0, "it exists and is not a private folder of this user")
    link = folder / name
    # Two processes may make it at once: both make the same link, and a rename replaces one by the other.
    if not link.is_symlink() or link.readlink() != target:
        draft = folder / f"{name}.{os.getpid()}.{time.monotonic_ns()}"
        draft.symlink_to(target)
        draft.replace(link)
    return link
