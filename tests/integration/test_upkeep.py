"""The clean-up every so many hours: by one of several processes, with or without a look of anybody."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from recollect import Document, RAGConfig, RAGPipeline
from recollect.config import TemporalConfig
from recollect.embedding.hashing import HashingEmbedder
from recollect.model import Scope
from recollect.pipeline.upkeep import Upkeep
from recollect.store.store import Store

THREAD = "recollect-upkeep"


def _open_documents(rag: RAGPipeline) -> int:
    return rag.store.collections.get(Scope(), "default").document_count


def _expired(rag: RAGPipeline, count: int) -> None:
    rag.ingest([Document(content=f"note {number}", source=str(number), ttl=0.001) for number in range(count)])
    rag.ingest("this one stays")
    time.sleep(0.01)


def _until(true, seconds: float = 20.0) -> bool:
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.02)
    return true()


def test_an_interval_is_kept_however_many_look(pipeline: RAGPipeline):
    many = [Upkeep(pipeline.store, TemporalConfig()) for _ in range(6)]
    _expired(pipeline, 4)
    with ThreadPoolExecutor(6) as pool:
        expired = list(pool.map(lambda one: one.look(), many))
    assert sorted(expired) == [0, 0, 0, 0, 0, 4]
    # Within the interval nobody cleans up again, whoever comes.
    _expired(pipeline, 2)
    assert [one.look() for one in many] == [0] * 6
    soon = Upkeep(pipeline.store, TemporalConfig(cleanup_interval_hours=1e-9))
    assert soon.look() == 2


def test_every_tenant_is_looked_after(pipeline: RAGPipeline):
    with pipeline.store.database.autocommit() as connection:
        connection.execute("INSERT INTO tenants (tenant_id, name) VALUES (71, 'other')")
    for tenant in (1, 71):
        pipeline.view(tenant=tenant).ingest(Document(content="soon over", source="note", ttl=0.001))
    time.sleep(0.01)
    assert Upkeep(pipeline.store, TemporalConfig()).look() == 2


def test_a_failure_is_no_end(pipeline: RAGPipeline, caplog: pytest.LogCaptureFixture):
    caplog.set_level("INFO", "recollect.pipeline.upkeep")
    _expired(pipeline, 1)
    with pipeline.store.database.autocommit() as connection:
        connection.execute("ALTER TABLE upkeep RENAME TO hidden")
    upkeep = Upkeep(pipeline.store, TemporalConfig(), first_look_seconds=0.01, look_seconds=0.01)
    upkeep.start()
    try:
        assert _until(lambda: "is tried again later" in caplog.text)
        with pipeline.store.database.autocommit() as connection:
            connection.execute("ALTER TABLE hidden RENAME TO upkeep")
        assert _until(lambda: _open_documents(pipeline) == 1)
    finally:
        upkeep.close()


@pytest.mark.parametrize(("hours", "threads"), [(24, 1), (0, 0)])
def test_a_pipeline_looks_while_its_store_is_open(dsn: str, tmp_path, hours: float, threads: int):
    def running() -> int:
        return sum(thread.name == THREAD for thread in threading.enumerate())

    config = RAGConfig.load(
        storage={"data_dir": tmp_path / "unused", "dsn": dsn},
        embedding={"provider": "hashing"},
        temporal={"cleanup_interval_hours": hours},
    )
    before = running()
    with RAGPipeline(config, embedder=HashingEmbedder()) as rag:
        assert running() == before
        rag.collections.list()
        assert running() == before + threads
    assert running() == before


def test_tasks_are_claimed_each_for_itself(store: Store):
    assert store.upkeep.claim(Scope(), "one", every_seconds=3600)
    assert not store.upkeep.claim(Scope(), "one", every_seconds=3600)
    assert store.upkeep.claim(Scope(), "another", every_seconds=3600)
    assert store.upkeep.claim(Scope(), "one", every_seconds=0)
