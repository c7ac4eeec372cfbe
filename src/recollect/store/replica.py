"""A streaming replica that reads are done on: when it may serve one, and what happens when it cannot.

What a read must see is known before it begins. Its collections were looked up on the primary, with what the caller may
read of them, and whatever changes in a collection, rights included, gives it another revision. So a replica serves a
read exactly when it has replayed those revisions, and serves it as the primary would: a caller finds what was just
written, by whichever process, and nothing that was withdrawn or erased before the search began. There is no lag to
allow for; a replica that is behind is not asked, as far as the collection has changed since.

A revision is looked for on the replica once. It is then known up to which position of the write-ahead log it lies, and
a connection that has replayed so far needs no further question, whichever server a balancer has given it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal, LiteralString, TypeVar
from weakref import WeakKeyDictionary

import psycopg
from cachetools import LRUCache
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import TupleRow
from psycopg_pool import ConnectionPool

from recollect.errors import (
    ConfigurationError,
    ModelChangedError,
    RecollectError,
    StoreError,
    StoreUnavailableError,
    TenantSuspendedError,
)
from recollect.forking import renew_in_children
from recollect.model import Scope
from recollect.store.catalogue import require_isolation
from recollect.store.connections import hung_up, is_pooled, require_dsn, translated_errors
from recollect.store.database import CollectionRevision, Connection, Database, connect, rows
from recollect.store.sql import queries

logger = logging.getLogger(__name__)


_SQL = queries("replica")


_Result = TypeVar("_Result")


# Collections whose revisions are known to be on the replica.
_KEPT = 4_096


# A reader waits so long for a connection to the replica: the primary is there meanwhile.
_WAIT_SECONDS = 2.0


# A replica that could not be read from is tried again after so long, and then twice as long each time.
_FIRST_PAUSE_SECONDS = 1.0


_LONGEST_PAUSE_SECONDS = 30.0


# The same trouble is told once in so long.
_TOLD_SECONDS = 60.0


# A server that vanishes says nothing: what was sent to it and not confirmed, or a silence, ends the connection.
_NETWORK = {"tcp_user_timeout": 5_000, "keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3}


#: What became of a read: done there, or on the primary because the replica was behind, away, or failed meanwhile.
Outcome = Literal["replica", "behind", "away", "failed"]


OUTCOMES: tuple[Outcome, ...] = ("replica", "behind", "away", "failed")


class _BehindError(StoreError):
    """This server has not replayed what is to be read."""


class _GaveUpError(Exception):
    """A read is given up on the replica, and done on the primary."""


# What a statement on the replica may fail with. All of it is tried on the primary, which then says so itself: a tenant
# that the replica takes for suspended may have been resumed.
_FAILURES = (StoreError, TenantSuspendedError, ModelChangedError, ConfigurationError)


@dataclass(slots=True)
class _Led:
    """Where the reads of the current context are led, and what they must see."""

    replica: Replica
    position: int
    failed: Exception | None = None


_LED: ContextVar[_Led | None] = ContextVar("recollect_replica", default=None)


class _Connections(Database):
    """Connections to the replica, each of which is asked what it is before it is read from."""

    def __init__(self, dsn: str, *, max_connections: int, require: Callable[[Standing], None]) -> None:
        self._require_replica = require
        super().__init__(dsn, max_connections=max_connections, wait_seconds=_WAIT_SECONDS)

    def _make_pools(self) -> None:
        super()._make_pools()
        self._replayed: WeakKeyDictionary[Connection, int] = WeakKeyDictionary()

    def renew(self) -> None:
        """Open new connections, and ask each what it is; those in use end when they are given back."""
        self._replayed = WeakKeyDictionary()
        for pool in (self._pool, self._ahead_pool):
            if not pool.closed:
                pool.drain()

    def _check_out(self, pool: ConnectionPool[Connection]) -> Connection:
        """A connection; what has hung up may not be there any more, and nobody waits to see."""
        connection = pool.getconn()
        if not hung_up(connection):
            return connection
        connection.close()
        pool.putconn(connection)
        raise StoreUnavailableError("The replica has ended its connections.")

    def held(self, scope: Scope, collection_ids: Sequence[int]) -> tuple[int, dict[int, int]]:
        """Up to which position the replica has come, and the revisions of collections there.

        Raises:
            StoreUnavailableError: It follows no other server any more.
        """
        params = {"tenant_id": scope.tenant_id, "collection_ids": list(collection_ids)}
        with self.single_reads(scope) as connection:
            found = rows(connection, _SQL["held"], params)
            follows, position = found[0][:2]
            if not follows or position is None:
                raise StoreUnavailableError("It was promoted, and follows no other server any more.")
            self._replayed[connection] = position
        return position, {row[2]: row[3] for row in found if row[2] is not None}

    def _read(self, scope: Scope, query: LiteralString, params: dict[str, Any], prepare: bool | None) -> list[TupleRow]:
        with self._reading(scope, self._pool) as connection:
            return rows(connection, query, params, prepare=prepare)

    @contextmanager
    def _reading(self, scope: Scope, pool: ConnectionPool[Connection]) -> Iterator[Connection]:
        led = _LED.get()
        try:
            with super()._reading(scope, pool) as connection:
                self._require(connection, 0 if led is None else led.position)
                yield connection
        except _FAILURES as exc:
            if led is None:
                raise
            led.failed = exc
            raise _GaveUpError from exc

    def _require(self, connection: Connection, position: int) -> None:
        """Refuse a server that has not come so far; behind a pooler it may be another one each time."""
        if not is_pooled(connection) and self._replayed.get(connection, -1) >= position:
            return
        standing = read_standing(connection)
        self._require_replica(standing)
        self._replayed[connection] = standing.position or 0
        if self._replayed[connection] < position:
            raise _BehindError("The replica has not replayed yet what is to be read.")


class Replica:
    """What reads may be done on in place of the primary. Safe to share between threads.

    Args:
        primary: What it follows.
        dsn: Of the replica, or of what gives out one of several.
        max_connections: Connections to it that this process opens at most.

    Raises:
        StoreUnavailableError: ``dsn`` is no connection string.
    """

    def __init__(self, primary: Database, dsn: str, *, max_connections: int) -> None:
        given = conninfo_to_dict(require_dsn(dsn))
        self._dsn = make_conninfo(dsn, **{name: value for name, value in _NETWORK.items() if name not in given})
        self._primary = primary
        self._connections = _Connections(self._dsn, max_connections=max_connections, require=self._require)
        self._followed: Standing | None = None
        self._positions: LRUCache[tuple[int, int], tuple[int, int]] = LRUCache(_KEPT)
        self._counts: dict[Outcome, int] = dict.fromkeys(OUTCOMES, 0)
        self._problem: str | None = "It was not asked yet."
        self._pause, self._try_at = _FIRST_PAUSE_SECONDS, 0.0
        self._told: tuple[str, float] = ("", 0.0)
        self._begin()
        renew_in_children(self)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._trying = False

    def renew_in_child(self) -> None:
        """In the child of a fork: nobody releases the lock that another thread held, nor goes on trying."""
        self._begin()

    def open(self, *, several_tenants: bool = False) -> None:
        """Look at the primary and at the replica. One that cannot be reached now is tried again while others read.

        Raises:
            ConfigurationError: It is no replica of the primary.
            IsolationError: There are several tenants, and the replica's login is bound by no policy.
            StoreUnavailableError: The primary cannot be reached.
        """
        with self._primary.untenanted() as connection:
            self._followed = read_standing(connection)
        try:
            self._look()
            if several_tenants:
                require_isolation(self._connections)
        except StoreUnavailableError as exc:
            self._lost(exc)
        else:
            self._problem = None

    def close(self) -> None:
        """Close every connection to it; idempotent."""
        self._connections.close()

    @property
    def counts(self) -> dict[Outcome, int]:
        """What became of the reads that it could have served."""
        with self._lock:
            return dict(self._counts)

    def status(self) -> ReplicaStatus:
        """How it stands; asks both servers."""
        if self._problem is not None:
            return ReplicaStatus(problem=self._problem)
        try:
            with self._primary.untenanted() as primary, self._connections.untenanted() as replica:
                return behind(primary, replica)
        except RecollectError as exc:
            return ReplicaStatus(problem=str(exc))

    def leads_to(self) -> Database | None:
        """Where a read of the current context goes; None: to the primary."""
        led = _LED.get()
        return self._connections if led is not None and led.replica is self else None

    def serve(self, needed: Sequence[CollectionRevision], read: Callable[[], _Result]) -> _Result:
        """See `Database.on_replica`."""
        led = self._led(needed)
        token = _LED.set(led)
        try:
            found = read()
        except Exception:
            if led is None or led.failed is None:
                raise
        else:
            # What failed may have been taken for a part that can be done without: the primary may have it.
            if led is None or led.failed is None:
                if led is not None:
                    self._count("replica")
                return found
        finally:
            _LED.reset(token)
        self._failed(led.failed)
        return self.serve((), read)

    def met_primary(self, connection: Connection) -> None:
        """Told of each new connection to the primary, which may be another server than the one before."""
        timeline = connection.execute(_SQL["timeline"]).fetchone()
        followed = self._followed
        if followed is None or timeline is None or timeline[0] in (None, followed.timeline):
            return
        # What was written and lost before a promotion has revisions that are given once more.
        with translated_errors():
            standing = read_standing(connection)
        with self._lock:
            self._followed = standing
            self._positions.clear()
        self._connections.renew()

    def _led(self, needed: Sequence[CollectionRevision]) -> _Led | None:
        """Where a read is led, and from which position on; None: to the primary."""
        if not needed:
            return None
        if not self._usable():
            self._count("away")
            return None
        token = _LED.set(None)
        try:
            position = self._position(needed)
        except _FAILURES as exc:
            self._failed(exc)
            return None
        finally:
            _LED.reset(token)
        if position is None:
            self._count("behind")
            return None
        return _Led(self, position)

    def _position(self, needed: Sequence[CollectionRevision]) -> int | None:
        """How far a server must have come to have what is needed; None: the replica has not."""
        least = 0 if self._followed is None else self._followed.position or 0
        with self._lock:
            known = [self._positions.get((one.tenant_id, one.collection_id), (-1, 0)) for one in needed]
        positions = [at for (revision, at), one in zip(known, needed, strict=True) if revision >= one.revision]
        if len(positions) == len(needed):
            return max(least, *positions)
        for tenant_id in {one.tenant_id for one in needed}:
            own = [one for one in needed if one.tenant_id == tenant_id]
            at, revisions = self._connections.held(Scope(tenant_id=tenant_id), [one.collection_id for one in own])
            with self._lock:
                self._positions.update({(tenant_id, one): (revision, at) for one, revision in revisions.items()})
            if at < least or any(revisions.get(one.collection_id, -1) < one.revision for one in own):
                return None
            positions.append(at)
        return max(least, *positions)

    def _require(self, standing: Standing) -> None:
        if self._followed is not None:
            require_replica(standing, of=self._followed)

    def _look(self) -> None:
        """Look whether the replica can be read from, over a connection of its own."""
        with connect(self._dsn) as connection:
            self._require(read_standing(connection))
            with translated_errors():
                connection.execute("SET search_path = recollect, public")
                connection.execute(_SQL["vectors"])

    def _usable(self) -> bool:
        if self._problem is None:
            return True
        with self._lock:
            if self._trying or time.monotonic() < self._try_at:
                return False
            self._trying = True
        # Whoever reads does not wait for a server that may not answer.
        threading.Thread(target=self.look_again, name="recollect-replica", daemon=True).start()
        return False

    def look_again(self) -> None:
        """Look whether the replica can be read from now; done by itself, sooner or later, while somebody reads."""
        try:
            self._look()
            self._connections.renew()
        except (RecollectError, psycopg.Error) as exc:
            self._lost(exc)
        else:
            with self._lock:
                self._problem, self._pause = None, _FIRST_PAUSE_SECONDS
            logger.warning("The replica is read from again.")
        finally:
            self._trying = False

    def _failed(self, exc: Exception | None) -> None:
        """A read could not be done there."""
        self._count("behind" if isinstance(exc, _BehindError) else "failed")
        if isinstance(exc, StoreUnavailableError | ConfigurationError):
            self._lost(exc)
        elif exc is not None and not isinstance(exc, _BehindError):
            self._tell(f"A read on the replica failed, and was done on the primary: {exc}")

    def _lost(self, exc: Exception) -> None:
        """Nothing is read there until it could be looked at again."""
        with self._lock:
            again = self._problem is not None
            self._pause = min(2 * self._pause, _LONGEST_PAUSE_SECONDS) if again else _FIRST_PAUSE_SECONDS
            self._problem = str(exc)
            self._try_at = time.monotonic() + self._pause
        self._tell(f"The replica cannot be read from, and everything is read on the primary: {exc}")

    def _tell(self, message: str) -> None:
        now = time.monotonic()
        with self._lock:
            before, at = self._told
            if before == message and now - at < _TOLD_SECONDS:
                return
            self._told = message, now
        logger.warning("%s", message)

    def _count(self, outcome: Outcome) -> None:
        with self._lock:
            self._counts[outcome] += 1


# What a server is to another one: whether it follows it, and how far it has come.


_STANDING = queries("replica")


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What a server is, and how far it has come.

    Attributes:
        cluster: Equal of a server and those that follow it.
        database: The number of the database within.
        follows: Whether it replays what another server writes.
        timeline: Of the write-ahead log: another one begins with each promotion.
        position: Of the write-ahead log, in bytes; None: it does not tell.
    """

    cluster: int
    database: int
    follows: bool
    timeline: int
    position: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaStatus:
    """How the replica stands.

    Attributes:
        problem: Why it is not read from; None: it is.
        behind_bytes: What it has not replayed of the primary's write-ahead log; None: it was not asked.
        behind_seconds: How long ago what it replayed last was written, 0 where it has everything.
    """

    problem: str | None
    behind_bytes: int | None = None
    behind_seconds: float | None = None


def read_standing(connection: Connection) -> Standing:
    """Of the server at the other end."""
    with translated_errors():
        cluster, database, follows, timeline, position = rows(connection, _STANDING["standing"])[0]
    return Standing(cluster=cluster, database=database, follows=follows, timeline=timeline, position=position)


def require_replica(standing: Standing, *, of: Standing) -> None:
    """Refuse a server that does not follow the primary.

    Raises:
        ConfigurationError: It never will: it has other data, or cannot tell how far it has come.
        StoreUnavailableError: It does not now.
    """
    if (standing.cluster, standing.database) != (of.cluster, of.database):
        what = "server" if standing.cluster != of.cluster else "database"
        raise ConfigurationError(
            f"[rag.storage] read_dsn names another {what} than dsn, which is no replica of it. It must name the same "
            "database on a server that follows by streaming replication."
        )
    if not standing.follows:
        raise StoreUnavailableError(
            "The server that read_dsn names is no replica: it follows no other server. It was promoted, or read_dsn "
            "names the primary; let it name a standby, or remove it."
        )
    if standing.position is None:
        raise ConfigurationError(
            "The server that read_dsn names does not tell how far it has replayed (pg_last_wal_replay_lsn): it is no "
            "streaming replica of PostgreSQL's own, and cannot be read from."
        )
    if standing.timeline != of.timeline:
        raise StoreUnavailableError(
            f"The replica follows timeline {standing.timeline}, the primary is on {of.timeline}: one of them was "
            "promoted, and the replica has not followed yet, or never will (pg_rewind)."
        )


def behind(primary: Connection, replica: Connection) -> ReplicaStatus:
    """How far behind its primary a replica is.

    Raises:
        ConfigurationError: It is no replica of it.
        StoreUnavailableError: It follows no other server now.
    """
    newest, standing = read_standing(primary), read_standing(replica)
    require_replica(standing, of=newest)
    with translated_errors():
        seconds = rows(replica, _STANDING["replayed"])[0][0]
    missing = max(0, (newest.position or 0) - (standing.position or 0))
    return ReplicaStatus(problem=None, behind_bytes=missing, behind_seconds=seconds if missing else 0.0)


def compare(dsn: str, read_dsn: str) -> ReplicaStatus:
    """How the servers of two connection strings stand, whether or not there is a store yet; raises as `behind`."""
    with connect(dsn) as primary, connect(read_dsn) as replica:
        return behind(primary, replica)
