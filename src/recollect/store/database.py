"""Connections: the pools, and transactions that know their tenant."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from threading import Semaphore
from typing import Any, LiteralString, NamedTuple, Protocol, TypeVar
from weakref import WeakKeyDictionary, WeakSet

import psycopg
from pgvector.psycopg import register_vector
from psycopg import sql
from psycopg.rows import TupleRow, kwargs_row
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from recollect.errors import SchemaVersionError, StoreError, StoreUnavailableError
from recollect.fair_share import FairShare
from recollect.forking import leave_to_parent, renew_in_children
from recollect.interruption import stoppable
from recollect.model import Scope, asked_for
from recollect.store.connections import (
    SESSION_MARK,
    CheckOut,
    JsonbLoader,
    PoolUsage,
    Revival,
    Room,
    begin_session,
    begin_transaction,
    cancel,
    cut_off,
    give_up_session,
    is_pooled,
    require_dsn,
    roll_back,
    translated,
    translated_errors,
    usage,
)
from recollect.store.connections import Connection as Connection
from recollect.store.sql import newest_migration

_Result = TypeVar("_Result")

_IDLE = psycopg.pq.TransactionStatus.IDLE

_SET_TENANT = sql.SQL("SET recollect.tenant_id = {}")
_REQUIRE_ACTIVE = sql.SQL("; SELECT recollect.require_active({})")

# So long a connection takes a tenant for active before it asks again. What begins a search asks in its first statement.
_ACTIVE_SECONDS = 1.0
_ENTER = sql.SQL("; SELECT recollect.enter_tenant({})")
_REQUIRE_ISOLATION = sql.SQL("; SELECT recollect.require_isolation()")

_CONNECT_TIMEOUT_SECONDS = 10
# What they do is rare: indexes, partitions, tenants.
_OWNERS_CONNECTIONS = 4
# A caller waits so long for a connection.
_WAIT_SECONDS = 30.0
# A pool tries to connect for so long before it gives up, and then begins anew for those who wait: left to itself it
# doubles its pauses for minutes, and so goes on with them long after the server is back.
_RECONNECT_SECONDS = 2.0
# Long enough to ask a pool for a connection, which has it open one.
_ASKING_SECONDS = 0.01
# So many statements of a connection keep their cursors, which hold the rows that were found last.
_MOST_CURSORS = 100
_MOST_ROWS = 500
# So long the schema is taken for the one that is known.
_SCHEMA_SECONDS = 1.0


def connect(dsn: str, *, autocommit: bool = True) -> Connection:
    """Open a single connection, outside any pool.

    Raises:
        StoreUnavailableError: It is no DSN, or the server cannot be reached or refuses the login.
    """
    require_dsn(dsn)
    try:
        return Connection.connect(
            dsn, autocommit=autocommit, connect_timeout=_CONNECT_TIMEOUT_SECONDS, prepare_threshold=None
        )
    except psycopg.Error as exc:
        raise StoreUnavailableError(
            f"Cannot connect to PostgreSQL: {str(exc).strip()}\nCheck the DSN (--dsn, RECOLLECT_DSN) and the server."
        ) from exc


class CollectionRevision(NamedTuple):
    """A collection as it was found: whatever changes in it, or who may read it, gives it a later revision."""

    tenant_id: int
    collection_id: int
    revision: int


class ReadReplica(Protocol):
    """What reads may be done on instead: `recollect.store.replica.Replica`."""

    def serve(self, needed: Sequence[CollectionRevision], read: Callable[[], _Result]) -> _Result:
        """See `Database.on_replica`."""

    def leads_to(self) -> Database | None:
        """Where a read of the current context goes; None: to the primary."""

    def met_primary(self, connection: Connection) -> None:
        """Told of each new connection to the primary."""

    def close(self) -> None:
        """Close every connection to it."""


class Database:
    """A pool of connections to one store.

    Safe to share between threads. Connections are opened on demand and closed by `close`. They work as a role that owns
    nothing, so that row-level security binds every statement (`recollect.store.catalogue`); those of `autocommit` are
    the owner's.

    Args:
        dsn: A libpq connection string of the schema's owner; the schema must have been migrated.
        max_connections: How many connections the pool opens at most; a few of `autocommit` come on top.
        application_dsn: Of a role that owns nothing. None: ``dsn``, whose role changes to `APPLICATION_ROLE` where it
            may.
        even_suspended: Whether what suspended tenants have can be read and written: for those who look after them.
        ensure_server: Called before a connection is opened, to start a server that was killed; None: it is not ours.
        settings: Of PostgreSQL's, for every statement.
        wait_seconds: How long a caller waits for a connection.

    Attributes:
        replica: What reads may be done on instead (`on_replica`); None: there is none.

    Raises:
        StoreUnavailableError: ``dsn`` or ``application_dsn`` is no connection string.
    """

    def __init__(
        self,
        dsn: str,
        *,
        max_connections: int = 10,
        application_dsn: str | None = None,
        even_suspended: bool = False,
        ensure_server: Callable[[], None] | None = None,
        settings: Mapping[str, str] | None = None,
        wait_seconds: float = _WAIT_SECONDS,
    ) -> None:
        self.dsn = dsn
        self.application_dsn = require_dsn(application_dsn or dsn)
        self._ensure_server = ensure_server
        self._server_trouble: StoreUnavailableError | None = None
        self._even_suspended = even_suspended
        self._settings = {**(settings or {}), **({"recollect.even_suspended": "on"} if even_suspended else {})}
        self._max_connections = max_connections
        self._wait_seconds = wait_seconds
        self._closed = False
        self.replica: ReadReplica | None = None
        #: The places of searches that cost as much as dozens of others; tenants take turns.
        self.heavy_searches = FairShare(max(1, (os.cpu_count() or 1) // 2))
        self._make_pools()
        renew_in_children(self)

    def _make_pools(self) -> None:
        self._tenants: WeakKeyDictionary[Connection, tuple[int, float]] = WeakKeyDictionary()
        self._marks: WeakKeyDictionary[Connection, str] = WeakKeyDictionary()
        self._connections: WeakSet[Connection] = WeakSet()
        # Half of the cores, so that two statements of one caller find a core each. They have their own pool: whoever
        # holds a connection and wants one more never waits for somebody who does the same, and a lone caller's other
        # statements all meet the same connection, which has their plans and tables at hand.
        most = self._max_connections
        ahead = min((os.cpu_count() or 1) // 2, most // 2)
        self._pool = self._new_pool(self.application_dsn, most - ahead, self._configure)
        self._ahead_pool = self._new_pool(self.application_dsn, max(ahead, 1), self._configure)
        self._owners_pool = self._new_pool(self.dsn, min(most, _OWNERS_CONNECTIONS), self._configure_owners)
        self._ahead = Semaphore(ahead)
        self._room = Room(ahead)
        self._pooled: bool | None = None
        self._take = CheckOut()
        self._revival = None if self._ensure_server is None else Revival(self._ensure_server)
        self._schema_known_until = time.monotonic() + _SCHEMA_SECONDS

    def separate(
        self, *, max_connections: int, even_suspended: bool = False, settings: Mapping[str, str] | None = None
    ) -> Database:
        """The same store over connections of its own, none of them this one's."""
        return Database(
            self.dsn,
            max_connections=max_connections,
            application_dsn=self.application_dsn,
            even_suspended=even_suspended,
            ensure_server=self._ensure_server,
            settings=settings,
            wait_seconds=self._wait_seconds,
        )

    def renew_in_child(self) -> None:
        """In the child of a fork: connections of its own, opened when they are needed."""
        for connection in list(self._connections):
            cut_off(connection)
        leave_to_parent(self._pool, self._ahead_pool, self._owners_pool, self._ahead, self._tenants, self._connections)
        closed = self._closed
        self._make_pools()
        if closed:
            self.close()

    def close(self) -> None:
        """Close every connection; idempotent."""
        self._closed = True
        if self.replica is not None:
            self.replica.close()
        self._ahead_pool.close()
        self._pool.close()
        self._owners_pool.close()

    @contextmanager
    def transaction(self, scope: Scope, *, snapshot: bool = False) -> Iterator[Connection]:
        """A transaction in which the tenant is set; committed at the end, rolled back on any error.

        The tenant travels as SET LOCAL, the form that row-level security and sharding by tenant both understand.

        Args:
            scope: Whose.
            snapshot: Whether every statement sees the same moment; then none can write.

        Raises:
            TenantSuspendedError: The tenant is suspended.
            IsolationError: There are several tenants, and no policy binds the role that the program works as.
        """
        with translated_errors(), self._connection() as connection, self._begun(connection, scope, snapshot=snapshot):
            yield connection

    @contextmanager
    def single_reads(self, scope: Scope) -> Iterator[Connection]:
        """A connection for reads that need no common snapshot, each statement a transaction of its own.

        A search asks half a dozen small questions, and on a socket BEGIN and COMMIT would take as long as they do. The
        tenant is set for the connection, and again whenever another tenant's read meets it.
        """
        reader = self._reader()
        with reader._reading(asked_for(scope), reader._pool) as connection:
            yield connection

    def read(
        self, scope: Scope, query: LiteralString, params: dict[str, Any], *, prepare: bool | None = None
    ) -> list[TupleRow]:
        """The rows of one statement that needs no transaction, as `single_reads` and `rows` give them."""
        return self._reader()._read(asked_for(scope), query, params, prepare)

    def run(self, scope: Scope, query: LiteralString, params: Mapping[str, Any]) -> list[TupleRow]:
        """The rows of one statement, if it gives any, in a transaction of its own."""
        with self.transaction(scope) as connection:
            found = connection.execute(query, params, binary=True)
            return found.fetchall() if found.description else []

    def on_replica(self, needed: Sequence[CollectionRevision], read: Callable[[], _Result]) -> _Result:
        """Read something, on a replica where one has what is needed.

        `single_reads` and `read_ahead` are led there for the time of ``read``; transactions are not. What fails on the
        replica is read once more without it, so ``read`` must not write.

        Args:
            needed: The collections that are read, as they were found before.
            read: What reads.
        """
        return read() if self.replica is None else self.replica.serve(needed, read)

    def _reader(self) -> Database:
        led = None if self.replica is None else self.replica.leads_to()
        return led or self

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
        reader = self._reader()
        if reader is not self:
            with reader.read_ahead(scope, query, params) as fetch:
                yield fetch
            return
        # Behind a pooler, whoever holds a session and waits for another could wait for somebody who does the same.
        if self._behind_pooler() or not self._ahead.acquire(blocking=False):

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

    @property
    def searching(self) -> AbstractContextManager[None]:
        """Entered for the time of a search, which `room_ahead` goes by."""
        return self._room

    @property
    def room_ahead(self) -> bool:
        """Whether `read_ahead` gains anything: so few search now. Otherwise one statement costs less than two."""
        return self._room.is_there and not self._reader()._behind_pooler()

    @contextmanager
    def autocommit(self) -> Iterator[Connection]:
        """A connection of the schema's owner outside any transaction; row-level security does not bind it.

        For what belongs to no tenant: partitions, statistics of the planner, the list of tenants. Behind a pooler it is
        in one, because nothing else would hold its settings.
        """
        with translated_errors(), self._connection(self._owners_pool) as connection:
            if is_pooled(connection):
                with self._begun(connection, None, application=False):
                    yield connection
            else:
                yield connection

    @contextmanager
    def session(self) -> Iterator[Connection]:
        """As `autocommit`, and never in a transaction: for indexes, which are built concurrently.

        Raises:
            StoreError: There is a pooler in between.
        """
        with translated_errors(), self._connection(self._owners_pool) as connection:
            if is_pooled(connection):
                raise StoreError(
                    "Indexes are not built through a connection pooler, because a build needs a session of its own. "
                    "Let dsn name the server itself; application_dsn may name the pooler."
                )
            yield connection

    def ping(self) -> None:
        """Ask the database whether it can be worked with.

        Raises:
            StoreUnavailableError: It cannot be reached.
            SchemaVersionError: A newer recollect has brought the schema up to date since it was opened.
        """
        with self.untenanted() as connection:
            ((version,),) = rows(connection, "SELECT max(version) FROM recollect.schema_migrations")
        newest = newest_migration()
        if version > newest:
            raise SchemaVersionError(
                f"The store has schema version {version} by now, this process knows versions up to {newest}: a newer "
                "recollect has brought it up to date. End this process, and start that version."
            )

    def _require_known_schema(self) -> None:
        """Refuse what a newer recollect has made of the store meanwhile: it may mean something else."""
        # Before it is asked for, which takes a connection too.
        self._schema_known_until = time.monotonic() + _SCHEMA_SECONDS
        try:
            self.ping()
        except BaseException:
            self._schema_known_until = 0.0
            raise

    def usage(self) -> PoolUsage:
        """What the pools do at this moment. Asks nobody."""
        return usage(self._pool, self._ahead_pool, self._owners_pool)

    def has_sessions(self) -> bool:
        """Whether `session` gives one."""
        with translated_errors(), self._connection(self._owners_pool) as connection:
            return not is_pooled(connection)

    @contextmanager
    def untenanted(self) -> Iterator[Connection]:
        """A connection of the application's role that is no tenant's: no row of any can be read over it."""
        with translated_errors(), self._connection() as connection:
            if is_pooled(connection):
                with self._begun(connection, None):
                    yield connection
                return
            if self._tenants.pop(connection, None) is not None:
                connection.execute("RESET recollect.tenant_id")
            yield connection

    def _configure_owners(self, connection: Connection) -> None:
        self._configure(connection, application=False)

    def _configure(self, connection: Connection, *, application: bool = True) -> None:
        self._connections.add(connection)
        mark = begin_session(connection, application=application, settings=self._settings)
        if mark is None:
            self._pooled = True
        else:
            self._marks[connection] = mark
        register_vector(connection)
        connection.adapters.register_loader("jsonb", JsonbLoader)
        if self.replica is not None:
            self.replica.met_primary(connection)

    @contextmanager
    def _begun(
        self,
        connection: Connection,
        scope: Scope | None,
        *,
        application: bool = True,
        reads: bool = False,
        snapshot: bool = False,
    ) -> Iterator[None]:
        begin = begin_transaction(
            connection,
            tenant=None if scope is None else int(scope.tenant_id),
            application=application,
            settings=self._settings,
            reads=reads,
            snapshot=snapshot,
        )
        if scope is not None:
            begin += self._entering(asked_for(scope), reads=reads)
        try:
            connection.execute(begin)
            yield
        except BaseException:
            roll_back(connection)
            raise
        connection.execute("COMMIT")

    def _behind_pooler(self) -> bool:
        if self._pooled is None:
            with translated_errors(), self._connection() as connection:
                self._pooled = is_pooled(connection)
        return self._pooled

    def _entering(self, scope: Scope, *, reads: bool) -> sql.Composed:
        if self._even_suspended:
            return _REQUIRE_ISOLATION.format()
        return (_REQUIRE_ACTIVE if reads else _ENTER).format(int(scope.tenant_id))

    @contextmanager
    def _reading(self, scope: Scope, pool: ConnectionPool[Connection]) -> Iterator[Connection]:
        with translated_errors(), self._connection(pool) as connection:
            if not is_pooled(connection) and self._set_tenant(connection, scope):
                yield connection
                return
            with self._begun(connection, scope, reads=True):
                yield connection

    def _read(self, scope: Scope, query: LiteralString, params: dict[str, Any], prepare: bool | None) -> list[TupleRow]:
        """As `_reading`, for one statement. Searches are made of these, so it takes no step that only several need."""
        connection = self._taken(self._pool)
        try:
            with stoppable(partial(cancel, connection)):
                if is_pooled(connection) or not self._set_tenant(connection, scope):
                    with self._begun(connection, scope, reads=True):
                        return rows(connection, query, params, prepare=prepare)
                if prepare is not None:
                    return rows(connection, query, params, prepare=prepare)
                return _read_again(connection, query, params)
        except psycopg.Error as exc:
            raise translated(exc) from exc
        finally:
            if connection.pgconn.transaction_status != _IDLE:
                roll_back(connection)
            self._give_back(connection, self._pool)

    def _set_tenant(self, connection: Connection, scope: Scope) -> bool:
        """Set the tenant for the session, unless it is so; False: the session was not kept, and is given up."""
        tenant = int(scope.tenant_id)
        known, fresh_until = self._tenants.get(connection, (None, 0.0))
        if known == tenant and fresh_until >= time.monotonic():
            return True
        statements = _SET_TENANT.format(str(tenant)) + self._entering(scope, reads=True) + SESSION_MARK
        cursor = connection.execute(statements)
        while cursor.nextset():
            pass
        told = cursor.fetchone()
        if told is None or told[0] != self._marks.get(connection):
            connection.execute("RESET recollect.tenant_id")
            give_up_session(connection)
            self._pooled = True
            return False
        self._tenants[connection] = (tenant, time.monotonic() + _ACTIVE_SECONDS)
        return True

    def _new_pool(self, dsn: str, max_size: int, configure: Callable[[Connection], None]) -> ConnectionPool[Connection]:
        return ConnectionPool(
            self._server_at(dsn),
            min_size=0,
            max_size=max_size,
            kwargs={"autocommit": True, "connect_timeout": _CONNECT_TIMEOUT_SECONDS},
            connection_class=Connection,
            configure=configure,
            timeout=self._wait_seconds,
            reconnect_timeout=_RECONNECT_SECONDS,
            reconnect_failed=_try_again,
            num_workers=2,
            # At the first use: threads that nobody needs would be started with each store, and in each child of a fork.
            open=False,
        )

    def _server_at(self, dsn: str) -> Callable[[], str]:
        """What a pool asks for the connection string before it opens a connection."""

        def ask() -> str:
            if self._ensure_server is not None:
                try:
                    self._ensure_server()
                except StoreUnavailableError as exc:
                    self._server_trouble = exc
                    raise
            self._server_trouble = None
            return dsn

        return ask

    def _check_out(self, pool: ConnectionPool[Connection]) -> Connection:
        return self._take(pool, self._wait_seconds, self._revival)

    @contextmanager
    def _connection(self, pool: ConnectionPool[Connection] | None = None) -> Iterator[Connection]:
        pool = pool or self._pool
        connection = self._taken(pool)
        try:
            with stoppable(partial(cancel, connection)), connection:
                yield connection
        finally:
            self._give_back(connection, pool)

    def _taken(self, pool: ConnectionPool[Connection]) -> Connection:
        if pool.closed and not self._closed:
            pool.open()
        if pool is self._pool and time.monotonic() >= self._schema_known_until:
            self._require_known_schema()
        try:
            return self._check_out(pool)
        except PoolTimeout as exc:
            raise StoreUnavailableError(
                f"No database connection became free or could be opened in time: {self._server_trouble or exc}"
            ) from exc

    def _give_back(self, connection: Connection, pool: ConnectionPool[Connection]) -> None:
        if self._revival is not None and connection.closed:
            self._revival.doubt()
        pool.putconn(connection)


class Repository:
    """What is stored of one kind of thing.

    Args:
        database: The store's connections.
    """

    def __init__(self, database: Database) -> None:
        self._database = database


def _try_again(pool: ConnectionPool[Connection]) -> None:
    """Have a pool that gave up connecting begin anew, where somebody waits."""
    if pool.get_stats()["requests_waiting"]:
        with suppress(PoolTimeout, PoolClosed), pool.connection(timeout=_ASKING_SECONDS):
            pass


def _read_again(connection: Connection, query: LiteralString, params: dict[str, Any]) -> list[TupleRow]:
    """As `rows`, with the cursor that has run the statement before."""
    cursor = connection.kept.get(query)
    if cursor is None:
        if len(connection.kept) >= _MOST_CURSORS:
            connection.kept.clear()
        cursor = connection.kept[query] = connection.cursor(binary=True)
    found = cursor.execute(query, params).fetchall()
    if len(found) > _MOST_ROWS:
        # It would keep them until it runs again.
        del connection.kept[query]
    return found


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


def records(
    connection: Connection, query: LiteralString, params: dict[str, Any], make: Callable[..., _Result]
) -> list[_Result]:
    """As `rows`, each row made into something from its columns, which are given by name."""
    with connection.cursor(binary=True, row_factory=kwargs_row(make)) as cursor:
        return cursor.execute(query, params).fetchall()


def made_of(kind: Callable[..., _Result], columns: str, row: Sequence[Any]) -> _Result:
    """A record of a row, whose columns have these names in their order, apart by blanks."""
    return kind(**dict(zip(columns.split(), row, strict=True)))
