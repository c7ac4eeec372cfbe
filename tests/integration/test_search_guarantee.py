"""Filtered and approximate search beside a comparison of every vector: never fewer than there are, never unsaid."""

from __future__ import annotations

import os
import random
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from recollect import Document, RAGConfig, RAGPipeline, RetrievalOptions
from recollect.embedding.cached import CachedEmbedder
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import StoreError
from recollect.interruption import Interrupted, Interruption, current
from recollect.model import Scope, SearchReply
from recollect.model.collection import Collection
from recollect.model.status import HitCounts, SearchHealth
from recollect.retrieval import health
from recollect.retrieval.analysis import lexeme
from recollect.retrieval.candidates import CandidateRequest, Stopwatch, analyzer_of
from recollect.retrieval.enhance.plan import QueryPlan
from recollect.retrieval.health import Sample, SearchMonitor, measure
from recollect.retrieval.sql_candidates import SqlCandidates
from recollect.store.database import Database
from recollect.store.filters import MatchingVersions, document_filter_of, matching_versions
from recollect.store.search import RowSelection
from recollect.store.store import Store

DOCUMENTS = 300
PER_DOCUMENT = 10
TOP_K = 10
EMBEDDER = HashingEmbedder(32)

# Similarities are computed in half precision, and added up in another order.
SAME = 1e-4

# What a filter keeps more of goes by the index; so much lower than usual that 3,000 chunks are many.
SELECTIVE_CHUNKS = 1_000

#: Filters by what they keep of 3,000 chunks and one: one, 1 %, 50 %, all but one, all.
FILTERS: dict[str, Mapping[str, Any]] = {
    "one chunk": {"source": ("alone.txt",)},
    "one percent": {"metadata_filters": {"hundredth": 7}},
    "half": {"tags": ("even",)},
    "all but one": {"filters": {"metadata.hundredth": {"gte": 0}}},
    "everything": {},
}
KEPT = {"one chunk": 1, "one percent": 30, "half": 1_500, "all but one": 3_000, "everything": 3_001}
BY_INDEX = {"half", "all but one", "everything"}
QUESTIONS = [f"{a} {b} {c}" for a, b, c in zip(range(40, 60), range(120, 140), range(370, 390), strict=True)]


def words_of(number: int) -> str:
    return " ".join(str(word) for word in random.Random(number).choices(range(400), k=12))


def documents() -> Iterator[Document]:
    yield Document(content="the only one of its kind 41", source="alone.txt")
    for number in range(DOCUMENTS):
        first = number * PER_DOCUMENT
        yield Document(
            content="\n\n".join(words_of(first + place) for place in range(PER_DOCUMENT)),
            source=f"{number}.txt",
            tags=("even",) if number % 2 == 0 else (),
            metadata={"hundredth": number % 100},
        )


@dataclass(frozen=True)
class Shelf:
    """An indexed collection, and everything in it."""

    rag: RAGPipeline
    chunk_ids: np.ndarray
    vectors: np.ndarray
    sources: list[str]
    lexemes: list[set[int]]

    def similarities(self, question: str) -> np.ndarray:
        """Of every chunk."""
        return self.vectors @ EMBEDDER.embed_query(question).astype(np.float16).astype(np.float32)

    def expected(self, question: str, kept: str) -> list[float]:
        """The best similarities among what a filter keeps, by comparing every vector."""
        return np.sort(self.similarities(question)[self.passes(kept)])[::-1][:TOP_K].tolist()

    def passes(self, kept: str) -> np.ndarray:
        return np.array([_passes(source, kept) for source in self.sources])

    def search(self, question: str, kept: str, **options: Any) -> SearchReply:
        return self.rag.search(question, RetrievalOptions(top_k=TOP_K, use_cache=False, **options, **FILTERS[kept]))


def _passes(source: str, kept: str) -> bool:
    number = None if source == "alone.txt" else int(source.removesuffix(".txt"))
    return {
        "one chunk": number is None,
        "one percent": number is not None and number % 100 == 7,
        "half": number is not None and number % 2 == 0,
        "all but one": number is not None,
        "everything": True,
    }[kept]


@pytest.fixture(scope="module")
def module_dsn(server_dsn: str) -> Iterator[str]:
    """A database for the whole module."""
    name = "search_guarantee"
    with psycopg.connect(server_dsn, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {} TEMPLATE recollect_template").format(sql.Identifier(name)))
    yield make_conninfo(server_dsn, dbname=name)
    with psycopg.connect(server_dsn, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def configured(dsn: str, **retrieval: Any) -> RAGConfig:
    return RAGConfig.load(
        storage={"data_dir": Path("unused"), "dsn": dsn, "index_threshold": 1_000},
        embedding={"provider": "hashing", "cache": False},
        chunking={"strategy": "paragraph", "min_size": 1, "max_size": 80},
        retrieval={
            "rerank": "none",
            "collapse_duplicates": False,
            "probe_rate": 0,
            "resident_memory_mb": 0,
            **retrieval,
        },
    )


@pytest.fixture(scope="module")
def filled(module_dsn: str) -> Iterator[Shelf]:
    with RAGPipeline(configured(module_dsn), embedder=EMBEDDER) as rag:
        rag.ingest(documents())
        (place,) = rag.collections.list()
        assert (place.chunk_count, place.indexed) == (DOCUMENTS * PER_DOCUMENT + 1, True)
        with rag.store.database.single_reads(Scope()) as connection:
            rows = connection.execute(
                "SELECT x.chunk_id, x.embedding, v.uri, l.lexemes FROM chunk_vectors x "
                "JOIN document_versions v USING (tenant_id, version_id) "
                "JOIN chunk_lexical l USING (tenant_id, chunk_id)"
            ).fetchall()
        vectors = np.stack([row[1].to_numpy() for row in rows]).astype(np.float32)
        yield Shelf(
            rag, np.array([row[0] for row in rows]), vectors, [row[2] for row in rows], [set(row[3]) for row in rows]
        )


@pytest.fixture(autouse=True)
def _few_chunks_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recollect.retrieval.sql_candidates.EXACT_FILTER_CHUNKS", SELECTIVE_CHUNKS)


# The guarantee


@pytest.mark.parametrize("kept", list(FILTERS))
def test_the_dense_arm_is_exact_or_says_so_and_is_always_full(filled: Shelf, kept: str):
    assert filled.passes(kept).sum() == KEPT[kept]
    found = wanted = by_index = 0
    for question in QUESTIONS:
        reply = filled.search(question, kept, mode="dense")
        expected = filled.expected(question, kept)
        similarities = [result.similarity for result in reply.results]
        assert len(similarities) == len(expected) == min(TOP_K, KEPT[kept])
        assert all(_passes(result.source, kept) for result in reply.results)
        assert similarities == sorted(similarities, reverse=True)
        assert reply.exact == (reply.paths["dense"] == "exact")
        if reply.exact:
            assert similarities == pytest.approx(expected, abs=SAME)
        by_index += not reply.exact
        wanted += len(expected)
        found += sum(similarity >= expected[-1] - SAME for similarity in similarities)
    # What goes by the index is nearly all of it; what is rare never does.
    assert (by_index > 0) == (kept in BY_INDEX)
    assert found >= 0.95 * wanted


@pytest.mark.parametrize("kept", list(FILTERS))
def test_searching_by_words_returns_as_many_as_there_are(filled: Shelf, kept: str):
    (place,) = filled.rag.collections.list()
    for question in QUESTIONS[:5]:
        wanted = {lexeme(term, place.collection_id) for term in analyzer_of("en").query_terms(question)}
        holds = np.array([bool(wanted & own) for own in filled.lexemes])
        reply = filled.search(question, kept, mode="lexical")
        assert len(reply.results) == min(TOP_K, (holds & filled.passes(kept)).sum())
        assert all(_passes(result.source, kept) for result in reply.results)
        assert reply.exact == (reply.paths["lexical"] in {"exact", "no terms"})


@pytest.mark.parametrize("kept", list(FILTERS))
def test_both_arms_together_return_as_many_as_there_are(filled: Shelf, kept: str):
    for question in QUESTIONS[:5]:
        reply = filled.search(question, kept, mode="hybrid")
        assert len(reply.results) == min(TOP_K, KEPT[kept])
        assert all(_passes(result.source, kept) for result in reply.results)
        assert reply.exact == (reply.paths["dense"] == "exact" and reply.paths["lexical"] in {"exact", "no terms"})


def test_an_index_that_gives_up_has_not_the_last_word(filled: Shelf, module_dsn: str, monkeypatch: pytest.MonkeyPatch):
    """The filter keeps only what is far from the question, and the index may look no further than at its nearest."""
    monkeypatch.setattr("recollect.retrieval.sql_candidates.EXACT_FILTER_CHUNKS", 10)
    question = filled.similarities(QUESTIONS[0])
    nearest: dict[str, float] = {}
    for source, similarity in zip(filled.sources, question.tolist(), strict=True):
        nearest[source] = max(similarity, nearest.get(source, -1.0))
    far = sorted(nearest, key=lambda source: nearest[source])[:5]
    allowed = np.isin(filled.sources, far)
    hasty = make_conninfo(module_dsn, options="-c hnsw.max_scan_tuples=1 -c enable_sort=off")
    with RAGPipeline(configured(hasty), embedder=EMBEDDER) as rag:
        (place,) = rag.collections.list()
        options = RetrievalOptions(top_k=TOP_K, mode="dense", use_cache=False, source=tuple(far))
        versions = matching_versions(rag.store.database, Scope(), place.collection_id, document_filter_of(options))
        assert versions.chunk_count == allowed.sum() > 10
        vector = EMBEDDER.embed_query(QUESTIONS[0])
        given_up = rag.store.search.dense(
            Scope(), place, vector, limit=50, rows=RowSelection(versions.version_ids), indexed=True
        )
        assert len(given_up) < min(50, versions.chunk_count)
        reply = rag.search(QUESTIONS[0], options)
        both = rag.search(QUESTIONS[0], replace(options, mode="hybrid"))
    expected = np.sort(question[allowed])[::-1][:TOP_K]
    assert [result.similarity for result in reply.results] == pytest.approx(expected.tolist(), abs=SAME)
    assert reply.exact and reply.paths == {"dense": "exact"}
    assert both.paths["dense"] == "exact" and len(both.results) == TOP_K


@pytest.mark.parametrize("limit", [3, 50])
def test_words_that_too_many_chunks_hold_are_narrowed_and_never_to_too_few(
    filled: Shelf, monkeypatch: pytest.MonkeyPatch, limit: int
):
    monkeypatch.setattr("recollect.retrieval.lexical.SMALL_COLLECTION_CHUNKS", 0)
    monkeypatch.setattr("recollect.retrieval.lexical.SCANNED_COLLECTION_CHUNKS", 0)
    store = filled.rag.store
    (place,) = filled.rag.collections.list()
    source, every = (SqlCandidates(store.search, lexical_budget=budget) for budget in (6, sys.maxsize))
    stayed = 0
    for question in QUESTIONS:
        request = asked(place, question, top_k=3, limit=limit)
        query = source.prepared(Scope(), request, proof=False)
        holding = [[held for held in filled.lexemes if held & set(condition)] for condition in query.conditions]
        meeting = sum(all(held & set(condition) for condition in query.conditions) for held in filled.lexemes)
        assert query.narrowed and meeting < len(holding[0]) > 6
        found = source.candidates(Scope(), request, Stopwatch())
        assert len(found.lexical) == min(limit, len(holding[0]))
        best = every.proven(Scope(), replace(request, limit=3))
        if found.lexical_exact:
            assert [score for _, score in found.lexical[:3]] == pytest.approx([score for _, score in best.scores])
        stayed += meeting >= limit
    assert (stayed > 0) == (limit == 3)


def searched(store: Store, request: CandidateRequest, *, budget: int, busy: bool) -> tuple[dict[str, Any], set[str]]:
    """What both ways find, with the stages that it took; ``busy``: while others are at it on every core."""
    watch = Stopwatch()
    with ExitStack() as others:
        for _ in range(os.cpu_count() or 1 if busy else 0):
            others.enter_context(store.database.searching)
        found = SqlCandidates(store.search, lexical_budget=budget).candidates(Scope(), request, watch)
    told = {field.name: getattr(found, field.name) for field in fields(found)}
    vectors = {chunk_id: vector.tolist() for chunk_id, vector in found.vectors.items()}
    return {**told, "vectors": vectors, "embedding": None}, set(watch.timings_ms())


@pytest.mark.parametrize("needs_vectors", [False, True])
@pytest.mark.parametrize("kept", list(FILTERS))
def test_both_ways_in_one_statement_find_what_each_finds_alone(
    filled: Shelf, monkeypatch: pytest.MonkeyPatch, kept: str, needs_vectors: bool
):
    monkeypatch.setattr("recollect.retrieval.lexical.SMALL_COLLECTION_CHUNKS", 0)
    monkeypatch.setattr("recollect.retrieval.lexical.SCANNED_COLLECTION_CHUNKS", 0)
    store = filled.rag.store
    (place,) = filled.rag.collections.list()
    versions = None
    if FILTERS[kept]:
        conditions = document_filter_of(RetrievalOptions(**FILTERS[kept]))
        versions = matching_versions(store.database, Scope(), place.collection_id, conditions)
    for question in QUESTIONS[:2]:
        # Words that too few chunks hold together are looked for once more.
        for limit, budget in ((3, 6), (50, 6), (200, sys.maxsize)):
            request = asked(place, question, limit=limit, versions=versions, needs_vectors=needs_vectors)
            alone, _ = searched(store, request, budget=budget, busy=False)
            together, stages = searched(store, request, budget=budget, busy=True)
            assert together == alone and alone["in_context"]
            assert "both" in stages
            assert list(together["similarities"]) == list(alone["similarities"])


def test_an_index_that_gives_up_in_one_statement_is_looked_through_once_more(
    filled: Shelf, module_dsn: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("recollect.retrieval.sql_candidates.EXACT_FILTER_CHUNKS", 10)
    sources = tuple(f"{number}.txt" for number in range(0, 100, 20))
    hasty = make_conninfo(module_dsn, options="-c hnsw.max_scan_tuples=1 -c enable_sort=off")
    with RAGPipeline(configured(hasty), embedder=EMBEDDER) as rag:
        (place,) = rag.collections.list()
        conditions = document_filter_of(RetrievalOptions(source=sources))
        versions = matching_versions(rag.store.database, Scope(), place.collection_id, conditions)
        request = asked(place, QUESTIONS[0], limit=50, versions=versions)
        alone, _ = searched(rag.store, request, budget=2_000, busy=False)
        together, stages = searched(rag.store, request, budget=2_000, busy=True)
    assert together == alone and alone["paths"]["dense"] == "exact" and len(alone["dense"]) == 50
    assert {"both", "dense"} <= stages


def test_questions_without_words_that_are_known_are_asked_by_meaning_alone(filled: Shelf):
    (place,) = filled.rag.collections.list()
    request = asked(place, "unheard")
    alone, _ = searched(filled.rag.store, request, budget=2_000, busy=False)
    together, stages = searched(filled.rag.store, request, budget=2_000, busy=True)
    assert together == alone and len(alone["dense"]) == 50 and not alone["bm25"]
    assert "both" not in stages


@pytest.mark.parametrize("others", [0, os.cpu_count() or 1])
def test_a_search_is_by_itself_unless_others_search_on_every_core(filled: Shelf, others: int):
    with ExitStack() as searching:
        for _ in range(others):
            searching.enter_context(filled.rag.store.database.searching)
        stages = filled.search(QUESTIONS[0], "everything", mode="hybrid").timings_ms
    assert ("both" in stages) == (others > 0 or (os.cpu_count() or 1) < 2)


def test_searches_at_the_same_time_find_what_each_finds_alone(filled: Shelf):
    expected = [filled.search(question, "everything", mode="hybrid").results for question in QUESTIONS]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(2):
            found = pool.map(lambda question: filled.search(question, "everything", mode="hybrid").results, QUESTIONS)
            assert list(found) == expected


# The probe


def asked(place: Collection, question: str, *, embedder=EMBEDDER, **changes) -> CandidateRequest:
    given = {"mode": "hybrid", "top_k": TOP_K, "limit": 50, **changes}
    return CandidateRequest(
        collection=place, plan=QueryPlan(query=question), embedding=embedder.embed_query(question), **given
    )


def sampled(shelf: Shelf, question: str, *, kept: str = "everything", lexical_budget: int = 1) -> Sample:
    """What a hybrid search through the index and by the rarest word alone leaves behind."""
    store = shelf.rag.store
    (place,) = shelf.rag.collections.list()
    options = RetrievalOptions(**FILTERS[kept])
    versions: MatchingVersions | None = None
    if FILTERS[kept]:
        versions = matching_versions(store.database, Scope(), place.collection_id, document_filter_of(options))
    request = asked(place, question, versions=versions)
    source = SqlCandidates(store.search, lexical_budget=lexical_budget)
    sample = Sample(scope=Scope(), request=request, found=source.candidates(Scope(), request, Stopwatch()))
    assert not sample.exact and sample.dense is not None
    return sample


@pytest.mark.parametrize("kept", ["everything", "half"])
def test_the_measured_recall_is_that_of_comparing_every_vector(filled: Shelf, kept: str):
    for question in QUESTIONS[:5]:
        sample = sampled(filled, question, kept=kept)
        assert sample.dense is not None
        least = filled.expected(question, kept)[-1]
        by_hand = sum(similarity >= least - SAME for _, similarity in sample.dense) / TOP_K
        measured = measure(filled.rag.store.database, sample)
        assert measured is not None
        assert (measured.probes, measured.dense_probes) == (1, 1)
        assert measured.recall_dense == measured.recall_dense_worst == pytest.approx(by_hand)


def test_what_a_search_missed_is_seen(filled: Shelf):
    sample = sampled(filled, QUESTIONS[0])
    assert sample.dense is not None
    similarities = dict(zip(filled.chunk_ids.tolist(), filled.similarities(QUESTIONS[0]).tolist(), strict=True))
    best = sorted(similarities.items(), key=lambda item: -item[1])
    missing_three = [*best[3:TOP_K], *best[500:503]]
    measured = measure(filled.rag.store.database, replace(sample, found=replace(sample.found, dense=missing_three)))
    assert measured is not None and measured.recall_dense == pytest.approx(0.7)


def test_the_recall_of_the_words_is_that_of_scoring_all_that_hold_any(filled: Shelf, monkeypatch: pytest.MonkeyPatch):
    # No collection counts as small, so that candidates are taken by the rarest word alone.
    monkeypatch.setattr("recollect.retrieval.lexical.SMALL_COLLECTION_CHUNKS", 0)
    monkeypatch.setattr("recollect.retrieval.lexical.SCANNED_COLLECTION_CHUNKS", 0)
    recalls = []
    for question in QUESTIONS[:8]:
        sample = sampled(filled, question)
        exact = filled.search(question, "everything", mode="lexical", explain=True)
        assert exact.exact and sample.lexical is not None
        least = exact.results[TOP_K - 1].explain.lexical.score
        by_hand = sum(score >= least - SAME for _, score in sample.lexical) / TOP_K
        measured = measure(filled.rag.store.database, sample)
        assert measured is not None and measured.lexical_probes == 1
        assert measured.recall_lexical == pytest.approx(by_hand)
        recalls.append(by_hand)
    assert min(recalls) < 1


def seen_as(sample: Sample, **changes) -> Sample:
    return replace(sample, request=replace(sample.request, collection=replace(sample.request.collection, **changes)))


def test_a_collection_that_changed_since_is_not_compared(filled: Shelf):
    sample = sampled(filled, QUESTIONS[0])
    assert measure(filled.rag.store.database, sample) is not None
    assert measure(filled.rag.store.database, seen_as(sample, revision=sample.request.collection.revision - 1)) is None
    assert measure(filled.rag.store.database, seen_as(sample, name="deleted meanwhile")) is None


def test_a_probe_takes_no_connection_from_the_searches(filled: Shelf, module_dsn: str):
    sample = sampled(filled, QUESTIONS[0])
    narrow = Database(module_dsn, max_connections=1)
    with narrow.single_reads(Scope()):
        assert measure(narrow, sample) is not None
    narrow.close()


def test_a_probe_that_takes_too_long_is_given_up(filled: Shelf, module_dsn: str, monkeypatch: pytest.MonkeyPatch):
    sample = sampled(filled, QUESTIONS[0])
    monkeypatch.setattr(health, "PROBE_SECONDS", 0.1)
    with filled.rag.store.database.transaction(Scope()) as connection:
        connection.execute("LOCK TABLE chunk_vectors IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(StoreError):
            measure(filled.rag.store.database, sample)


def test_a_probe_can_be_cancelled_while_it_waits(filled: Shelf, module_dsn: str):
    store = filled.rag.store
    sample = sampled(filled, QUESTIONS[0])
    interruption = Interruption()

    def probed() -> None:
        current.set(interruption)
        measure(store.database, sample)

    with ThreadPoolExecutor(1) as pool, store.database.transaction(Scope()) as connection:
        connection.execute("LOCK TABLE chunk_vectors IN ACCESS EXCLUSIVE MODE")
        measured = pool.submit(probed)
        waits = (
            "SELECT count(*) FROM pg_locks WHERE NOT granted "
            "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        )
        deadline = time.monotonic() + 10
        while not connection.execute(waits).fetchone()[0]:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        interruption.interrupt()
        with pytest.raises(Interrupted):
            measured.result(10)


def test_the_watch_measures_searches_and_the_status_of_another_process_shows_it(filled: Shelf, module_dsn: str):
    # What the other tests' searches left behind is written now, and taken off below.
    filled.rag.close()
    before = filled.rag.maintenance.status().search
    store = filled.rag.store
    embedder = CachedEmbedder(EMBEDDER, None)
    probed = threading.Event()

    def telling(sample: Sample) -> SearchHealth | None:
        measured = measure(store.database, sample)
        probed.set()
        return measured

    watch = SearchMonitor(
        store.search_health,
        telling,
        probe_rate=1.0,
        take_query_counts=embedder.take_query_counts,
        flush_seconds=0.05,
    )
    (place,) = filled.rag.collections.list()
    source = SqlCandidates(store.search, lexical_budget=2_000)
    for cached in (False, False, True):
        if not cached:
            request = asked(place, QUESTIONS[0], embedder=embedder)
            watch.searched(Scope(), request, source.candidates(Scope(), request, Stopwatch()))
        watch.replied(Scope(), place, cached=cached)
    assert probed.wait(30)
    watch.close()
    with RAGPipeline(configured(module_dsn), embedder=EMBEDDER) as other:
        status = other.maintenance.status()
    assert set(status.search.collections) == {place.name}
    assert sum(status.search.collections.values(), start=SearchHealth()).probes == status.search.probes
    assert status.search.result_cache == before.result_cache + HitCounts(hits=1, misses=2)
    assert status.search.query_embedding_cache == before.query_embedding_cache + HitCounts(hits=1, misses=1)
    # The second search came too soon after the first.
    assert (status.search.probes - before.probes, status.search.dense_probes - before.dense_probes) == (1, 1)
    assert status.search.recall_dense is not None and status.search.recall_dense >= 0.5
    assert status.search.last_probe is not None
