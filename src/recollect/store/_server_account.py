"""Under which account the embedded server runs when recollect is started by root.

PostgreSQL refuses to run as root. The server then runs as the owner of the store, or, where that is root, as the system
account ``pgserver``, which is created on first use.
"""

from __future__ import annotations

import logging
import os
import shutil
import stat
import subprocess
from pathlib import Path

from recollect.errors import StoreUnavailableError
from recollect.store._server_binaries import Account, installation

_LOGGER = logging.getLogger(__name__)
_DEDICATED = "pgserver"
_INSTEAD = "Or run recollect as an ordinary user, or use a PostgreSQL server: --dsn or RECOLLECT_DSN."


def server_account(data_dir: Path, pgdata: Path) -> Account | None:
    """The account to run the server under: None means the caller's own.

    Args:
        data_dir: The store's folder, which exists.
        pgdata: The cluster in it, which need not exist.

    Raises:
        StoreUnavailableError: The caller is root and no account can be found or created.
    """
    if os.geteuid() != 0:
        return None
    if pgdata.exists() and pgdata.stat().st_uid == 0:
        msg = (
            f"{str(pgdata)!r} belongs to root, and PostgreSQL refuses to run as root. Give it to the account that the "
            f"server runs under: chown -R {_DEDICATED} {str(pgdata)!r}"
        )
        raise StoreUnavailableError(msg)
    owner = (pgdata if pgdata.exists() else data_dir).stat().st_uid
    return _dedicated_account() if owner == 0 else _account_of(owner, data_dir)


def _account_of(uid: int, data_dir: Path) -> Account:
    import pwd

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
    import pwd

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


def make_reachable(data_dir: Path, account: Account) -> None:
    """Let an account pass through the folders above the store and above PostgreSQL's programs.

    Folders of root that lack it get the search bit for others (``o+x``: pass through, not list); folders of anybody
    else are left as they are.

    Args:
        data_dir: The store's folder, itself included.
        account: The account that the server runs under.

    Raises:
        StoreUnavailableError: A folder of another user is in the way, or a folder's mode cannot be changed.
    """
    programs = installation() / "bin"
    for folder in {*_with_parents(data_dir), *_with_parents(programs)}:
        info = folder.stat()
        if not _allowed(info, account, bit=1):
            _open_for_search(folder, info, account)
    postgres = programs / "postgres"
    if not (_allowed(postgres.stat(), account, bit=1) and _allowed(postgres.stat(), account, bit=4)):
        tree = str(programs.parent.parent)
        remedy = f"chmod -R o+rX {tree!r} {tree + '.libs'!r}"
        msg = f"The account {account.name!r} may not read PostgreSQL's programs. Allow it: {remedy}. {_INSTEAD}"
        raise StoreUnavailableError(msg)


def _with_parents(folder: Path) -> list[Path]:
    # A symbolic link is followed: the folders that must be passable are those of its target.
    real = folder.resolve()
    return [real, *real.parents]


def _open_for_search(folder: Path, info: os.stat_result, account: Account) -> None:
    problem = "and it is not root's to change"
    if info.st_uid == 0:
        try:
            folder.chmod(stat.S_IMODE(info.st_mode) | stat.S_IXOTH)
        except OSError as exc:
            problem = f"and changing that failed: {exc.strerror}"
        else:
            _LOGGER.warning("%s: added o+x, so that the server's account %r can pass through", folder, account.name)
            return
    msg = (
        f"PostgreSQL cannot run as root, it runs as the user {account.name!r}, and that user may not pass through "
        f"{str(folder)!r}, {problem}. Allow it (chmod o+x {str(folder)!r}) or choose another data directory. {_INSTEAD}"
    )
    raise StoreUnavailableError(msg)


def _allowed(info: os.stat_result, account: Account, *, bit: int) -> bool:
    """Whether an account has a permission bit (4 read, 2 write, 1 execute), as the kernel decides it."""
    if info.st_uid == account.uid:
        return bool(info.st_mode & (bit << 6))
    if info.st_gid == account.gid:
        return bool(info.st_mode & (bit << 3))
    return bool(info.st_mode & bit)
