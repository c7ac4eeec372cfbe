"""The retrievers against brute force."""

from __future__ import annotations

import math
import random
from collections import Counter
from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from shelf import EMBEDDER, Shelf, second_tenant

from hostile import EFFORT
from recollect.errors import ModelChangedError, StoreError
from recollect.model import Scope
from recollect.retrieval import lexical, sql_candidates
from recollect.retrieval.analysis import Analyzer
from recollect.store.store import Store

K1, B = 1.2, 0.75

# Few words, so that they meet; of very different frequency, so that their weights differ.
WORDS = [f"word{letter}" for letter in "abcdefghijklmnop"]


def line(choice: random.Random, longest: int = 12) -> str:
    return " ".join(choice.choices(WORDS, weights=[2.0**-n for n in range(len(WORDS))], k=choice.randint(1, longest)))


@pytest.fixture
def shelf(store: Store) -> Shelf:
    return Shelf(store)


def bm25_by_hand(shelf: Shelf, query: str) -> dict[int, float]:
    """BM25 of every current chunk, from its text alone and the statistics of the last refresh."""
    analyzer = Analyzer("en")
    now = shelf.now()
    chunks = dict(
        shelf.rows(
            "SELECT c.chunk_id, c.text FROM chunks c JOIN document_versions v USING (tenant_id, version_id) "
            "WHERE v.collection_id = %(c)s AND v.known_to = 'infinity'",
            c=shelf.collection.collection_id,
        )
    )
    # The shelf gives every document the title t, which is indexed with each chunk.
    terms = {chunk_id: Counter(analyzer.terms("t\n" + text)) for chunk_id, text in chunks.items()}
    assert now.stats_pending == 0, "this oracle needs fresh statistics"
    average = sum(sum(counts.values()) for counts in terms.values()) / len(terms)
    scores = {}
    for chunk_id, counts in terms.items():
        length = sum(counts.values())
        total = 0.0
        for term in analyzer.query_terms(query):
            df = sum(term in other for other in terms.values())
            tf = counts[term]
            if tf:
                idf = math.log(1 + (len(terms) - df + 0.5) / (df + 0.5))
                total += idf * tf * (K1 + 1) / (tf + K1 * (1 - B + B * length / average))
        if total > 0:
            scores[chunk_id] = total
    return scores


def assert_best(hits: lexical.LexicalHits, scores: dict[int, float], top_k: int) -> None:
    """The hits are a best ``top_k`` of ``scores``, ties in any order."""
    expected = sorted(scores.values(), reverse=True)[:top_k]
    assert [score for _, score in hits.scores[:top_k]] == pytest.approx(expected, rel=1e-5)
    for chunk_id, score in hits.scores:
        assert score == pytest.approx(scores[chunk_id], rel=1e-5)


def test_dense_exact_is_brute_force(shelf: Shelf):
    choice = random.Random(1)
    shelf.fill([line(choice) for _ in range(300)])
    matrix = shelf.vectors()
    ids = np.array(list(matrix))
    for query in ("worda wordb", "wordp", "unrelated thing"):
        scores = np.stack(list(matrix.values())) @ EMBEDDER.embed_query(query)
        order = np.lexsort((ids, -scores))[:25]
        found = shelf.dense(query, limit=25)
        assert [score for _, score in found] == pytest.approx(scores[order].tolist(), abs=2e-3)
        assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)
        vector, spaces = EMBEDDER.embed_query(query), [shelf.collection.space_id]
        known = shelf.store.search.similarities(shelf.scope, vector, ids.tolist(), space_ids=spaces)
        assert set(known) == set(ids.tolist())


@settings(max_examples=12 * EFFORT, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    seed=st.integers(0, 10**6),
    later=st.integers(1, 60),
    large=st.booleans(),
    budget=st.sampled_from([1, 20, 4000]),
    limit=st.sampled_from([3, 5, 40]),
    query=st.lists(st.sampled_from([*WORDS, "nowhere", "the"]), min_size=1, max_size=6).map(" ".join),
)
def test_lexical_is_brute_force_bm25_wherever_it_says_exact(
    store: Store, seed: int, later: int, large: bool, budget: int, limit: int, query: str
):
    """The average length drifts by up to five times after the first write, and the limit is small."""
    if store.collections.find(Scope(), "shelf"):
        store.collections.delete(Scope(), "shelf")
    shelf = Shelf(store)
    choice = random.Random(seed)
    shelf.fill([line(choice, 4) for _ in range(30)])
    shelf.fill([line(choice, later) for _ in range(60)], prefix="later")
    store.collections.refresh_term_stats(shelf.scope, shelf.now())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lexical, "SMALL_COLLECTION_CHUNKS", 0 if large else 5000)
        hits = shelf.lexical(query, top_k=3, limit=limit, budget=budget)
    scores = bm25_by_hand(shelf, query)
    # What can be fetched whole is always proven.
    assert hits.exact or 16 * limit <= len(scores)
    if hits.exact:
        assert_best(hits, scores, 3)


def test_a_drift_that_turns_the_order_is_found_out(shelf: Shelf, monkeypatch: pytest.MonkeyPatch):
    """Long chunks are underrated by weights of a short reference length, and would be cut off."""
    monkeypatch.setattr(sql_candidates, "_WIDEST", 1)
    shelf.fill(["worda wordb"] * 20)
    shelf.fill([" ".join(["worda"] * 2 + ["filler"] * 60)] * 40, prefix="long")
    shelf.store.collections.refresh_term_stats(shelf.scope, shelf.now())
    cut = shelf.lexical("worda", top_k=5, limit=5)
    assert not cut.exact and cut.path == "approximate"
    monkeypatch.setattr(sql_candidates, "_WIDEST", 64)
    whole = shelf.lexical("worda", top_k=5, limit=5)
    assert whole.exact
    assert_best(whole, bm25_by_hand(shelf, "worda"), 5)


def test_what_came_after_the_last_refresh_is_found(shelf: Shelf):
    shelf.fill(["alpha beta", "beta gamma"])
    shelf.store.collections.refresh_term_stats(shelf.scope, shelf.now())
    shelf.add("late", "zebrafish")
    assert shelf.contents([c for c, _ in shelf.lexical("zebrafish").scores]) == ["zebrafish"]
    # Fresh statistics that lack a word prove that no chunk holds it.
    shelf.store.collections.refresh_term_stats(shelf.scope, shelf.now())
    assert shelf.lexical("aardvark").path == "no terms"


def test_more_terms_than_are_searched_is_not_called_exact(shelf: Shelf):
    words = [f"term{number}" for number in range(lexical.MAX_QUERY_TERMS + 5)]
    shelf.fill([" ".join(words), "term1"])
    assert not shelf.lexical(" ".join(words)).exact
    assert shelf.lexical(" ".join(words[:10])).exact


@pytest.mark.parametrize("indexed", [False, True])
def test_the_arms_of_a_hybrid_search_are_those_alone_and_score_each_others_chunks(shelf: Shelf, indexed: bool):
    shelf.fill([line(random.Random(n)) for n in range(150)])
    if indexed:
        shelf.store.dense_indexer.build(shelf.scope, "shelf")
    store, scope, place, vector = shelf.store.search, shelf.scope, shelf.now(), EMBEDDER.embed_query("worda wordq")
    hits = shelf.lexical("worda wordc", limit=1000)
    query = lexical.LexicalQuery(
        hits.weights, reference_length=place.reference_length, average_length=place.average_length
    )
    for conditions in ([], [list(hits.weights)]):
        asked = {"conditions": conditions, "query": hits.weights, "limit": 20}
        by_words = store.lexical(scope, place, **asked, embedding=vector, vectors=True)
        with store.dense_ahead(scope, place, vector, limit=20, indexed=indexed, vectors=True) as fetch:
            near = fetch()
        assert list(near.similarities.items()) == store.dense(scope, place, vector, limit=20, indexed=indexed)
        assert by_words.chunk_ids == store.lexical(scope, place, **asked).chunk_ids
        known = dict(hits.scores)
        for found in (near, by_words):
            seen = found.chunk_ids
            assert found.similarities == pytest.approx(
                store.similarities(scope, vector, seen, space_ids=[place.space_id]), abs=1e-6
            )
            stored = store.vectors(scope, seen, space_ids=[place.space_id])
            assert found.vectors.keys() == stored.keys() == set(seen)
            assert all(np.array_equal(found.vectors[key], value) for key, value in stored.items())
            scores = lexical.Counted.of(query, found.lexical).scores(query).tolist()
            assert dict(zip(seen, scores, strict=True)) == pytest.approx(
                {chunk_id: known.get(chunk_id, 0.0) for chunk_id in seen}
            )
        assert store.lexical(scope, place, **asked, embedding=vector).vectors == {}


def test_reads_run_ahead_as_long_as_there_is_room_and_then_when_they_are_wanted(shelf: Shelf):
    shelf.fill([line(random.Random(n)) for n in range(30)])
    store, scope, place, vector = shelf.store.search, shelf.scope, shelf.now(), EMBEDDER.embed_query("worda wordq")
    expected = store.dense(scope, place, vector, limit=7)
    with ExitStack() as stack:
        # More than there are cores or connections: whoever finds no room must not wait for those who have it.
        fetches = [stack.enter_context(store.dense_ahead(scope, place, vector, limit=7)) for _ in range(40)]
        assert all(list(fetch().similarities.items()) == expected for fetch in fetches)
    with store.dense_ahead(scope, place, vector, limit=7):
        pass  # given up without reading: the connection serves the next all the same
    assert store.dense(scope, place, vector, limit=7) == expected
    with pytest.raises(StoreError), store.dense_ahead(scope, place, np.ones(3, np.float32), limit=7) as fetch:
        fetch()
    assert store.dense(scope, place, vector, limit=7) == expected


def test_the_index_gives_as_many_as_are_wanted(shelf: Shelf):
    shelf.fill([line(random.Random(n)) for n in range(300)])
    shelf.store.dense_indexer.build(shelf.scope, "shelf")
    store, place, vector = shelf.store.search, shelf.now(), EMBEDDER.embed_query("worda wordq")
    assert len(store.dense(shelf.scope, place, vector, limit=250, indexed=True)) == 250
    with store.dense_ahead(shelf.scope, place, vector, limit=250, indexed=True) as fetch:
        assert len(fetch().chunk_ids) == 250


def test_tenants_and_collections_do_not_meet(store: Store):
    mine = Shelf(store)
    other_collection = Shelf(store, name="other")
    other_tenant = Shelf(store, scope=second_tenant(store))
    for shelf, word in ((mine, "mine"), (other_collection, "elsewhere"), (other_tenant, "foreign")):
        shelf.fill([f"shared {word}"] * 3)
    foreign = list(other_tenant.vectors())
    search, scope = store.search, mine.scope
    vector = EMBEDDER.embed_query("shared")
    assert {text.split()[1] for text in mine.contents([c for c, _ in mine.dense("shared")])} == {"mine"}
    assert {text.split()[1] for text in mine.contents([c for c, _ in mine.lexical("shared").scores])} == {"mine"}
    assert search.passages(scope, foreign) == {}
    assert search.lexical_rows(scope, foreign).chunk_ids == []
    theirs = other_tenant.now()
    mine_alone = search.similarities(scope, vector, foreign, space_ids=[mine.collection.space_id])
    assert mine_alone == {}
    # A space that the tenant does not have is no empty one: whoever searched it begins anew.
    with pytest.raises(ModelChangedError):
        search.similarities(scope, vector, foreign, space_ids=[theirs.space_id])
    with pytest.raises(ModelChangedError):
        search.dense(scope, theirs, vector, limit=9)
    for conditions in ([[1]], []):
        asked = {"conditions": conditions, "query": {1: 1.0}, "limit": 9}
        assert search.lexical(scope, theirs, **asked).chunk_ids == []
        with pytest.raises(ModelChangedError):
            search.lexical(scope, theirs, **asked, embedding=vector)
    with pytest.raises(ModelChangedError), search.dense_ahead(scope, theirs, vector, limit=9) as fetch:
        fetch()
    store.collections.refresh_term_stats(other_tenant.scope, other_tenant.now())
    lexemes = [row[0] for row in other_tenant.rows("SELECT lexeme FROM term_stats WHERE tenant_id = 2")]
    assert lexemes
    assert search.document_frequencies(scope, other_tenant.collection, lexemes) == {}
    assert store.status.status(scope).total_chunks == 6
    assert store.status.status(other_tenant.scope).total_chunks == 3


def test_a_chunk_with_a_parent_shows_the_parents_characters(shelf: Shelf):
    item = shelf.prepared("a", "aaa\nb\U0001f680b\nccc")
    chunks = [item.chunks[0], replace(item.chunks[1], parent=(0, 7)), item.chunks[2]]
    shelf.write(replace(item, chunks=chunks))
    ids = sorted(shelf.vectors())
    rows = shelf.store.search.passages(shelf.scope, ids)
    assert [rows[chunk_id].content for chunk_id in ids] == ["aaa", "aaa\nb\U0001f680b", "ccc"]
    assert (rows[ids[1]].start_offset, rows[ids[1]].end_offset) == (0, 7)
