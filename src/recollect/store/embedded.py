"""The PostgreSQL server that recollect brings along, started on demand and stopped by its last user."""

from __future__ import annotations

import atexit
import logging
import os
import threading
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from recollect.errors import StoreUnavailableError
from recollect.forking import renew_in_children
from recollect.store._server_binaries import installation

if TYPE_CHECKING:
    from recollect.store._server_files import Layout, UserHold

_LOGGER = logging.getLogger(__name__)
_STOP_SECONDS = 2.0
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
        from recollect.store._server_errors import explain_os_error
        from recollect.store._server_files import Layout

        self._forget_parents_hold()
        with self._thread_lock:
            try:
                return self._start(Layout(self._create_data_dir()))
            except OSError as exc:
                raise explain_os_error(exc, self._data_dir) from exc

    def _start(self, layout: Layout) -> str:
        from recollect.store._server_control import ServerControl
        from recollect.store._server_files import UserHold, exclusive

        with exclusive(layout, timeout_seconds=self._start_timeout_seconds):
            hold = self._hold or UserHold(layout)
            try:
                dsn = ServerControl.of(layout).ensure_running(
                    database=DATABASE, timeout_seconds=self._start_timeout_seconds
                )
            except BaseException:
                if self._hold is None:
                    hold.release()
                    self._stop_unused(layout)
                raise
            self._parents_hold = False
            if self._hold is None:
                self._hold = hold
                atexit.register(self.stop)
        return dsn

    def _stop_unused(self, layout: Layout) -> None:
        """After a start that failed: nobody uses what may run all the same."""
        from recollect.store._server_files import in_use
        from recollect.store._server_process import ServerProcess

        try:
            if not in_use(layout):
                ServerProcess(layout).stop(wait_seconds=_STOP_SECONDS)
        except (OSError, StoreUnavailableError) as exc:
            _LOGGER.warning("the embedded server in %s was not stopped: %s", self._data_dir, exc)

    def _create_data_dir(self) -> Path:
        folder = self._data_dir.expanduser().absolute()
        # As root the server runs under another account, which must pass through; what is inside is private anyway.
        folder.mkdir(mode=0o711 if os.geteuid() == 0 else 0o700, parents=True, exist_ok=True)
        if (folder / "PG_VERSION").exists():
            msg = (
                f"{str(folder)!r} is itself a PostgreSQL cluster, and not one of recollect's. Choose another folder "
                "(--data-dir), or start its server and name that with --dsn."
            )
            raise StoreUnavailableError(msg)
        return folder.resolve()

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
            from recollect.store._server_files import Layout
            from recollect.store._server_process import ServerProcess

            if ServerProcess(Layout(self._data_dir.expanduser().resolve())).phase() != "ready":
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

    def _release(self, hold: UserHold, wait_seconds: float) -> None:
        from recollect.store._server_control import ServerControl
        from recollect.store._server_files import Layout, exclusive, in_use

        hold.release()
        layout = Layout(self._data_dir.expanduser().resolve())
        if not layout.lock.exists():
            return
        # Whoever is still there stops it; do not wait for one who may just be recovering it.
        if in_use(layout):
            return
        with exclusive(layout, timeout_seconds=10):
            if not in_use(layout):
                ServerControl.of(layout).stop(wait_seconds=wait_seconds)

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
