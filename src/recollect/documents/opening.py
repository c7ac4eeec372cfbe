"""Opening a file that somebody else may change meanwhile: a regular one, below a folder, without following links."""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path

_COMMON = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK  # a pipe that takes a file's place must not block
_NO_LINK = _COMMON | os.O_NOFOLLOW


def open_file(path: Path, *, below: Path | None = None) -> BufferedReader:
    """Open a regular file for reading.

    Args:
        path: The file.
        below: A folder that holds it: no part of the path below it may be a link, whatever it was when the folder was
            looked through. None: links are followed.

    Raises:
        OSError: It cannot be opened, is no regular file, or a link stands on the way.
    """
    descriptor = os.open(path, _COMMON) if below is None else _open_below(below, path.relative_to(below).parts)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
    except BaseException:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "rb")


def open_folder(path: Path, *, below: Path | None = None) -> int:
    """A descriptor of a folder; as `open_file`."""
    if below is None or path == below:
        return os.open(path, _COMMON | os.O_DIRECTORY)
    return _open_below(below, path.relative_to(below).parts, last=os.O_DIRECTORY)


def _open_below(folder: Path, names: tuple[str, ...], last: int = 0) -> int:
    descriptor = os.open(folder, _COMMON | os.O_DIRECTORY)
    for rank, name in enumerate(names, 1):
        try:
            inner = os.open(name, _NO_LINK | (os.O_DIRECTORY if rank < len(names) else last), dir_fd=descriptor)
        except OSError as error:
            # Linux calls a link that should be a folder "not a directory".
            if error.errno in {errno.ELOOP, errno.EMLINK, errno.ENOTDIR}:
                raise OSError(errno.ELOOP, "a link stands on the way to it, and links are not followed") from error
            raise
        finally:
            os.close(descriptor)
        descriptor = inner
    return descriptor
