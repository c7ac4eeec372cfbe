"""Whether the database itself keeps tenants apart.

Every table with a ``tenant_id`` has a policy (``sql/routines/tenant_isolation.sql``): a statement sees the rows of the
tenant that its transaction or connection has set, and nothing where none is set. Policies bind the role that the
program works as, as long as it neither owns the tables nor is a superuser. Where they do not, the store serves one
tenant: `require_isolation` refuses a second one, and the routine of that name every statement that would serve it.
"""

from __future__ import annotations

from recollect.errors import IsolationError
from recollect.model.tenant import Isolation
from recollect.store.catalogue import differences
from recollect.store.database import Database, rows
from recollect.store.dsn import APPLICATION_ROLE
from recollect.store.sql import queries

_SQL = queries("tenants")


def read_isolation(database: Database) -> Isolation:
    """How things stand for the connections that searches and writes run over."""
    with database.untenanted() as connection:
        role, login = rows(connection, _SQL["roles"])[0]
        unguarded = tuple(row[0] for row in rows(connection, _SQL["unguarded"]))
        remedies = rows(connection, _SQL["remedies"], {"role": APPLICATION_ROLE}) if unguarded else []
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
