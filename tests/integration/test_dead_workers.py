"""Whose workers are gone: by their processes on this machine, by their sessions and heartbeats elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from recollect import RAGPipeline
from recollect.jobs.tasks import Task, register
from recollect.jobs.worker import Worker, WorkerOptions
from recollect.model.job import Job, NewJob
from recollect.pipeline.jobs import enqueue, runner_of
from recollect.store.job_queue import Heartbeats, JobQueue, has_ended, machine

#: So rare that none is ever missed.
NEVER = Heartbeats(every_seconds=3600, stalled_seconds=3600)


@pytest.fixture
def rag(pipeline: RAGPipeline) -> RAGPipeline:
    return pipeline


@pytest.fixture
def job(rag, monkeypatch) -> Job:
    from recollect.jobs import tasks

    monkeypatch.setattr(tasks, "_TASKS", dict(tasks._TASKS))
    register(Task(kind="work", function=lambda view, arguments, progress: {}))
    return enqueue(rag.standpoint, NewJob(kind="work"))


@pytest.fixture
def ended() -> int:
    """The number of a process that was."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@contextmanager
def held(rag, job: Job, *, process: int, host: str | None = None) -> Iterator[JobQueue]:
    """A worker holds the job whose heart beats, and that says it is another process."""
    queue = JobQueue(rag.standpoint.store.database, NEVER)
    number = rag.standpoint.store.jobs.queue_number(rag.scope, job.job_id)
    with queue.presence() as worker_id, queue.database.autocommit() as connection:
        assert number is not None
        assert queue.claim(number, worker_id=worker_id)
        connection.execute(
            "INSERT INTO recollect_jobs.workers (worker_id, host, process, serves) VALUES (%s, %s, %s, true) "
            "ON CONFLICT (worker_id) DO UPDATE SET host = excluded.host, process = excluded.process",
            (worker_id, host or machine(), process),
        )
        yield queue


def test_a_worker_whose_process_has_ended_here_is_gone_at_once(rag, job, ended):
    with held(rag, job, process=ended) as queue:
        assert queue.recover() == 1
        assert queue.recover() == 0


def test_one_of_another_machine_is_gone_when_its_heartbeats_say_so(rag, job, ended):
    with held(rag, job, process=ended, host="elsewhere") as queue:
        assert queue.recover() == 0


def test_one_whose_process_runs_is_not_gone(rag, job):
    with held(rag, job, process=os.getpid()) as queue:
        assert queue.recover() == 0


def test_a_worker_begins_with_what_one_left_that_has_ended_just_now(rag, job, ended):
    with held(rag, job, process=ended):
        options = WorkerOptions(ends="once", heartbeats=NEVER)
        Worker(rag.standpoint.store.database, runner_of(rag.standpoint.assembly), options).run()
        assert rag.jobs.get(job.job_id).status == "succeeded"


def test_periodic_work_that_died_while_the_next_one_waits_holds_up_no_recovery(rag, job, ended):
    with held(rag, job, process=ended) as queue, queue.presence() as worker_id:
        queue.add_periodic("recollect:tick", at=1_000)
        lost = queue.fetch(["upkeep"], worker_id=worker_id)
        queue.add_periodic("recollect:tick", at=1_001)
        with queue.database.autocommit() as connection:
            connection.execute("UPDATE recollect_jobs.procrastinate_jobs SET worker_id = NULL WHERE status = 'doing'")
        assert queue.recover() == 1
        assert queue.claim(rag.standpoint.store.jobs.queue_number(rag.scope, job.job_id), worker_id=worker_id)
        next_one = queue.fetch(["upkeep"], worker_id=worker_id)
    assert (lost.arguments, next_one.arguments) == ({"timestamp": 1_000}, {"timestamp": 1_001})


def test_periodic_work_that_died_is_done_again(rag):
    queue = JobQueue(rag.standpoint.store.database, NEVER)
    with queue.presence() as worker_id:
        queue.add_periodic("recollect:tick", at=1_000)
        lost = queue.fetch(["upkeep"], worker_id=worker_id)
    assert queue.recover() == 1
    with queue.presence() as worker_id:
        assert queue.fetch(["upkeep"], worker_id=worker_id) == lost


def test_what_is_put_back_is_told_to_workers_that_wait(rag, job, ended, dsn):
    import psycopg

    with psycopg.connect(dsn, autocommit=True) as connection:
        for channel in ("procrastinate_any_queue_v1", "procrastinate_queue_v1#default"):
            connection.execute(f'LISTEN "{channel}"')
        with held(rag, job, process=ended) as queue:
            queue.recover()
        told = [one.channel for one in connection.notifies(timeout=10, stop_after=2)]
    assert sorted(told) == ["procrastinate_any_queue_v1", "procrastinate_queue_v1#default"]


def test_what_a_worker_needs_is_made_ready_only_where_there_is_something_to_do(rag, job):
    ready: list[int] = []

    def work_off() -> None:
        Worker(
            rag.standpoint.store.database,
            runner_of(rag.standpoint.assembly),
            WorkerOptions(ends="once"),
            prepare=lambda: ready.append(1),
        ).run()

    work_off()
    assert ready == [1]
    work_off()
    assert ready == [1]


def test_a_process_that_nobody_has_asked_after_has_ended():
    process = subprocess.Popen([sys.executable, "-c", "print(flush=True)"], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert not has_ended(os.getpid())
    process.stdout.read()
    # What it wrote has ended with it, or is about to: it is waited for without being asked after.
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert has_ended(process.pid)
    process.communicate()
    assert has_ended(process.pid)
