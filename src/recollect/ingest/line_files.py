"""Files of JSON Lines, line by line, whatever is in them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO

from recollect.errors import NotFoundError

#: A longer line is not read.
MAX_LINE_BYTES = 256 * 1024 * 1024


def require_file(path: Path) -> None:
    """Raise a `NotFoundError` where there is no such file."""
    try:
        found = path.is_file()
    except OSError:  # a name that no file can have, because it is too long for instance
        found = False
    if not found:
        raise NotFoundError(f"There is no file {str(path)!r}.")


def numbered_lines(file: IO[bytes], *, most: int = MAX_LINE_BYTES, first: int = 1) -> Iterator[tuple[int, bytes]]:
    """The lines that are not empty, with their numbers; of one that is too long, one byte more than ``most``.

    Args:
        file: Open, and read from where it is.
        most: Bytes of a line at most. The rest of a longer one is passed over, never held.
        first: The number of the first line.
    """
    number = first - 1
    while line := file.readline(most + 1):
        number += 1
        if line.strip():
            yield number, line
        while len(line) > most and not line.endswith(b"\n"):
            line = file.readline(most + 1)


def too_long(most: int) -> str:
    """Why a line was not read."""
    return f"is longer than {most:,} bytes"
