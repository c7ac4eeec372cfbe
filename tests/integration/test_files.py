"""Files that are sent before a collection is named: kept, counted, exported, and gone with what was made of them."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import psycopg
import pytest

from recollect import RAGConfig, RAGPipeline
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import NotFoundError, QuotaExceededError, UsageError
from recollect.jobs import progress as progressing
from recollect.model import Scope
from recollect.model.original import Original
from recollect.model.tenant import TenantQuota
from recollect.model.uploaded_file import FileUse
from recollect.pipeline import uploading
from recollect.pipeline.jobs import runner_of
from recollect.store.job_queue import JobQueue

TEXT = b"Bicycles are parked in the yard behind the kitchen."


@pytest.fixture
def rag(dsn: str, tmp_path) -> Iterator[RAGPipeline]:
    config = RAGConfig.load(storage={"data_dir": tmp_path / "unused", "dsn": dsn}, embedding={"provider": "hashing"})
    with RAGPipeline(config, embedder=HashingEmbedder()) as opened:
        opened.collections.ensure()
        yield opened


def sent(rag: RAGPipeline, data: bytes = TEXT, name: str = "parking.txt") -> int:
    return rag.files.add(Original.of_bytes(data, name=name, mime_type="text/plain")).file_id


def attach(rag: RAGPipeline, file: int) -> int:
    for job in rag.files.attach([FileUse(file_id=file)]):
        assert rag.jobs.wait(job.job_id).status == "succeeded"
    return rag.files.documents(file)["default"]


def kept(dsn: str) -> tuple[int, ...]:
    with psycopg.connect(dsn) as connection:
        return tuple(
            connection.execute(f"SELECT count(*) FROM recollect.{table}").fetchone()[0]
            for table in ("originals", "uploaded_files", "job_uploads")
        )


def test_a_sound_store_has_files_that_nothing_was_made_of(rag, dsn):
    file = sent(rag)
    assert kept(dsn) == (1, 1, 0)
    assert rag.maintenance.verify().clean
    assert rag.search("Where are bicycles parked?").results == ()
    assert rag.files.read(file).read() == TEXT
    rag.files.delete(file)
    assert kept(dsn) == (0, 0, 0)


def test_a_document_that_is_erased_takes_its_file_along(rag, dsn):
    file, twin = sent(rag), sent(rag)
    assert kept(dsn) == (1, 2, 0)
    receipt = rag.documents.erase([attach(rag, file)])
    assert receipt.probe.found == {}, receipt
    with pytest.raises(NotFoundError):
        rag.files.get(file)
    assert kept(dsn) == (1, 1, 0), "somebody sent the same bytes a second time"
    receipt = rag.documents.erase([attach(rag, twin)])
    assert (kept(dsn), receipt.probe.found) == ((0, 0, 0), {})


def test_what_a_deleted_file_was_made_into_keeps_its_history(rag, dsn):
    file = sent(rag)
    number = attach(rag, file)
    rag.files.delete(file)
    assert rag.search("Where are bicycles parked?").results == ()
    assert [one.version for one in rag.documents.history(number).versions] == [1]
    assert kept(dsn) == (1, 0, 0)


@pytest.mark.parametrize("every_seconds", [0.0, 60.0], ids=["noticed", "unnoticed"])
@pytest.mark.parametrize("taken", ["deleted", "detached"])
def test_a_file_that_is_taken_away_while_it_is_stored_is_not_found_afterwards(rag, monkeypatch, taken, every_seconds):
    """Whoever takes it away meets no document to close yet, and whoever stores it has looked already.

    A run that looks often enough whether it was cancelled is ended behind its last stage, with the document stored.
    """
    file = sent(rag)
    (job,) = rag.files.attach([FileUse(file_id=file)])
    number = rag.files.documents(file)["default"]
    take, what = (rag.files.delete, file) if taken == "deleted" else (rag.files.detach, number)
    store = uploading.store_in_stages

    def deleted_meanwhile(*args, **kwargs):
        thread = threading.Thread(target=take, args=(what,))
        thread.start()
        thread.join()
        # As if it was noticed at the last stage only.
        told, progress = [], kwargs.pop("progress")
        stored = store(*args, **kwargs, progress=lambda *stage: told.append(stage))
        monkeypatch.setattr(progressing, "WRITE_SECONDS", every_seconds)
        progress(*told[-1])
        return stored

    monkeypatch.setattr(uploading, "store_in_stages", deleted_meanwhile)
    rag.jobs.wait(job.job_id)
    assert rag.search("Where are bicycles parked?").results == ()


@pytest.mark.parametrize("taken", ["deleted", "detached"])
def test_a_file_that_is_taken_away_is_not_found_although_the_worker_is_killed_that_has_just_stored_it(
    rag, monkeypatch, taken
):
    class KilledError(BaseException):
        """Nothing is written any more."""

    file = sent(rag)
    (job,) = rag.files.attach([FileUse(file_id=file)])
    take, what = (
        (rag.files.delete, file) if taken == "deleted" else (rag.files.detach, rag.files.documents(file)["default"])
    )
    store = uploading.store_in_stages

    def taken_meanwhile(*args, progress, **kwargs):
        thread = threading.Thread(target=take, args=(what,))
        thread.start()
        thread.join()
        return store(*args, **kwargs, progress=lambda *_: None)

    def killed(*_):
        raise KilledError

    queue, number = JobQueue(rag.standpoint.store.database), rag.standpoint.store.jobs.queue_number(Scope(), job.job_id)
    with queue.presence() as worker_id, monkeypatch.context() as patch:
        patch.setattr(uploading, "store_in_stages", taken_meanwhile)
        patch.setattr(uploading, "_close_unwanted", killed)
        assert queue.claim(number, worker_id=worker_id)
        with pytest.raises(KilledError):
            runner_of(rag.standpoint.assembly).run(1, job.job_id, queue_id=number)
    assert len(rag.search("Where are bicycles parked?").results) == 1, "the worker had stored it"
    queue.recover()
    assert rag.jobs.wait(job.job_id).status == "cancelled"
    assert rag.search("Where are bicycles parked?").results == ()


def test_files_count_against_the_tenants_quota(rag, dsn):
    rag.tenants.create("small", quota=TenantQuota(max_bytes=100))
    small = rag.view(tenant="small")
    sent(small)
    with pytest.raises(QuotaExceededError):
        sent(small, b"x" * 60)
    assert len(small.files.list()) == 1
    rag.tenants.erase("small")
    assert kept(dsn) == (0, 0, 0)


def test_what_cannot_be_attached(rag):
    for uses in [[], [FileUse(file_id=1), FileUse(file_id=1)], [FileUse(file_id=1)] * 2_001, [FileUse(file_id=True)]]:
        with pytest.raises((UsageError, NotFoundError)):
            rag.files.attach(uses)


def test_all_files_are_attached_or_none(rag):
    file = sent(rag)
    with pytest.raises(NotFoundError):
        rag.files.attach([FileUse(file_id=file), FileUse(file_id=file + 1_000)])
    assert (list(rag.jobs.list()), rag.files.documents(file)) == ([], {})
