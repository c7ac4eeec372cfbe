"""Counts of caches and probes, by collection and day."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shelf import Shelf, second_tenant

from recollect.errors import StoreError
from recollect.model import Scope
from recollect.model.status import HitCounts, SearchHealth
from recollect.store.activity import HEALTH_DAYS
from recollect.store.database import Database
from recollect.store.store import Store

FIRST = SearchHealth(
    result_cache=HitCounts(hits=3, misses=1),
    query_embedding_cache=HitCounts(hits=0, misses=1),
    probes=2,
    recall_dense=0.95,
    recall_dense_worst=0.9,
    recall_lexical=1.0,
    recall_lexical_worst=1.0,
    dense_probes=2,
    lexical_probes=1,
)
SECOND = SearchHealth(
    result_cache=HitCounts(hits=1, misses=0),
    probes=1,
    recall_lexical=0.5,
    recall_lexical_worst=0.5,
    lexical_probes=1,
)


def age_by(shelf: Shelf, days: int) -> None:
    shelf.rows("UPDATE search_health SET day = day - %(days)s::int RETURNING day", days=days)


def test_what_is_added_is_read_back_as_one_sum(store: Store):
    shelf = Shelf(store)
    assert store.search_health.recent(Scope()) == {}
    before = datetime.now(UTC)
    store.search_health.add(Scope(), {shelf.collection.collection_id: FIRST})
    store.search_health.add(Scope(), {shelf.collection.collection_id: SECOND})
    read = store.search_health.recent(Scope())[shelf.collection.collection_id]
    assert read.result_cache == HitCounts(hits=4, misses=1)
    assert read.query_embedding_cache == HitCounts(hits=0, misses=1)
    assert (read.probes, read.dense_probes, read.lexical_probes) == (3, 2, 2)
    assert read.recall_dense == pytest.approx(0.95) and read.recall_lexical == pytest.approx(0.75)
    assert (read.recall_dense_worst, read.recall_lexical_worst) == (pytest.approx(0.9), pytest.approx(0.5))
    assert read.last_probe is not None
    assert before - timedelta(minutes=1) < read.last_probe < datetime.now(UTC) + timedelta(minutes=1)
    assert len(shelf.rows("SELECT FROM search_health")) == 1


def test_hits_alone_are_no_probe(store: Store):
    shelf = Shelf(store)
    store.search_health.add(Scope(), {shelf.collection.collection_id: SearchHealth(result_cache=HitCounts(hits=1))})
    read = store.search_health.recent(Scope())[shelf.collection.collection_id]
    assert read == SearchHealth(result_cache=HitCounts(hits=1))
    assert (read.last_probe, read.recall_dense, read.query_embedding_cache.hit_rate) == (None, None, None)


def test_days_add_up_and_old_ones_go(store: Store):
    shelf = Shelf(store)
    store.search_health.add(Scope(), {shelf.collection.collection_id: FIRST})
    age_by(shelf, HEALTH_DAYS - 1)
    store.search_health.add(Scope(), {shelf.collection.collection_id: FIRST})
    assert len(shelf.rows("SELECT FROM search_health")) == 2
    assert store.search_health.recent(Scope())[shelf.collection.collection_id].result_cache == HitCounts(
        hits=6, misses=2
    )
    age_by(shelf, 1)
    # Out of sight at once, and out of the table with the next addition.
    assert store.search_health.recent(Scope())[shelf.collection.collection_id].probes == 2
    assert len(shelf.rows("SELECT FROM search_health")) == 2
    store.search_health.add(Scope(), {shelf.collection.collection_id: SECOND})
    assert len(shelf.rows("SELECT FROM search_health")) == 2


def test_collections_and_tenants_are_kept_apart(store: Store):
    mine, other = Shelf(store, name="a"), Shelf(store, name="b")
    theirs = Shelf(store, scope=second_tenant(store), name="a")
    store.search_health.add(mine.scope, {mine.collection.collection_id: FIRST})
    store.search_health.add(theirs.scope, {theirs.collection.collection_id: SECOND})
    # A tenant can add nothing to another's collection.
    store.search_health.add(mine.scope, {theirs.collection.collection_id: FIRST})
    assert set(store.search_health.recent(mine.scope)) == {mine.collection.collection_id}
    assert store.search_health.recent(theirs.scope)[theirs.collection.collection_id].probes == 1
    assert other.collection.collection_id not in store.search_health.recent(mine.scope)


def test_they_go_with_their_collection(store: Store):
    shelf, other = Shelf(store, name="a"), Shelf(store, name="b")
    for place in (shelf, other):
        store.search_health.add(Scope(), {place.collection.collection_id: FIRST})
    store.collections.delete(Scope(), "a")
    assert set(store.search_health.recent(Scope())) == {other.collection.collection_id}
    store.search_health.add(Scope(), {shelf.collection.collection_id: FIRST})
    assert set(store.search_health.recent(Scope())) == {other.collection.collection_id}


def test_a_deletion_under_way_is_not_waited_for(store: Store, dsn: str):
    shelf = Shelf(store)
    other = Database(dsn, max_connections=1)
    with other.transaction(Scope()) as connection:
        connection.execute("DELETE FROM collections")
        store.search_health.add(Scope(), {shelf.collection.collection_id: FIRST})
    other.close()
    assert store.search_health.recent(Scope()) == {}


def test_a_locked_table_is_given_up_on(store: Store, dsn: str):
    shelf = Shelf(store)
    other = Database(dsn, max_connections=1)
    with other.transaction(Scope()) as connection:
        connection.execute("LOCK TABLE search_health IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(StoreError):
            store.search_health.add(Scope(), {shelf.collection.collection_id: FIRST})
    other.close()


def test_nothing_is_lost_between_many_who_add(store: Store):
    shelf = Shelf(store)

    def add() -> None:
        for _ in range(20):
            store.search_health.add(Scope(), {shelf.collection.collection_id: FIRST})

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    read = store.search_health.recent(Scope())[shelf.collection.collection_id]
    assert read.result_cache == HitCounts(hits=240, misses=80)
    assert (read.dense_probes, read.recall_dense) == (160, pytest.approx(0.95))


COUNTS = st.integers(0, 1_000)
RECALLS = st.lists(st.floats(0, 1), max_size=5)


def of_recalls(recalls: list[float]) -> dict[str, Any]:
    mean = sum(recalls) / len(recalls) if recalls else None
    return {"recall_dense": mean, "recall_dense_worst": min(recalls, default=None), "dense_probes": len(recalls)}


@given(st.lists(st.tuples(COUNTS, COUNTS, RECALLS), max_size=6))
def test_sums_are_those_of_all_that_was_seen(parts: list[tuple[int, int, list[float]]]):
    told = [
        SearchHealth(result_cache=HitCounts(hits=hits, misses=misses), probes=len(recalls), **of_recalls(recalls))
        for hits, misses, recalls in parts
    ]
    added = sum(told, start=SearchHealth())
    every = [recall for _, _, recalls in parts for recall in recalls]
    assert added.probes == added.dense_probes == len(every)
    assert added.recall_dense_worst == min(every, default=None)
    if every:
        assert added.recall_dense == pytest.approx(sum(every) / len(every))
        assert added.recall_dense_worst <= added.recall_dense + 1e-9
    hits, asked = sum(part[0] for part in parts), sum(part[0] + part[1] for part in parts)
    assert added.result_cache.hit_rate == (hits / asked if asked else None)
