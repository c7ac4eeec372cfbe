"""Collections and their counters."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from shelf import Shelf

from recollect.errors import ConflictError, NotFoundError, UsageError
from recollect.model import Scope
from recollect.store.store import Store


def make(store: Store, name: str, scope: Scope | None = None):
    return store.collections.create(scope or Scope(), name, embedding_model="m", embedding_dimension=4)


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "x" * 201, "nul\0", "\u202e"])
def test_bad_names_are_refused(store: Store, name: str):
    with pytest.raises(UsageError, match="name"):
        make(store, name)


def test_an_unknown_tenant_is_named(store: Store):
    with pytest.raises(NotFoundError, match="tenant 77"):
        make(store, "a", Scope(tenant_id=77))


def test_of_many_creators_one_wins(store: Store):
    barrier = threading.Barrier(6)

    def create(_: int) -> bool:
        barrier.wait()
        try:
            make(store, "contested")
        except ConflictError:
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(create, range(6))) == 1


def test_deleting_leaves_nothing_but_the_cache(store: Store):
    shelf = Shelf(store)
    shelf.add("a", "one\ntwo")
    store.dense_indexer.build(shelf.scope, shelf.name)
    store.collections.refresh_term_stats(shelf.scope, shelf.now())
    store.collections.delete(shelf.scope, shelf.name)
    tables = ("collections", "collection_state", "sources", "documents", "document_versions", "document_contents")
    for table in (*tables, "texts", "chunks", "chunk_vectors", "chunk_lexical", "term_stats"):
        assert shelf.rows(f"SELECT count(*) FROM {table}") == [(0,)], table
    assert shelf.rows("SELECT count(*) FROM pg_indexes WHERE indexname LIKE 'chunk_vectors_hnsw%%'") == [(0,)]


def test_writing_into_a_deleted_collection_says_so(store: Store):
    shelf = Shelf(store)
    item = shelf.prepared("a", "one")
    store.collections.delete(shelf.scope, shelf.name)
    with pytest.raises(NotFoundError, match="deleted meanwhile"):
        shelf.write(item)
    with pytest.raises(NotFoundError, match="deleted meanwhile"):
        store.collections.ensure_reference_length(shelf.scope, make(store, "x"), 2.0) and store.collections.delete(
            shelf.scope, "x"
        )
        store.collections.ensure_reference_length(shelf.scope, shelf.collection, 2.0)
    assert store.collections.refresh_term_stats(shelf.scope, shelf.collection) is False


def test_the_first_reference_length_stays(store: Store):
    collection = make(store, "a")
    assert store.collections.ensure_reference_length(Scope(), collection, 7.5) == 7.5
    assert store.collections.ensure_reference_length(Scope(), collection, 99.0) == 7.5
    assert store.collections.get(Scope(), "a").reference_length == 7.5


def test_statistics_count_what_is_current(store: Store):
    shelf = Shelf(store)
    shelf.add("a", "apple banana\napple cherry")
    gone = shelf.add("b", "apple durian")
    store.writer.close(shelf.scope, [gone.document_id])
    assert shelf.now().stats_pending == 4
    assert store.collections.refresh_term_stats(shelf.scope, shelf.now())
    now = shelf.now()
    assert (now.stats_pending, now.stats_chunks) == (0, now.chunk_count)
    lengths = shelf.rows("SELECT sum(length) FROM chunk_lexical WHERE known_to = 'infinity'")
    assert now.stats_terms == lengths[0][0]
    counted = shelf.rows("SELECT lexeme, document_frequency FROM term_stats ORDER BY 1")
    expected = shelf.rows(
        "SELECT l, count(*)::int FROM chunk_lexical, unnest(lexemes) AS l WHERE known_to = 'infinity' "
        "GROUP BY 1 ORDER BY 1"
    )
    assert counted == expected


def test_a_recount_does_not_keep_writers_waiting(store: Store):
    shelf = Shelf(store)
    shelf.add("a", "apple banana")
    item = shelf.prepared("b", "cherry")
    with store.database.transaction(shelf.scope) as connection:
        connection.execute("SELECT refresh_term_stats(1, %s)", (shelf.collection.collection_id,))
        # Another session holds the lock of the recount: this one is told so at once.
        assert store.collections.refresh_term_stats(shelf.scope, shelf.now()) is False
    shelf.write(item)
    assert shelf.now().stats_pending == 1
