"""Jobs on a disk that is full: they wait for room, and use up none of their attempts."""

from __future__ import annotations

import errno
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from recollect import Document, RAGConfig, RAGPipeline
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import ParseError, StoreFullError, UsageError
from recollect.jobs import tasks
from recollect.jobs.progress import Ending, RunInterruption
from recollect.jobs.running import RetryPolicy, lacks_room
from recollect.jobs.tasks import Task, register
from recollect.model import Scope
from recollect.model.job import Job, NewJob
from recollect.pipeline.jobs import enqueue, runner_of

_ROOM = 2 * 1024 * 1024


class SmallDisk:
    """A file system of two megabytes that tables can be put on.

    Args:
        folder: Where it is mounted.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def resize(self, size: int) -> None:
        subprocess.run(["mount", "-o", f"remount,size={size}", str(self.folder)], check=True)


@pytest.fixture
def disk(dsn: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallDisk]:
    """A full disk for what documents say."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a file system")
    with psycopg.connect(dsn, autocommit=True) as connection:
        (data,) = connection.execute("SHOW data_directory").fetchone() or ("",)
        folder = Path(data).parent / f"small-{os.getpid()}"
        folder.mkdir()
        owner = Path(data).stat()
        options = f"size={_ROOM},mode=700,uid={owner.st_uid},gid={owner.st_gid}"
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True)
        if mounted.returncode:
            folder.rmdir()
            pytest.skip("no file system can be mounted here")
        made = SmallDisk(folder)
        try:
            connection.execute(f"CREATE TABLESPACE small LOCATION '{folder}'")
            connection.execute("ALTER TABLE recollect.texts SET TABLESPACE small")
            yield made
        finally:
            made.resize(64 * _ROOM)
            connection.execute("ALTER TABLE recollect.texts SET TABLESPACE pg_default")
            connection.execute("DROP TABLESPACE small")
            subprocess.run(["umount", str(folder)], check=True)
            folder.rmdir()


@pytest.fixture
def rag(dsn: str, tmp_path: Path) -> Iterator[RAGPipeline]:
    config = RAGConfig.load(
        storage={"data_dir": tmp_path / "unused", "dsn": dsn},
        embedding={"provider": "hashing"},
        jobs={"backoff_seconds": 0},
    )
    with RAGPipeline(config, embedder=HashingEmbedder()) as opened:
        yield opened


@pytest.fixture
def kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a test add kinds of jobs."""
    monkeypatch.setattr(tasks, "_TASKS", dict(tasks._TASKS))


def test_a_job_waits_for_room_and_goes_on_by_itself(rag: RAGPipeline, disk: SmallDisk, kinds: None):
    # Random digits, which do not compress, on one line: one chunk's worth of work and megabytes of text.
    text = os.urandom(3 * 1024 * 1024).hex()
    document = Document(content=text, source="large.txt")

    def store(view, arguments, progress) -> None:
        with view.store.database.transaction(Scope()) as connection:
            connection.execute(
                "INSERT INTO texts (tenant_id, text_hash, content) VALUES (1, %s, %s)", (document.content_hash, text)
            )

    register(Task(kind="store", function=store, stages=("work",)))
    job = enqueue(rag.standpoint, NewJob(kind="store"))
    said: list[Job] = []
    for now in rag.jobs.events(job.job_id):
        if now.status == "pending" and now.error:
            said.append(now)
        if len({one.due_at for one in said}) == 4:
            disk.resize(32 * _ROOM)
    done = rag.jobs.get(job.job_id)
    # More runs than it has attempts, and none of them was one.
    assert len(said) >= 4 and {one.attempts for one in said} == {0}
    assert all("disk is full" in (one.error or "") and "goes on by itself" in (one.error or "") for one in said)
    assert (done.status, done.attempts) == ("succeeded", 1)


def test_what_became_of_a_run_is_written_down_once_there_is_room(rag: RAGPipeline, kinds: None, monkeypatch):
    """Otherwise nobody would know that the job is done, and one worker after the other would do it again."""
    ran: list[int] = []
    register(Task(kind="work", function=lambda view, arguments, progress: ran.append(1), stages=("work",)))
    job = enqueue(rag.standpoint, NewJob(kind="work"))
    jobs = rag.store.jobs
    settle, refused = jobs.settle, [StoreFullError("full"), StoreFullError("full")]

    def full(*args, **more):
        if refused:
            raise refused.pop()
        return settle(*args, **more)

    monkeypatch.setattr("recollect.jobs.progress._ROOM_SECONDS", (0.0, 0.0))
    monkeypatch.setattr(jobs, "settle", full)
    assert rag.jobs.wait(job.job_id).status == "succeeded"
    assert ran == [1] and refused == []
    # A worker that ends does not wait for it: another one begins the run anew.
    again = enqueue(rag.standpoint, NewJob(kind="work"))
    refused += [StoreFullError("full")] * 100
    number = jobs.queue_number(Scope(), again.job_id)
    assert number is not None
    interruption = RunInterruption()
    threading.Timer(0, interruption.end, (Ending.STOPPING,)).start()
    with pytest.raises(StoreFullError):
        runner_of(rag.standpoint.assembly).run(1, again.job_id, queue_id=number, interruption=interruption)
    refused.clear()


def test_what_lacks_room():
    full = OSError(errno.ENOSPC, "No space left on device")
    quota = OSError(errno.EDQUOT, "Disk quota exceeded")
    behind = ParseError("a.pdf", "cannot be read")
    behind.__cause__ = full
    for error in (StoreFullError("full"), full, quota, behind):
        assert lacks_room(error)
    circle = ValueError("a")
    circle.__context__ = OSError(errno.EACCES, "no")
    circle.__context__.__context__ = circle
    for error in (UsageError("no"), OSError(errno.EACCES, "Permission denied"), circle, None):
        assert not lacks_room(error)


def test_waits_for_room_grow_with_the_time_that_a_job_has_been_at_it():
    policy = RetryPolicy(backoff_seconds=10)
    waits = [policy.wait_for_room_seconds(since, draw=lambda: 0.5) for since in (0, 40, 100, 400, 100_000)]
    assert waits == [10, 10, 25, 100, 300]
