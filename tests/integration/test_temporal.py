"""Searches by time beside a model of what was known when, over histories made at random."""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hostile import EFFORT
from recollect import Document, RAGPipeline, RetrievalOptions, TemporalRAG
from recollect.errors import UsageError
from recollect.model import Scope

SOURCES = st.sampled_from(["a", "b", "c", "d"])
YEARS = st.integers(2018, 2024)
#: Expired at the next moment that is looked at, or long after the test.
LIFETIMES = st.sampled_from([None, None, "1h", 0.001])
NUMBERS = itertools.count(1)


@dataclass(frozen=True)
class Known:
    """What is known of a document."""

    text: str
    start: int | None
    end: int | None

    def within(self, first: int | None, past: int | None) -> bool:
        if self.start is None:
            return first is None and past is None
        end = self.start if self.end is None else self.end
        return (first is None or end >= first) and (past is None or self.start < past)


@dataclass
class Model:
    """A collection, and what was known in it at each moment between two changes."""

    rag: RAGPipeline
    collection: str
    known: dict[str, Known] = field(default_factory=dict)
    ids: dict[str, int] = field(default_factory=dict)
    moments: list[tuple[datetime, dict[str, Known]]] = field(default_factory=list)

    def look(self) -> None:
        time.sleep(0.003)
        with self.rag.store.database.transaction(Scope()) as connection:
            (moment,) = connection.execute("SELECT clock_timestamp()").fetchone()
        self.moments.append((moment, dict(self.known)))
        time.sleep(0.001)

    def write(self, source: str, year: int | None, length: int, lifetime) -> None:
        text = f"leave says {source} {next(NUMBERS)}"
        end = year + length if year is not None and length else None
        written = self.rag.view(collections=self.collection).ingest(
            Document(content=text, source=source, event_time=_year(year), event_end=_year(end), ttl=lifetime)
        )
        self.ids[source] = written.document_id
        self.known[source] = Known(text, year, end)
        if isinstance(lifetime, float):
            del self.known[source]

    def close(self, source: str) -> None:
        if source in self.ids:
            self.rag.view(collections=self.collection).documents.delete([self.ids[source]])
            self.known.pop(source, None)

    def expire(self, source: str) -> None:
        if source in self.known:
            self.rag.view(collections=self.collection).documents.set_ttl(self.ids[source], 0.001)
            del self.known[source]

    def clean(self, _: str) -> None:
        self.rag.view(collections=self.collection).maintenance.close_expired()

    def found(self, as_of: datetime | None, **options) -> set[str]:
        reply = self.rag.view(collections=self.collection, as_of=as_of).search(
            "what says leave", RetrievalOptions(top_k=50, **options)
        )
        assert [one.rank for one in reply.results] == list(range(1, len(reply.results) + 1))
        return {one.content for one in reply.results}


def _year(year: int | None) -> datetime | None:
    return None if year is None else datetime(year, 1, 1, tzinfo=UTC)


WRITES = st.tuples(st.just("write"), SOURCES, YEARS | st.none(), st.integers(0, 3), LIFETIMES)
OTHERS = st.tuples(st.sampled_from(["close", "expire", "clean"]), SOURCES)


@settings(max_examples=6 * EFFORT, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    changes=st.lists(WRITES | OTHERS, min_size=1, max_size=10),
    first=YEARS | st.none(),
    past=YEARS | st.none(),
    mode=st.sampled_from(["hybrid", "dense", "lexical"]),
)
def test_every_moment_is_searched_as_it_was(pipeline: RAGPipeline, changes, first, past, mode):
    model = Model(pipeline, f"history {next(NUMBERS)}")
    pipeline.collections.create(model.collection)
    model.look()
    for name, *arguments in changes:
        getattr(model, name)(*arguments)
        model.look()
    ranged = first is not None and past is not None and first < past
    for moment, known in [*model.moments, (None, model.known)]:
        assert model.found(moment, mode=mode) == {one.text for one in known.values()}
        if ranged:
            expected = {one.text for one in known.values() if one.within(first, past)}
            assert model.found(moment, mode=mode, event_time_range=(str(first), str(past))) == expected
    # Afterwards nothing has expired that is still current, and no counter is wrong.
    model.clean("")
    assert pipeline.maintenance.check() == []
    assert len(model.known) == pipeline.store.collections.get(Scope(), model.collection).document_count
    for moment, known in model.moments:
        assert model.found(moment, mode=mode) == {one.text for one in known.values()}


# TemporalRAG


@pytest.fixture
def temporal(pipeline: RAGPipeline) -> TemporalRAG:
    return TemporalRAG(pipeline, collection="events")


def test_what_was_learnt_lately_of_things_long_past(temporal: TemporalRAG, pipeline: RAGPipeline):
    long_ago, lately = datetime.now(UTC) - timedelta(days=200), datetime.now(UTC) - timedelta(days=2)
    temporal.ingest(Document(content="The leak of the spring.", source="old"), event_time=long_ago)
    temporal.ingest(Document(content="The leak of Monday.", source="new"), event_time=lately)
    temporal.ingest("The leak of some day.")
    found = temporal.find_recent_discoveries("leak", "7d", "90d")
    assert [one.source for one in found] == ["old"]
    assert temporal.find_recent_discoveries("leak", timedelta(days=7), "300d") == []
    in_a_month = datetime.now(UTC) + timedelta(days=30)
    assert temporal.find_recent_discoveries("leak", "7d", "90d", as_of=in_a_month) == []
    assert len(temporal.find_recent_discoveries("leak", "40d", "30d", as_of=in_a_month)) == 2
    with pytest.raises(UsageError, match="leave them out"):
        temporal.find_recent_discoveries("leak", options=RetrievalOptions(event_time_range=("2020", None)))
    with pytest.raises(UsageError, match="event_age must be"):
        temporal.find_recent_discoveries("leak", "7d", "long")


def test_windows_count_back_from_the_moment_of_the_search(temporal: TemporalRAG):
    temporal.ingest(Document(content="Rain fell.", source="rain"), event_time="2026-03-10")
    later = datetime.now(UTC) + timedelta(seconds=1)
    days = (later - datetime(2026, 3, 10, tzinfo=UTC)).days

    def found(window: str, as_of: datetime | None) -> int:
        return len(temporal.search("rain", event_window=window, as_of=as_of).results)

    assert found(f"{days + 2}d", None) == found(f"{days + 2}d", later) == 1
    assert found(f"{days + 2}d", later + timedelta(days=10)) == 0
    # The same question again, a moment later: no reply of before answers it.
    reply = temporal.search("rain", event_window=f"{days + 2}d")
    assert not reply.cached
    assert temporal.search("rain", event_time_range=("2026", None)).cached is False
    assert temporal.search("rain", event_time_range=("2026", None)).cached is True


def test_an_answer_as_of_then_and_what_changed_since(temporal: TemporalRAG):
    temporal.ingest(Document(content="Annual leave is 25 days.", source="leave"))
    time.sleep(0.01)
    then = datetime.now(UTC)
    time.sleep(0.01)
    temporal.ingest(Document(content="Annual leave is 30 days.", source="leave"), ttl="1h")
    question = "How many days is annual leave?"
    assert "25" in str(temporal.search(question, as_of=then).results)
    assert "30" not in temporal.ask(question, as_of=then).text
    ((old, new),) = temporal.diff(question, then).changed
    assert ("25" in old.content, "30" in new.content) == (True, True)
    assert temporal.cleanup_expired() == 0


def test_it_closes_only_what_it_opened(pipeline: RAGPipeline):
    with TemporalRAG(pipeline) as borrowed:
        borrowed.ingest("text")
    assert pipeline.maintenance.status().total_documents == 1
    with TemporalRAG(pipeline.config) as own:
        assert own.search("text").results


def test_a_time_without_a_zone_is_utc_everywhere(temporal: TemporalRAG, pipeline: RAGPipeline):
    naive = datetime(2026, 3, 10, 12)
    temporal.ingest(Document(content="Rain fell.", source="rain", event_time=naive))
    (record,) = pipeline.view(collections="events").documents.list()
    assert record.event_time == naive.replace(tzinfo=UTC)
    exact = RetrievalOptions(event_time_range=(naive, naive + timedelta(microseconds=1)))
    assert temporal.search("rain", exact).results
    assert not temporal.search("rain", event_time_range=(naive + timedelta(microseconds=1), None)).results
    now = datetime.now(UTC) + timedelta(seconds=1)
    assert temporal.search("rain", as_of=now.replace(tzinfo=None)).results


@pytest.mark.parametrize(("start", "end"), [(None, "2026-01-01"), ("2026-01-02", "2026-01-01")])
def test_an_event_ends_after_it_began(temporal: TemporalRAG, start, end):
    with pytest.raises(UsageError, match=r"ends .* without having begun"):
        temporal.ingest(Document(content="Rain.", source="rain"), event_time=start, event_end=end)
