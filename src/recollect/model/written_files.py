"""Files that a caller names to be written: only regular ones, and never half; and folders that are private."""

from __future__ import annotations

import errno
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from recollect.errors import ConflictError, UsageError


def require_writable(target: Path, *, overwrite: bool) -> None:
    """Refuse to write where no file can be, or where something else than a regular file is.

    Args:
        target: The file to write.
        overwrite: Allow an existing file to be replaced.

    Raises:
        ConflictError: The file exists and ``overwrite`` is not set.
        UsageError: Its folder does not exist, or it is a folder, a link, a device or a pipe.
    """
    if target.is_dir():
        raise UsageError(
            f"{str(target)!r} is a folder. Name a file in it, for instance {str(target / 'recollect.out')!r}."
        )
    if not target.parent.is_dir():
        raise UsageError(f"There is no folder {str(target.parent)!r} to write into. Create it first.")
    try:
        mode = target.lstat().st_mode
    except FileNotFoundError:
        return
    except OSError as exc:
        raise UsageError(f"Cannot write {str(target)!r}: {exc.strerror}.") from exc
    if not stat.S_ISREG(mode):
        kind = "a symbolic link" if stat.S_ISLNK(mode) else "a device, a pipe or a socket"
        raise UsageError(f"{str(target)!r} is {kind}. Only regular files are written: choose another name.")
    if not overwrite:
        raise ConflictError(f"{str(target)!r} exists already. Choose another name, or overwrite it (--overwrite).")


@contextmanager
def written_whole(target: Path, *, overwrite: bool = False) -> Iterator[IO[bytes]]:
    """Open a file that appears under its name when it is complete, or not at all. Only its owner may read it.

    Args:
        target: The file to write.
        overwrite: Replace an existing regular file; default: no.

    Yields:
        The file to write to, in binary.

    Raises:
        ConflictError: The file exists and ``overwrite`` is not set.
        UsageError: It is not a regular file, or cannot be written.
    """
    require_writable(target, overwrite=overwrite)
    draft: Path | None = None
    try:
        with tempfile.NamedTemporaryFile(
            dir=target.parent, prefix=f".{target.name[:100]}.", suffix=".partial", delete=False
        ) as file:
            draft = Path(file.name)
            yield file
        # What is replaced keeps its permissions. Renaming replaces a link and does not follow it.
        draft.chmod(stat.S_IMODE(target.lstat().st_mode) if target.exists() else 0o600)
        draft.replace(target)
    except OSError as exc:
        full = exc.errno == errno.ENOSPC
        reason = f"the disk under {str(target.parent)!r} is full" if full else exc.strerror or exc
        raise UsageError(f"Cannot write {str(target)!r}: {reason}.") from exc
    finally:
        if draft is not None:
            draft.unlink(missing_ok=True)


def close_folder(folder: Path) -> None:
    """Take from others what they may do in a folder, where it exists.

    Raises:
        UsageError: The folder belongs to another account.
    """
    try:
        if stat.S_IMODE(folder.stat().st_mode) & 0o077:
            folder.chmod(0o700)
    except FileNotFoundError:
        return
    except OSError as exc:
        raise UsageError(
            f"Cannot make {str(folder)!r} private: {exc.strerror}. Give it to the account that runs recollect (chown)."
        ) from exc


def private_folder(folder: Path) -> Path:
    """Make a folder that its owner alone may read; one that exists is closed to others.

    Raises:
        UsageError: The folder belongs to another account, or cannot be made.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as exc:
        raise UsageError(f"Cannot make the folder {str(folder)!r}: {exc.strerror}.") from exc
    close_folder(folder)
    return folder
