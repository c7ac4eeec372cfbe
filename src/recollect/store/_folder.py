"""A folder that is held open, whose entries are reached without following what somebody may have put in their place.

As root, recollect works in folders of other accounts: of a store's owner, and of the account that the server runs
under. They may put a symbolic link or a hard link in place of any entry, at any moment, also of a folder above. So a
folder is opened once and everything is reached from there. Nothing is followed; what is there already is only used if
it is theirs; only what was made here is given away.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

_LARGEST_READ_BYTES = 16 * 1024 * 1024


class Owner(NamedTuple):
    """Whose a file is: the numbers of a user and of a group."""

    uid: int
    gid: int


class Folder:
    """An open folder.

    Args:
        descriptor: Of the folder; it is closed with this object.
        path: What it is called in messages. It may lie elsewhere by now.
    """

    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor = descriptor
        self.path = path

    @classmethod
    def open(cls, path: Path) -> Folder:
        """Open a folder by its path."""
        return cls(os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), path)

    def close(self) -> None:
        """Let go of it; idempotent."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Folder:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @property
    def owner(self) -> Owner:
        """Whose it is."""
        info = os.fstat(self._descriptor)
        return Owner(info.st_uid, info.st_gid)

    def is_at(self, path: str) -> bool:
        """Whether a path leads to this very folder."""
        with suppress(OSError):
            return os.path.samestat(os.stat(path), os.fstat(self._descriptor))  # noqa: PTH116 - of /proc: a text
        return False

    def status(self, name: str) -> os.stat_result | None:
        """Of an entry itself, not of what it points to; None: there is none."""
        with suppress(FileNotFoundError):
            return os.stat(name, dir_fd=self._descriptor, follow_symlinks=False)
        return None

    def names(self) -> list[str]:
        """Of all entries."""
        return os.listdir(self._descriptor)  # noqa: PTH208 - of a descriptor

    def folder(self, name: str) -> Folder:
        """Open a folder in it. Others than root may have put a link there, which gives nobody any rights."""
        unfollowed = os.O_NOFOLLOW if os.geteuid() == 0 else 0
        return Folder(self._open(name, os.O_RDONLY | os.O_DIRECTORY | unfollowed), self.path / name)

    def make_folder(self, name: str, owner: Owner | None) -> Folder:
        """Make a private folder and open it; where it exists, only open it."""
        try:
            os.mkdir(name, 0o700, dir_fd=self._descriptor)
        except FileExistsError:
            return self.folder(name)
        made = self.folder(name)
        if owner is not None:
            os.fchown(made._descriptor, *owner)
        return made

    def open_file(self, name: str, flags: int, owner: Owner | None) -> int:
        """Open a file to write to; where it does not exist, make it, private and the owner's.

        Returns:
            Its descriptor.
        """
        try:
            descriptor = self._open(name, flags | os.O_CREAT | os.O_EXCL)
        except FileExistsError:
            descriptor = self._open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
            self._require_regular(descriptor, name, theirs=True)
            return descriptor
        if owner is not None:
            os.fchown(descriptor, *owner)
        return descriptor

    def read(self, name: str, *, start: int = 0, theirs_only: bool = False) -> bytes:
        """What stands in a file, at most 16 MB of it.

        Args:
            name: Of the file.
            start: Where to begin.
            theirs_only: Refuse a file of somebody else than the folder's owner, who is going to be told what it says.
        """
        descriptor = self._open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        self._require_regular(descriptor, name, theirs=theirs_only)
        with os.fdopen(descriptor, "rb") as file:
            file.seek(start)
            return file.read(_LARGEST_READ_BYTES)

    def write(self, name: str, content: bytes, owner: Owner | None, *, durable: bool = False) -> None:
        """Put a private file in place of whatever has this name; only one process at a time may do so."""
        draft = f"{name}.tmp"
        self.remove(draft)
        descriptor = self._open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        with os.fdopen(descriptor, "wb") as file:
            if owner is not None:
                os.fchown(descriptor, *owner)
            file.write(content)
            if durable:
                file.flush()
                os.fsync(descriptor)
        self.rename(draft, name)

    def link(self, name: str, target: Path) -> None:
        """Put a symbolic link in place of whatever has this name."""
        draft = f"{name}.{os.getpid()}"
        self.remove(draft)
        os.symlink(target, draft, dir_fd=self._descriptor)
        self.rename(draft, name)

    def link_target(self, name: str) -> str | None:
        """Where a symbolic link points; None: there is none."""
        with suppress(OSError):
            return os.readlink(name, dir_fd=self._descriptor)
        return None

    def rename(self, old: str, new: str) -> None:
        """Give an entry another name, which it takes from whatever has it."""
        os.replace(old, new, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)

    def remove(self, name: str) -> None:
        """Remove an entry that is no folder; a missing one is removed already."""
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self._descriptor)

    def remove_tree(self, name: str) -> None:
        """Remove a folder with all that is in it, as far as that is possible."""
        shutil.rmtree(name, ignore_errors=True, dir_fd=self._descriptor)

    def _open(self, name: str, flags: int) -> int:
        try:
            return os.open(name, flags | os.O_CLOEXEC, 0o600, dir_fd=self._descriptor)
        except OSError as exc:
            exc.filename = str(self.path / name)
            raise

    def _require_regular(self, descriptor: int, name: str, *, theirs: bool) -> None:
        """Refuse a pipe or a device, and where it matters a hard link to a file of somebody else."""
        info = os.fstat(descriptor)
        problem = None
        if not stat.S_ISREG(info.st_mode):
            problem = errno.EINVAL
        elif theirs and os.geteuid() == 0 and self.owner.uid not in {0, info.st_uid}:
            problem = errno.EPERM
        if problem is not None:
            os.close(descriptor)
            raise OSError(problem, os.strerror(problem), str(self.path / name))
