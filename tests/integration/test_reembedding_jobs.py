"""Re-embedding as a job, and what becomes of the vectors of the model before."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from recollect import Document, RAGPipeline
from recollect.errors import ConflictError, NotFoundError, PermissionDeniedError, UsageError
from recollect.model import Principal, Scope
from recollect.pipeline.job_tasks import reembed
from recollect.pipeline.working import periodic_tasks, worker_of

TEXTS = [Document(content=f"The rule {n} of leave says that day {n} is free.", source=f"{n}.md") for n in range(8)]


@pytest.fixture
def rag(pipeline: RAGPipeline, monkeypatch) -> RAGPipeline:
    monkeypatch.setattr("recollect.ingest.reembedding.BATCH_CHUNKS", 2)
    pipeline.ingest(TEXTS)
    return pipeline


def model_of(rag: RAGPipeline) -> str:
    return rag.store.collections.get(Scope(), "default").embedding_model


def test_a_job_embeds_compares_and_changes(rag: RAGPipeline):
    asked = rag.jobs.reembed("hashing:96", rest=0)
    assert [stage.name for stage in asked.stages] == ["embed", "compare", "switch"]
    assert (asked.collection, asked.status) == ("default", "pending")
    seen = []
    job = rag.jobs.wait(asked.job_id, on_progress=seen.append)
    assert job.status == "succeeded" and model_of(rag) == "hashing:96"
    assert [(stage.name, stage.done, stage.total) for stage in job.stages] == [
        ("embed", 8, 8), ("compare", 1, 1), ("switch", 1, 1),
    ]  # fmt: skip
    result = job.result
    assert (result["to"]["model"], result["embedded"], result["switched"]) == ("hashing:96", 8, True)
    assert result["comparison"]["of"] == "samples"
    assert any(0 < one.stages[0].done < 8 for one in seen), "it says how far it is meanwhile"


def test_a_run_that_follows_one_that_died_goes_on_or_finds_the_change_made(rag: RAGPipeline):
    arguments = rag.jobs.reembed("hashing:96", samples=0, rest=0).arguments

    def die(stage: str, done: int, total: int | None) -> None:
        if stage == "switch" or done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reembed(rag, arguments, die)
    (half,) = rag.spaces.status().beside
    assert half.filled == 4 and model_of(rag) == "hashing:64"
    told = reembed(rag, arguments, lambda *_: None)
    assert (told["embedded"], told["switched"], model_of(rag)) == (4, True, "hashing:96")
    # As where the change was made, and the worker died before that was written down.
    again = reembed(rag, arguments, lambda *_: None)
    assert (again["embedded"], again["switched"]) == (0, True)
    assert (again["from"], again["to"]) == (told["from"], told["to"])


def test_a_job_that_is_cancelled_ends_at_the_next_batch_and_is_gone_on_with(rag: RAGPipeline, monkeypatch):
    monkeypatch.setattr("recollect.jobs.progress.WRITE_SECONDS", 0.0)
    asked = rag.jobs.reembed("hashing:96", rest=0)

    def cancel(job):
        if 0 < job.stages[0].done < 8:
            rag.jobs.cancel(job.job_id)

    assert rag.jobs.wait(asked.job_id, on_progress=cancel).status == "cancelled"
    (half,) = rag.spaces.status().beside
    assert half.status == "filling" and half.filled < 8 and model_of(rag) == "hashing:64"
    assert rag.jobs.wait(rag.jobs.retry(asked.job_id).job_id).status == "succeeded"
    assert model_of(rag) == "hashing:96"


def test_what_cannot_be_done_is_refused_when_it_is_asked_for(rag: RAGPipeline, tmp_path):
    with pytest.raises(UsageError, match="already"):
        rag.jobs.reembed("hashing:64")
    with pytest.raises(UsageError, match="rest is from 0"):
        rag.jobs.reembed("hashing:96", rest=-1)
    with pytest.raises(NotFoundError):
        rag.view(collections="absent").jobs.reembed("hashing:96")
    with pytest.raises((NotFoundError, UsageError)):
        rag.jobs.reembed("hashing:96", cases=tmp_path / "absent.yaml")
    with pytest.raises(PermissionDeniedError):
        rag.view(principal=Principal(user_id="ann")).jobs.reembed("hashing:96")
    assert not rag.jobs.list()


def test_the_way_back_is_a_job_that_goes_one_way(rag: RAGPipeline):
    with pytest.raises(NotFoundError, match="Nothing is kept"):
        rag.jobs.rollback()
    rag.jobs.wait(rag.jobs.reembed("hashing:96", samples=0, rest=0).job_id)
    with pytest.raises(PermissionDeniedError):
        rag.view(principal=Principal(user_id="ann")).jobs.rollback()
    with pytest.raises(UsageError, match="rest is from 0"):
        rag.jobs.rollback(rest=-1)
    asked = rag.view(actor="ann").jobs.rollback()
    rag.ingest(Document(content="What came since.", source="since.md"))

    def die(stage: str, done: int, total: int | None) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reembed(rag, asked.arguments, die)
    assert model_of(rag) == "hashing:96"
    job = rag.jobs.wait(asked.job_id)
    assert (job.status, job.result["switched"], model_of(rag)) == ("succeeded", True, "hashing:64")
    # As where its worker died behind the change: there and back again would be the model that nobody wants.
    again = reembed(rag, asked.arguments, lambda *_: None)
    assert (again["embedded"], again["switched"], model_of(rag)) == (0, True, "hashing:64")
    assert [one.actor for one in rag.audit.list(action="reembed_rollback")] == ["ann"]
    assert "What came since." in [one.content for one in rag.search("what came since").results]
    assert rag.maintenance.verify(deep=True).clean


def test_a_way_back_that_has_become_another_is_not_taken(rag: RAGPipeline):
    rag.spaces.reembed("hashing:96", samples=0, rest=0)
    asked = rag.jobs.rollback()
    rag.spaces.reembed("hashing:128", samples=0, rest=0)
    job = rag.jobs.wait(asked.job_id)
    assert job.status in {"failed", "cancelled"} and "kept no longer" in job.error
    assert model_of(rag) == "hashing:128"


def test_the_space_before_goes_when_its_time_is_over_and_no_earlier(rag: RAGPipeline):
    rag.spaces.reembed("hashing:96", samples=0, rest=0)
    (kept,) = rag.spaces.status().beside
    assert kept.kept_until == kept.since + timedelta(days=30)
    rag.maintenance.cleanup()
    assert len(rag.spaces.status().beside) == 1, "its time is not over"
    with rag.store.database.autocommit() as connection:
        connection.execute("UPDATE recollect.vector_spaces SET since = since - interval '31 days'")
    with rag.store.spaces.claim(Scope(), kept.collection_id, "default"):
        assert rag.store.spaces.drop_previous(Scope(), days=30) == 0, "somebody is at it"
    tasks = {task.name: task for task in periodic_tasks(rag.standpoint.assembly)}
    tasks["cleanup"].run()
    assert rag.spaces.status().beside == ()
    with rag.store.database.transaction(Scope()) as connection:
        spaces = connection.execute("SELECT DISTINCT space_id FROM chunk_vectors").fetchall()
    assert spaces == [(rag.store.collections.get(Scope(), "default").space_id,)]
    assert rag.maintenance.verify(deep=True).clean


def test_a_space_that_is_gone_back_to_meanwhile_is_not_dropped(rag: RAGPipeline, monkeypatch):
    """Found to be over, and used again before the clean-up has it for itself."""
    rag.spaces.reembed("hashing:96", samples=0, rest=0)
    with rag.store.database.autocommit() as connection:
        connection.execute("UPDATE recollect.vector_spaces SET since = since - interval '31 days'")
    claim, back = rag.store.spaces.claim, threading.Event()

    def late(scope, collection_id, name):
        if not back.is_set():
            back.set()
            rag.spaces.rollback()
        return claim(scope, collection_id, name)

    monkeypatch.setattr(rag.store.spaces, "claim", late)
    assert rag.store.spaces.drop_previous(Scope(), days=30) == 0
    assert model_of(rag) == "hashing:64" and len(rag.search("rule of leave").results) == 8
    (kept,) = rag.spaces.status().beside
    assert kept.model == "hashing:96"


def test_without_a_limit_it_is_kept_until_somebody_drops_it(rag: RAGPipeline):
    assembly = rag.standpoint.assembly
    forever = assembly.config.embedding.model_copy(update={"keep_previous_days": None})
    assembly.config = assembly.config.model_copy(update={"embedding": forever})
    rag.spaces.reembed("hashing:96", samples=0, rest=0)
    with rag.store.database.autocommit() as connection:
        connection.execute("UPDATE recollect.vector_spaces SET since = since - interval '9 years'")
    rag.maintenance.cleanup()
    (kept,) = rag.spaces.status().beside
    assert kept.kept_until is None


def test_a_second_job_for_a_collection_waits_for_the_first(rag: RAGPipeline):
    first, second = rag.jobs.reembed("hashing:96", samples=0), rag.jobs.reembed("hashing:32", samples=0)
    worker_of(rag.standpoint.assembly, concurrency=2, ends="empty").run()
    jobs = [rag.jobs.get(one.job_id) for one in (first, second)]
    assert [one.status for one in jobs] == ["succeeded", "succeeded"] and model_of(rag) == "hashing:32"
    with pytest.raises(ConflictError):
        rag.jobs.retry(first.job_id)
