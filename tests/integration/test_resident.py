"""Copies of collections in memory: they say what the database says, whatever changes and whoever searches."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hostile import EFFORT
from recollect import Document, Principal, RAGConfig, RAGPipeline, RetrievalOptions
from recollect.embedding.hashing import HashingEmbedder
from recollect.model import Scope
from recollect.model.collection import Collection
from recollect.retrieval import search
from recollect.retrieval.candidates import CandidateRequest, Candidates, Stopwatch
from recollect.retrieval.enhance.plan import QueryPlan
from recollect.retrieval.resident import generation, kernels, lists
from recollect.retrieval.resident.collections import ResidentCollections
from recollect.retrieval.resident.segment import Segment
from recollect.retrieval.resident.source import ResidentCandidates
from recollect.retrieval.sql_candidates import SqlCandidates
from recollect.store.filters import document_filter_of, matching_versions
from resident import loaded

EMBEDDER = HashingEmbedder(16)
WORDS = [f"word{letter}" for letter in "abcdefgh"]
TEXTS = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join), min_size=1, max_size=4)
QUERIES = st.lists(st.sampled_from([*WORDS, "wordx"]), min_size=1, max_size=3).map(" ".join)
TOKENS = st.lists(st.sampled_from(["*", "user:ann", "role:boss", "department:hr"]), min_size=1, max_size=2)
PRINCIPALS = st.sampled_from(
    [None, Principal(user_id="ann"), Principal(roles=("boss",), department="hr"), Principal(user_id="eve")]
)
FILTERS = st.sampled_from(
    [
        {},
        {"source": ("d0", "d1")},
        {"tags": ("even",)},
        {"filters": {"metadata.place": {"gte": 2}}},
        {"source": ("no",)},
    ]
)
MODES = ("dense", "lexical", "hybrid")

# Everything, so that what the database cuts off in its own order is no difference.
LIMIT = 200


@pytest.fixture
def rag(dsn: str, tmp_path: Path) -> Iterator[RAGPipeline]:
    config = RAGConfig.load(
        storage={"data_dir": tmp_path / "unused", "dsn": dsn},
        embedding={"provider": "hashing"},
        chunking={"strategy": "paragraph"},
        retrieval={"resident_memory_mb": 0},
    )
    with RAGPipeline(config, embedder=EMBEDDER) as opened:
        yield opened
        while MADE:
            MADE.pop().close()


MADE: list[ResidentCollections] = []


def made(rag: RAGPipeline, **options: Any) -> ResidentCollections:
    MADE.append(ResidentCollections(rag.store.resident, **options))
    return MADE[-1]


@dataclass
class Beside:
    """One store, searched in the database and from memory."""

    rag: RAGPipeline
    held: ResidentCollections
    name: str

    @property
    def view(self):
        return self.rag.view(collections=self.name)

    def collection(self, principal: Principal | None = None) -> tuple[Scope, Collection]:
        scope = Scope(principal=principal)
        return scope, self.rag.store.collections.get(scope, self.name)

    def hold(self) -> None:
        assert loaded(self.held, *self.collection())

    def ask(self, mode: str, query: str, principal: Principal | None, options: RetrievalOptions):
        scope, collection = self.collection(principal)
        document_filter = document_filter_of(options, None)
        request = CandidateRequest(
            collection=collection,
            plan=QueryPlan(query=query),
            mode=mode,
            top_k=10,
            limit=LIMIT,
            embedding=EMBEDDER.embed_query(query),
            needs_vectors=True,
            versions=None
            if not document_filter
            else matching_versions(
                self.rag.store.database,
                scope,
                collection.collection_id,
                document_filter,
                access_ids=collection.access_ids,
                unexpired=False,
            ),
        )
        database = SqlCandidates(self.rag.store.search, lexical_budget=10**9)
        memory = ResidentCandidates(self.held.find, database)
        return scope, request, database, memory

    def require_same(self, query: str, principal: Principal | None = None, options: RetrievalOptions | None = None):
        for mode in MODES:
            scope, request, database, memory = self.ask(mode, query, principal, options or RetrievalOptions())
            found, expected = (one.candidates(scope, request, Stopwatch()) for one in (memory, database))
            if not request.empty:
                assert set(found.paths.values()) <= {"resident", "no terms"}
            same(found, expected)


def same(found: Candidates, expected: Candidates) -> None:
    for way in ("dense", "lexical"):
        mine, theirs = getattr(found, way), getattr(expected, way)
        assert dict(mine) == pytest.approx(dict(theirs), abs=1e-5)
        assert mine == sorted(mine, key=lambda one: (-one[1], one[0]))
        assert [score for _, score in mine] == pytest.approx([score for _, score in theirs], abs=1e-5)
    for what in ("similarities", "bm25", "coverage", "in_context"):
        mine, theirs = getattr(found, what), getattr(expected, what)
        known = set(mine) & set(theirs) if what == "coverage" else set(theirs)
        assert set(mine) >= known
        assert {one: mine[one] for one in known} == pytest.approx({one: theirs[one] for one in known}, abs=1e-5)
    assert found.similarities.keys() == expected.similarities.keys()
    assert found.vectors.keys() == expected.vectors.keys()
    assert all(np.array_equal(found.vectors[one], vector) for one, vector in expected.vectors.items())
    assert dict(found.weights) == pytest.approx(dict(expected.weights))


@pytest.fixture(params=["compiled", "numpy", "lists"])
def loops(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """By which loops copies are searched; "lists": as large ones are, with every list looked into."""
    if request.param == "lists":
        monkeypatch.setattr(generation, "EXACT_CHUNKS", 0)
        monkeypatch.setattr(lists, "FLAT", 4)
        monkeypatch.setattr(lists, "_PROBED", 1e9)
    if request.param == "numpy":
        monkeypatch.setattr(kernels, "compiled", None)
    elif kernels.compiled is None:
        pytest.skip("The extension is not built here.")
    return request.param


@pytest.mark.slow
@given(data=st.data())
@settings(
    phases=[__import__("hypothesis").Phase.generate],
    max_examples=12 * EFFORT,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    deadline=None,
)
def test_memory_says_what_the_database_says(rag: RAGPipeline, loops: str, data: st.DataObject):
    beside = Beside(rag, made(rag, budget=2**30), f"c{time.monotonic_ns()}")
    rag.collections.ensure(beside.name)
    for number in range(data.draw(st.integers(1, 5), label="documents")):
        store(beside, number, data.draw(TEXTS, label="text"))
    beside.hold()
    for _ in range(data.draw(st.integers(1, 6), label="rounds")):
        change(beside, data)
        query, principal = data.draw(QUERIES, label="query"), data.draw(PRINCIPALS, label="principal")
        beside.require_same(query, principal, RetrievalOptions(**data.draw(FILTERS, label="filter")))
        beside.require_same(query)


def store(beside: Beside, number: int, paragraphs: list[str]) -> None:
    beside.view.ingest(
        Document(
            content="\n\n".join(paragraphs),
            source=f"d{number}",
            tags=("even",) if number % 2 == 0 else (),
            metadata={"place": number},
        ),
        force=True,
    )


def change(beside: Beside, data: st.DataObject) -> None:
    view, name = beside.view, data.draw(st.sampled_from(sorted(CHANGES)), label="change")
    there = sorted(one.document_id for one in view.documents.list())
    if name == "store":
        store(beside, data.draw(st.integers(0, 6), label="number"), data.draw(TEXTS, label="text"))
    elif there:
        tokens = data.draw(TOKENS, label="tokens")
        CHANGES[name](beside, data.draw(st.sampled_from(there), label="document"), tokens)


def expire(beside: Beside, one: int, _: list[str]) -> None:
    beside.view.documents.set_ttl(one, timedelta(microseconds=1))
    beside.rag.store.expiry.close_due(Scope(), beside.collection()[1].collection_id)


def join(beside: Beside, *_: object) -> None:
    for held in beside.held._held.values():
        held.generation = held.generation.compacted()


CHANGES = {
    "store": None,
    "statistics": lambda beside, *_: beside.rag.store.collections.refresh_term_stats(*beside.collection()),
    "place": lambda beside, *_: beside.view.grants.set_collection(readers=("*", "user:ann")),
    "delete": lambda beside, one, _: beside.view.documents.delete([one]),
    "erase": lambda beside, one, _: beside.view.documents.erase([one]),
    "grant": lambda beside, one, tokens: beside.view.grants.add(tokens, documents=one, only=True),
    "deny": lambda beside, one, tokens: beside.view.grants.deny(tokens, documents=one),
    "default": lambda beside, _, tokens: beside.view.grants.add(tokens, only=True, default=True),
    "tags": lambda beside, one, _: beside.view.documents.update(one, tags=["even"]),
    "restore": lambda beside, one, _: beside.view.documents.restore(one, 1),
    "expire": expire,
    "join": join,
}


def test_many_chunks_are_found_by_their_codes(rag: RAGPipeline, loops: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(generation, "EXACT_CHUNKS", 50)
    beside = Beside(rag, made(rag, budget=2**30), "many")
    for start in range(0, 1_200, 400):
        beside.view.ingest(
            [
                Document(content=f"number{n} of{n % 40} them{n % 7}", source=f"s{n}", metadata={"hundredth": n % 100})
                for n in range(start, start + 400)
            ]
        )
        beside.hold()
    share = 0.0
    for number in range(20):
        query = f"number{number} them{number % 7}"
        for options in (RetrievalOptions(), RetrievalOptions(filters={"metadata.hundredth": {"lt": 10}})):
            scope, request, database, memory = beside.ask("hybrid", query, None, options)
            request = replace(request, limit=10)
            found = memory.candidates(scope, request, Stopwatch())
            expected = database.candidates(scope, request, Stopwatch())
            assert found.paths["dense"] == "resident" and not found.dense_exact
            assert len(found.dense) == 10
            least = expected.dense[-1][1] - 1e-5
            share += sum(score >= least for _, score in found.dense) / 10
        rare = RetrievalOptions(filters={"metadata.hundredth": number})
        scope, request, database, memory = beside.ask("dense", query, None, rare)
        found = memory.candidates(scope, request, Stopwatch())
        assert found.dense_exact and len(found.dense) == 12
        same(found, database.candidates(scope, request, Stopwatch()))
    assert share / 40 >= 0.95


def test_searches_see_what_was_written_before_them_while_others_write(rag: RAGPipeline):
    beside = Beside(rag, made(rag, budget=2**30), "written")
    beside.view.ingest(Document(content="the first of all", source="0"))
    beside.hold()
    failed: list[BaseException] = []

    def write(writer: int) -> None:
        try:
            for number in range(8):
                source = f"{writer}-{number}"
                beside.view.ingest(Document(content=f"{source} is there word{writer}x{number}", source=source))
                for mode in MODES:
                    scope, request, _, memory = beside.ask(mode, f"word{writer}x{number}", None, RetrievalOptions())
                    found = memory.candidates(scope, request, Stopwatch())
                    assert set(found.paths.values()) == {"resident"}
                    texts = {one.content for one in rag.store.search.passages(scope, sorted(found.known)).values()}
                    assert any(source in text for text in texts)
                if number % 3 == 0:
                    ids = [one.document_id for one in beside.view.documents.list() if one.source == source]
                    beside.view.documents.erase(ids)
        except BaseException as exc:  # noqa: BLE001 - told to the test below
            failed.append(exc)

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed[0]
    beside.require_same("there")
    assert beside.held.usage().dropped == 0


def test_what_was_erased_by_another_process_leaves_the_memory(rag: RAGPipeline):
    beside = Beside(rag, made(rag, budget=2**30), "erased")
    beside.view.ingest([Document(content="to be kept", source="kept"), Document(content="to be erased", source="gone")])
    beside.hold()
    (gone,) = [one.document_id for one in beside.view.documents.list() if one.source == "gone"]
    beside.view.documents.erase([gone])
    beside.held.follow()
    held = next(iter(beside.held._held.values())).generation
    assert len(held.base.segment) == 1 and held.chunks == 1


def test_there_is_no_copy_of_what_is_not_held(rag: RAGPipeline):
    beside = Beside(rag, made(rag, budget=1), "large")
    beside.view.ingest(Document(content="too much for a byte", source="0"))
    assert not loaded(beside.held, *beside.collection())
    assert beside.held.find(*beside.collection()) is None
    none = made(rag, budget=0)
    assert not loaded(none, *beside.collection())
    assert none.find(*beside.collection()) is None


def test_nobody_has_to_search_for_a_copy_to_follow(rag: RAGPipeline):
    beside = Beside(rag, made(rag, budget=2**30, follow_seconds=0.05), "followed")
    beside.view.ingest(Document(content="to be erased", source="0"))
    beside.hold()
    beside.view.documents.erase([one.document_id for one in beside.view.documents.list()])
    deadline = time.monotonic() + 60
    while beside.held.usage().chunks and time.monotonic() < deadline:
        time.sleep(0.01)
    assert beside.held.usage().chunks == 0


def test_a_copy_that_outgrows_its_room_is_let_go(rag: RAGPipeline):
    beside = Beside(rag, made(rag, budget=30_000), "growing")
    beside.view.ingest(Document(content="little", source="0"))
    beside.hold()
    beside.view.ingest(
        [Document(content=f"{number} of many words w{number}", source=str(number)) for number in range(400)]
    )
    beside.held.find(*beside.collection())
    assert beside.held.usage().collections == 0
    assert beside.held.find(*beside.collection()) is None


def test_what_is_loaded_while_something_is_erased_is_not_held(rag: RAGPipeline, monkeypatch: pytest.MonkeyPatch):
    beside = Beside(rag, made(rag, budget=2**30), "erased meanwhile")
    beside.view.ingest(Document(content="to be erased", source="0"))
    make = Segment.of

    def erased_meanwhile(*args, **options):
        beside.held.forget()
        return make(*args, **options)

    monkeypatch.setattr(Segment, "of", erased_meanwhile)
    assert not loaded(beside.held, *beside.collection())
    monkeypatch.undo()
    assert loaded(beside.held, *beside.collection())


def test_what_is_gone_or_suspended_is_let_go(rag: RAGPipeline):
    held = made(rag, budget=2**30)
    first, second = Beside(rag, held, "first"), Beside(rag, held, "second")
    for one in (first, second):
        one.view.ingest(Document(content="something", source="0"))
        one.hold()
    rag.tenants.create("other")
    theirs = rag.view(tenant="other", collections="third")
    theirs.ingest(Document(content="of others", source="0"))
    scope = theirs.standpoint.present()
    assert loaded(held, scope, rag.store.collections.get(scope, "third"))
    assert held.usage().collections == 3
    rag.collections.delete("first")
    first.view.ingest(Document(content="of the same name", source="0"))
    rag.tenants.suspend("other")
    held.follow()
    assert held.usage().collections == 1
    first.hold()
    first.require_same("same name")
    held.forget()
    assert held.usage().collections == held.usage().bytes == 0


def test_a_copy_that_says_something_else_is_dropped(dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog):
    monkeypatch.setattr(search, "LOADED_AFTER", 0)
    config = RAGConfig.load(
        storage={"data_dir": tmp_path / "unused", "dsn": dsn},
        embedding={"provider": "hashing"},
        retrieval={"probe_rate": 1, "cache_entries": 0},
    )
    with RAGPipeline(config, embedder=EMBEDDER) as rag:
        rag.ingest([Document(content=f"number {number} of many", source=str(number)) for number in range(20)])
        scope, collection = Scope(), rag.store.collections.get(Scope(), "default")
        rag.search("number 7")
        held = rag.standpoint.assembly.held
        assert loaded(held, scope, collection)
        (copy,) = held._held.values()
        copy.generation.base.segment.vectors[3] = copy.generation.base.segment.vectors[4]
        assert rag.search("number 3 of many").paths["dense"] == "resident"
        rag.standpoint.assembly.searcher._monitor._log.flush()
        assert held.usage().dropped == 1
        assert held.find(scope, collection) is None
    assert "is dropped" in caplog.text


def test_what_failed_is_tried_again_ever_more_seldom(rag: RAGPipeline, monkeypatch: pytest.MonkeyPatch, caplog):
    now = [0.0]
    beside = Beside(rag, made(rag, budget=2**30, clock=lambda: now[0]), "failing")
    beside.view.ingest(Document(content="the first of all", source="0"))
    beside.hold()
    tried: list[float] = []

    def failing(*args, **options):
        tried.append(now[0])
        raise ValueError("a defect")

    monkeypatch.setattr(Segment, "of", failing)
    beside.view.ingest(Document(content="the second", source="1"))
    assert beside.held.find(*beside.collection()) is None  # what cannot follow leaves the search to the database
    for now[0] in (59.0, 61.0, 180.0, 182.0, 421.0, 423.0):
        assert not loaded(beside.held, *beside.collection())
    assert tried == [0.0, 61.0, 182.0, 423.0]
    assert "tried again after 240 seconds" in caplog.text
    monkeypatch.undo()
    now[0] = 10_000.0
    beside.hold()
    beside.require_same("first second")


def test_what_was_erased_leaves_the_memory_while_something_large_is_loaded(
    rag: RAGPipeline, monkeypatch: pytest.MonkeyPatch
):
    held = made(rag, budget=2**30, follow_seconds=0.05)
    small, large = Beside(rag, held, "small"), Beside(rag, held, "large")
    small.view.ingest(Document(content="to be erased", source="0"))
    large.view.ingest([Document(content=f"number {number}", source=str(number)) for number in range(9)])
    small.hold()
    make, waits, goes_on = Segment.of, threading.Event(), threading.Event()

    def slowly(contents, **options):
        if len(contents.places.chunk_ids) == 9:
            waits.set()
            assert goes_on.wait(60)
        return make(contents, **options)

    monkeypatch.setattr(Segment, "of", slowly)
    held.find(*large.collection())
    assert waits.wait(60)
    small.view.documents.erase([one.document_id for one in small.view.documents.list()])
    deadline = time.monotonic() + 30
    while held.usage().chunks and time.monotonic() < deadline:
        time.sleep(0.01)
    assert held.usage().chunks == 0
    goes_on.set()
    large.hold()
    assert held.usage().chunks == 9


class Lengths:
    """Embeds into vectors of any length; what names nothing is at the origin, so that it is near to nothing."""

    def __init__(self, dimension: int) -> None:
        self.dimension, self.model_name = dimension, f"lengths:{dimension}"
        self._hashing = HashingEmbedder(max(2, dimension))

    def embed_documents(self, texts):
        vectors = self._hashing.embed_documents([text[:1_000] for text in texts])[:, : self.dimension].copy()
        vectors[["nothing" in text for text in texts]] = 0
        return vectors

    def embed_query(self, text):
        return self.embed_documents([text])[0]


@pytest.mark.slow
@pytest.mark.parametrize(("loops", "dimension"), [("numpy", 1), ("compiled", 4_096)], indirect=["loops"])
def test_memory_says_it_of_extremes_too(
    dsn: str, tmp_path: Path, loops: str, monkeypatch: pytest.MonkeyPatch, dimension: int
):
    embedder = Lengths(dimension)
    monkeypatch.setitem(globals(), "EMBEDDER", embedder)
    config = RAGConfig.load(
        storage={"data_dir": tmp_path / "unused", "dsn": dsn},
        chunking={"strategy": "fixed_size", "size": 1_000_000, "overlap": 0},
        retrieval={"resident_memory_mb": 0},
    )
    with RAGPipeline(config, embedder=embedder) as rag:
        beside = Beside(rag, ResidentCollections(rag.store.resident, budget=2**30), "extremes")
        beside.view.collections.ensure("extremes")
        try:
            beside.hold()
            beside.require_same("worda")
            many = " ".join(f"word{number}" for number in range(20_000))
            for number, text in enumerate(["?! ... !?", "nothing", "worda " * 70_000, many, "worda wordb"]):
                store(beside, number, [text])
                beside.require_same("worda word7")
            for query in ("wordb", "nothing", "?!"):
                beside.require_same(query)
            join(beside)
            beside.require_same("worda word7")
            beside.view.documents.delete([one.document_id for one in beside.view.documents.list()])
            beside.require_same("worda")
            join(beside)
            beside.require_same("worda")
            store(beside, 0, ["worda"])
            beside.require_same("worda")
        finally:
            beside.held.close()
