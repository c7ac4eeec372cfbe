"""What a server is to another one: whether it follows it, and how far it has come."""

from __future__ import annotations

from dataclasses import dataclass

from recollect.errors import ConfigurationError, StoreUnavailableError
from recollect.store.database import Connection, connect, rows
from recollect.store.driver_errors import translated_errors
from recollect.store.sql import queries

_SQL = queries("replica")


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
        cluster, database, follows, timeline, position = rows(connection, _SQL["standing"])[0]
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
        seconds = rows(replica, _SQL["replayed"])[0][0]
    missing = max(0, (newest.position or 0) - (standing.position or 0))
    return ReplicaStatus(problem=None, behind_bytes=missing, behind_seconds=seconds if missing else 0.0)


def compare(dsn: str, read_dsn: str) -> ReplicaStatus:
    """How the servers of two connection strings stand, whether or not there is a store yet; raises as `behind`."""
    with connect(dsn) as primary, connect(read_dsn) as replica:
        return behind(primary, replica)
