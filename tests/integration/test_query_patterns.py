"""What memory is asked for again and again is counted, by everybody, over restarts."""

from __future__ import annotations

import threading
from datetime import datetime
from pathlib import Path

import pytest

from recollect import QueryPatternTracker, RAGConfig, RAGPipeline, RecallOptions, Turn
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import StoreError, UsageError
from recollect.memory.patterns import FLUSH_EPISODES, FLUSH_SECONDS
from recollect.model import Scope
from recollect.store.memory import MemoryRepository
from recollect.store.store import Store

SCOPE = Scope()


@pytest.fixture
def episodes(pipeline: RAGPipeline) -> list[int]:
    """The ids of ten turns."""
    pipeline.view(session="chat", user="ada").remember([f"fact number {number}" for number in range(10)])
    return [turn.episode_id for turn in pipeline.memory.turns("chat")]


def counted(tracker: QueryPatternTracker, least: int = 1) -> dict[int, int]:
    found = tracker.get_consolidation_candidates(least)
    return {one.episode.episode_id: one.retrievals for one in found}


def reopened(dsn: str, folder: Path) -> RAGPipeline:
    config = RAGConfig.load(storage={"data_dir": folder / "unused", "dsn": dsn}, embedding={"provider": "hashing"})
    return RAGPipeline(config, embedder=HashingEmbedder())


class Unwilling(MemoryRepository):
    """Cannot be written to until it is told that it can."""

    def __init__(self, store: Store) -> None:
        super().__init__(store.database)
        self.willing = False
        self.writes = 0

    def note_retrievals(self, scope: Scope, counts: dict[int, int], *, at: datetime) -> None:
        self.writes += 1
        if not self.willing:
            raise StoreError("the database is read-only")
        super().note_retrievals(scope, counts, at=at)


def test_what_is_recalled_is_counted_and_survives_a_restart(pipeline: RAGPipeline, dsn: str, tmp_path: Path):
    pipeline.view(session="chat").remember(["The boiler is in the cellar.", "My bicycle is blue."])
    for _ in range(2):
        pipeline.recall("boiler", RecallOptions(top_k=1))
    pipeline.close()
    with reopened(dsn, tmp_path) as again:
        again.recall("boiler", RecallOptions(top_k=1))
        (found,) = again.memory.patterns.get_consolidation_candidates(3)
        assert (found.episode.content, found.retrievals) == ("The boiler is in the cellar.", 3)
        assert found.first_at <= found.last_at
        assert again.memory.patterns.get_consolidation_candidates(4) == []


def test_evaluations_and_candidates_are_not_counted(pipeline: RAGPipeline, episodes: list[int]):
    pipeline.recall("fact", RecallOptions(top_k=10, counted=False))
    assert counted(pipeline.memory.patterns) == {}


def test_of_a_context_what_is_shown_is_counted(pipeline: RAGPipeline, episodes: list[int]):
    found = pipeline.view(user="ada").memory.retriever().retrieve_hybrid("fact number 3", "chat", 120)
    shown = {item.recollection.episode.episode_id for item in found.passages if item.recollection}
    assert 0 < len(shown) < len(episodes)
    assert counted(pipeline.memory.patterns) == dict.fromkeys(shown, 1)


def test_many_threads_and_processes_count_every_retrieval(
    pipeline: RAGPipeline, episodes: list[int], dsn: str, tmp_path: Path
):
    rounds, failures = 60, []
    with reopened(dsn, tmp_path) as other:
        trackers = [pipeline.memory.patterns, other.memory.patterns]

        def ask(worker: int) -> None:
            try:
                tracker = trackers[worker % 2]
                for number in range(rounds):
                    # Each in an order of its own: whoever locked rows as they come would wait in circles.
                    tracker.record(SCOPE, episodes if (worker + number) % 2 else episodes[::-1])
                    if number % 7 == 0:
                        tracker.flush()
            except BaseException as exc:  # noqa: BLE001 - reported below
                failures.append(exc)

        threads = [threading.Thread(target=ask, args=(worker,)) for worker in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        other.memory.patterns.flush()
        assert counted(pipeline.memory.patterns) == dict.fromkeys(episodes, 8 * rounds)


def test_recording_writes_nothing_before_it_is_time(store: Store):
    repository = Unwilling(store)
    repository.willing = True
    now = [0.0]
    tracker = QueryPatternTracker(repository, clock=lambda: now[0])
    for _ in range(1_000):
        tracker.record(SCOPE, range(1, FLUSH_EPISODES))
    assert repository.writes == 0
    tracker.record(SCOPE, [FLUSH_EPISODES])
    assert repository.writes == 1
    now[0] += FLUSH_SECONDS
    tracker.record(SCOPE, [1])
    assert repository.writes == 2


def test_counts_wait_for_a_store_that_cannot_be_written(store: Store, pipeline: RAGPipeline, episodes: list[int]):
    repository = Unwilling(store)
    tracker = QueryPatternTracker(repository)
    tracker.record(SCOPE, episodes[:2])
    tracker.flush()
    tracker.record(SCOPE, episodes[:1])
    assert counted(pipeline.memory.patterns) == {}
    repository.willing = True
    tracker.close()
    assert counted(pipeline.memory.patterns) == {episodes[0]: 2, episodes[1]: 1}


def test_counts_go_with_their_session_and_belong_to_their_tenant(pipeline: RAGPipeline, episodes: list[int]):
    tracker = pipeline.memory.patterns
    with pipeline.store.database.autocommit() as connection:
        connection.execute("INSERT INTO tenants (tenant_id, name) VALUES (2, 'other')")
    pipeline.view(session="chat", tenant=2).remember([Turn(content="theirs")])
    theirs = pipeline.view(tenant=2).memory.turns("chat")[0].episode_id
    # Whoever names another tenant's turn has named none.
    tracker.record(SCOPE, [episodes[0], theirs])
    tracker.record(Scope(tenant_id=2), [theirs])
    assert counted(tracker) == {episodes[0]: 1}
    (found,) = tracker.get_consolidation_candidates(1, scope=Scope(tenant_id=2))
    assert (found.episode.content, found.retrievals) == ("theirs", 1)
    tracker.record(SCOPE, [episodes[0]])
    pipeline.memory.delete("chat")
    assert counted(tracker) == {}


@pytest.mark.parametrize(("least", "limit"), [(0, 10), (1, 0)])
def test_counts_below_one_are_refused(pipeline: RAGPipeline, least: int, limit: int):
    with pytest.raises(UsageError, match="at least 1"):
        pipeline.memory.patterns.get_consolidation_candidates(least, limit=limit)
