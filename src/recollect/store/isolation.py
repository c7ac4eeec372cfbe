"""Whether the database itself keeps tenants apart.

Every table with a ``tenant_id`` has a policy (``sql/routines/tenant_isolation.sql``): a statement sees the rows of the
tenant that its transaction or connection has set, and nothing where none is set. Policies bind the role that the
program works as, as long as it neither owns the tables nor is a superuser.
"""

from __future__ import annotations

from recollect.model.tenant import Isolation
from recollect.store.database import Database, rows
from recollect.store.sql import queries

_SQL = queries("tenants")


def read_isolation(database: Database) -> Isolation:
    """How things stand for the connections that searches and writes run over."""
    with database.untenanted() as connection:
        role, login = rows(connection, _SQL["roles"])[0]
        unguarded = tuple(row[0] for row in rows(connection, _SQL["unguarded"]))
    return Isolation(role=role, login=login, unguarded=unguarded)
