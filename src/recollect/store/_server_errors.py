"""What went wrong with the embedded server, in words for the person who has to mend it."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

from recollect.errors import StoreFullError, StoreUnavailableError
from recollect.store._server_files import Layout

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
