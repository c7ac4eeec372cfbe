"""``recollect jobs`` and ``recollect worker``: what is done in the background, by processes that may be killed."""

from __future__ import annotations

import signal
import subprocess
import threading
import time

import psycopg

from program import Recollect
from web_site import Page, Visit, web_site

_COUNTS = """
    SELECT (SELECT count(*) FROM recollect.jobs WHERE status = 'succeeded'),
           (SELECT count(*) FROM recollect.document_versions), (SELECT count(*) FROM recollect.documents),
           (SELECT count(*) FROM recollect.document_versions WHERE known_to = 'infinity'),
           (SELECT count(*) FROM recollect_jobs.procrastinate_jobs)
"""


def _until(dsn: str, condition: str, process: subprocess.Popen[str]) -> None:
    """Wait until the database says so, or the process has ended."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:
            row = connection.execute(condition).fetchone()
            if row is not None and row[0]:
                return
            time.sleep(0.01)


def test_a_background_ingest_is_asked_for_shown_and_run_by_a_worker(recollect: Recollect):
    folder = recollect.folder / "docs"
    folder.mkdir()
    (folder / "leave.md").write_text("Annual leave is 30 days.")
    (job,) = recollect("ingest", "docs", "--background", "--json").json["jobs"]
    assert (job["kind"], job["status"], job["arguments"]["paths"]) == ("ingest", "pending", [str(folder)])
    assert "waits for a worker" in recollect("ingest", "docs", "--background").out
    assert recollect("documents", "list", "--json").json["items"] == []
    assert [one["job_id"] for one in recollect("jobs", "list", "--json").json["items"]] == [2, 1]
    first = recollect("jobs", "list", "--limit", "1", "--json").json
    for more in (["--cursor", first["next_cursor"]], ["--before", "2"]):
        assert [one["job_id"] for one in recollect("jobs", "list", *more, "--json").json["items"]] == [1]
    assert f"--cursor {first['next_cursor']}" in recollect("jobs", "list", "--limit", "1").err
    assert "leave it out" in recollect("jobs", "list", "--cursor", "no", status=2).err
    for before in ("soon", "9" * 5_000, "²"):
        assert "whole number" in recollect("jobs", "list", "--before", before, status=2).err
    assert len(recollect("jobs", "list", "--kind", "k" * 10_000, status=2).err) < 500
    assert recollect("jobs", "cancel", "2", "--json").json["status"] == "cancelled"
    assert recollect("worker", "--until-empty", "--json").json == {"finished": 1}
    shown = recollect("jobs", "show", "1", "--json").json
    assert (shown["status"], shown["result"]["added"]) == ("succeeded", 1)
    assert "succeeded" in recollect("jobs", "show", "1").out
    assert "only what has failed" in recollect("jobs", "retry", "1", status=1).err
    assert recollect("jobs", "retry", "2", "--json").json["status"] == "pending"
    assert recollect("worker", "--once", "--json").json == {"finished": 1}
    assert recollect("jobs", "show", "2", "--json").json["result"]["unchanged"] == 1
    assert "There is no job 99" in recollect("jobs", "show", "99", status=1).err


def test_options_that_a_worker_would_not_have_are_refused(recollect: Recollect):
    (recollect.folder / "a.md").write_text("Text.")
    assert "worker's setting" in recollect("ingest", "a.md", "--background", "--ttl", "30d", status=2).err
    assert "give one" in recollect("worker", "--once", "--until-empty", status=2).err


def test_workers_that_are_killed_lose_nothing_and_do_nothing_twice(recollect: Recollect, dsn: str):
    count = 8
    # No heartbeat is missed: that the process has ended tells.
    recollect.environment["RECOLLECT_JOBS__HEARTBEAT_SECONDS"] = "60"
    recollect.environment["RECOLLECT_JOBS__STALLED_SECONDS"] = "3600"
    for number in range(count):
        folder = recollect.folder / f"f{number}"
        folder.mkdir()
        (folder / "page.md").write_text(f"Page {number} says that the number of this page is {number}.")
        recollect("ingest", f"f{number}", "--background")
    for wanted in (1, 4):
        worker = recollect.start("worker", "--concurrency", "2")
        _until(dsn, f"SELECT count(*) >= {wanted} FROM recollect.jobs WHERE status = 'succeeded'", worker)
        worker.kill()
        worker.communicate()
    assert recollect("worker", "--until-empty", "--concurrency", "2").status == 0
    with psycopg.connect(dsn) as connection:
        assert connection.execute(_COUNTS).fetchone() == (count, count, count, count, 0)


def test_a_worker_that_is_told_to_end_finishes_what_it_runs(recollect: Recollect, dsn: str):
    folder = recollect.folder / "docs"
    folder.mkdir()
    for name in range(5):
        (folder / f"{name}.md").write_text(f"Text {name}.")
    recollect("ingest", "docs", "--background")
    worker = recollect.start("worker")
    _until(dsn, "SELECT status <> 'pending' FROM recollect.jobs", worker)
    worker.terminate()
    _, said = worker.communicate(timeout=60)
    assert worker.returncode == 0, said
    assert "a second signal ends it at once" in said
    assert recollect("jobs", "show", "1", "--json").json["status"] == "succeeded"


def test_a_worker_watches_a_source_beside_its_jobs_and_leaves_it_to_the_next(recollect: Recollect, dsn: str):
    folder, other = recollect.folder / "docs", recollect.folder / "other"
    for place in (folder, other):
        place.mkdir()
    (folder / "leave.md").write_text("Annual leave is 30 days.")
    (other / "pay.md").write_text("Salaries are paid on the 25th.")
    assert "1  added" in recollect("sources", "add", "docs", "--watch").out
    recollect("ingest", "other", "--background")
    current = "SELECT count(*) = {} FROM recollect.document_versions WHERE known_to = 'infinity'"
    running = "SELECT count(*) = 1 FROM recollect.jobs WHERE kind = 'watch' AND status = 'running'"
    # The one folder is watched, the other one is ingested in the only place that the worker has for jobs.
    worker = recollect.start("worker", "--concurrency", "1")
    try:
        _until(dsn, running, worker)
        (folder / "rent.md").write_text("The rent is due on the first.")
        _until(dsn, current.format(3), worker)
        (folder / "leave.md").unlink()
        _until(dsn, current.format(2), worker)
    finally:
        worker.terminate()
        told = worker.communicate(timeout=60)[1]
    assert worker.returncode == 0, told
    listed = recollect("documents", "list", "--json").json["items"]
    assert sorted(one["source"] for one in listed) == ["pay.md", "rent.md"]
    jobs = recollect("jobs", "list", "--json").json["items"]
    assert [one["status"] for one in jobs if one["kind"] == "watch"] == ["pending"], "it waits for the next worker"


def test_a_second_signal_ends_a_worker_at_once_and_its_job_goes_on_elsewhere(recollect: Recollect, dsn: str):
    asked, answer = threading.Event(), threading.Event()

    def slow(visit: Visit) -> Page:
        asked.set()
        answer.wait(60)
        return Page("<main><p>Thirty days of leave a year.</p></main>")

    settings = {"RECOLLECT_SOURCES__ALLOW_PRIVATE_ADDRESSES": "true", "RECOLLECT_JOBS__HEARTBEAT_SECONDS": "0.2"}
    recollect.environment.update(settings)
    with web_site({"/": slow}) as site:
        recollect("ingest", site.url(), "--background")
        worker = recollect.start("worker")
        assert asked.wait(60)
        worker.terminate()
        _read_until(worker, "a second signal ends it at once")
        worker.terminate()
        said = worker.communicate(timeout=60)[1]
        assert worker.returncode in {0, 128 + signal.SIGTERM}, said
        answer.set()
        recollect("worker", "--until-empty")
    shown = recollect("jobs", "show", "1", "--json").json
    assert (shown["status"], shown["attempts"]) == ("succeeded", 1)
    with psycopg.connect(dsn) as connection:
        assert connection.execute(_COUNTS).fetchone() == (1, 1, 1, 1, 0)


def _read_until(process: subprocess.Popen[str], said: str) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if said in line:
            return
