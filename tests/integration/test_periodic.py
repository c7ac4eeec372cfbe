"""What a worker does every so often: each of it is done, and found done."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from recollect import Document, RAGConfig, RAGPipeline
from recollect.embedding.hashing import HashingEmbedder
from recollect.jobs.worker import PeriodicTask, Worker, WorkerOptions
from recollect.model import Scope
from recollect.pipeline.jobs import runner_of
from recollect.pipeline.working import periodic_tasks
from recollect.store.job_queue import Heartbeats


@pytest.fixture
def rag(dsn: str, tmp_path: Path) -> Iterator[RAGPipeline]:
    config = RAGConfig.load(
        storage={"data_dir": tmp_path / "unused", "dsn": dsn, "index_threshold": 40},
        embedding={"provider": "hashing"},
        temporal={"scrub_after_erased": 1, "indexing": {"partition_retention_days": 30}},
    )
    with RAGPipeline(config, embedder=HashingEmbedder()) as opened:
        yield opened


def run(rag: RAGPipeline, name: str) -> object:
    (task,) = [one for one in periodic_tasks(rag.standpoint.assembly) if one.name == name]
    return task.run()


def asked(rag: RAGPipeline, statement: str) -> list[tuple]:
    with rag.store.database.autocommit() as connection:
        return connection.execute(statement).fetchall()


def notes(count: int) -> list[Document]:
    return [
        Document(content=f"Note {number} tells of the river Dunmore and of {number} boats.", source=str(number))
        for number in range(count)
    ]


def test_what_has_expired_is_closed(rag: RAGPipeline):
    rag.ingest([Document(content="Gone soon.", source="a", ttl=timedelta(microseconds=1)), *notes(1)])
    assert rag.store.collections.get(Scope(), "default").document_count == 2
    assert run(rag, "cleanup") == 1
    assert rag.store.collections.get(Scope(), "default").document_count == 1


def test_words_are_counted_anew(rag: RAGPipeline):
    rag.ingest(notes(3))
    asked(rag, "UPDATE recollect.collection_state SET stats_pending = 3, stats_chunks = 0 RETURNING 1")
    assert run(rag, "statistics") == 1
    place = rag.store.collections.get(Scope(), "default")
    assert (place.stats_pending, place.stats_chunks) == (0, 3)


def test_a_collection_that_has_grown_gets_its_index(rag: RAGPipeline, dsn: str, tmp_path: Path):
    config = RAGConfig.load(storage={"data_dir": tmp_path / "unused", "dsn": dsn}, embedding={"provider": "hashing"})
    with RAGPipeline(config, embedder=HashingEmbedder()) as other:
        other.ingest(notes(45))
        assert not other.store.collections.get(Scope(), "default").indexed
    assert run(rag, "indexes") == 1
    assert rag.store.collections.get(Scope(), "default").indexed


def test_recall_is_measured_where_nobody_searches_and_stands_in_the_status(rag: RAGPipeline):
    rag.ingest(notes(45))
    assert rag.store.collections.get(Scope(), "default").indexed
    assert run(rag, "recall") == 5
    found = rag.maintenance.status().search
    assert (found.probes, found.dense_probes, found.result_cache.misses) == (5, 5, 0)
    assert found.recall_dense is not None and found.recall_dense > 0.9
    assert found.last_probe is not None
    # What was measured within the hour, by searches or here, is left alone.
    assert run(rag, "recall") == 0


def test_recall_is_not_measured_where_searches_are_exact_or_nobody_wants_it(dsn: str, tmp_path: Path):
    for settings, count in (({"index_threshold": 10_000}, {}), ({"index_threshold": 2}, {"probe_rate": 0})):
        config = RAGConfig.load(
            storage={"data_dir": tmp_path / "unused", "dsn": dsn, **settings}, embedding={"provider": "hashing"},
            retrieval=count,
        )  # fmt: skip
        with RAGPipeline(config, embedder=HashingEmbedder()) as rag:
            rag.ingest(notes(5))
            assert run(rag, "recall") == 0
            assert rag.maintenance.status().search.probes == 0


def test_sources_whose_time_has_come_are_refreshed_folders_and_sites_alike(rag: RAGPipeline, tmp_path: Path):
    folder = tmp_path / "docs"
    folder.mkdir()
    rag.sources.add(str(folder), every="1h")
    rag.sources.add("https://docs.example/", every="1h")
    assert run(rag, "sources") == 2
    assert {(one.kind, one.source) for one in rag.jobs.list()} == {
        ("refresh_source", str(folder)),
        ("refresh_source", "docs.example"),
    }
    assert run(rag, "sources") == 0


def test_partitions_are_made_ahead_and_dropped_past_their_retention(rag: RAGPipeline):
    columns = "(tenant_id, at, action, actor, number, hash) VALUES (1, now() - interval '{} days', 'x', 'y', 0, '')"
    for days in (5, 40):
        asked(rag, f"INSERT INTO recollect.audit {columns.format(days)} RETURNING 1")
    rag.store.audit.maintain(Scope(), partitions="daily", retention_days=None)
    run(rag, "cleanup")
    assert asked(rag, "SELECT count(*) FROM recollect.audit WHERE action = 'x'") == [(1,)]
    for table in ("audit", "request_log"):
        ahead = f"SELECT count(*) FROM recollect.time_partitions('{table}') WHERE past > now()"
        assert asked(rag, ahead)[0][0] > 1


def test_what_was_erased_is_scrubbed(rag: RAGPipeline):
    rag.ingest(notes(2))
    rag.documents.erase(["0"])
    assert rag.store.scrubber.due() == 1
    run(rag, "cleanup")
    assert rag.store.scrubber.due() == 0


def test_jobs_that_ended_long_ago_are_forgotten(rag: RAGPipeline):
    (job,) = rag.jobs.ingest(Path("missing"))
    rag.jobs.cancel(job.job_id)
    assert run(rag, "jobs") == 0
    asked(rag, "UPDATE recollect.jobs SET finished_at = now() - interval '1 year' RETURNING 1")
    assert run(rag, "jobs") == 1
    assert not rag.jobs.list()


def test_a_worker_begins_with_what_was_missed_and_one_that_fails_stops_no_other(rag: RAGPipeline):
    done, failed = threading.Event(), threading.Event()

    def fail() -> None:
        failed.set()
        raise RuntimeError("broken")

    worker = Worker(
        rag.store.database,
        runner_of(rag.standpoint.assembly),
        WorkerOptions(concurrency=1, poll_seconds=0.05, heartbeats=Heartbeats(every_seconds=0.2)),
        # The last minute has passed by the time that a worker begins: it is not waited for.
        periodic=[
            PeriodicTask(name="fails", every_seconds=60, run=fail),
            PeriodicTask(name="does", every_seconds=60, run=done.set),
        ],
    )
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        assert failed.wait(20) and done.wait(20)
    finally:
        worker.stop()
        thread.join(20)
    assert not thread.is_alive()
