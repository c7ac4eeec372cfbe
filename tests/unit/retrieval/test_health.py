"""The watch over searches: what it counts, when it measures and writes, and that it disturbs nobody."""

from __future__ import annotations

import logging
import threading
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.embedding.cached import CachedEmbedder
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import StoreUnavailableError, UsageError
from recollect.interruption import stoppable
from recollect.model import Scope
from recollect.model.collection import Collection
from recollect.model.status import HitCounts, SearchHealth
from recollect.retrieval.candidates import CandidateRequest, Candidates
from recollect.retrieval.enhance.plan import QueryPlan
from recollect.retrieval.health import RECALL_AT, Sample, SearchMonitor, recall

NEVER = 1e6


def collection(collection_id: int = 1) -> Collection:
    return Collection(
        collection_id=collection_id,
        name=f"c{collection_id}",
        description="",
        embedding_model="m",
        embedding_dimension=4,
        space_id=collection_id,
        first_model="m",
        language="en",
        chunking={},
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        revision=1,
        document_count=1,
        chunk_count=1,
        stats_chunks=1,
        stats_terms=1,
        stats_pending=0,
        reference_length=1.0,
        indexed=True,
    )


def request(place: Collection | None = None, *, limit: int = 50) -> CandidateRequest:
    return CandidateRequest(
        collection=place or collection(),
        plan=QueryPlan(query="a secret question"),
        mode="hybrid",
        top_k=10,
        limit=limit,
        versions=None,
    )


def results(*, dense: str = "index", lexical: str = "exact") -> Candidates:
    scored = [(number, 1.0 - number / 100) for number in range(50)]
    return Candidates(
        dense=list(scored),
        lexical=list(scored),
        paths={"dense": dense, "lexical": lexical},
        embedding=np.ones(4, np.float32) / 2,
        dense_exact=dense == "exact",
        lexical_exact=lexical in {"exact", "no terms"},
    )


class Notebook:
    """Keeps what is added to it; fails as often as it is told to."""

    def __init__(self, *, failures: int = 0):
        self.added: dict[tuple[int, int], SearchHealth] = {}
        self.writes = 0
        self.failures = failures
        self.written = threading.Condition()

    def add(self, scope: Scope, health: dict[int, SearchHealth]) -> None:
        with self.written:
            self.writes += 1
            self.written.notify_all()
            if self.failures:
                self.failures -= 1
                raise StoreUnavailableError("down")
            for number, one in health.items():
                key = (scope.tenant_id, number)
                self.added[key] = self.added.get(key, SearchHealth()) + one

    def wait_for(self, writes: int) -> None:
        with self.written:
            assert self.written.wait_for(lambda: self.writes >= writes, timeout=20)


class Measurer:
    """Says what it is told to, as soon as it is let, or stopped."""

    def __init__(self, outcome: SearchHealth | Exception | None = None, *, held: bool = False):
        self.outcome = outcome
        self.samples: list[Sample] = []
        self.begun = threading.Semaphore(0)
        self.let = threading.Event()
        if not held:
            self.let.set()

    def __call__(self, sample: Sample) -> SearchHealth | None:
        self.samples.append(sample)
        self.begun.release()
        with stoppable(self.let.set):
            assert self.let.wait(20)
            if isinstance(self.outcome, Exception):
                raise self.outcome
        return self.outcome


PROBED = SearchHealth(probes=1, recall_dense=0.9, recall_dense_worst=0.9, dense_probes=1)


def monitor(notebook: Notebook, measurer: Measurer | None = None, **options) -> SearchMonitor:
    settings = {"probe_rate": 1.0, "flush_seconds": 0.005 if measurer else NEVER, **options}
    return SearchMonitor(notebook, measurer or Measurer(), **settings)  # type: ignore[arg-type]


# Counting


def test_replies_are_counted_by_tenant_and_collection_and_written_at_the_end():
    notebook = Notebook()
    watch = monitor(notebook)
    for cached in (False, True, True):
        watch.replied(Scope(), collection(), cached=cached)
    watch.replied(Scope(tenant_id=2), collection(5), cached=False)
    assert notebook.writes == 0
    watch.close()
    # Searches that end later disturb nothing.
    watch.replied(Scope(), collection(), cached=False)
    watch.close()
    assert notebook.added == {
        (1, 1): SearchHealth(result_cache=HitCounts(hits=2, misses=1)),
        (2, 5): SearchHealth(result_cache=HitCounts(hits=0, misses=1)),
    }


def test_embeddings_looked_up_count_for_the_search_that_ran():
    notebook = Notebook()
    embedder = CachedEmbedder(HashingEmbedder(4), None)
    watch = monitor(notebook, take_query_counts=embedder.take_query_counts)
    asked = threading.Barrier(2)

    def search(tenant_id: int, questions: list[str]) -> None:
        for question in questions:
            embedder.embed_query(question)
        asked.wait(20)
        watch.searched(Scope(tenant_id=tenant_id), request(), results(dense="exact"))

    threads = [
        threading.Thread(target=search, args=(1, ["a", "a", "a"])),
        threading.Thread(target=search, args=(2, ["b", "c"])),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    watch.searched(Scope(tenant_id=3), request(), results(dense="exact"))
    watch.close()
    assert notebook.added == {
        (1, 1): SearchHealth(query_embedding_cache=HitCounts(hits=2, misses=1)),
        (2, 1): SearchHealth(query_embedding_cache=HitCounts(hits=0, misses=2)),
    }


def test_what_could_not_be_written_is_kept_and_said_quietly(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.WARNING, "recollect")
    notebook = Notebook(failures=1)
    watch = monitor(notebook, flush_seconds=0.01)
    watch.replied(Scope(), collection(), cached=True)
    notebook.wait_for(1)
    watch.replied(Scope(), collection(), cached=False)
    notebook.wait_for(2)
    watch.close()
    assert notebook.added == {(1, 1): SearchHealth(result_cache=HitCounts(hits=1, misses=1))}
    assert not caplog.records


# Measuring


def test_an_approximate_search_is_measured_and_the_outcome_written():
    notebook, measurer = Notebook(), Measurer(PROBED)
    watch = monitor(notebook, measurer)
    for found in (results(dense="exact"), results(dense="exact", lexical="no terms"), results()):
        watch.searched(Scope(tenant_id=3), request(collection(4)), found)
    notebook.wait_for(1)
    watch.close()
    assert notebook.added == {(3, 4): PROBED}
    (sample,) = measurer.samples
    assert (sample.scope.tenant_id, sample.request.collection.collection_id, sample.at) == (3, 4, RECALL_AT)
    assert sample.dense is not None and len(sample.dense) == RECALL_AT and sample.lexical is None


def test_probes_keep_their_distance_and_a_long_one_is_followed_by_a_long_rest():
    now = 0.0
    notebook, measurer = Notebook(), Measurer(PROBED, held=True)
    watch = monitor(notebook, measurer, clock=lambda: now)
    measured = 0
    for searched, ended in ((0.0, 0.0), (9.9, None), (10.1, 14.1), (200.0, None), (214.2, 214.2)):
        now = searched
        for _ in range(3):
            watch.searched(Scope(), request(), results())
        if ended is not None:
            assert measurer.begun.acquire(timeout=20)
            # While one is repeated, no other search is taken.
            watch.searched(Scope(), request(), results())
            now = ended
            measured += 1
            measurer.let.set()
            notebook.wait_for(measured)
            measurer.let.clear()
    watch.close()
    assert len(measurer.samples) == measured == 3


def test_chance_decides():
    notebook, measurer = Notebook(), Measurer(PROBED)
    numbers = iter([0.02, 0.01, 0.5, 0.009])
    watch = monitor(notebook, measurer, probe_rate=0.01, chance=lambda: next(numbers))
    for at in range(4):
        watch.searched(Scope(), request(collection(at)), results())
    notebook.wait_for(1)
    watch.close()
    assert [one.request.collection.collection_id for one in measurer.samples] == [3]


def test_a_probe_that_cannot_be_made_is_no_probe_and_the_watch_goes_on():
    notebook, measurer = Notebook(), Measurer(StoreUnavailableError("down"))
    now = 0.0
    watch = monitor(notebook, measurer, clock=lambda: now)
    for turn in (1, 2):
        watch.searched(Scope(), request(), results())
        assert measurer.begun.acquire(timeout=20)
        notebook.wait_for(turn)
        now += 10.0
    watch.replied(Scope(), collection(), cached=True)
    watch.close()
    assert notebook.added == {(1, 1): SearchHealth(result_cache=HitCounts(hits=1))}


def test_a_fault_in_measuring_is_told_once_and_ends_it(caplog: pytest.LogCaptureFixture):
    notebook, measurer = Notebook(), Measurer(ValueError("a fault"))
    now = 0.0
    watch = monitor(notebook, measurer, clock=lambda: now)
    watch.searched(Scope(), request(), results())
    notebook.wait_for(1)
    now = 1e9
    watch.searched(Scope(), request(), results())
    watch.replied(Scope(), collection(), cached=True)
    watch.close()
    assert len(measurer.samples) == 1
    assert len(caplog.records) == 1 and "a secret question" not in caplog.text
    assert notebook.added[1, 1].result_cache == HitCounts(hits=1)


def test_the_end_stops_a_long_probe_and_writes_what_was_counted():
    notebook, measurer = Notebook(), Measurer(held=True)
    watch = monitor(notebook, measurer)
    watch.replied(Scope(), collection(), cached=True)
    watch.searched(Scope(), request(), results())
    assert measurer.begun.acquire(timeout=20)
    watch.close()
    assert notebook.added[1, 1].result_cache == HitCounts(hits=1)
    watch.searched(Scope(), request(), results())
    assert len(measurer.samples) == 1


def test_a_rate_beyond_all_is_refused():
    for rate in (-0.1, 1.1, float("nan")):
        with pytest.raises(UsageError, match="probe_rate"):
            monitor(Notebook(), probe_rate=rate)


# What is compared


@pytest.mark.parametrize(
    ("dense", "lexical", "which"),
    [
        ("index", "exact", (True, False)),
        ("index", "approximate", (True, True)),
        ("exact", "approximate", (False, True)),
        ("index", "no terms", (True, False)),
    ],
)
def test_only_what_was_approximate_is_compared(dense: str, lexical: str, which: tuple[bool, bool]):
    sample = Sample(scope=Scope(), request=request(limit=7), found=results(dense=dense, lexical=lexical))
    assert not sample.exact and sample.at == 7
    assert (sample.dense is not None, sample.lexical is not None) == which


SCORES = st.lists(st.integers(0, 20).map(lambda number: number / 10), min_size=1, max_size=30)


@given(SCORES, st.integers(1, 10), st.randoms())
def test_recall_is_the_share_of_the_best_whatever_stands_first_among_equals(scores, at, chance):
    every = list(enumerate(scores))
    exact = sorted(every, key=lambda item: -item[1])
    chance.shuffle(every)
    again = sorted(every, key=lambda item: -item[1])
    assert recall(again, exact, at=at) == 1.0
    # Any of the best that is missing costs its share.
    wanted = exact[:at]
    clear = [item for item in wanted if item[1] > wanted[-1][1]]
    for missing in range(len(clear) + 1):
        kept = clear[missing:]
        measured = recall(kept, exact, at=at)
        assert measured == pytest.approx(len(kept) / len(wanted))


def test_recall_of_nothing_is_not_known():
    assert recall([], [], at=10) is None
    assert recall(None, [(1, 1.0)], at=10) is None
    assert recall([(1, 1.0)], None, at=10) is None
    assert recall([], [(1, 1.0)], at=10) == 0.0
