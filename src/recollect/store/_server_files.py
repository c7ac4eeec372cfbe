"""The embedded store's folder: what lies where in it, its locks, where clients find the server's socket, and its log.

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

import errno
import fcntl
import hashlib
import logging
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from psycopg.conninfo import make_conninfo

from recollect.errors import StoreFullError, StoreUnavailableError
from recollect.store._folder import Folder, Owner

logger = logging.getLogger(__name__)


PORT = 5432


"""Names the socket file; no network port is opened."""


PGDATA = "pg"


SOCKET_FOLDER = "run"


LOG = "server.log"


_LOCK = ".lock"


_USERS = ".users"


SOCKET_NAME = f".s.PGSQL.{PORT}"


"""The socket's file; PostgreSQL notes its server's process beside it, in a file with ``.lock`` appended."""


# sockaddr_un holds 104 bytes on macOS and 108 on Linux, the terminating zero included.
_LONGEST_SOCKET_PATH = 103


# A start takes so long as a rule; whoever waits longer is told why.
_QUIET_SECONDS = 3.0


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
        return self.root / PGDATA

    @property
    def socket_dir(self) -> Path:
        """Where the server puts its socket."""
        return self.root / SOCKET_FOLDER

    @property
    def log(self) -> Path:
        """What the server says."""
        return self.root / LOG

    @property
    def pid_file(self) -> Path:
        """The server's own note of its process."""
        return self.pgdata / "postmaster.pid"


class UserHold:
    """A shared lock that says: the server is in use.

    A process made by ``fork`` shares its parent's hold, which therefore lasts until both are gone.

    Args:
        folder: The store's. The hold keeps it open: a store may be moved while its server runs.
    """

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self._descriptor = _open_lock(folder, _USERS)
        _lock(self._descriptor, fcntl.LOCK_SH, folder)

    def abandon(self) -> None:
        """Forget this process's copy; another process's copy of the same hold stays valid."""
        os.close(self._descriptor)
        self.folder.close()

    def release(self) -> None:
        """Give the hold up, also for processes forked from this one; the folder stays open."""
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        os.close(self._descriptor)


def in_use(folder: Folder) -> bool:
    """Whether anybody holds the server. Call it with :func:`exclusive` held, so that the answer stays true."""
    descriptor = _open_lock(folder, _USERS)
    try:
        return not _lock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, folder)
    finally:
        os.close(descriptor)


@contextmanager
def exclusive(folder: Folder, *, timeout_seconds: float) -> Iterator[None]:
    """Be the only one who creates, starts or stops this store's server.

    Args:
        folder: The store's.
        timeout_seconds: How long to wait for another who does so.

    Raises:
        StoreUnavailableError: The wait was in vain.
    """
    descriptor = _open_lock(folder, _LOCK)
    try:
        _wait_for(descriptor, folder, timeout_seconds)
        yield
    finally:
        os.close(descriptor)


def _wait_for(descriptor: int, folder: Folder, timeout_seconds: float) -> None:
    began = time.monotonic()
    deadline, told, pause = began + timeout_seconds, False, 0.002
    while not _lock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, folder):
        if time.monotonic() > deadline:
            raise StoreUnavailableError(
                f"Another process has been starting or stopping the server in {str(folder.path)!r} for more than "
                f"{timeout_seconds:.0f} s. If it hangs, end it (it holds {str(folder.path / _LOCK)!r}) and try again."
            )
        if not told and time.monotonic() > began + _QUIET_SECONDS:
            told = True
            logger.warning("Waiting for another process, which is starting or stopping this store's server.")
        time.sleep(pause)
        pause = min(pause * 2, 0.1)


def _lock(descriptor: int, kind: int, folder: Folder) -> bool:
    """Take a lock of the kernel's; False: somebody has it, and this kind does not wait.

    Raises:
        StoreUnavailableError: The file system has no locks.
    """
    try:
        fcntl.flock(descriptor, kind)
    except BlockingIOError:
        return False
    except OSError as exc:
        raise StoreUnavailableError(
            f"The file system of {str(folder.path)!r} cannot lock files ({exc.strerror}), so two processes could ruin "
            "the store. Keep it on a local disk: --data-dir or RECOLLECT_DATA_DIR."
        ) from exc
    return True


def _open_lock(folder: Folder, name: str) -> int:
    return folder.open_file(name, os.O_RDWR, folders_owner(folder))


def folders_owner(folder: Folder) -> Owner | None:
    """When root works in somebody's store, what it makes there must stay usable for its owner."""
    return folder.owner if os.geteuid() == 0 and folder.owner.uid != 0 else None


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
            with _private(folder) as private:
                if private.link_target(name) != str(layout.socket_dir):
                    private.link(name, layout.socket_dir)
            return folder / name
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
        with suppress(OSError), _private(folder) as private:
            private.remove(_link_name(layout))


def _link_name(layout: Layout) -> str:
    return hashlib.sha256(os.fsencode(layout.socket_dir)).hexdigest()[:16]


def _link_folders() -> list[Path]:
    bases = dict.fromkeys((os.environ.get("XDG_RUNTIME_DIR"), tempfile.gettempdir(), "/tmp"))
    return [Path(base) / f"recollect-{os.geteuid()}" for base in bases if base]


def _private(path: Path) -> Folder:
    """Open, or make, a folder that belongs to this user alone, in one where nobody else can rename it."""
    user = os.geteuid()
    with Folder.open(path.parent) as base:
        info = base.status(".")
        shared = info is not None and info.st_mode & 0o022 and not info.st_mode & stat.S_ISVTX
        if base.owner.uid not in {0, user} or shared:
            raise PermissionError(errno.EPERM, "others can rename what is in it")
        private = base.make_folder(path.name, None)
    info = private.status(".")
    if info is None or info.st_uid != user or info.st_mode & 0o077:
        private.close()
        raise PermissionError(errno.EPERM, "it exists and is not a private folder of this user")
    return private


# What went wrong with the embedded server, in words for the person who has to mend it.


_FULL = ("no space left on device", "disk quota exceeded", "could not extend file", "disk full")


# A write-ahead log segment has 16 MB: with less than one, the server cannot go on.
_LEAST_FREE_BYTES = 16 * 1024 * 1024


_EXCERPT_LINES = 12


# A phrase of the server, and what to do about it. The first that occurs is used.
_REMEDIES = (
    (
        "could not look up effective user id",
        "This user number has no name on this machine (usual in containers): add "
        "it to /etc/passwd, or run as a user that is there.",
    ),
    ("cannot allocate memory", "There is not enough memory: end something else, or give the container more."),
    ("has group or world access", "Make the cluster private again: chmod 700 on the folder pg in it."),
    ("has wrong ownership", "The folder pg belongs to another user: run recollect as that user, or chown -R it."),
    ("permission denied", "Make the files readable and writable for the user who runs recollect."),
    (
        "database files are incompatible",
        "It was written by another build or another kind of machine: restore a backup.",
    ),
    (
        "could not locate a valid checkpoint record",
        "The cluster is damaged: restore a backup into a new data directory.",
    ),
    ("invalid page", "The cluster is damaged: restore a backup into a new data directory."),
    ("pg_control", "The cluster is damaged or incomplete: restore a backup into a new data directory."),
    (
        "unrecognized configuration parameter",
        "Take the unknown setting out of postgresql.conf or postgresql.auto.conf.",
    ),
    ("configuration file", "Mend the settings in postgresql.conf or postgresql.auto.conf."),
)


def explain(action: str, output: str, layout: Layout, *, log: str = "") -> StoreUnavailableError:
    """The error for a program of PostgreSQL that failed.

    Args:
        action: What was tried, for instance ``"start the server"``.
        output: What the program wrote.
        layout: The store.
        log: What the server wrote to its log in the meantime; default: nothing.
    """
    text = f"{output}\n{log}".lower()
    if any(phrase in text for phrase in _FULL) or _nearly_full(layout.root):
        return disk_full(layout.root)
    stranger = _not_the_owners(layout.pgdata) if "permission denied" in text else None
    if stranger is not None:
        return StoreUnavailableError(
            f"Cannot {action} in {str(layout.root)!r}: {str(stranger)!r} belongs to another user than the cluster "
            f"around it. Give all of it to one, the cluster's owner: chown -R USER {str(layout.pgdata)!r}"
        )
    remedy = next((advice for phrase, advice in _REMEDIES if phrase in text), f"The log is {str(layout.log)!r}.")
    excerpt = "\n".join(f"  {line}" for line in (log.strip() or output).splitlines()[-_EXCERPT_LINES:])
    return StoreUnavailableError(
        f"Cannot {action} in {str(layout.root)!r}. {remedy}\nPostgreSQL says:\n{excerpt or '  (nothing)'}"
    )


def _not_the_owners(cluster: Path) -> Path | None:
    """The first file of a cluster that belongs to somebody else than the cluster does."""
    try:
        owner = cluster.lstat().st_uid
        return next((path for path in cluster.rglob("*") if path.lstat().st_uid != owner), None)
    except OSError:
        return None


def disk_full(folder: Path) -> StoreFullError:
    """The error for a full disk, with what is left on it."""
    return StoreFullError(
        f"The disk (or quota) under {str(folder)!r} is full: {_free_bytes(folder) // 2**20} MB are free. What was "
        "acknowledged is safe. Free at least 200 MB and try again, or choose another place: --data-dir."
    )


def explain_os_error(exc: OSError, folder: Path) -> StoreUnavailableError:
    """The error for a data directory that the operating system refuses to work with."""
    if exc.errno in {errno.ENOSPC, errno.EDQUOT}:
        return disk_full(folder)
    path = folder if exc.filename is None else Path(str(exc.filename))
    what = f"The data directory {str(folder)!r} cannot be used ({exc.strerror}: {str(path)!r})."
    if exc.errno == errno.EPERM and os.geteuid() == 0:
        return StoreUnavailableError(
            f"{what} It belongs to somebody else than its folder. Give all that is in the folder to one user, the "
            f"folder's: chown -R USER {str(path.parent)!r}"
        )
    if exc.errno in {errno.EACCES, errno.EPERM}:
        return StoreUnavailableError(
            f"{what} Run recollect as the user it belongs to, or choose one of your own: --data-dir or "
            "RECOLLECT_DATA_DIR."
        )
    if exc.errno == errno.EROFS:
        return StoreUnavailableError(f"{what} The file system is mounted read-only; the store must be able to write.")
    if exc.errno == errno.ELOOP:
        return StoreUnavailableError(
            f"{what} It is a symbolic link, and none is followed in a store. Find out who put it there, and remove it."
        )
    if exc.errno == errno.EINVAL:
        return StoreUnavailableError(f"{what} It is no ordinary file. Find out who put it there, and remove it.")
    if exc.errno in {errno.EEXIST, errno.ENOTDIR}:
        return StoreUnavailableError(f"{what} There is a file where a folder must be; choose another: --data-dir.")
    return StoreUnavailableError(f"{what} Choose another: --data-dir or RECOLLECT_DATA_DIR.")


def _nearly_full(folder: Path) -> bool:
    return _free_bytes(folder) < _LEAST_FREE_BYTES


def _free_bytes(folder: Path) -> int:
    place = next((path for path in (folder, *folder.parents) if path.exists()), Path("/"))
    return shutil.disk_usage(place).free
