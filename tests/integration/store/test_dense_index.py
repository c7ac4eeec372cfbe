"""The approximate index: used, right, repaired, and never a reason to find too little."""

from __future__ import annotations

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import psycopg
import pytest
from shelf import EMBEDDER, Shelf

from recollect.embedding.cached import CachedEmbedder
from recollect.errors import NotFoundError
from recollect.model import RetrievalOptions, Scope
from recollect.model.collection import Collection
from recollect.model.scope import Target
from recollect.retrieval.rerank.base import Reranker
from recollect.retrieval.rerank.registry import make_reranker
from recollect.retrieval.search import Searcher
from recollect.store import connections
from recollect.store.dense_index import DenseIndexer, room_for_index
from recollect.store.store import Store
from recollect.store.tuning import Machine

WORDS = [f"word{number}" for number in range(400)]


def lines(count: int, seed: int = 0) -> list[str]:
    choice = random.Random(seed)
    return [" ".join(choice.choices(WORDS, k=8)) for _ in range(count)]


@pytest.fixture
def shelf(store: Store) -> Shelf:
    return Shelf(store)


def scans(dsn: str) -> int:
    """How often the index was used; a session of its own sees what others have reported."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        query = (
            "SELECT coalesce(sum(idx_scan), 0) FROM pg_stat_user_indexes WHERE indexrelname LIKE 'chunk_vectors_hnsw%'"
        )
        return int(connection.execute(query).fetchone()[0])


def test_due_from_the_threshold_on_until_it_is_built(store: Store, shelf: Shelf):
    indexer = DenseIndexer(store.database, store.collections, threshold=5)
    shelf.fill(lines(4))
    assert not indexer.due(shelf.scope, "shelf")
    shelf.fill(lines(1), prefix="more")
    assert indexer.due(shelf.scope, "shelf")
    indexer.build(shelf.scope, "shelf")
    assert shelf.now().indexed and not indexer.due(shelf.scope, "shelf")
    indexer.build(shelf.scope, "shelf")
    assert not indexer.due(shelf.scope, "missing")
    with pytest.raises(NotFoundError):
        indexer.build(shelf.scope, "missing")


def test_a_build_has_room_for_its_graph_and_gives_it_back(store: Store, shelf: Shelf):
    def memory() -> str:
        return connection.execute("SHOW maintenance_work_mem").fetchone()[0]

    machine = Machine(memory_bytes=16 * 2**30, cpu_count=2, shared_memory_bytes=16 * 2**30)
    large = (1_000_000, 384)
    with store.database.autocommit() as connection:
        before = memory()
        with room_for_index(connection, "large", large, machine) as statement:
            assert memory() == "1686MB"
            assert "USING hnsw" in statement.as_string()
        assert memory() == before
        with pytest.raises(ZeroDivisionError), room_for_index(connection, "large", large, machine):
            _ = 1 / 0
        assert memory() == before
        with room_for_index(connection, "small", (10, 384), machine):
            assert memory() == before
    DenseIndexer(store.database, store.collections, machine=machine).build(shelf.scope, "shelf")
    assert shelf.now().indexed


# A graph of 2,500 vectors takes more than a quarter of the second machine's memory.
METHODS = pytest.mark.parametrize(("memory", "method"), [(16 * 2**30, "hnsw"), (8 * 2**20, "ivfflat")])


def build_as(method: str, store: Store, shelf: Shelf, memory: int) -> None:
    machine = Machine(memory_bytes=memory, cpu_count=2)
    DenseIndexer(store.database, store.collections, machine=machine).build(shelf.scope, "shelf")
    built = shelf.rows("SELECT indexdef FROM pg_indexes WHERE indexname LIKE 'chunk_vectors_hnsw%%'")[0][0]
    assert f"USING {method}" in built


@METHODS
def test_the_index_is_used_sorted_and_finds_what_comparing_all_finds(
    store: Store, shelf: Shelf, dsn: str, memory: int, method: str
):
    shelf.fill(lines(2500), per_document=500)
    with store.database.autocommit() as connection:
        connection.execute("ANALYZE chunk_vectors")
    build_as(method, store, shelf, memory)
    recalls = []
    for query in lines(20, seed=5):
        for limit in (10, 300):
            exact, found = shelf.dense(query, limit=limit), shelf.dense(query, limit=limit, indexed=True)
            assert len(found) == limit
            assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)
            recalls.append(len({c for c, _ in exact} & {c for c, _ in found}) / limit)
    assert np.mean(recalls) > 0.9, recalls
    with store.database.autocommit() as connection:
        connection.execute("SELECT pg_stat_force_next_flush()")
    store.close()
    deadline = time.monotonic() + 20
    while scans(dsn) == 0 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert scans(dsn) > 0


def searcher(store: Store) -> Searcher:
    def reranker(name: str, _tenant_id: int, _place: Collection) -> Reranker:
        return make_reranker(name)

    return Searcher(store, lambda _: CachedEmbedder(EMBEDDER, None), rerankers=reranker)


@METHODS
def test_a_rare_filter_finds_its_one_chunk_with_the_index_and_without(
    store: Store, shelf: Shelf, memory: int, method: str
):
    shelf.fill(lines(2500), per_document=500)
    shelf.add("rare", "a needle", department="rare")
    options = RetrievalOptions(mode="dense", department=("rare",), top_k=5)
    everything = RetrievalOptions(mode="dense", top_k=5)
    search = searcher(store)

    def find(given: RetrievalOptions) -> tuple[list[str], str]:
        reply = search.search(Scope(), "word1 word2", given, Target.of("shelf"))
        return [result.content for result in reply.results], reply.paths["dense"]

    assert find(options) == (["a needle"], "exact")
    build_as(method, store, shelf, memory)
    assert find(everything)[1] == "index"
    assert find(options) == (["a needle"], "exact")
    # What is written later lies in the index too, and what is deleted is found no more.
    shelf.add("late", "word1 word2", department="late")
    assert "word1 word2" in find(everything)[0]
    store.collections.delete(shelf.scope, "shelf")
    with pytest.raises(NotFoundError):
        find(everything)


def test_an_index_that_gives_up_early_is_no_reason_to_find_too_little(
    store: Store, shelf: Shelf, dsn: str, monkeypatch: pytest.MonkeyPatch
):
    shelf.fill(lines(2500), per_document=500)
    store.dense_indexer.build(shelf.scope, "shelf")
    # A planner that takes the index even where so much is asked for, and an index that looks once only.
    for setting in ("enable_sort", "enable_seqscan", "hnsw.iterative_scan"):
        monkeypatch.setitem(connections._SETTINGS, setting, "off")
    impatient = Store(data_dir=Path("/nonexistent"), dsn=dsn)
    query = EMBEDDER.embed_query("word1 word2")
    given_up = impatient.search.dense(shelf.scope, shelf.now(), query, limit=2000, indexed=True)
    assert len(given_up) < 2000
    search = searcher(impatient)
    reply = search.search(
        Scope(), "word1 word2", RetrievalOptions(mode="dense", top_k=1000, candidates=2000), Target.of("shelf")
    )
    impatient.close()
    assert len(reply.results) == 1000
    assert reply.paths["dense"] == "exact"


def test_what_an_interrupted_build_left_is_replaced(store: Store, shelf: Shelf, dsn: str):
    shelf.fill(lines(50))
    name = f"chunk_vectors_hnsw_{shelf.collection.space_id}"
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"CREATE INDEX {name} ON recollect.chunk_vectors (chunk_id)")
        connection.execute(f"UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'recollect.{name}'::regclass")
    assert not shelf.now().indexed
    store.dense_indexer.build(shelf.scope, "shelf")
    assert shelf.now().indexed
    definition = shelf.rows("SELECT indexdef FROM pg_indexes WHERE indexname = %(n)s", n=name)[0][0]
    assert "hnsw" in definition and f"space_id = {shelf.collection.space_id}" in definition


def test_builders_writers_and_readers_at_once(store: Store, shelf: Shelf):
    """Two builders once waited for each other in a circle."""
    shelf.fill(lines(1500), per_document=500)
    items = [shelf.prepared(f"during{number}", text) for number, text in enumerate(lines(30, seed=3))]
    barrier = threading.Barrier(4)

    def build() -> None:
        barrier.wait()
        store.dense_indexer.build(shelf.scope, "shelf")

    def write() -> None:
        barrier.wait()
        for item in items:
            shelf.write(item)
            shelf.dense("word1", indexed=True)

    with ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(work) for work in (build, build, build, write)]:
            future.result()
    assert shelf.now().indexed
    assert shelf.now().chunk_count == 1530
    assert {c for c, _ in shelf.dense("word1", limit=2000, indexed=True)} <= set(shelf.vectors())


def test_a_collection_deleted_during_the_build_leaves_no_index(store: Store, shelf: Shelf):
    shelf.fill(lines(1500), per_document=500)
    barrier = threading.Barrier(2)

    def build() -> None:
        barrier.wait()
        try:
            store.dense_indexer.build(shelf.scope, "shelf")
        except NotFoundError:
            return

    def delete() -> None:
        barrier.wait()
        time.sleep(0.05)
        store.collections.delete(shelf.scope, "shelf")

    with ThreadPoolExecutor(2) as pool:
        for future in [pool.submit(build), pool.submit(delete)]:
            future.result()
    assert shelf.rows("SELECT count(*) FROM pg_indexes WHERE indexname LIKE 'chunk_vectors_hnsw%%'") == [(0,)]
