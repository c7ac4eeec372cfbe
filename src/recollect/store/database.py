"""Connections: the pool, transactions that know their tenant, and the translation of the driver's errors."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Semaphore
from typing import Any, LiteralString
from weakref import WeakKeyDictionary

import psycopg
from pgvector.psycopg import register_vector
from psycopg import sql
from psycopg.rows import TupleRow
from psycopg_pool import ConnectionPool, PoolTimeout

from recollect.errors import StoreError, StoreUnavailableError
from recollect.model import Scope

Connection = psycopg.Connection[TupleRow]

#: How many candidates a search of the approximate index keeps: more find more, and cost more.
DEFAULT_EF_SEARCH = 150

# What a connection starts with suits the reads of a search: small statements by key, each planned once a connection.
# No sequential scans: a plan made while a table was small would go on scanning it when it has grown. The arms are
# planned anew for every call, because they are functions that EXECUTE their statement with the collection as a literal.
# Parallel workers and JIT cost more than they save on queries of a few milliseconds.
_SESSION_SETTINGS = sql.SQL(
    """
    SET search_path = recollect, public;
    SET plan_cache_mode = auto;
    SET enable_seqscan = off;
    SET jit = off;
    SET max_parallel_workers_per_gather = 0;
    SET hnsw.iterative_scan = relaxed_order;
    SET hnsw.ef_search = {ef_search};
    SET TimeZone = 'UTC'
    """
).format(ef_search=sql.Literal(DEFAULT_EF_SEARCH))

# Transactions write and report: statements of any shape, whose plans must fit what there is now.
_BEGIN = sql.SQL(
    "BEGIN; SET LOCAL recollect.tenant_id = {}; SET LOCAL plan_cache_mode = force_custom_plan; "
    "SET LOCAL enable_seqscan = on"
)

_CONNECT_TIMEOUT_SECONDS = 10

_REFUSED = (
    psycopg.errors.DeadlockDetected,
    psycopg.errors.LockNotAvailable,
    psycopg.errors.ProgramLimitExceeded,
    psycopg.errors.QueryCanceled,
    psycopg.errors.SerializationFailure,
)


@contextmanager
def translated_errors() -> Iterator[None]:
    """Turn the driver's errors into the store's: the one place where that happens."""
    try:
        yield
    except psycopg.errors.DiskFull as exc:
        raise StoreUnavailableError(
            "The database's disk is full. What was acknowledged is safe; free some space and run the command again."
        ) from exc
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.ReadOnlySqlTransaction) as exc:
        raise StoreError(
            f"The database refused the operation: {_message(exc)}. Grant it, or use another role."
        ) from exc
    except _REFUSED as exc:
        # The driver files these under operational errors, yet the database is well: this statement failed.
        raise StoreError(f"The database refused the operation: {_message(exc)}.") from exc
    except psycopg.OperationalError as exc:
        raise StoreUnavailableError(f"The database cannot be reached or went away: {_message(exc)}") from exc
    except psycopg.Error as exc:
        raise StoreError(f"The database failed: {_message(exc)}") from exc


def _message(exc: psycopg.Error) -> str:
    return (exc.diag.message_primary or str(exc).strip() or type(exc).__name__).rstrip(".")


def connect(dsn: str, *, autocommit: bool = True) -> Connection:
    """Open a single connection, outside any pool.

    Raises:
        StoreUnavailableError: The server cannot be reached or refuses the login.
    """
    try:
        return psycopg.connect(dsn, autocommit=autocommit, connect_timeout=_CONNECT_TIMEOUT_SECONDS)
    except psycopg.OperationalError as exc:
        raise StoreUnavailableError(
            f"Cannot connect to PostgreSQL: {str(exc).strip()}\nCheck the DSN (--dsn, RECOLLECT_DSN) and the server."
        ) from exc
    except psycopg.ProgrammingError as exc:
        raise StoreUnavailableError(
            f"Not a PostgreSQL DSN: {str(exc).strip()}. "
            "It reads postgresql://user:password@host:5432/database or key=value pairs."
        ) from exc


def _configure(connection: Connection) -> None:
    connection.execute(_SESSION_SETTINGS)
    register_vector(connection)


class Database:
    """A pool of connections to one store.

    Safe to share between threads. Connections are opened on demand and closed by `close`.

    Args:
        dsn: A libpq connection string; its schema must have been migrated.
        max_connections: How many connections the pool opens at most.
    """

    def __init__(self, dsn: str, *, max_connections: int = 10) -> None:
        self.dsn = dsn
        self._tenants: WeakKeyDictionary[Connection, str] = WeakKeyDictionary()
        # Half of the cores, so that two statements of one caller find a core each. They have their own pool: whoever
        # holds a connection and wants one more never waits for somebody who does the same, and a lone caller's other
        # statements all meet the same connection, which has their plans and tables at hand.
        ahead = min((os.cpu_count() or 1) // 2, max_connections // 2)
        self._pool = _pool(dsn, max_connections - ahead)
        self._ahead_pool = _pool(dsn, max(ahead, 1))
        self._ahead = Semaphore(ahead)

    def close(self) -> None:
        """Close every connection; idempotent."""
        self._ahead_pool.close()
        self._pool.close()

    @contextmanager
    def transaction(self, scope: Scope) -> Iterator[Connection]:
        """A transaction in which the tenant is set; committed at the end, rolled back on any error.

        The tenant travels as SET LOCAL, the form that row-level security and sharding by tenant both understand.
        """
        with translated_errors(), self._connection() as connection:
            connection.execute(_BEGIN.format(str(int(scope.tenant_id))))
            try:
                yield connection
            except BaseException:
                if not connection.closed:
                    connection.rollback()
                raise
            connection.execute("COMMIT")

    @contextmanager
    def single_reads(self, scope: Scope) -> Iterator[Connection]:
        """A connection for reads that need no common snapshot, each statement a transaction of its own.

        A search asks half a dozen small questions, and on a socket BEGIN and COMMIT would take as long as they do. The
        tenant is set for the connection, and again whenever another tenant's read meets it.
        """
        with self._reading(scope, self._pool) as connection:
            yield connection

    @contextmanager
    def read_ahead(
        self, scope: Scope, query: LiteralString, params: dict[str, Any]
    ) -> Iterator[Callable[[], list[TupleRow]]]:
        """A read that runs while the caller does something else, over a connection of its own.

        It gains nothing where every core is busy already. So only so many run ahead at a time; any more run when their
        rows are wanted.

        Yields:
            What waits for the rows; to be called once.
        """
        if not self._ahead.acquire(blocking=False):

            def run() -> list[TupleRow]:
                with self.single_reads(scope) as connection:
                    return rows(connection, query, params)

            yield run
            return
        try:
            with self._reading(scope, self._ahead_pool) as connection, connection.pipeline():
                cursor = connection.cursor(binary=True)
                cursor.execute(query, params)
                yield cursor.fetchall
        finally:
            self._ahead.release()

    @contextmanager
    def autocommit(self) -> Iterator[Connection]:
        """A connection outside any transaction, for statements that refuse one (CREATE INDEX CONCURRENTLY)."""
        with translated_errors(), self._connection() as connection:
            yield connection

    @contextmanager
    def _reading(self, scope: Scope, pool: ConnectionPool[Connection]) -> Iterator[Connection]:
        with translated_errors(), self._connection(pool) as connection:
            tenant = str(int(scope.tenant_id))
            if self._tenants.get(connection) != tenant:
                connection.execute(sql.SQL("SET recollect.tenant_id = {}").format(tenant))
                self._tenants[connection] = tenant
            yield connection

    @contextmanager
    def _connection(self, pool: ConnectionPool[Connection] | None = None) -> Iterator[Connection]:
        try:
            with (pool or self._pool).connection() as connection:
                yield connection
        except PoolTimeout as exc:
            raise StoreUnavailableError(
                f"No database connection became free or could be opened in time: {exc}"
            ) from exc


def _pool(dsn: str, max_size: int) -> ConnectionPool[Connection]:
    return ConnectionPool(
        dsn,
        min_size=0,
        max_size=max_size,
        kwargs={"autocommit": True, "connect_timeout": _CONNECT_TIMEOUT_SECONDS},
        configure=_configure,
        num_workers=2,
        open=True,
    )


def rows(
    connection: Connection,
    query: LiteralString,
    params: dict[str, Any] | None = None,
    *,
    prepare: bool | None = None,
) -> list[TupleRow]:
    """Run a named query and fetch all of its rows, in the binary format.

    Args:
        connection: Where.
        query: With placeholders ``%(name)s``.
        params: Their values.
        prepare: False: plan for these values each time, where a plan for any value could be a bad one. None: the plan
            of a statement that keeps coming may be kept.
    """
    return connection.execute(query, params, binary=True, prepare=prepare).fetchall()
