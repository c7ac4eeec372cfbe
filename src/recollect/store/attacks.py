"""Attacks on a store's isolation, as its own role would make them: what the database answers, not what it promises.

Everything runs in one transaction that is rolled back, over the login that the program works with, as the role that it
takes. Nothing is kept: no row, no object, no number of a sequence. What is open is also tried against one row at most.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, LiteralString, TypeAlias

import psycopg
from psycopg import sql

from recollect.errors import StoreError
from recollect.store.catalogue import differences
from recollect.store.connections import APPLICATION_ROLE, begin_transaction, translated_errors
from recollect.store.database import Connection, connect
from recollect.store.sql import queries

_SQL = queries("attacks")

_Statement: TypeAlias = LiteralString | sql.SQL | sql.Composed

Outcome = Literal["held", "open", "not tried"]

#: A tenant that there never is: numbers of tenants begin at 1.
STRANGER = -1

# insufficient_privilege, and what policies raise where no tenant is set.
_REFUSALS = frozenset({"42501", "RT004"})
_SETTINGS = {"lock_timeout": "2s", "statement_timeout": "60s"}


@dataclass(frozen=True, slots=True)
class Attack:
    """One attack and what became of it.

    Attributes:
        name: What was tried.
        outcome: ``open`` where it went through.
        detail: What the database answered where it is open, or why it was not tried.
    """

    name: str
    outcome: Outcome
    detail: str = ""


@dataclass(frozen=True, slots=True)
class _Answer:
    refused: bool
    error: str = ""
    rows: int = 0


def attack(dsn: str, *, application_dsn: str | None = None) -> list[Attack]:
    """Try to get at what the program's role must not reach, and roll everything back.

    Args:
        dsn: Of the schema's owner.
        application_dsn: That the program works with, where it is another one.

    Raises:
        StoreUnavailableError: The database cannot be reached.
        StoreError: There is no store in it.
    """
    with translated_errors(), connect(dsn) as owner, connect(application_dsn or dsn) as application:
        if owner.execute("SELECT to_regclass('recollect.tenants')").fetchone() == (None,):
            raise StoreError("There is no recollect store in this database, so there is nothing to attack.")
        found = [Attack(f"catalogue: {one}", "open", "the code makes it otherwise") for one in differences(owner)]
        attacks = found or [Attack("catalogue", "held")]
        attacks += _of_the_login(application, _one(owner, _SQL["owner"]))
        sample = owner.execute(_SQL["sample"]).fetchone()
        begin = begin_transaction(application, tenant=STRANGER, application=True, settings=_SETTINGS)
        try:
            application.execute(begin)
            attacks += _Attacker(application).run(sample)
        finally:
            application.execute("ROLLBACK")
    return attacks


def _one(connection: Connection, query: LiteralString) -> str:
    row = connection.execute(query).fetchone()
    return str(row[0]) if row else ""


def _of_the_login(connection: Connection, owner: str) -> list[Attack]:
    login = _one(connection, "SELECT session_user")
    name = "role: become the owner"
    if login == owner:
        reason = (
            f"the program logs in as the owner {owner!r}: whoever runs SQL of their own is the owner (application_dsn)"
        )
        return [Attack(name, "not tried", reason)]
    connection.execute("BEGIN")
    try:
        connection.execute(sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(owner)))
    except psycopg.Error:
        return [Attack(name, "held")]
    finally:
        connection.execute("ROLLBACK")
    return [Attack(name, "open", f"{login!r} may SET ROLE {owner}")]


class _Attacker:
    """A transaction of the program's role, in which a tenant is set that there is not."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def run(self, sample: Sequence[Any] | None) -> Iterator[Attack]:
        role = _one(self._connection, "SELECT current_user")
        yield Attack("role: work as the role that owns nothing", "held" if role == APPLICATION_ROLE else "open", role)
        yield from self._tables()
        yield from self._functions()
        for name, statement in _SQL.items():
            kind, _, rest = name.partition("_")
            if kind == "refused":
                yield self._must_be_refused(rest.replace("_", " "), statement)
            elif kind == "fruitless":
                yield self._must_find_nothing(rest.replace("_", " "), statement)
        yield from self._numbers()
        yield from self._rights(sample)

    def _tables(self) -> Iterator[Attack]:
        self._connection.execute(_SQL["leak"])
        for table, columns, is_partition in self._connection.execute(_SQL["tables"]).fetchall():
            parts = {
                "table": sql.Identifier("recollect", table),
                "columns": sql.SQL(", ").join(map(sql.Identifier, columns)),
                "values": sql.SQL(", ").join(sql.SQL("1" if one == "tenant_id" else "NULL") for one in columns),
            }
            if is_partition:
                yield self._must_be_refused(f"partition {table}: read", _READ.format(**parts))
                continue
            yield self._must_find_nothing(f"table {table}: read another tenant's rows", _READ.format(**parts))
            yield self._must_find_nothing(f"table {table}: see them in a condition", _LEAK.format(**parts))
            yield self._must_be_refused(f"table {table}: read without a tenant", _READ.format(**parts), tenant="")
            yield self._must_be_refused(f"table {table}: store for another tenant", _INSERT.format(**parts))
            yield self._must_find_nothing(f"table {table}: change another tenant's row", _UPDATE.format(**parts))
            yield self._must_find_nothing(f"table {table}: remove another tenant's row", _DELETE.format(**parts))
            yield self._must_be_refused(f"table {table}: empty it", _TRUNCATE.format(**parts))

    def _functions(self) -> Iterator[Attack]:
        for name, arguments in self._connection.execute(_SQL["definers"]).fetchall():
            call = sql.SQL("SELECT * FROM {}({})").format(sql.SQL(name), sql.SQL(arguments))
            yield self._must_be_refused(f"function {name}: ask for another tenant", call)
            yield self._must_be_refused(f"function {name}: ask without a tenant", call, tenant="")
            shadowed = sql.SQL("{}; {}").format(sql.SQL(_SQL["shadow"]), call)
            yield self._must_be_refused(f"function {name}: shadow its check", shadowed)

    def _numbers(self) -> Iterator[Attack]:
        for name, writable in self._connection.execute(_SQL["sequences"]).fetchall():
            yield Attack(
                f"sequence {name}: set it back", "open" if writable else "held", "UPDATE is granted" * writable
            )

    def _rights(self, sample: Sequence[Any] | None) -> Iterator[Attack]:
        for name in ("dense", "lexical"):
            title = f"access lists: {name}_candidates with no list that may be read"
            if sample is None:
                yield Attack(title, "not tried", "the store has no chunk")
                continue
            tenant, *_ = sample
            given = dict(zip(("tenant", "collection", "space", "vector", "weights"), sample, strict=True))
            yield self._must_find_nothing(title, _SQL[f"{name}_candidates"], given, tenant=str(tenant))

    def _must_be_refused(self, name: str, statement: _Statement, *, tenant: str | None = None) -> Attack:
        answer = self._try(statement, tenant=tenant)
        if answer.refused:
            return Attack(name, "held")
        return Attack(name, "open", answer.error or f"it went through ({answer.rows} rows)")

    def _must_find_nothing(
        self, name: str, statement: _Statement, params: dict[str, Any] | None = None, *, tenant: str | None = None
    ) -> Attack:
        answer = self._try(statement, params, tenant=tenant)
        if answer.refused or (not answer.error and answer.rows == 0):
            return Attack(name, "held")
        return Attack(name, "open", answer.error or f"{answer.rows} rows")

    def _try(
        self, statement: _Statement, params: dict[str, Any] | None = None, *, tenant: str | None = None
    ) -> _Answer:
        self._connection.execute("SAVEPOINT attack")
        try:
            if tenant is not None:
                self._connection.execute("SELECT set_config('recollect.tenant_id', %s, true)", (tenant,))
            cursor = self._connection.execute(statement, params)
            while cursor.nextset():
                pass
            return _Answer(refused=False, rows=cursor.rowcount)
        except psycopg.Error as exc:
            message = f"{exc.sqlstate}: {exc.diag.message_primary}"
            return _Answer(refused=exc.sqlstate in _REFUSALS, error=message)
        finally:
            self._connection.execute("ROLLBACK TO SAVEPOINT attack")


# One row is proof enough, and none of the others is touched where something is open.
_READ = sql.SQL("SELECT FROM {table} LIMIT 1")
_LEAK = sql.SQL("SELECT FROM {table} WHERE pg_temp.leak(tenant_id) LIMIT 1; SELECT FROM pg_temp.leaked()")
_INSERT = sql.SQL("INSERT INTO {table} ({columns}) OVERRIDING SYSTEM VALUE VALUES ({values})")
_UPDATE = sql.SQL("UPDATE {table} SET tenant_id = tenant_id WHERE ctid = (SELECT ctid FROM {table} LIMIT 1)")
_DELETE = sql.SQL("DELETE FROM {table} WHERE ctid = (SELECT ctid FROM {table} LIMIT 1)")
_TRUNCATE = sql.SQL("TRUNCATE {table}")
