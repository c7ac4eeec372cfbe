"""The PostgreSQL server that recollect brings along, started on demand and stopped by its last user."""

from __future__ import annotations

import atexit
import logging
import os
import threading
from pathlib import Path
from types import TracebackType

from recollect.errors import StoreUnavailableError
from recollect.forking import renew_in_children
from recollect.store._folder import Folder
from recollect.store._server_account import installation, require_reachable_by_servers
from recollect.store._server_control import ServerControl
from recollect.store._server_files import Layout, UserHold, exclusive, explain_os_error, in_use, remove_short_name
from recollect.store._server_process import ServerProcess

_LOGGER = logging.getLogger(__name__)
_STOP_SECONDS = 2.0
_LONGEST_WAIT_SECONDS = 10.0
DATABASE = "recollect"
"""The name of the database in the embedded server."""


class EmbeddedServer:
    """A hold on the embedded server of one data directory.

    Any number of processes, and of handles within a process, may hold the same data directory's server. The first
    starts it, the last one to let go stops it. A holder that is killed counts as gone at once; if it was the last, the
    server stays up until the next holder has come and gone. A handle may be shared between threads. After a ``fork``
    the child's copy no longer holds anything: call :meth:`start` there again.

    Args:
        data_dir: The store's folder, created if it is missing.
        start_timeout_seconds: How long a start may take; default: 300, for the recovery after a crash in the middle of
            a large ingest.

    Example:
        >>> with EmbeddedServer(Path("data")) as dsn:  # doctest: +SKIP
        ...     psycopg.connect(dsn)
    """

    def __init__(self, data_dir: Path, *, start_timeout_seconds: float = 300.0) -> None:
        self._data_dir = data_dir
        self._start_timeout_seconds = start_timeout_seconds
        self._thread_lock = threading.RLock()
        self._hold: UserHold | None = None
        self._process = os.getpid()
        self._parents_hold = False
        renew_in_children(self)

    @property
    def data_dir(self) -> Path:
        """The store's folder."""
        return self._data_dir.expanduser().resolve()

    def start(self) -> str:
        """Start the server if it is not running, and hold it.

        Calling it again is cheap, and starts a server anew that was killed in the meantime.

        Returns:
            A libpq connection string for the database ``recollect`` (socket, user ``postgres``).

        Raises:
            StoreUnavailableError: The server cannot be started; the message says why and what to do.
        """
        # Before the other modules are imported: they need a Unix.
        installation()

        self._forget_parents_hold()
        with self._thread_lock:
            try:
                if self._hold is not None:
                    self._require_in_place(self._hold.folder)
                    return self._start(self._hold.folder)
                folder = Folder.open(self._create_data_dir())
                try:
                    return self._start(folder)
                finally:
                    if self._hold is None:
                        folder.close()
            except OSError as exc:
                raise explain_os_error(exc, self._data_dir) from exc

    def _start(self, folder: Folder) -> str:
        with exclusive(folder, timeout_seconds=self._start_timeout_seconds):
            hold = self._hold or UserHold(folder)
            try:
                dsn = ServerControl.of(folder).ensure_running(
                    database=DATABASE, timeout_seconds=self._start_timeout_seconds
                )
            except BaseException:
                if self._hold is None:
                    hold.release()
                    self._stop_unusable(folder)
                raise
            self._parents_hold = False
            if self._hold is None:
                self._hold = hold
                atexit.register(self.stop)
        return dsn

    def _stop_unusable(self, folder: Folder) -> None:
        """After a start that failed: what may run all the same is no use to anybody."""
        try:
            _stop_if_unused(folder, _STOP_SECONDS, insist=True)
        except (OSError, StoreUnavailableError) as exc:
            _LOGGER.warning("the embedded server in %s was not stopped: %s", self._data_dir, exc)

    def _create_data_dir(self) -> Path:
        folder = self._data_dir.expanduser().absolute()
        if "\n" in str(folder) or "\0" in str(folder):
            # PostgreSQL notes the folder on one line of its postmaster.pid.
            msg = f"A data directory's name must not contain line breaks: {str(folder)!r}. Choose another: --data-dir."
            raise StoreUnavailableError(msg)
        if os.geteuid() == 0 and not folder.exists():
            require_reachable_by_servers(folder)
        # As root the server runs under another account, which must pass through; what is inside is private anyway.
        folder.mkdir(mode=0o711 if os.geteuid() == 0 else 0o700, parents=True, exist_ok=True)
        if (folder / "PG_VERSION").exists():
            msg = (
                f"{str(folder)!r} is itself a PostgreSQL cluster, and not one of recollect's. Choose another folder "
                "(--data-dir), or start its server and name that with --dsn."
            )
            raise StoreUnavailableError(msg)
        return folder.resolve()

    def _require_in_place(self, folder: Folder) -> None:
        if not folder.is_at(str(folder.path)):
            raise StoreUnavailableError(
                f"The data directory {str(folder.path)!r} was moved or removed while it was in use. Open it again, "
                "where it is now."
            )

    def ensure_running(self) -> None:
        """Start the server anew where it was killed; do nothing where it runs, or where it was let go of.

        Raises:
            StoreUnavailableError: As :meth:`start`.
        """
        with self._thread_lock:
            if self._parents_hold:
                # The parent may let go of the server while this process uses it.
                self.start()
            if self._hold is None:
                return

            if ServerProcess(self._hold.folder).phase() != "ready":
                self.start()

    def stop(self, *, wait_seconds: float = _STOP_SECONDS) -> None:
        """Let go of the server, and stop it if nobody else holds it. Calling it again does nothing.

        Nothing is lost by stopping: a stop is ordered, and what was committed is on disk before it.

        Args:
            wait_seconds: How long to wait for the server to end, usually 0.1 s; default: 2. One that has much to
                write goes on by itself, and whoever comes next waits for it.
        """
        self._forget_parents_hold()
        with self._thread_lock:
            self._parents_hold = False
            if self._hold is None:
                return
            hold, self._hold = self._hold, None
            atexit.unregister(self.stop)
            try:
                self._release(hold, wait_seconds)
            except (OSError, StoreUnavailableError) as exc:
                # The work is done and safe: that the server stays up is no reason to fail.
                _LOGGER.warning("the embedded server in %s was not stopped: %s", self._data_dir, exc)
            finally:
                hold.folder.close()

    def _release(self, hold: UserHold, wait_seconds: float) -> None:
        hold.release()
        # Whoever is still there stops it; do not wait for one who may just be recovering it.
        if not in_use(hold.folder):
            with exclusive(hold.folder, timeout_seconds=_LONGEST_WAIT_SECONDS):
                _stop_if_unused(hold.folder, wait_seconds)

    def renew_in_child(self) -> None:
        """In the child of a fork: forget the parent's hold, so that the child does not keep its server up."""
        self._forget_parents_hold()

    def _forget_parents_hold(self) -> None:
        if self._process == os.getpid():
            return
        self._process = os.getpid()
        self._thread_lock = threading.RLock()
        if self._hold is not None:
            self._hold.abandon()
            self._hold = None
            self._parents_hold = True

    def __enter__(self) -> str:
        return self.start()

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()


def _stop_if_unused(folder: Folder, wait_seconds: float, *, insist: bool = False) -> None:
    if in_use(folder):
        return
    server = ServerProcess(folder)
    server.stop(wait_seconds=wait_seconds, insist=insist)
    if server.postmaster() is None:
        remove_short_name(Layout(folder.path))
