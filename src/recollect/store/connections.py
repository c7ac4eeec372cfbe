"""Connections: their strings, what is set in them, what their errors mean, and what is done to them from outside."""

from __future__ import annotations

import json
import os
import secrets
import select
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from json.scanner import make_scanner
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import ProgrammingError, sql
from psycopg.adapt import Buffer, Loader
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import RowFactory, TupleRow, tuple_row
from psycopg_pool import PoolTimeout

from recollect.errors import (
    IsolationError,
    ModelChangedError,
    QuotaExceededError,
    RecollectError,
    SchemaVersionError,
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreUnavailableError,
    TenantSuspendedError,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from psycopg.pq.abc import PGconn
    from psycopg_pool import ConnectionPool


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
        self._exhausted: set[ConnectionPool[Any]] = set()

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

    def __enter__(self) -> None:
        """Be at it within the block."""
        with self._lock:
            self._at_it += 1

    def __exit__(self, *_: object) -> None:
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


# What a statement runs under: planner settings, role and tenant, for a session or for a transaction alone.
#
# A connection of one's own keeps what is set for it, so that a search's small questions need no transaction. Behind a
# pooler that gives every transaction another session (PgBouncer in transaction mode), nothing set for a session
# holds, and what is set there meets others. So the same settings are made for each transaction there, in the
# statement that begins it. A connection through a pooler of any kind is treated like that: which one it is cannot be
# seen.


class Connection(psycopg.Connection[TupleRow]):
    """A connection to the store.

    Attributes:
        kept: A cursor for each statement that `recollect.store.database.Database.read` has run over it: how its values
            are written and its columns are read is found out once.
    """

    def __init__(self, pgconn: PGconn, row_factory: RowFactory[TupleRow] = tuple_row) -> None:
        super().__init__(pgconn, row_factory)
        self.kept: dict[str, psycopg.Cursor[TupleRow]] = {}


class JsonbLoader(Loader):
    """Reads jsonb as `json.loads` does, which would look first for the encoding that it is in."""

    format = psycopg.pq.Format.BINARY

    def load(self, data: Buffer) -> Any:  # noqa: ANN401 - whatever JSON holds
        """The value; before its text stands the number of the format."""
        return _SCAN(str(data[1:], "utf-8"), 0)[0]


_SCAN = make_scanner(json.JSONDecoder())  # type: ignore[arg-type]  # typeshed asks for a scanner


#: How many candidates a search of the approximate index keeps: more find more, and cost more.
DEFAULT_EF_SEARCH = 175


# How many lists of an IVFFlat index a search looks into. Of 316 lists of 100,000 vectors, 40 hold 0.96 of the nearest
# ten (20: 0.91; 80: 0.99).
_PROBES = 40


# What suits the reads of a search: small statements by key, each planned once a connection.
# No sequential scans: a plan made while a table was small would go on scanning it when it has grown. The retrievers are
# planned anew for every call, because they are functions that EXECUTE their statement with the collection as a literal.
# Parallel workers and JIT cost more than they save on queries of a few milliseconds.
_SETTINGS = {
    "plan_cache_mode": "auto",
    "enable_seqscan": "off",
    "jit": "off",
    "max_parallel_workers_per_gather": "0",
    "hnsw.iterative_scan": "relaxed_order",
    "hnsw.ef_search": str(DEFAULT_EF_SEARCH),
    "ivfflat.iterative_scan": "relaxed_order",
    "ivfflat.probes": str(_PROBES),
    "TimeZone": "UTC",
}


# Transactions write and report: statements of any shape, whose plans must fit what there is now.
TRANSACTIONS_SETTINGS = {"plan_cache_mode": "force_custom_plan", "enable_seqscan": "on"}


_SEARCH_PATH = {False: "SET search_path = recollect, public", True: "SET LOCAL search_path = recollect, public"}


# Where the login may take that role and does not have it already. From PostgreSQL 16 on, a member of a role need not be
# allowed to take it. Where it may not, several tenants are refused (`recollect.store.catalogue`).
_TAKE_ROLE = sql.SQL(
    "SELECT set_config('role', {role}, {local}) FROM pg_roles WHERE rolname = {role} AND rolname <> current_user "
    "AND pg_has_role(oid, CASE WHEN current_setting('server_version_num')::int < 160000 THEN 'MEMBER' ELSE 'SET' END)"
)


#: The last statement of those that set something for a session: what the session is told by.
SESSION_MARK = sql.SQL("; SELECT current_setting('recollect.session', true)")


def is_pooled(connection: Connection) -> bool:
    """Whether there is a pooler in between, so that only what is set for a transaction holds."""
    return connection.prepare_threshold is None


def begin_session(connection: Connection, *, application: bool, settings: Mapping[str, str]) -> str | None:
    """Make the settings of a new connection, unless a pooler is in between.

    Args:
        connection: Outside any transaction.
        application: Whether it works as the role that owns nothing.
        settings: Further ones.

    Returns:
        What `SESSION_MARK` asks for, so that a session that was not kept is noticed; None behind a pooler.
    """
    # A pooler answers the login itself, with a number of its own.
    backend = connection.execute("SELECT pg_backend_pid()").fetchone()
    if backend is None or backend[0] != connection.info.backend_pid:
        give_up_session(connection)
        return None
    mark = secrets.token_hex(8)
    statements = _state(local=False, application=application, settings={**settings, "recollect.session": mark})
    connection.execute(sql.SQL("; ").join(statements))
    return mark


def give_up_session(connection: Connection) -> None:
    """Keep nothing in the session from now on; statements prepared in one are not known to the next."""
    connection.prepare_threshold = None


def begin_transaction(
    connection: Connection,
    *,
    tenant: int | None,
    application: bool,
    settings: Mapping[str, str],
    reads: bool = False,
    snapshot: bool = False,
) -> sql.Composed:
    """The statements that begin a transaction.

    Args:
        connection: Where; behind a pooler everything is set anew.
        tenant: Whose rows it works on; None: nobody's.
        application: Whether it works as the role that owns nothing.
        settings: Further ones.
        reads: Whether it only reads, as a search does.
        snapshot: Whether every statement sees the same moment; then none can write.
    """
    begin = sql.SQL("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY" if snapshot else "BEGIN")
    statements: list[sql.Composable] = [begin]
    if is_pooled(connection):
        statements += _state(local=True, application=application, settings=settings)
    if not reads:
        statements += [_set(name, value, local=True) for name, value in TRANSACTIONS_SETTINGS.items()]
    statements.append(_set("recollect.tenant_id", "" if tenant is None else str(tenant), local=True))
    return sql.SQL("; ").join(statements)


def _state(*, local: bool, application: bool, settings: Mapping[str, str]) -> list[sql.Composable]:
    statements: list[sql.Composable] = [sql.SQL(_SEARCH_PATH[local])]
    statements += [_set(name, value, local=local) for name, value in {**_SETTINGS, **settings}.items()]
    if application:
        statements.append(_TAKE_ROLE.format(role=sql.Literal(APPLICATION_ROLE), local=sql.Literal(local)))
    return statements


def _set(name: str, value: str, *, local: bool) -> sql.Composed:
    scope = sql.SQL("SET LOCAL") if local else sql.SQL("SET")
    # Names of settings hold at most one dot, between the prefix of an extension and its own.
    return sql.SQL("{} {} = {}").format(scope, sql.Identifier(*name.split(".")), sql.Literal(value))


# The driver's errors as the store's: the one place where they are translated.


_REFUSED = (
    psycopg.errors.DeadlockDetected,
    psycopg.errors.LockNotAvailable,
    psycopg.errors.ProgramLimitExceeded,
    psycopg.errors.QueryCanceled,
    psycopg.errors.SerializationFailure,
)


@contextmanager
def translated_errors() -> Iterator[None]:
    """Turn the driver's errors into the store's."""
    try:
        yield
    except psycopg.Error as exc:
        raise translated(exc) from exc


def translated(exc: psycopg.Error) -> RecollectError:
    """The store's error for one of the driver's."""
    match exc:
        case psycopg.errors.DiskFull():
            return StoreFullError(
                "The database's disk is full. What was acknowledged is safe; free some space and run the command again."
            )
        # PostgreSQL files the operating system's refusal under the same code as its own.
        case psycopg.errors.InsufficientPrivilege() if "Permission denied" in _message(exc):
            return StoreUnavailableError(
                f"The database server may not open a file of its own ({_message(exc)}). Give all of its data directory "
                "to the user that it runs as: chown -R."
            )
        case psycopg.errors.InsufficientPrivilege() | psycopg.errors.ReadOnlySqlTransaction():
            return StoreError(f"The database refused the operation: {_message(exc)}. Grant it, or use another role.")
        case psycopg.Error(sqlstate=str(state)) if state in _RAISED:
            return _RAISED[state](exc)
        case psycopg.errors.DataCorrupted() | psycopg.errors.IndexCorrupted():
            return StoreCorruptError(
                f"A file of the database is damaged ({_message(exc)}). recollect db verify names the table or index, "
                "and says what to do."
            )
        case psycopg.errors.UndefinedTable() | psycopg.errors.UndefinedColumn() | psycopg.errors.UndefinedFunction():
            return SchemaVersionError(
                f"The store's schema is not the one that this process opened ({_message(exc)}): another version of "
                "recollect may have brought it up to date meanwhile. End this process, and start that version."
            )
    # The driver files these under operational errors, yet the database is well: this statement failed.
    if isinstance(exc, _REFUSED):
        return StoreError(f"The database refused the operation: {_message(exc)}.")
    if isinstance(exc, psycopg.OperationalError):
        return StoreUnavailableError(f"The database cannot be reached or went away: {_message(exc)}")
    return StoreError(f"The database failed: {_message(exc)}")


def _message(exc: psycopg.Error) -> str:
    return (exc.diag.message_primary or str(exc).strip() or type(exc).__name__).rstrip(".")


# What the routines raise.
_RAISED: dict[str, Callable[[psycopg.Error], RecollectError]] = {
    "RT001": lambda exc: TenantSuspendedError(
        f"{_message(exc)}. It can neither be searched nor written to until it is resumed."
    ),
    "RT002": lambda exc: QuotaExceededError(**json.loads(exc.diag.message_detail or "{}")),
    "RT003": lambda exc: IsolationError(
        f"The store has several tenants, and {_message(exc)}: nothing is read or written over this connection. "
        "recollect db check says what an administrator has to do."
    ),
    "RT004": lambda _: StoreError(
        "The connection has lost its settings: no tenant is set. Nothing was read or written. Try again; a "
        "connection pooler must not reset sessions between two statements."
    ),
    "RT005": lambda _: ModelChangedError(
        "The collection was deleted, or its embedding model changed, while it was searched: try again."
    ),
}


# Connection strings, checked before libpq reads them: its messages quote what it does not understand.


#: The role that the program works as: it owns nothing, so that row-level security binds it.
APPLICATION_ROLE = "recollect_app"


_SCHEMES = ("postgresql://", "postgres://")


def require_dsn(dsn: str) -> str:
    """A connection string that libpq reads as it was meant, as far as that can be seen.

    Raises:
        StoreUnavailableError: It is none, or a character of its password ends the password early. Nothing of it is
            quoted.
    """
    try:
        read = conninfo_to_dict(dsn)
    except (ProgrammingError, ValueError, TypeError):
        # Not `from exc`: a traceback would show the cause, which quotes a part of the password.
        raise _malformed() from None
    ports = str(read.get("port", "")).split(",")
    if "\0" in dsn or _cut_short(dsn) or not all(port.isdecimal() or not port for port in ports):
        raise _malformed()
    return dsn


def application_dsn(dsn: str) -> str:
    """The same database, to be logged into as the role that owns nothing; the embedded server lets it in."""
    return make_conninfo(dsn, user=APPLICATION_ROLE)


def _cut_short(dsn: str) -> bool:
    """Whether an ``@`` or ``/`` of a URL's password was taken for the one behind the password."""
    scheme = next((scheme for scheme in _SCHEMES if dsn.startswith(scheme)), None)
    if scheme is None:
        return False
    authority, _, rest = dsn.removeprefix(scheme).partition("/")
    return authority.count("@") > 1 or ("@" in rest and bool(authority) and "@" not in authority)


def _malformed() -> StoreUnavailableError:
    return StoreUnavailableError(
        "Not a PostgreSQL DSN (it is not shown, because it may hold a password). It reads "
        "postgresql://user:password@host:5432/database or key=value pairs. In a URL, write @ / : and % of a password "
        "as %40 %2F %3A and %25; between key=value pairs, quote a value that has blanks: password='my secret'."
    )
