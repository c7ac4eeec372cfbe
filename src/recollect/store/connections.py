"""What is done to a connection from outside its statements: ended, asked whether it lives, left to a parent process."""

from __future__ import annotations

import os
import select
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import psycopg
from psycopg_pool import PoolTimeout

if TYPE_CHECKING:
    from psycopg_pool import ConnectionPool

    from recollect.store.session_state import Connection

_CANCEL_TIMEOUT_SECONDS = 10

# Once somebody has waited for a connection in vain, all others wait so long until one is free again: they would come to
# nothing too, and those behind them would wait for each of them in turn.
_SHORT_WAIT_SECONDS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolUsage:
    """Connections that are used, those that lie ready, and callers who wait for one."""

    used: int
    idle: int
    waiting: int


def usage(*pools: ConnectionPool[Any]) -> PoolUsage:
    """What pools do at this moment, together."""
    stats = [pool.get_stats() for pool in pools]
    size, idle, waiting = (
        sum(one.get(name, 0) for one in stats) for name in ("pool_size", "pool_available", "requests_waiting")
    )
    return PoolUsage(used=max(0, size - idle), idle=idle, waiting=waiting)


class CheckOut:
    """Takes connections out of pools."""

    def __init__(self) -> None:
        self._exhausted: WeakSet[ConnectionPool[Any]] = WeakSet()

    def __call__(
        self, pool: ConnectionPool[Connection], wait_seconds: float, revival: Revival | None = None
    ) -> Connection:
        """A connection that the server has not hung up on. When it was killed, all that lie in the pool are broken.

        Args:
            pool: Where it is taken from.
            wait_seconds: How long it is waited for.
            revival: Looks after the server; None: it is not ours.

        Raises:
            PoolTimeout: None became free in time.
            StoreUnavailableError: The server cannot be started.
        """
        while True:
            if revival is not None:
                revival(wait_seconds)
            try:
                connection = pool.getconn(_SHORT_WAIT_SECONDS if pool in self._exhausted else wait_seconds)
            except PoolTimeout:
                self._exhausted.add(pool)
                raise
            self._exhausted.discard(pool)
            if not hung_up(connection):
                return connection
            connection.close()
            if revival is not None:
                revival.doubt()
            pool.putconn(connection)


class Revival:
    """Has a server looked after that this store starts itself, and tells at once where it cannot be started.

    A pool tries again and again, and whoever waits for a connection of it hears nothing of why. So, once a connection
    was found broken, the next caller has the server looked after before it waits; others who come meanwhile share that.

    Args:
        ensure: Starts a server that was killed.
    """

    def __init__(self, ensure: Callable[[], None]) -> None:
        self._ensure = ensure
        self._lock = Lock()
        self._doubtful = False
        self._attempt: Future[None] | None = None

    def doubt(self) -> None:
        """Say that a connection was found broken."""
        self._doubtful = True

    def __call__(self, wait_seconds: float) -> None:
        """Return when the server runs, so far as is known, or after so long.

        Raises:
            StoreUnavailableError: It cannot be started; says why.
        """
        if not self._doubtful:
            return
        with self._lock:
            if self._attempt is None or self._attempt.done():
                self._attempt = Future()
                Thread(target=self._try, args=(self._attempt,), name="recollect-revival", daemon=True).start()
            attempt = self._attempt
        # One that recovers for longer is waited for as before, for a connection of the pool.
        wait([attempt], wait_seconds)
        if attempt.done():
            attempt.result()

    def _try(self, attempt: Future[None]) -> None:
        try:
            self._ensure()
        except BaseException as exc:  # noqa: BLE001 - whoever waits raises it
            attempt.set_exception(exc)
        else:
            self._doubtful = False
            attempt.set_result(None)


class Room:
    """Counts who is at something, and says whether they are few.

    Args:
        few: So many at most.
    """

    def __init__(self, few: int) -> None:
        self._few = few
        self._at_it = 0
        self._lock = Lock()

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Be at it within the block."""
        with self._lock:
            self._at_it += 1
        try:
            yield
        finally:
            with self._lock:
                self._at_it -= 1

    @property
    def is_there(self) -> bool:
        """Whether no more are at it than those few."""
        return self._at_it <= self._few


def roll_back(connection: Connection) -> None:
    """Undo a transaction; where that fails, the server is left to, and what ended it stays the error that is seen.

    An interrupt may come between a statement and its result, and then a connection takes no other statement.
    """
    if connection.closed:
        return
    try:
        connection.rollback()
    except psycopg.Error:
        connection.close()


def cancel(connection: Connection) -> None:
    """End the statement that a connection runs; where its server cannot be reached it has ended."""
    with suppress(psycopg.Error):
        connection.cancel_safe(timeout=_CANCEL_TIMEOUT_SECONDS)


def hung_up(connection: Connection) -> bool:
    """Whether the server has ended an idle connection: known without asking it, which would cost a round trip."""
    poll = select.poll()
    try:
        poll.register(connection.pgconn.socket, select.POLLIN)
    except psycopg.OperationalError:
        return True
    # To an idle client a server says nothing but its last words.
    return bool(poll.poll(0))


def cut_off(connection: Connection) -> None:
    """Part this process's copy of a parent's connection from the server, without a word to it."""
    with suppress(psycopg.Error, OSError):
        nowhere = os.open(os.devnull, os.O_RDWR)
        try:
            # Not closed: its number would be another file's, and what still writes to it would write there.
            os.dup2(nowhere, connection.pgconn.socket, inheritable=False)
        finally:
            os.close(nowhere)
