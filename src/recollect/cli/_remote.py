"""Which server a command asks, and what the caller is known by there."""

from __future__ import annotations

import os
from pathlib import Path

from recollect.errors import UsageError

#: Where the server is that commands ask, and what they are known by there.
SERVER_VARIABLE = "RECOLLECT_SERVER"
KEY_VARIABLE = "RECOLLECT_API_KEY"


def server_of(named: str | None, *, local: bool) -> str | None:
    """The server that a command asks; None: the store on this machine, or the one that is named otherwise.

    Args:
        named: On the command line.
        local: Whether the command line names a store.

    Raises:
        UsageError: It names both.
    """
    if named is not None and local:
        raise UsageError("--server asks a server, which has its own store: leave --dsn, --data-dir and --config out.")
    found = named or ("" if local else os.environ.get(SERVER_VARIABLE, ""))
    # As a JSON object it is the section [rag.server] of the settings.
    return None if not found or found.lstrip().startswith("{") else found


def key_of(file: Path | None) -> str | None:
    """What the caller is known by: in a file, or in a variable; never on the command line, where everybody sees it.

    Raises:
        UsageError: The file cannot be read.
    """
    named = file or os.environ.get(f"{KEY_VARIABLE}_FILE")
    if not named:
        return os.environ.get(KEY_VARIABLE) or None
    try:
        return Path(named).read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as exc:
        raise UsageError(
            f"The key's file {str(named)!r} cannot be read: {getattr(exc, 'strerror', None) or exc}."
        ) from exc
