"""Searches of the past through segments of a history, beside a comparison with every row."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hostile import EFFORT
from recollect import Document, RAGConfig, RAGPipeline, RetrievalOptions
from recollect.embedding.hashing import HashingEmbedder
from recollect.model import Scope
from recollect.store import past
from recollect.store.history import HistoryIndexer
from recollect.store.tuning import Machine

NUMBERS = itertools.count(1)
EVERYTHING = {"top_k": 40, "rerank": "none", "use_cache": False, "collapse_duplicates": False}
WORDS = ("harbour", "lantern", "meadow", "granite", "willow", "copper", "thistle", "ember")


@pytest.fixture
def rag(dsn: str, tmp_path: Path) -> Iterator[RAGPipeline]:
    config = RAGConfig.load(
        storage={"data_dir": tmp_path / "unused", "dsn": dsn, "index_threshold": 4},
        embedding={"provider": "hashing"},
        retrieval={"probe_rate": 0},
    )
    with RAGPipeline(config, embedder=HashingEmbedder()) as opened:
        yield opened


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    # Parts of this size go through their indexes.
    monkeypatch.setattr(past, "FEW_CHUNKS", 3)


def _now(rag: RAGPipeline) -> datetime:
    time.sleep(0.003)
    with rag.store.database.autocommit() as connection:
        (moment,) = connection.execute("SELECT clock_timestamp()").fetchone()
    time.sleep(0.001)
    return moment


def _text(source: int, version: int) -> str:
    return f"{WORDS[source % len(WORDS)]} {WORDS[version % len(WORDS)]} says number {source} in edition {version}"


def _found(rag: RAGPipeline, collection: str, moment: datetime | None, mode: str) -> set[str]:
    reply = rag.view(collections=collection, as_of=moment).search(
        "what says number", RetrievalOptions(mode=mode, **EVERYTHING)
    )
    return {one.content for one in reply.results}


def _segments(rag: RAGPipeline) -> list[tuple]:
    with rag.store.database.autocommit() as connection:
        return connection.execute(
            "SELECT segment_id, closed_from::text, closed_before::text, chunk_count "
            "FROM closed_row_segments ORDER BY closed_before"
        ).fetchall()


def _indexes(rag: RAGPipeline) -> set[str]:
    with rag.store.database.autocommit() as connection:
        found = connection.execute("SELECT relname FROM pg_class WHERE relname ~ '^chunk_[a-z]+_past_'").fetchall()
    return {name for (name,) in found if name[-1].isdigit()}


CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(0, 7), st.integers(0, 7)),
        st.tuples(st.just("write_all"), st.just(0), st.integers(0, 7)),
        st.tuples(st.just("delete"), st.integers(0, 7), st.just(0)),
        st.tuples(st.just("expire"), st.integers(0, 7), st.booleans()),
        st.tuples(st.just("segment"), st.just(0), st.just(0)),
    ),
    min_size=2,
    max_size=12,
)


class Model:
    """A collection, and what is known in it."""

    def __init__(self, rag: RAGPipeline) -> None:
        self.rag = rag
        self.name = f"history {next(NUMBERS)}"
        self.known: dict[int, str] = {}
        rag.collections.create(self.name)

    def write(self, source: int, edition: int, ttl: float | None = None) -> None:
        self._write([source], edition, ttl)

    def write_all(self, _: int, edition: int) -> None:
        self._write(range(8), edition)

    def _write(self, sources: Iterable[int], edition: int, ttl: float | None = None) -> None:
        texts = {source: f"{_text(source, edition)} of {next(NUMBERS)}" for source in sources}
        documents = [Document(content=text, source=str(source), ttl=ttl) for source, text in texts.items()]
        self.rag.view(collections=self.name).ingest(documents)
        self.known |= texts

    def delete(self, source: int, _: int) -> None:
        self.rag.view(collections=self.name).documents.delete([str(source)])
        self.known.pop(source, None)

    def expire(self, source: int, close: bool) -> None:
        """A version that is over at once, and is closed late: now, or by whatever closes it next."""
        self.write(source, 1, ttl=0.0005)
        del self.known[source]
        time.sleep(0.002)
        if close:
            self.rag.view(collections=self.name).maintenance.close_expired()

    def segment(self, _: int, __: int) -> None:
        if self.rag.store.collections.get(Scope(), self.name).indexed:
            self.rag.store.history_indexer.build(Scope(), self.name)


@settings(max_examples=4 * EFFORT, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=CHANGES, mode=st.sampled_from(["hybrid", "dense", "lexical"]))
def test_every_moment_is_found_whole_whatever_the_segments(rag: RAGPipeline, changes, mode):
    model = Model(rag)
    model.write_all(0, 0)
    moments: list[tuple[datetime, set[str]]] = []
    for kind, *arguments in changes:
        getattr(model, kind)(*arguments)
        moments.append((_now(rag), set(model.known.values())))
    for moment, texts in moments:
        assert _found(rag, model.name, moment, mode) == texts


def test_segments_come_with_the_writing_and_go_with_the_collection(rag: RAGPipeline):
    moments = []
    for edition in range(4):
        rag.ingest([Document(content=_text(source, edition), source=str(source)) for source in range(12)])
        moments.append(_now(rag))
    segments = _segments(rag)
    assert segments
    assert segments[0][1] == "-infinity"
    assert all(one[2] == other[1] for one, other in itertools.pairwise(segments))
    place = rag.store.collections.get(Scope(), "default")
    assert _indexes(rag) == {
        f"chunk_{kind}_past_{place.collection_id}_{number}"
        for number, *_ in segments
        for kind in ("vectors", "lexical")
    }
    for edition, moment in enumerate(moments):
        reply = rag.view(as_of=moment).search("what says number", RetrievalOptions(**EVERYTHING))
        assert {one.content for one in reply.results} == {_text(source, edition) for source in range(12)}
    assert rag.maintenance.check() == []
    rag.collections.delete("default")
    assert not _segments(rag)
    assert not _indexes(rag)


def test_a_small_segment_is_replaced_by_one_that_covers_its_time(rag: RAGPipeline):
    rag.ingest([Document(content=_text(source, 0), source=str(source)) for source in range(12)])
    rag.ingest([Document(content=_text(source, 1), source=str(source)) for source in range(5)])
    then = _now(rag)
    rag.store.history_indexer.build(Scope(), "default")
    (small,) = _segments(rag)
    assert small[3] == 5
    rag.ingest([Document(content=_text(source, 2), source=str(source)) for source in range(5)])
    rag.store.history_indexer.build(Scope(), "default")
    (large,) = _segments(rag)
    assert large[3] == 10
    assert large[1] == small[1]
    expected = {_text(source, 1 if source < 5 else 0) for source in range(12)}
    assert _found(rag, "default", then, "hybrid") == expected


# A graph of these vectors takes more than a quarter of the second machine's memory: it has lists.
@pytest.mark.parametrize("memory", [None, 2**15])
def test_what_segments_hold_goes_through_their_indexes_and_the_reply_says_so(
    rag: RAGPipeline, memory: int | None, monkeypatch: pytest.MonkeyPatch
):
    machine = None if memory is None else Machine(memory_bytes=memory, cpu_count=1)
    small = HistoryIndexer(rag.store.database, rag.store.collections, threshold=4, machine=machine)
    monkeypatch.setattr(rag.store, "history_indexer", small)
    rag.ingest([Document(content=_text(source, 0), source=str(source)) for source in range(12)])
    then = _now(rag)
    rag.ingest([Document(content=_text(source, 1), source=str(source)) for source in range(12)])
    rag.store.history_indexer.build(Scope(), "default")
    with rag.store.database.autocommit() as connection:
        made = "SELECT DISTINCT indexdef ~ 'ivfflat' FROM pg_indexes WHERE indexname LIKE 'chunk_vectors_past_%'"
        assert connection.execute(made).fetchall() == [(memory is not None,)]
    place = rag.store.collections.get(Scope(), "default")
    parts = rag.store.past.plan(Scope(as_of=then), place)
    assert (parts.current, len(parts.starts), parts.version_ids) == (False, 1, [])
    reply = rag.view(as_of=then).search("granite", RetrievalOptions(candidates=5, top_k=5, use_cache=False))
    assert reply.paths["dense"] == "index"
    assert not reply.exact
    # Below a filter the versions of then are compared one by one.
    exact = rag.view(as_of=then).search("granite", RetrievalOptions(source=("3",), use_cache=False))
    assert [one.content for one in exact.results] == [_text(3, 0)]
    assert exact.paths["dense"] == "exact"


def test_segments_do_not_survive_a_repair_of_the_times_that_they_were_made_of(rag: RAGPipeline):
    rag.ingest([Document(content=_text(source, 0), source=str(source)) for source in range(6)])
    then = _now(rag)
    rag.ingest([Document(content=_text(source, 1), source=str(source)) for source in range(6)])
    rag.store.history_indexer.build(Scope(), "default")
    assert _segments(rag)
    with rag.store.database.autocommit() as connection:
        connection.execute("RESET ROLE")
        connection.execute(
            "UPDATE document_versions SET known_to = now() + interval '1 day' WHERE version = 1 AND uri = '3'"
        )
        connection.execute(
            "UPDATE chunk_vectors x SET known_to = v.known_to FROM document_versions v "
            "WHERE v.version_id = x.version_id"
        )
        connection.execute(
            "UPDATE chunk_lexical x SET known_to = v.known_to FROM document_versions v "
            "WHERE v.version_id = x.version_id"
        )
    rag.maintenance.verify(repair=True)
    assert not _segments(rag)
    assert _found(rag, "default", then, "hybrid") == {_text(source, 0) for source in range(6)}
    assert rag.maintenance.check() == []


def test_an_interrupted_build_leaves_nothing_that_the_next_one_does_not_remove(rag: RAGPipeline):
    rag.ingest([Document(content=_text(source, 0), source=str(source)) for source in range(6)])
    rag.ingest([Document(content=_text(source, 1), source=str(source)) for source in range(6)])
    place = rag.store.collections.get(Scope(), "default")
    for _, first, _, _ in _segments(rag):
        assert first
    with rag.store.database.autocommit() as connection:
        connection.execute(
            f"CREATE INDEX chunk_lexical_past_{place.collection_id}_99999 ON chunk_lexical USING gin (lexemes) "
            "WHERE known_to < '2000-01-01'"
        )
    rag.store.history_indexer.build(Scope(), "default")
    assert not any(name.endswith("_99999") for name in _indexes(rag))
