"""Sources that a worker refreshes, and folders that it watches."""

from __future__ import annotations

import threading

import pytest

from recollect import RAGPipeline
from recollect.errors import UsageError
from recollect.model import Scope
from recollect.pipeline.refreshing import ask_to_watch
from recollect.pipeline.working import refresh_sources, worker_of

from .conftest import Repository


def test_a_source_whose_time_has_come_is_refreshed_once(pipeline: RAGPipeline, repository: Repository):
    repository.commit({"a.md": "One"})
    name = pipeline.sources.add(repository.url, every="1h").name
    pipeline.sources.add(str(repository.folder), connector="directory", name="when somebody asks")
    assembly = pipeline.standpoint.assembly
    assert refresh_sources(assembly, Scope()) == 1
    assert refresh_sources(assembly, Scope()) == 0
    (job,) = pipeline.jobs.list(kind="refresh_source")
    assert job.source == name
    done = pipeline.jobs.wait(job.job_id)
    assert (done.status, done.result["added"]) == ("succeeded", 1)
    assert refresh_sources(assembly, Scope()) == 0


def test_a_source_that_cannot_be_read_ends_its_job_with_the_reason(pipeline: RAGPipeline, repository: Repository):
    repository.commit({"a.md": "One"})
    name = pipeline.sources.add(repository.url, settings={"branch": "nowhere"}).name
    done = pipeline.jobs.wait(pipeline.jobs.refresh(name, anew=True).job_id)
    assert done.status == "cancelled" and "no such branch" in (done.error or "")


def test_a_worker_watches_a_folder_until_the_job_is_cancelled(pipeline: RAGPipeline, tmp_path):
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.md").write_text("One", encoding="utf-8")
    job = ask_to_watch(pipeline.standpoint, [folder], tags=["watched"])
    # One that ends by itself leaves it to one that does not.
    worker_of(pipeline.standpoint.assembly, ends="empty").run()
    assert pipeline.jobs.get(job.job_id).status == "pending"
    worker = worker_of(pipeline.standpoint.assembly)
    thread = threading.Thread(target=worker.run)
    thread.start()
    for event in pipeline.jobs.events(job.job_id):
        if any(stage.done for stage in event.stages):
            pipeline.jobs.cancel(job.job_id)
    worker.stop()
    thread.join()
    assert pipeline.jobs.get(job.job_id).status == "cancelled"
    assert pipeline.documents.list()[0].tags == ("watched",)


def test_a_folder_that_is_a_source_is_watched_as_long_as_it_is_one(pipeline: RAGPipeline, tmp_path):
    folder, assembly = tmp_path / "docs", pipeline.standpoint.assembly
    folder.mkdir()
    name = pipeline.sources.add(str(folder), settings={"watch": True}).name
    (job,) = pipeline.jobs.list(kind="watch")
    assert (job.status, job.source) == ("pending", name)
    assert refresh_sources(assembly, Scope()) == 0, "it is asked for already"
    pipeline.jobs.cancel(job.job_id)
    assert refresh_sources(assembly, Scope()) == 1, "the source is still to be watched"
    pipeline.sources.remove(name)
    assert [one.status for one in pipeline.jobs.list(kind="watch")] == ["cancelled", "cancelled"]
    assert refresh_sources(assembly, Scope()) == 0
    for location, settings in (("https://docs.example/", {"watch": True}), (str(folder), {"watch": "yes"})):
        with pytest.raises(UsageError, match="watch"):
            pipeline.sources.add(location, settings=settings)


def test_what_refreshes_a_source_stores_nothing_once_it_is_removed(pipeline: RAGPipeline, tmp_path):
    folder = tmp_path / "docs"
    folder.mkdir()
    for number in range(60):
        (folder / f"{number}.md").write_text(f"Page {number}", encoding="utf-8")
    pipeline.sources.add(str(folder), name="docs")
    waiting = pipeline.jobs.refresh("docs")
    pipeline.sources.remove("docs")
    assert pipeline.jobs.get(waiting.job_id).status == "cancelled"
    pipeline.sources.add(str(folder), name="docs")
    running = pipeline.jobs.refresh("docs")
    worker = worker_of(pipeline.standpoint.assembly)
    thread = threading.Thread(target=worker.run)
    thread.start()
    for event in pipeline.jobs.events(running.job_id):
        if event.ended or any(stage.done for stage in event.stages):
            break
    pipeline.sources.remove("docs")
    assert pipeline.jobs.get(running.job_id).ended
    worker.stop()
    thread.join()
    assert not pipeline.documents.list()
