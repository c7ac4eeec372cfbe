"""Jobs that ask for the same but for one argument: a worker runs them at once, and each ends by itself."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from recollect import RAGConfig, RAGPipeline
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import UsageError
from recollect.jobs import tasks
from recollect.jobs.tasks import Task
from recollect.jobs.together import Together
from recollect.jobs.worker import Worker, WorkerOptions
from recollect.model import Scope
from recollect.model.job import Job, JobRun, NewJob, RunEnd
from recollect.pipeline.jobs import enqueue_all, runner_of
from recollect.store.job_queue import Heartbeats, JobQueue, queue_transaction
from web_site import Page, web_site

BEATS = Heartbeats(every_seconds=0.2)


@pytest.fixture
def rag(dsn: str, tmp_path) -> Iterator[RAGPipeline]:
    config = RAGConfig.load(
        storage={"data_dir": tmp_path / "unused", "dsn": dsn},
        embedding={"provider": "hashing"},
        sources={"allow_private_addresses": True},
        jobs={"backoff_seconds": 0},
    )
    with RAGPipeline(config, embedder=HashingEmbedder()) as opened:
        yield opened


@pytest.fixture
def task(monkeypatch) -> Callable[..., None]:
    """Makes two functions a kind of job, ``alike``, for the time of a test; the second one takes as many as it can."""
    monkeypatch.setattr(tasks, "_TASKS", dict(tasks._TASKS))

    def make(alone: Callable[..., Any], several: Callable[..., Any]) -> None:
        def together(view: Any, jobs: Together) -> None:
            while taken := jobs.take(99):
                results = several(view, [one.arguments for one in taken], lambda *_: jobs.look())
                jobs.end(zip(taken, results, strict=True))

        tasks.register(Task(kind="alike", function=alone, together=together, differs="n", stages=("work",)))

    return make


def ask(rag, *numbers: int, source: str = "s", **more: Any) -> list[Job]:
    return enqueue_all(
        rag.standpoint, [NewJob(kind="alike", source=source, arguments={"n": n, **more}) for n in numbers]
    )


def worker_of(rag, **options: Any) -> Worker:
    runner = runner_of(rag.standpoint.assembly, together=4)
    return Worker(rag.standpoint.store.database, runner, WorkerOptions(poll_seconds=0.2, heartbeats=BEATS, **options))


def begin_alike(rag, first: JobRun, queue_id: int, *, together: int, most: int = 99, **more: Any) -> list[JobRun]:
    begun = more.pop("begun", [first])
    return rag.standpoint.store.jobs.begin_alike(
        Scope(), first, queue_id=queue_id, differs="n", together=together, most=most, begun=begun, **more
    )


def queued(rag) -> int:
    with rag.standpoint.store.database.autocommit() as connection:
        return connection.execute("SELECT count(*) FROM recollect_jobs.procrastinate_jobs").fetchone()[0]


def states(rag, jobs: list[Job]) -> list[tuple[str, int]]:
    return [(job.status, job.attempts) for job in (rag.jobs.get(one.job_id) for one in jobs)]


def test_they_are_run_at_once_as_many_as_may_be_and_each_ends_by_itself(rag, task):
    alone: list[int] = []
    at_once: list[list[int]] = []
    results: dict[int, Exception] = {1: TimeoutError("slow"), 2: UsageError("never")}

    def one(view, arguments, progress):
        alone.append(arguments["n"])
        return {"n": arguments["n"]}

    def several(view, arguments, progress):
        at_once.append([each["n"] for each in arguments])
        return [results.pop(each["n"], {"n": each["n"]}) for each in arguments]

    task(one, several)
    jobs = ask(rag, *range(6))
    others = [*ask(rag, 10, source="other"), *ask(rag, 11, tag="x")]
    worker_of(rag, ends="empty").run()

    # What was begun before is taken from the queue again, in its turn.
    assert at_once == [[0, 1, 2, 3, 4], [1, 5]]
    assert sorted(alone) == [10, 11]
    assert states(rag, jobs) == [("succeeded", 1), ("succeeded", 2), ("cancelled", 1), *[("succeeded", 1)] * 3]
    assert (rag.jobs.get(jobs[3].job_id).result, rag.jobs.get(jobs[2].job_id).error) == ({"n": 3}, "never")
    assert {job.stages[0].done for job in (rag.jobs.get(one.job_id) for one in jobs[3:5])} == {1}
    assert states(rag, others) == [("succeeded", 1)] * 2
    assert queued(rag) == 0


def test_an_error_of_all_is_nobodys_before_each_was_run_alone(rag, task):
    def several(view, arguments, progress):
        raise UsageError("one of them is bad")

    task(lambda view, arguments, progress: {}, several)
    jobs = ask(rag, 0, 1, 2)
    worker_of(rag, ends="empty").run()
    # The one that the queue handed out is to blame, as far as anybody knows.
    assert states(rag, jobs) == [("cancelled", 1), ("succeeded", 2), ("succeeded", 2)]
    assert queued(rag) == 0


def test_one_that_is_cancelled_meanwhile_stays_cancelled(rag, task):
    jobs: list[Job] = []

    def several(view, arguments, progress):
        rag.jobs.cancel(jobs[1].job_id)
        return [{}] * len(arguments)

    task(lambda view, arguments, progress: {}, several)
    jobs += ask(rag, 0, 1, 2)
    worker_of(rag, ends="empty").run()
    assert [state for state, _ in states(rag, jobs)] == ["succeeded", "cancelled", "succeeded"]
    assert queued(rag) == 0


def test_a_worker_that_ends_at_once_puts_all_of_them_back(rag, task):
    begun, going = threading.Event(), [True]

    def several(view, arguments, progress):
        begun.set()
        while going:
            progress("work", 1, 2)
        return [{}] * len(arguments)

    task(lambda view, arguments, progress: {}, several)
    jobs = ask(rag, 0, 1, 2)
    worker = worker_of(rag)
    thread = threading.Thread(target=worker.run)
    thread.start()
    assert begun.wait(20)
    worker.stop(at_once=True)
    thread.join(20)
    assert not thread.is_alive()
    assert states(rag, jobs) == [("pending", 0)] * 3
    going.clear()
    worker_of(rag, ends="empty").run()
    assert states(rag, jobs) == [("succeeded", 1)] * 3


def test_those_of_a_worker_that_died_are_run_by_the_next(rag, task):
    ran: list[int] = []

    def one(view, arguments, progress):
        ran.append(arguments["n"])
        return {}

    task(one, lambda view, arguments, progress: [one(view, each, progress) for each in arguments])
    jobs = ask(rag, 0, 1, 2)
    store, scope = rag.standpoint.store, Scope()
    queue = JobQueue(store.database, Heartbeats(every_seconds=0.01, stalled_seconds=0.01))
    with queue.presence() as dead:
        taken = queue.fetch(None, worker_id=dead)
        run = store.jobs.begin(scope, jobs[0].job_id, queue_id=taken.queue_id)
        begun = begin_alike(rag, run, taken.queue_id, together=9)
    assert [one.job_id for one in begun] == [jobs[1].job_id, jobs[2].job_id]
    worker_of(rag, ends="empty").run()
    assert sorted(ran) == [0, 1, 2]
    assert [state for state, _ in states(rag, jobs)] == ["succeeded"] * 3
    # The one that was taken for dead can say nothing of them any more.
    assert not store.jobs.settle(scope, [RunEnd(run=run, status="failed")])
    assert queued(rag) == 0


def test_those_that_a_worker_died_with_are_taken_together_again_in_smaller_numbers(rag, task):
    at_once: list[list[int]] = []

    def several(view, arguments, progress):
        at_once.append([each["n"] for each in arguments])
        return [{}] * len(arguments)

    task(lambda view, arguments, progress: at_once.append([arguments["n"]]), several)
    jobs = ask(rag, *range(20))
    store = rag.standpoint.store
    queue = JobQueue(store.database, Heartbeats(every_seconds=0.01, stalled_seconds=0.01))

    def die(*, limit: int) -> int:
        """A worker takes the first job and as many more, and is gone."""
        with queue.presence() as dead:
            taken = queue.fetch(None, worker_id=dead)
            run = store.jobs.begin(Scope(), jobs[0].job_id, queue_id=taken.queue_id)
            begun = begin_alike(rag, run, taken.queue_id, together=limit << (2 * run.deaths), most=limit)
        with queue_transaction(store.database) as connection:
            connection.execute("UPDATE procrastinate_jobs SET status = 'todo', worker_id = NULL")
        return len(begun)

    assert die(limit=15) == 15
    assert die(limit=3) == 3
    runner = runner_of(rag.standpoint.assembly, together=64)
    Worker(rag.standpoint.store.database, runner, WorkerOptions(poll_seconds=0.2, heartbeats=BEATS, ends="empty")).run()
    # Four were lost twice and twelve once. Of the first four numbers each has lost two workers.
    assert at_once == [[0, 1, 2, 3, 4], [*range(5, 20)]]
    assert states(rag, jobs) == [("succeeded", 1)] * 20
    assert queued(rag) == 0


def test_others_of_another_tenant_are_not_begun(rag, task):
    rag.tenants.create("other")
    task(lambda view, arguments, progress: {}, lambda view, arguments, progress: [{}] * len(arguments))
    mine, theirs = ask(rag, 0), ask(rag.view(tenant="other"), 1)
    store = rag.standpoint.store
    queue = JobQueue(store.database)
    with queue.presence() as worker_id:
        taken = queue.fetch(None, worker_id=worker_id)
        run = store.jobs.begin(Scope(), mine[0].job_id, queue_id=taken.queue_id)
        assert begin_alike(rag, run, taken.queue_id, together=9) == []
    assert rag.view(tenant="other").jobs.get(theirs[0].job_id).status == "pending"


def test_pages_of_a_site_are_each_stored_or_told_why_not(rag):
    tries: list[int] = []

    def flaky(visit) -> Page:
        tries.append(1)
        return Page("later", 503) if len(tries) == 1 else Page("<h1>Flaky</h1><p>It came at last.</p>")

    pages = {f"/{n}": Page(f"<title>Page {n}</title><h1>Page {n}</h1><p>River {n} is long.</p>") for n in range(6)}
    with web_site({**pages, "/flaky": flaky, "/empty": Page("")}) as site:
        paths = [*pages, "/gone", "/flaky", "/empty", "/0"]
        jobs = [rag.ingest_url(site.url(path), wait=False) for path in paths]
        worker_of(rag, ends="empty").run()
        found = [rag.jobs.get(job.job_id) for job in jobs]
    assert [job.status for job in found] == [*["succeeded"] * 6, "cancelled", "succeeded", "cancelled", "succeeded"]
    assert [job.result["title"] for job in found[:6]] == [f"Page {n}" for n in range(6)]
    assert [job.result["status"] for job in (found[0], found[5], found[9])] == ["added", "added", "unchanged"]
    assert "404" in (found[6].error or "")
    assert found[7].attempts == 2
    assert "is empty" in (found[8].error or "")
    assert {one.document_id for one in rag.search("river").results} >= {job.result["document_id"] for job in found[:6]}
    assert queued(rag) == 0


def test_others_of_another_collection_are_not_begun_however_the_names_are_put_together(rag, task):
    seen: list[tuple[str, list[int]]] = []

    def several(view, arguments, progress):
        seen.append((view.standpoint.collection, sorted(each["n"] for each in arguments)))
        return [{}] * len(arguments)

    task(lambda view, arguments, progress: several(view, [arguments], progress)[0], several)
    jobs = [
        *ask(rag.view(collections="a/b"), 0, 1, source="c"),
        *ask(rag.view(collections="a"), 2, 3, source="b/c"),
    ]
    worker_of(rag, ends="empty").run()
    assert sorted(seen) == [("a", [2, 3]), ("a/b", [0, 1])]
    assert states(rag, jobs) == [("succeeded", 1)] * 4


def run_together(monkeypatch, run: Callable[[Any, Together], None]) -> None:
    """Makes a function that takes jobs itself a kind of job, ``alike``."""
    monkeypatch.setattr(tasks, "_TASKS", dict(tasks._TASKS))
    tasks.register(Task(kind="alike", function=lambda *_: {}, together=run, differs="n", stages=("work",)))


def test_more_are_taken_while_others_are_under_way_and_each_has_ended_when_it_is_told(rag, monkeypatch):
    runs: list[list[int]] = []
    under_way: list[int] = []
    ended: list[str] = []

    def run(view, together):
        runs.append([])
        old = list(together.take(3))
        while old:
            new = together.take(2) or []
            runs[-1] += [one.arguments["n"] for one in old]
            under_way.append(len(old) + len(new))
            together.end((one, {}) for one in old)
            ended.extend(rag.jobs.get(one.run.job_id).status for one in old)
            old = list(new) or list(together.take(3) or [])

    run_together(monkeypatch, run)
    jobs = ask(rag, *range(12))
    worker_of(rag, ends="empty").run()
    assert runs == [list(range(12))]
    assert max(under_way) <= 5
    # The first of them too, whose place in the queue is held for the others.
    assert ended == ["succeeded"] * 12
    assert states(rag, jobs) == [("succeeded", 1)] * 12
    assert queued(rag) == 0


def test_how_far_each_has_come_is_seen_and_one_that_is_cancelled_is_not_wanted_any_more(rag, monkeypatch):
    jobs: list[Job] = []
    seen: list[Any] = []
    monkeypatch.setattr("recollect.jobs.together.WRITE_SECONDS", 0)

    def run(view, together):
        first, second, third = together.take(3)
        together.tell(second, "work", 2, 3)
        together.look()
        seen.extend((one.name, one.done, one.total) for one in rag.jobs.get(second.run.job_id).stages)
        rag.jobs.cancel(third.run.job_id)
        together.look()
        seen.extend([together.wants(second), together.wants(third)])
        together.end((one, {}) for one in (first, second, third))

    run_together(monkeypatch, run)
    jobs += ask(rag, *range(3))
    worker_of(rag, ends="empty").run()
    assert seen == [("work", 2, 3), True, False]
    assert [state for state, _ in states(rag, jobs)] == ["succeeded", "succeeded", "cancelled"]
    assert queued(rag) == 0


def test_a_run_that_is_taken_for_dead_ends_and_writes_nothing(rag, monkeypatch):
    monkeypatch.setattr("recollect.jobs.together.WRITE_SECONDS", 0)
    store, told = rag.standpoint.store, []

    def run(view, together):
        taken = together.take(9)
        with queue_transaction(store.database) as connection:
            connection.execute("UPDATE recollect.jobs SET run = run + 1 WHERE status = 'running'")
        together.end([(taken[1], UsageError("too late")), (taken[2], {})])
        told.extend(rag.jobs.get(one.run.job_id) for one in taken)
        worker.stop()
        together.look()
        raise AssertionError("it goes on")

    run_together(monkeypatch, run)
    ask(rag, *range(3))
    worker = worker_of(rag)
    worker.run()
    assert [(job.status, job.error) for job in told] == [("running", None)] * 3
    assert [job.status for job in rag.jobs.list()] == ["running"] * 3


def test_others_have_their_turn_where_they_wait_for_the_place(rag, monkeypatch):
    order: list[Any] = []

    def run(view, together):
        while taken := together.take(99):
            if not order:
                # Asked for while the first of many are under way.
                ask(rag, 100, source="other")
                enqueue_all(rag.standpoint, [NewJob(kind="alike", source="urgent", priority=1, arguments={"n": 200})])
            order.append([one.arguments["n"] for one in taken])
            together.end((one, {}) for one in taken)

    run_together(monkeypatch, run)
    tasks.register(
        Task(
            kind="alike",
            function=lambda view, arguments, progress: order.append(arguments["n"]),
            together=run,
            differs="n",
        )
    )
    ask(rag, *range(12))
    worker_of(rag, ends="empty").run()
    assert order == [[0, 1, 2, 3, 4], 200, [5, 6, 7, 8, 9], [10, 11], 100]


def test_another_tenant_has_its_turn_where_it_waits_for_the_place(rag, monkeypatch):
    order: list[Any] = []
    other = rag.view(tenant=rag.tenants.create("other").name)

    def run(view, together):
        while taken := together.take(99):
            order.append([one.arguments["n"] for one in taken])
            together.end((one, {}) for one in taken)

    run_together(monkeypatch, run)
    tasks.register(Task(kind="other", function=lambda *_: order.append("other")))
    ask(rag, *range(12))
    enqueue_all(other.standpoint, [NewJob(kind="other") for _ in range(2)])
    worker_of(rag, ends="empty").run()
    assert order == [[0, 1, 2, 3, 4], "other", [5, 6, 7, 8, 9], "other", [10, 11]]


def test_other_jobs_of_the_source_have_their_turn_also_where_places_are_free(rag, monkeypatch):
    order: list[Any] = []

    def run(view, together):
        while taken := together.take(99):
            order.append([one.arguments["n"] for one in taken])
            together.end((one, {}) for one in taken)

    run_together(monkeypatch, run)
    tasks.register(Task(kind="other", function=lambda *_: order.append("other")))
    ask(rag, *range(7))
    enqueue_all(rag.standpoint, [NewJob(kind="other", source="s")])
    ask(rag, *range(7, 9))
    worker_of(rag, ends="empty", concurrency=3).run()
    # So many are taken without asking who else waits; what follows the other one comes after it.
    assert order == [[0, 1, 2, 3, 4], [5, 6, 7, 8], "other"]


def test_no_more_are_taken_once_the_worker_is_told_to_end(rag, monkeypatch):
    workers: list[Worker] = []

    def run(view, together):
        while taken := together.take(2):
            together.end((one, {}) for one in taken)
            workers[0].stop()

    run_together(monkeypatch, run)
    jobs = ask(rag, *range(12))
    workers.append(worker_of(rag))
    workers[0].run()
    found = [state for state, _ in states(rag, jobs)]
    # What was at work comes to its end; what was only begun waits again.
    assert found == ["succeeded"] * 2 + ["pending"] * 10
    workers[:] = [worker_of(rag, ends="empty")]
    run_together(monkeypatch, lambda view, together: together.end((one, {}) for one in together.take(99)))
    workers[0].run()
    assert states(rag, jobs) == [("succeeded", 1)] * 12


def test_which_are_begun_beside_those_that_are_under_way(rag, task):
    task(lambda *_: {}, lambda view, several, progress: [{}] * len(several))
    jobs = ask(rag, *range(12))
    store = rag.standpoint.store
    queue = JobQueue(store.database)

    def numbers(runs: list[JobRun]) -> list[int]:
        return [run.arguments["n"] for run in runs]

    with queue.presence() as worker_id:
        taken = queue.fetch(None, worker_id=worker_id)
        first = store.jobs.begin(Scope(), jobs[0].job_id, queue_id=taken.queue_id)
        # One whose own attempt failed is taken with others, one that failed with others is run alone.
        with queue_transaction(store.database) as connection:
            connection.execute(
                "UPDATE recollect.jobs SET attempts = 1, due_at = CASE job_id WHEN %s THEN now() END "
                "WHERE job_id = ANY (%s)",
                (jobs[1].job_id, [jobs[1].job_id, jobs[2].job_id]),
            )
        begun = begin_alike(rag, first, taken.queue_id, together=4, most=2)
        assert [(run.arguments["n"], run.attempts) for run in begun] == [(1, 2), (3, 1)]
        begun = [first, *begun]
        assert numbers(begin_alike(rag, first, taken.queue_id, together=2, begun=begun)) == []
        # One of them has lost a worker: a quarter of eight, and none of them is to be of those that nobody has lost.
        with queue_transaction(store.database) as connection:
            connection.execute("UPDATE recollect.jobs SET deaths = 1 WHERE job_id = %s", (begun[1].job_id,))
        assert numbers(begin_alike(rag, first, taken.queue_id, together=8, begun=begun)) == []
        assert numbers(begin_alike(rag, first, taken.queue_id, together=16, begun=begun)) == [4, 5]
        # Its place in the queue is another's by now.
        with queue_transaction(store.database) as connection:
            connection.execute("UPDATE procrastinate_jobs SET status = 'todo', worker_id = NULL WHERE status = 'doing'")
        assert begin_alike(rag, first, taken.queue_id, together=64, begun=begun) == []


def test_a_slow_page_holds_up_no_other(rag):
    stored = threading.Event()

    def slow(visit) -> Page:
        # It comes once all others are stored.
        assert stored.wait(30)
        return Page("<h1>Slow</h1><p>It took its time.</p>")

    pages = {f"/{n}": Page(f"<title>Page {n}</title><h1>Page {n}</h1><p>River {n} is long.</p>") for n in range(20)}
    with web_site({"/slow": slow, **pages}) as site:
        jobs = [rag.ingest_url(site.url(path), wait=False) for path in ("/slow", *pages)]
        worker = worker_of(rag, ends="empty")
        thread = threading.Thread(target=worker.run)
        thread.start()
        for job in jobs[1:]:
            for now in rag.jobs.events(job.job_id, timeout_seconds=25):
                status = now.status
            assert status == "succeeded"
        assert rag.jobs.get(jobs[0].job_id).status == "running"
        stored.set()
        thread.join(30)
    assert rag.jobs.get(jobs[0].job_id).status == "succeeded"
    assert queued(rag) == 0
