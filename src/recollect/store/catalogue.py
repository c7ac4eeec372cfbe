"""Whether the schema is what the migrations and routines make, and whether its policies keep tenants apart.

Names prove nothing, what stands behind them does.

``sql/catalogue.txt`` holds what they make, line by line: policies with their expressions, grants, owners, the bodies
and marks of functions, triggers; columns, constraints, indexes, sequences, how tables are stored. It comes with the
code, because whoever changes a store's catalogue can change whatever the store says of it too. And it is what every
migration must lead to, in a store that is new and in one that is in use.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, LiteralString

from recollect.errors import IsolationError
from recollect.model.tenant import Isolation
from recollect.store import sql
from recollect.store.connections import APPLICATION_ROLE
from recollect.store.database import Connection, Database, rows
from recollect.store.sql import queries

_SQL = sql.queries("catalogue")


#: A query for the digest that `sound_digests` knows; it wants a search path of ``pg_catalog, public``.
DIGEST: LiteralString = _SQL["digest"].replace("GUARDS", _SQL["guards"])


_STRUCTURE = ("column ", "constraint ", "index ", "sequence ", "storage ")


@cache
def sound_digests() -> tuple[str, ...]:
    """Of a sound schema: with the application's role, and on a server where it could not be made."""
    return tuple(
        hashlib.sha256("\n".join(_guards(_expected(has_role=has_role))).encode()).hexdigest()
        for has_role in (True, False)
    )


def differences(connection: Connection, *, structure: bool = True) -> list[str]:
    """What differs from what the migrations and routines make, in words; an empty list where nothing does.

    Args:
        connection: Of anybody who may read the catalogue, which is everybody.
        structure: Whether columns, constraints and indexes are compared too.
    """
    with connection.transaction():
        connection.execute("SET LOCAL search_path = pg_catalog, public")
        found = {row[0] for row in connection.execute(_SQL["guards"].replace("%%", "%"))}
        if structure:
            found |= {row[0] for row in connection.execute(_SQL["structure"].replace("%%", "%"))}
    has_role = any(line.startswith(f"role {APPLICATION_ROLE}:") for line in found)
    lines = set(_expected(has_role=has_role))
    if not structure:
        return _in_words(set(_guards(lines)), found)
    indexes = {line.partition(":")[0] for line in lines if line.startswith("index ")}
    # Large collections have indexes of their own, and an administrator may add some.
    found = {line for line in found if not line.startswith("index ") or line.partition(":")[0] in indexes}
    return _in_words(lines, found)


def lacking(connection: Connection) -> list[str]:
    """Return the lines of the catalogue that the schema does not have, or has otherwise.

    The columns, constraints and other parts of a missing table are left out.
    """
    with connection.transaction():
        connection.execute("SET LOCAL search_path = pg_catalog, public")
        found = {
            row[0] for part in ("guards", "structure") for row in connection.execute(_SQL[part].replace("%%", "%"))
        }
    missing = set(_expected(has_role=any(line.startswith(f"role {APPLICATION_ROLE}:") for line in found))) - found
    tables = {line.partition(": ")[0].removeprefix("table ") for line in missing if line.startswith("table ")}
    there = {line.partition(": ")[0].removeprefix("table ") for line in found if line.startswith("table ")}
    gone = re.compile(rf"\b({'|'.join(tables - there)})\b") if tables - there else None
    return sorted(
        line for line in missing if line.startswith("table ") or not (gone and gone.search(line.partition(": ")[0]))
    )


def unknown_routines(connection: Connection) -> list[Any]:
    """The functions of the schema that no routine makes, with the types of their arguments."""
    known = [line.removeprefix("function ").partition(": ")[0] for line in sql.catalogue() if line[:9] == "function "]
    connection.execute("SET LOCAL search_path = pg_catalog, public")
    return [row[0] for row in connection.execute(_SQL["unknown_routines"], {"known": known})]


def free_routines(connection: Connection) -> list[Any]:
    """The functions of the schema that no trigger, policy or other object needs, with the types of their arguments."""
    connection.execute("SET LOCAL search_path = pg_catalog, public")
    return [row[0] for row in connection.execute(_SQL["free_routines"])]


def serious(told: Iterable[str]) -> list[str]:
    """Those of `differences` that a store of several tenants is not opened with.

    What an administrator granted to another role, or lets everybody do in the schema ``public``, is for the
    administrator to decide; columns and constraints do not keep tenants apart.
    """
    return [one for one in told if not one.startswith((*_STRUCTURE, "(")) and "may create" not in one]


def _expected(*, has_role: bool) -> list[str]:
    return [line for line in sql.catalogue() if has_role or APPLICATION_ROLE not in line]


def _guards(lines: Iterable[str]) -> list[str]:
    return [line for line in lines if not line.startswith(_STRUCTURE)]


def _in_words(expected: set[str], found: set[str]) -> list[str]:
    missing, more = _by_subject(expected - found), _by_subject(found - expected)
    told = [
        f"{subject}: missing, should be {' and '.join(missing[subject])}" for subject in missing.keys() - more.keys()
    ]
    told += [
        f"{subject}: is {' and '.join(more[subject])}, should be {' and '.join(missing[subject])}"
        for subject in missing.keys() & more.keys()
    ]
    for subject in more.keys() - missing.keys():
        details = " and ".join(more[subject])
        foreign = subject.startswith("grant ") and not details.endswith((f" {APPLICATION_ROLE}", " public"))
        told.append(
            f"(another role) {subject}: {details}" if foreign else f"{subject}: should not be there ({details})"
        )
    return sorted(told)


def _by_subject(lines: Iterable[str]) -> dict[str, list[str]]:
    subjects: dict[str, list[str]] = {}
    for line in sorted(lines):
        subject, _, detail = line.partition(": ")
        # Grants to several roles are several lines of one subject.
        key = f"{subject} to {detail.rpartition(' to ')[2]}" if subject.startswith("grant ") else subject
        subjects.setdefault(key, []).append(detail)
    return subjects


def some_of(told: Sequence[str], *, most: int = 8) -> str:
    """The first of `differences`, a line each, and how many more there are."""
    lines = list(told[:most]) + ([f"and {len(told) - most} more: recollect db check"] if len(told) > most else [])
    return "".join(f"\n  {line}" for line in lines)


# Whether the database itself keeps tenants apart.
#
# Every table with a `tenant_id` has a policy (`sql/routines/tenant_isolation.sql`): a statement sees the rows of the
# tenant that its transaction or connection has set, and nothing where none is set. Policies bind the role that the
# program works as, as long as it neither owns the tables nor is a superuser. Where they do not, the store serves one
# tenant: `require_isolation` refuses a second one, and the routine of that name every statement that would serve it.


_ISOLATION = queries("tenants")


def read_isolation(database: Database) -> Isolation:
    """How things stand for the connections that searches and writes run over."""
    with database.untenanted() as connection:
        role, login = rows(connection, _ISOLATION["roles"])[0]
        unguarded = tuple(row[0] for row in rows(connection, _ISOLATION["unguarded"]))
        remedies = rows(connection, _ISOLATION["remedies"], {"role": APPLICATION_ROLE}) if unguarded else []
    return Isolation(role=role, login=login, unguarded=unguarded, remedy=tuple(row[0] for row in remedies))


def read_differences(database: Database) -> list[str]:
    """Where the schema is not what the migrations and routines make, in words."""
    with database.autocommit() as connection:
        return differences(connection)


def require_isolation(database: Database) -> None:
    """Refuse to serve several tenants where only the program's own conditions would keep them apart.

    Raises:
        IsolationError: Some table's policy does not bind the role that the program works as.
    """
    found = read_isolation(database)
    if not found.in_force:
        raise IsolationError(
            "A store serves several tenants only where the database keeps them apart, and row-level security does not "
            f"bind the role {found.role!r} ({len(found.unguarded)} tables). {remedy_text(found)}"
        )


def remedy_text(found: Isolation) -> str:
    """What to do where isolation is not in force, with the statements to run."""
    if not found.remedy:
        return "Put the policies back: recollect db migrate"
    statements = "".join(f"\n  {statement}" for statement in found.remedy)
    return f"Have an administrator run, in this database, and open the store again:{statements}"
