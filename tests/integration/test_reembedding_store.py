"""What a change of the model leaves in the store: indexes, backups, what a kill -9 interrupts, what erasures take."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from recollect import Document, RAGConfig, RAGPipeline, RetrievalOptions
from recollect.model import Scope
from recollect.store.backup import backup
from recollect.store.restore import restore

WORDS = [f"{a}{b}{c}" for a in "bdfg" for b in "aeiou" for c in "lm"]
TEXTS = {f"n{number}": f"The {word} note tells of {word}." for number, word in enumerate(WORDS)}
DENSE = RetrievalOptions(mode="dense", top_k=5, use_cache=False)


def opened(dsn: str, folder: Path) -> RAGPipeline:
    storage = {"data_dir": folder / "unused", "dsn": dsn, "index_threshold": 30}
    return RAGPipeline(RAGConfig.load(storage=storage, embedding={"provider": "hashing", "dimensions": 256}))


@pytest.fixture
def rag(dsn: str, tmp_path: Path) -> Iterator[RAGPipeline]:
    with opened(dsn, tmp_path) as rag:
        rag.ingest(Document(content=text, source=source) for source, text in TEXTS.items())
        yield rag


def indexes(rag: RAGPipeline) -> set[str]:
    with rag.store.database.autocommit() as connection:
        found = connection.execute("SELECT relname FROM pg_class WHERE relname ~ '^chunk_vectors_(hnsw|past)_[0-9]'")
        return {row[0] for row in found}


def test_each_space_has_an_index_of_its_own_which_searches_use_and_a_drop_removes(rag: RAGPipeline):
    first = rag.store.collections.get(Scope(), "default").space_id
    assert indexes(rag) == {f"chunk_vectors_hnsw_{first}"}
    second = rag.spaces.reembed("hashing:384", samples=0, rest=0).after.space_id
    assert indexes(rag) == {f"chunk_vectors_hnsw_{first}", f"chunk_vectors_hnsw_{second}"}
    assert rag.store.collections.get(Scope(), "default").indexed
    with rag.store.database.transaction(Scope()) as connection:
        connection.execute("SET LOCAL enable_sort = off")
        plan = connection.execute(
            "EXPLAIN SELECT chunk_id FROM chunk_vectors WHERE tenant_id = 1 AND space_id = "
            f"{second} AND known_to = 'infinity' ORDER BY embedding::halfvec(384) <#> array_fill(0.1, "
            "ARRAY[384])::real[]::vector::halfvec(384) LIMIT 5"
        ).fetchall()
    assert f"chunk_vectors_hnsw_{second}" in str(plan)
    assert rag.search(TEXTS["n7"], DENSE).results[0].source == "n7"
    rag.spaces.drop()
    assert indexes(rag) == {f"chunk_vectors_hnsw_{second}"}
    rag.spaces.reembed("hashing:320", samples=0, rest=0)
    rag.collections.delete("default")
    assert indexes(rag) == set()


def test_the_past_is_found_through_indexes_of_the_new_space(rag: RAGPipeline, monkeypatch):
    monkeypatch.setattr("recollect.store.past.FEW_CHUNKS", 1)
    monkeypatch.setattr("recollect.store.past._FEW", 0.0)
    with rag.store.database.autocommit() as connection:
        (then,) = connection.execute("SELECT clock_timestamp()").fetchone()
    rag.ingest(Document(content=f"{text} Again.", source=source) for source, text in TEXTS.items())
    rag.store.history_indexer.build(Scope(), "default")
    past = rag.view(as_of=then)
    before = past.search(TEXTS["n7"], DENSE)
    first = rag.store.collections.get(Scope(), "default").space_id
    second = rag.spaces.reembed("hashing:384", samples=0, rest=0).after.space_id
    assert {name.rpartition("_")[0] for name in indexes(rag) if "past" in name} == {
        f"chunk_vectors_past_{first}",
        f"chunk_vectors_past_{second}",
    }
    after = past.search(TEXTS["n7"], DENSE)
    assert after.results[0].content == before.results[0].content == TEXTS["n7"]
    rag.spaces.drop()
    assert {name.rpartition("_")[0] for name in indexes(rag) if "past" in name} == {f"chunk_vectors_past_{second}"}


KILLED = """
import os, signal, sys
from recollect import RAGPipeline
from recollect.ingest import reembedding
reembedding.BATCH_CHUNKS = 8
def kill(state):
    if state.filled >= 16:
        os.kill(os.getpid(), signal.SIGKILL)
with RAGPipeline() as rag:
    rag.spaces.reembed("hashing:384", samples=0, rest=0, on_progress=kill)
"""


def test_a_process_that_is_killed_lets_go_and_another_goes_on(rag: RAGPipeline, dsn: str, tmp_path: Path):
    environment = {
        **os.environ,
        "RECOLLECT_DSN": dsn,
        "RECOLLECT_EMBEDDING__PROVIDER": "hashing",
        "RECOLLECT_EMBEDDING__DIMENSIONS": "256",
    }
    done = subprocess.run([sys.executable, "-c", KILLED], env=environment, cwd=tmp_path, check=False)
    assert done.returncode == -signal.SIGKILL
    (half,) = rag.spaces.status().beside
    assert (half.status, half.filled, half.total) == ("filling", 16, 40)
    assert rag.search(TEXTS["n7"], DENSE).results[0].source == "n7"
    report = rag.spaces.reembed("hashing:384", samples=0, rest=0)
    assert (report.embedded, report.after.space_id) == (24, half.space_id)
    assert rag.maintenance.verify(deep=True).clean


def test_a_backup_holds_every_space(
    rag: RAGPipeline, dsn: str, tmp_path: Path, clone: Callable[..., AbstractContextManager[str]]
):
    rag.spaces.reembed("hashing:384", samples=0, rest=0)
    rag.ingest(Document(content="The zazu note tells of zazu.", source="n99"))
    backup(dsn, tmp_path / "store.backup")
    with clone() as other:
        restore(other, tmp_path / "store.backup")
        with opened(other, tmp_path) as restored:
            assert restored.search("the zazu note", DENSE).results[0].source == "n99"
            back = restored.spaces.rollback()
            assert (back.embedded, back.after.model) == (1, "hashing:256")
            assert restored.search("the zazu note", DENSE).results[0].source == "n99"
            # Numbers of spaces go on behind those that were restored.
            used = {back.before.space_id, back.after.space_id}
            assert restored.spaces.reembed("hashing:320", samples=0, rest=0).after.space_id > max(used)
            assert restored.maintenance.verify(deep=True).clean


def test_the_spaces_of_an_erased_tenant_are_gone(rag: RAGPipeline):
    rag.tenants.create("acme")
    acme = rag.view(tenant="acme")
    acme.ingest(Document(content=text, source=source) for source, text in TEXTS.items())
    acme.spaces.reembed("hashing:384", samples=0, rest=0)
    mine = indexes(rag)
    assert rag.tenants.erase("acme").indexes == 2
    assert len(mine) - len(indexes(rag)) == 2
    with rag.store.database.autocommit() as connection:
        assert connection.execute("SELECT count(*) FROM vector_spaces").fetchone() == (0,)
        assert connection.execute("SELECT DISTINCT tenant_id FROM chunk_vectors").fetchall() == [(1,)]


def test_a_drop_that_was_killed_is_finished_by_the_next_one(rag: RAGPipeline):
    report = rag.spaces.reembed("hashing:384", samples=0, rest=0)
    with rag.store.database.transaction(Scope()) as connection:
        connection.execute("UPDATE vector_spaces SET status = 'dropping'")
        connection.execute(
            "DELETE FROM chunk_vectors WHERE space_id = %s AND chunk_id %% 2 = 0", [report.before.space_id]
        )
    assert [one.status for one in rag.spaces.status().beside] == ["dropping"]
    again = rag.spaces.reembed("hashing:320", samples=0, rest=0)
    assert report.before.space_id in {space.space_id for space in again.dropped}
    with rag.store.database.transaction(Scope()) as connection:
        kept = {row[0] for row in connection.execute("SELECT DISTINCT space_id FROM chunk_vectors")}
    assert kept == {again.before.space_id, again.after.space_id}
