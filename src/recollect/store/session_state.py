"""What a statement runs under: planner settings, role and tenant, for a session or for a transaction alone.

A connection of one's own keeps what is set for it, so that a search's small questions need no transaction. Behind a
pooler that gives every transaction another session (PgBouncer in transaction mode), nothing set for a session holds,
and what is set there meets others. So the same settings are made for each transaction there, in the statement that
begins it. A connection through a pooler of any kind is treated like that: which one it is cannot be seen.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import psycopg
from psycopg import sql
from psycopg.rows import TupleRow

from recollect.store.dsn import APPLICATION_ROLE

if TYPE_CHECKING:
    from collections.abc import Mapping

Connection = psycopg.Connection[TupleRow]

#: How many candidates a search of the approximate index keeps: more find more, and cost more.
DEFAULT_EF_SEARCH = 150

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
    "TimeZone": "UTC",
}

# Transactions write and report: statements of any shape, whose plans must fit what there is now.
_TRANSACTIONS_SETTINGS = {"plan_cache_mode": "force_custom_plan", "enable_seqscan": "on"}

_SEARCH_PATH = {False: "SET search_path = recollect, public", True: "SET LOCAL search_path = recollect, public"}

# Where the login may take that role and does not have it already. From PostgreSQL 16 on, a member of a role need not be
# allowed to take it. Where it may not, several tenants are refused (`recollect.store.isolation`).
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
        statements += [_set(name, value, local=True) for name, value in _TRANSACTIONS_SETTINGS.items()]
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
