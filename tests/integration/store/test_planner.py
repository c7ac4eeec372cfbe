from __future__ import annotations

import pytest
from shelf import Shelf

from recollect.store.store import Store

_KNOWN = "SELECT reltuples FROM pg_class WHERE oid = 'chunks'::regclass"


@pytest.fixture
def shelf(store: Store) -> Shelf:
    return Shelf(store)


def test_the_planner_learns_how_large_a_store_has_become(shelf: Shelf):
    assert shelf.rows(_KNOWN) == [(-1,)]
    shelf.fill([f"word{number}" for number in range(300)], per_document=10)
    shelf.store.collections.refresh_term_stats(shelf.scope, shelf.now())
    assert shelf.rows(_KNOWN) == [(300,)]
    plan = "\n".join(row[0] for row in shelf.rows("EXPLAIN SELECT FROM document_versions WHERE tenant_id = 1"))
    assert "rows=30 " in plan


def test_the_planner_is_told_anew_only_where_the_store_has_grown_by_half(shelf: Shelf):
    shelf.fill([f"word{number}" for number in range(100)])
    shelf.store.collections.refresh_term_stats(shelf.scope, shelf.now())
    shelf.fill([f"other{number}" for number in range(40)], prefix="more")
    shelf.store.collections.refresh_term_stats(shelf.scope, shelf.now())
    assert shelf.rows(_KNOWN) == [(100,)]
    shelf.fill([f"third{number}" for number in range(20)], prefix="yet more")
    shelf.store.collections.refresh_term_stats(shelf.scope, shelf.now())
    assert shelf.rows(_KNOWN) == [(160,)]
