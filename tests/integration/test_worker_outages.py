"""A worker whose connections to PostgreSQL are cut: it goes on, and its log says what happened, once."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import psycopg
import pytest

from recollect import RAGPipeline
from recollect.jobs.worker import PeriodicTask, Worker, WorkerOptions
from recollect.pipeline.jobs import runner_of
from recollect.store.database import Database


@contextmanager
def working(rag: RAGPipeline, run: Callable[[], object], *, wait_seconds: float = 30) -> Iterator[None]:
    """A worker with work that is due each second."""
    task = PeriodicTask(name="tick", every_seconds=1, run=run)
    database = Database(rag.standpoint.store.database.dsn, wait_seconds=wait_seconds)
    options = WorkerOptions(poll_seconds=0.1)
    worker = Worker(database, runner_of(rag.standpoint.assembly), options, periodic=[task])
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        yield
    finally:
        worker.stop()
        thread.join(60)
        database.close()
    assert not thread.is_alive()


def cut(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


#: The driver's lines are hidden by the command line; jobs that an outage put back tell of themselves.
APART = {"psycopg", "psycopg.pool", "psycopg.transaction", "recollect.store.job_queue"}


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the log says at the level that users see: no line has a stack trace."""
    shown = [one for one in caplog.records if one.levelno >= logging.WARNING and one.name not in APART]
    assert [one.getMessage() for one in shown if one.exc_info] == []
    return [one.getMessage() for one in shown]


def test_periodic_work_goes_on_through_an_outage_that_the_log_tells_of_once(
    pipeline: RAGPipeline, dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    ran = threading.Semaphore(0)
    # The log tells of an outage when a wait for a connection has ended.
    with working(pipeline, ran.release, wait_seconds=3):
        assert ran.acquire(timeout=20)
        name = psycopg.conninfo.conninfo_to_dict(dsn)["dbname"]
        with psycopg.connect(dsn, dbname="recollect", autocommit=True) as outside:
            # As while a server restarts: every connection ends, and new ones are refused.
            outside.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
            try:
                outside.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
                deadline = time.monotonic() + 60
                while not told(caplog) and time.monotonic() < deadline:
                    time.sleep(0.1)
                time.sleep(3)
            finally:
                outside.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')
        while ran.acquire(blocking=False):
            pass
        for _ in range(3):
            assert ran.acquire(timeout=60)
    lost, back = told(caplog)
    assert lost.startswith("The worker lost its connection to PostgreSQL. It reconnects and goes on by itself")
    assert back == "The worker is connected to PostgreSQL again and goes on with its jobs."


def test_whoever_waits_has_a_connection_as_soon_as_the_server_is_back(dsn: str) -> None:
    name, database = psycopg.conninfo.conninfo_to_dict(dsn)["dbname"], Database(dsn, wait_seconds=12)

    def read() -> object:
        with database.autocommit() as connection:
            return connection.execute("SELECT 7").fetchone()

    with psycopg.connect(dsn, dbname="recollect", autocommit=True) as outside, ThreadPoolExecutor(1) as pool:
        outside.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
        try:
            reading = pool.submit(read)
            # An outage so long that pauses which double would go on beyond what the caller waits.
            time.sleep(8.5)
        finally:
            outside.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')
        assert reading.result() == (7,)
    database.close()


def test_a_worker_whose_connections_are_cut_again_and_again_never_logs_a_stack_trace(
    pipeline: RAGPipeline, dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    ran = threading.Semaphore(0)
    with working(pipeline, ran.release):
        assert ran.acquire(timeout=20)
        for _ in range(40):
            cut(dsn)
            time.sleep(0.1)
        while ran.acquire(blocking=False):
            pass
        for _ in range(3):
            assert ran.acquire(timeout=60)
    assert {one.split(".")[0] for one in told(caplog)} <= {
        "The worker lost its connection to PostgreSQL",
        "The worker is connected to PostgreSQL again and goes on with its jobs",
    }


def test_periodic_work_that_still_waits_when_it_is_due_again_is_no_error(
    pipeline: RAGPipeline, caplog: pytest.LogCaptureFixture
) -> None:
    begun, go_on = threading.Semaphore(0), threading.Event()

    def slow() -> None:
        begun.release()
        go_on.wait(60)

    with working(pipeline, slow):
        assert begun.acquire(timeout=20)
        # One runs, the next one waits for it, and two more are due.
        time.sleep(4)
        go_on.set()
        assert begun.acquire(timeout=60)
    assert told(caplog) == []
