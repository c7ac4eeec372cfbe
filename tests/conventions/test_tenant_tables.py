"""Every table is a tenant's, guarded, and found by what erases, exports and limits tenants."""

from __future__ import annotations

import psycopg
import pytest

from recollect.store.connections import APPLICATION_ROLE
from recollect.store.store import Store
from recollect.store.tenants import DERIVED, tables_in_order

# What belongs to the store rather than to a tenant.
WITHOUT_TENANT = {"schema_migrations", "schema_routines"}

_TABLES = """
    SELECT c.relname, c.relowner = %s::regrole,
           EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'tenant_id' AND a.attnotnull),
           c.relrowsecurity,
           (SELECT array_agg(pg_get_expr(p.polqual, p.polrelid)) FROM pg_policy p WHERE p.polrelid = c.oid),
           has_table_privilege(%s, c.oid, 'SELECT')
    FROM pg_class c
    WHERE c.relnamespace = 'recollect'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
"""


@pytest.fixture
def tables(dsn: str) -> list[tuple]:
    with psycopg.connect(dsn) as connection:
        return connection.execute(_TABLES, [APPLICATION_ROLE] * 2).fetchall()


def test_every_table_has_a_tenant_and_one_policy_that_keeps_to_it(tables):
    assert len(tables) > 20
    for name, owned, tenant, secured, policies, readable in tables:
        assert not owned and readable, name
        assert (name in WITHOUT_TENANT) != tenant, f"{name}: its key must lead with tenant_id"
        if tenant:
            assert secured, name
            assert policies == ["(tenant_id = recollect.current_tenant())"], name


def test_partitions_are_read_through_their_table_alone(store: Store, dsn: str):
    from recollect.model import Scope

    store.audit.maintain(Scope(), partitions="daily", retention_days=None)
    with psycopg.connect(dsn) as connection:
        parts = connection.execute(
            "SELECT c.relname, has_table_privilege(%s, c.oid, 'SELECT') FROM pg_class c "
            "WHERE c.relnamespace = 'recollect'::regnamespace AND c.relispartition AND c.relkind = 'r'",
            [APPLICATION_ROLE],
        ).fetchall()
    assert len(parts) > 3
    assert [name for name, readable in parts if readable] == []


def test_every_table_is_erased_before_those_that_it_refers_to(store: Store, dsn: str):
    with store.database.autocommit() as connection:
        order = tables_in_order(connection)
    with psycopg.connect(dsn) as connection:
        found = {row[0] for row in connection.execute(_TABLES, [APPLICATION_ROLE] * 2).fetchall()}
        keys = connection.execute(
            "SELECT f.relname, t.relname FROM pg_constraint k JOIN pg_class f ON f.oid = k.conrelid "
            "JOIN pg_class t ON t.oid = k.confrelid WHERE k.contype = 'f' "
            "AND k.connamespace = 'recollect'::regnamespace AND f.oid <> t.oid"
        ).fetchall()
    assert set(order) == found - WITHOUT_TENANT
    assert len(order) == len(set(order))
    assert [key for key in keys if order.index(key[0]) > order.index(key[1])] == []
    # A name that no table has would hide a misspelling.
    assert set(order) >= DERIVED
