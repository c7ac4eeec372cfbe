"""Jobs: asked for and run, tried again and stopped, each tenant's and each principal's own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from pydantic import SecretStr

from recollect import Principal, RAGConfig, RAGPipeline
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import ConflictError, NotFoundError, PermissionDeniedError, ProviderError, StoreError, UsageError
from recollect.jobs.progress import Progress
from recollect.jobs.tasks import Task, register
from recollect.jobs.worker import Worker, WorkerOptions
from recollect.model import Scope
from recollect.model.job import Job, NewJob, RunEnd
from recollect.model.page import cursor_at
from recollect.pipeline.jobs import enqueue, enqueue_all, runner_of
from recollect.store.job_queue import Heartbeats, JobQueue, queue_transaction
from recollect.store.jobs import JobRepository
from recollect.store.sql import queries


@pytest.fixture
def rag(dsn: str, tmp_path) -> Iterator[RAGPipeline]:
    config = RAGConfig.load(
        storage={"data_dir": tmp_path / "unused", "dsn": dsn},
        embedding={"provider": "hashing"},
        jobs={"backoff_seconds": 0},
        access={"mode": "enforce"},
    )
    with RAGPipeline(config, embedder=HashingEmbedder()) as opened:
        yield opened


@pytest.fixture
def task(monkeypatch) -> Callable[[Callable[..., Any]], str]:
    """Makes a function a kind of job, for the time of a test."""
    from recollect.jobs import tasks

    monkeypatch.setattr(tasks, "_TASKS", dict(tasks._TASKS))

    def make(function: Callable[..., Any]) -> str:
        register(Task(kind=function.__name__, function=function, stages=("work",)))
        return function.__name__

    return make


def ask(rag, kind: str, **job: Any) -> Job:
    return enqueue(rag.standpoint, NewJob(kind=kind, **job))


def queued(rag) -> int:
    with rag.standpoint.store.database.autocommit() as connection:
        return connection.execute("SELECT count(*) FROM recollect_jobs.procrastinate_jobs").fetchone()[0]


def test_a_job_runs_where_somebody_waits_for_it_and_its_stages_are_told(rag, task):
    def store(view, arguments, progress: Progress):
        progress("work", 1, 2)
        view.ingest(arguments["text"])
        progress("work", 2, 2)
        return {"stored": 1}

    job = ask(rag, task(store), arguments={"shown": True}, withheld={"text": "Annual leave is 30 days."})
    assert (job.status, job.attempts, job.stages[0].name) == ("pending", 0, "work")
    assert dict(job.arguments) == {"shown": True}, "what is withheld is shown to nobody"
    told: list[Job] = []
    done = rag.jobs.wait(job.job_id, on_progress=told.append)
    assert (done.status, done.attempts, done.result, done.error) == ("succeeded", 1, {"stored": 1}, None)
    assert (done.stages[0].done, done.stages[0].total) == (2, 2)
    assert {one.stages[0].done for one in told if one.status == "running"} == {1, 2}
    assert [one.title for one in rag.documents.list()] != []
    assert queued(rag) == 0


def test_what_fails_is_tried_three_times_and_what_cannot_succeed_once(rag, task):
    tries: list[str] = []

    def flaky(view, arguments, progress):
        tries.append("flaky")
        if len(tries) < 3:
            raise ProviderError("busy", provider="x", retryable=True)

    def never(view, arguments, progress):
        tries.append("never")
        raise RuntimeError("broken")

    def refused(view, arguments, progress):
        tries.append("refused")
        raise UsageError("No such address.")

    done = rag.jobs.wait(ask(rag, task(flaky)).job_id)
    assert (done.status, done.attempts, tries) == ("succeeded", 3, ["flaky"] * 3)
    tries.clear()
    done = rag.jobs.wait(ask(rag, task(never)).job_id)
    assert (done.status, done.attempts, tries) == ("failed", 3, ["never"] * 3)
    assert done.error == "RuntimeError: broken"
    tries.clear()
    done = rag.jobs.wait(ask(rag, task(refused)).job_id)
    assert (done.status, done.attempts, tries, done.error) == ("cancelled", 1, ["refused"], "No such address.")
    again = rag.jobs.retry(done.job_id)
    assert (again.status, again.attempts) == ("pending", 0)
    assert rag.jobs.wait(done.job_id).status == "cancelled"
    assert tries == ["refused"] * 2
    assert queued(rag) == 0


def test_one_that_waits_is_taken_out_of_the_queue_and_one_that_runs_ends_at_its_next_step(rag, task):
    begun, go_on = threading.Event(), threading.Event()

    def long(view, arguments, progress):
        while True:
            begun.set()
            go_on.wait(10)
            progress("work", 1, 100)

    waiting = ask(rag, task(long))
    assert rag.jobs.cancel(waiting.job_id).status == "cancelled"
    assert queued(rag) == 0
    with pytest.raises(ConflictError):
        rag.jobs.retry(rag.jobs.wait(ask(rag, task(lambda *_: None)).job_id).job_id)
    running = ask(rag, "long")
    found: list[Job] = []
    thread = threading.Thread(target=lambda: found.append(rag.jobs.wait(running.job_id)))
    thread.start()
    assert begun.wait(10)
    assert rag.jobs.cancel(running.job_id).cancel_requested
    go_on.set()
    thread.join(20)
    assert found[0].status == "cancelled"
    assert rag.jobs.cancel(running.job_id).status == "cancelled", "one that has ended is left as it is"


def test_a_job_and_what_asks_for_it_are_committed_together(rag, task):
    kind = task(lambda view, arguments, progress: None)
    scope = Scope()
    with pytest.raises(RuntimeError), rag.standpoint.store.database.transaction(scope) as connection:
        enqueue(rag.standpoint, NewJob(kind=kind), connection=connection)
        raise RuntimeError
    assert not rag.jobs.list()
    assert queued(rag) == 0
    with rag.standpoint.store.database.transaction(scope) as connection:
        jobs = enqueue_all(rag.standpoint, [NewJob(kind=kind, priority=n) for n in range(3)], connection=connection)
        assert queued(rag) == 0
    assert [job.job_id for job in reversed(rag.jobs.list())] == [job.job_id for job in jobs]
    assert queued(rag) == 3


def test_jobs_are_a_tenants_own_and_a_principals_own(rag, task):
    kind = task(lambda view, arguments, progress: {"tenant": view.standpoint.scope.tenant_id})
    rag.tenants.create("other")
    other = rag.view(tenant="other")
    job = ask(rag, kind)
    with pytest.raises(NotFoundError):
        other.jobs.get(job.job_id)
    with pytest.raises(NotFoundError):
        other.jobs.cancel(job.job_id)
    assert not other.jobs.list()
    theirs = enqueue(other.standpoint, NewJob(kind=kind))
    assert dict(other.jobs.wait(theirs.job_id).result or {}) == {"tenant": other.standpoint.scope.tenant_id}

    ann, bob = (rag.view(principal=Principal(user_id=name)) for name in ("ann", "bob"))
    rag.ingest("A collection that can be named.")
    hers = enqueue(ann.standpoint, NewJob(kind=kind))
    assert [one.job_id for one in ann.jobs.list()] == [hers.job_id]
    assert (hers.asked_by, list(bob.jobs.list())) == ("ann", [])
    for attempt in (bob.jobs.get, bob.jobs.cancel, bob.jobs.retry, bob.jobs.wait):
        with pytest.raises(NotFoundError):
            attempt(hers.job_id)
    assert rag.jobs.get(hers.job_id).status == "pending"
    assert ann.jobs.cancel(hers.job_id).error == "It was cancelled by ann."


def test_a_worker_that_dies_leaves_its_job_to_the_next_and_one_that_kills_them_is_given_up(rag, task):
    ran: list[int] = []

    def work(view, arguments, progress):
        ran.append(1)

    job = ask(rag, task(work))
    queue = JobQueue(rag.standpoint.store.database)
    store, scope = rag.standpoint.store, Scope()
    number = store.jobs.queue_number(scope, job.job_id)
    assert number is not None

    def die() -> None:
        """As a worker does that is killed in the middle: nothing is written any more."""
        with queue.presence() as worker_id:
            assert queue.claim(number, worker_id=worker_id)
            assert not queue.claim(number, worker_id=worker_id)
            assert store.jobs.begin(scope, job.job_id, queue_id=number) is not None

    die()
    assert rag.jobs.get(job.job_id).status == "running"
    assert queue.recover() == 1
    assert queue.recover() == 0
    done = rag.jobs.wait(job.job_id)
    assert (done.status, done.attempts, ran) == ("succeeded", 1, [1])

    job = ask(rag, "work")
    number = store.jobs.queue_number(scope, job.job_id)
    for _ in range(12):
        die()
        queue.recover()
    done = rag.jobs.wait(job.job_id)
    assert (done.status, ran) == ("failed", [1])
    assert "12 workers died" in str(done.error)


def test_what_a_run_has_stored_before_its_worker_died_is_not_stored_again(rag, tmp_path, monkeypatch):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "leave.md").write_text("Thirty days of annual leave.", encoding="utf-8")
    rag.ingest([folder])
    (job,) = rag.jobs.ingest([folder], force=True)
    queue, store, scope = JobQueue(rag.standpoint.store.database), rag.standpoint.store, Scope()
    number = store.jobs.queue_number(scope, job.job_id)
    assert number is not None

    def lost(*_: object, **__: object) -> None:
        raise StoreError("the worker is gone before it could note that")

    with queue.presence() as worker_id, monkeypatch.context() as patch:
        patch.setattr(JobRepository, "settle", lost)
        assert queue.claim(number, worker_id=worker_id)
        with pytest.raises(StoreError, match="is gone"):
            runner_of(rag.standpoint.assembly).run(1, job.job_id, queue_id=number)
    assert rag.documents.get("leave.md").version == 2
    queue.recover()
    done = rag.jobs.wait(job.job_id)
    assert (done.status, done.result["unchanged"]) == ("succeeded", 1)
    assert rag.documents.get("leave.md").version == 2
    again = rag.jobs.wait(rag.jobs.ingest([folder], force=True)[0].job_id)
    assert (again.result["updated"], rag.documents.get("leave.md").version) == (1, 3)


def test_a_run_that_was_taken_for_dead_writes_nothing_any_more(rag, task):
    job = ask(rag, task(lambda *_: None))
    jobs, scope = rag.standpoint.store.jobs, Scope()
    number = jobs.queue_number(scope, job.job_id)
    first = jobs.begin(scope, job.job_id, queue_id=number)
    second = jobs.begin(scope, job.job_id, queue_id=number)
    assert jobs.report(scope, [first], {job.job_id: ()}) == {}
    for status in ("failed", "pending"):
        assert jobs.settle(scope, [RunEnd(run=first, status=status, error="late")]) == []
    assert jobs.report(scope, [second], {job.job_id: ()}) == {job.job_id: False}
    assert jobs.begin(scope, job.job_id, queue_id=number + 1) is None
    assert rag.jobs.get(job.job_id).error is None


def test_the_programs_role_cannot_name_the_queue(rag):
    from recollect.errors import StoreError

    store = rag.standpoint.store
    for statement in (
        "SELECT * FROM recollect_jobs.procrastinate_jobs",
        "DELETE FROM recollect_jobs.procrastinate_workers",
        "SELECT recollect_jobs.procrastinate_cancel_job_v1(1, true, true)",
        "SELECT recollect.enqueue_jobs(99, '{1}')",
        "SELECT recollect.withdraw_job(99, 1)",
    ):
        with pytest.raises(StoreError), store.database.transaction(Scope()) as connection:
            connection.execute(statement)


def work_off(rag, *, concurrency: int = 2, **options: Any) -> None:
    """As `recollect worker --until-empty` does."""
    options.setdefault("ends", "empty")
    Worker(
        rag.standpoint.store.database,
        runner_of(rag.standpoint.assembly),
        WorkerOptions(concurrency=concurrency, poll_seconds=0.2, heartbeats=Heartbeats(every_seconds=0.2), **options),
    ).run()


def test_a_worker_runs_several_at_once_and_one_of_a_source(rag, task):
    lock, now, most = threading.Lock(), {"all": 0}, {"all": 0}

    def work(view, arguments, progress):
        name = arguments["source"]
        with lock:
            for key in ("all", name):
                now[key] = now.get(key, 0) + 1
                most[key] = max(most.get(key, 0), now[key])
        together.wait(0.05)
        with lock:
            for key in ("all", name):
                now[key] -= 1

    together = threading.Event()
    kind = task(work)
    enqueue_all(
        rag.standpoint, [NewJob(kind=kind, source=f"s{n % 2}", arguments={"source": f"s{n % 2}"}) for n in range(12)]
    )
    work_off(rag, concurrency=4)
    assert {job.status for job in rag.jobs.list()} == {"succeeded"}
    assert (most["s0"], most["s1"], most["all"]) == (1, 1, 2)
    assert queued(rag) == 0


def test_higher_priorities_come_first_and_what_fails_is_tried_again(rag, task):
    order: list[int] = []

    def work(view, arguments, progress):
        order.append(arguments["n"])
        if order.count(arguments["n"]) == 1 and arguments["n"] == 3:
            raise TimeoutError

    kind = task(work)
    enqueue_all(rag.standpoint, [NewJob(kind=kind, priority=n % 2, arguments={"n": n}) for n in range(4)])
    work_off(rag, concurrency=1)
    assert order == [1, 3, 3, 0, 2]


def test_tenants_take_turns_whatever_their_priorities_and_keep_their_own_order(rag, task):
    order: list[str] = []

    def work(view, arguments, progress):
        order.append(arguments["name"])

    kind = task(work)
    for tenant, priorities in (("first", [9, 9, 9, 10]), ("second", [0, 1]), ("third", [0])):
        view = rag if tenant == "first" else rag.view(tenant=rag.tenants.create(tenant).name)
        enqueue_all(
            view.standpoint,
            [
                NewJob(kind=kind, priority=priority, arguments={"name": f"{tenant} {n}"})
                for n, priority in enumerate(priorities)
            ],
        )
    work_off(rag, concurrency=1)
    assert order == ["first 3", "second 1", "third 0", "first 0", "second 0", "first 1", "first 2"]


def test_the_next_turn_is_found_without_reading_the_jobs_that_wait(rag):
    fill = """INSERT INTO recollect_jobs.procrastinate_jobs (queue_name, task_name, args, priority)
              SELECT 'default', 'recollect', jsonb_build_object('tenant_id', 1 + n % 3, 'job_id', n), n % 5
              FROM generate_series(1, 10000) AS n"""
    explain = f"EXPLAIN (ANALYZE, FORMAT JSON) {queries('job_queue')['fetch']}"

    def read(node: dict[str, Any]) -> float:
        own = node["Actual Rows"] + sum(node.get(f"Rows Removed by {what}", 0) for what in ("Filter", "Index Recheck"))
        return own * node["Actual Loops"] + sum(map(read, node.get("Plans", [])))

    with queue_transaction(rag.standpoint.store.database) as connection:
        connection.execute(fill)
        for analysed in ("SELECT", "ANALYZE recollect_jobs.procrastinate_jobs"):
            connection.execute(analysed)
            for after in range(4):
                params = {"queues": None, "without": ["watch"], "worker_id": None, "after_tenant": after}
                ((plan,),) = connection.execute(explain, params).fetchone()
                assert read(plan["Plan"]) < 30


def test_a_document_is_pending_until_its_job_has_stored_it_and_an_error_where_it_could_not(rag, task):
    from recollect import Document

    def store(view, arguments, progress):
        if "missing" in arguments["uri"]:
            raise NotFoundError("404: there is no such page.")
        view.ingest(Document(content="Annual leave is 30 days.", source=arguments["uri"]))

    kind = task(store)

    def ask_for(view, uri: str) -> Job:
        about = {"source": "manual", "document": uri}
        return enqueue(view.standpoint, NewJob(kind=kind, arguments={"uri": uri}, **about))

    def listed(view=rag, **wanted: Any) -> list[tuple]:
        return [(one.source, one.status, one.error) for one in view.documents.list(**wanted)]

    good, bad = ask_for(rag, "a/leave"), ask_for(rag, "a/missing")
    assert listed() == [("a/leave", "pending", None), ("a/missing", "pending", None)]
    assert listed(status="embedded") == []
    assert rag.search("annual leave").results == ()
    assert rag.standpoint.store.status.check(Scope()) == []
    for job in (good, bad):
        rag.jobs.wait(job.job_id)
    failed = ("a/missing", "error", "404: there is no such page.")
    assert listed() == [("a/leave", "embedded", None), failed]
    assert listed(status="pending") == []
    assert listed(status="error", limit=1) == [failed]
    assert [one.source for one in rag.search("annual leave missing").results] == ["a/leave"]
    assert rag.maintenance.verify().clean
    assert (rag.documents.list()[0].source_type, rag.documents.list()[0].origin) == ("manual", "manual")

    # What is stored already stays findable while a job brings it up to date, and where that fails.
    ask_for(rag, "a/leave")
    assert listed(status="pending") == []
    with pytest.raises(PermissionDeniedError):
        ask_for(rag.view(principal=Principal(user_id="ann")), "b/hers")
    assert listed(rag.view(principal=Principal(user_id="ann")), status="error") == []

    number = rag.documents.list(status="error")[0].document_id
    assert not rag.documents.list(cursor=cursor_at(number))
    store_ = rag.standpoint.store
    assert store_.jobs.forget(Scope(), days=1) == 0
    assert store_.jobs.forget(Scope(), days=0) == 2
    assert listed() == [("a/leave", "embedded", None)]
    assert rag.maintenance.verify().clean


def test_erasing_a_document_removes_its_jobs_and_what_they_held(rag, task):
    from recollect import Document

    def store(view, arguments, progress):
        view.ingest(Document(content=arguments["text"], source="leave"))

    about = {"source": "manual", "document": "leave", "withheld": {"text": "Annual leave is 30 days."}}
    kind = task(store)
    job = ask(rag, kind, **about)
    rag.jobs.wait(job.job_id)
    again = ask(rag, kind, **about)
    with rag.standpoint.store.database.autocommit() as connection:
        held = connection.execute("SELECT job_id, withheld FROM recollect.jobs ORDER BY job_id").fetchall()
    assert held == [(job.job_id, {}), (again.job_id, {"text": "Annual leave is 30 days."})]
    rag.documents.erase([rag.documents.list()[0].document_id])
    assert not rag.jobs.list()
    work_off(rag)
    assert queued(rag) == 0
    assert not rag.documents.list()


def test_jobs_that_wait_are_in_the_queue_of_a_restored_store_too(rag, task, tmp_path, clone):
    from recollect.store.backup import backup
    from recollect.store.restore import restore

    kind = task(lambda view, arguments, progress: None)
    done, waiting = ask(rag, kind), ask(rag, kind, priority=3)
    rag.jobs.wait(done.job_id)
    backup(rag.config.storage.dsn.get_secret_value(), tmp_path / "b")
    with clone() as other:
        restore(other, tmp_path / "b")
        storage = rag.config.storage.model_copy(update={"dsn": SecretStr(other)})
        with RAGPipeline(rag.config.model_copy(update={"storage": storage}), embedder=HashingEmbedder()) as restored:
            assert queued(restored) == 1
            assert restored.jobs.wait(waiting.job_id).status == "succeeded"


def test_the_queue_is_what_the_installed_procrastinate_makes(dsn: str):
    """What another version makes differently is a migration to be written."""
    from procrastinate.schema import SchemaManager

    shape = """
        SELECT 'column', table_name || '.' || column_name, data_type || coalesce(column_default, '') || is_nullable
        FROM information_schema.columns WHERE table_schema = %(s)s AND table_name <> 'workers'
        UNION ALL SELECT 'function', proname, prosrc FROM pg_proc WHERE pronamespace = %(s)s::regnamespace
        UNION ALL SELECT 'index', indexname, indexdef FROM pg_indexes
                  WHERE schemaname = %(s)s AND tablename <> 'workers' AND indexname <> 'jobs_by_tenant'
        UNION ALL SELECT 'trigger', t.tgname, pg_get_triggerdef(t.oid) FROM pg_trigger t
                  JOIN pg_class c ON c.oid = t.tgrelid WHERE c.relnamespace = %(s)s::regnamespace AND NOT t.tgisinternal
        ORDER BY 1, 2, 3
    """
    with psycopg.connect(dsn) as connection:
        connection.execute("CREATE SCHEMA installed")
        connection.execute("SET search_path = installed")
        connection.execute(SchemaManager.get_schema())
        connection.execute("SET search_path = pg_catalog")
        ours, theirs = (
            [tuple(part.replace(f"{s}.", "") for part in row) for row in connection.execute(shape, {"s": s})]
            for s in ("recollect_jobs", "installed")
        )
    assert len(ours) > 50
    assert ours == theirs


def test_a_job_that_waits_for_its_next_attempt_holds_up_no_other_of_its_source(rag, task):
    def work(view, arguments, progress):
        if arguments["n"] == 0:
            raise ProviderError("busy", provider="x", retryable=True, retry_after_seconds=3600)

    kind = task(work)
    enqueue_all(rag.standpoint, [NewJob(kind=kind, source="example.org", arguments={"n": n}) for n in range(4)])
    work_off(rag, ends="once")
    found = sorted(rag.jobs.list(), key=lambda job: job.job_id)
    assert [job.status for job in found] == ["pending", "succeeded", "succeeded", "succeeded"]
    assert found[0].due_at is not None
    assert rag.jobs.cancel(found[0].job_id).status == "cancelled"


def test_a_worker_whose_connections_are_cut_goes_on(rag, task):
    def work(view, arguments, progress):
        if arguments["n"] == 1:
            with psycopg.connect(rag.config.storage.dsn.get_secret_value(), autocommit=True) as connection:
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
        view.ingest(f"Text {arguments['n']}.")

    kind = task(work)
    # Without a wait between attempts each may meet another of the connections that were cut.
    enqueue_all(rag.standpoint, [NewJob(kind=kind, arguments={"n": n}, max_attempts=20) for n in range(5)])
    work_off(rag)
    assert {job.status for job in rag.jobs.list()} == {"succeeded"}
    assert queued(rag) == 0


def test_a_worker_that_ends_at_once_puts_its_job_back_as_if_it_had_not_been_begun(rag, task):
    begun = threading.Event()
    kept: list[Worker] = []

    def work(view, arguments, progress):
        if kept:
            begun.set()
            while True:
                progress("work", 1, 2)

    job = ask(rag, task(work))
    options = WorkerOptions(heartbeats=Heartbeats(every_seconds=0.2))
    worker = Worker(rag.standpoint.store.database, runner_of(rag.standpoint.assembly), options)
    kept.append(worker)
    thread = threading.Thread(target=worker.run)
    thread.start()
    assert begun.wait(20)
    worker.stop(at_once=True)
    thread.join(20)
    assert not thread.is_alive()
    found = rag.jobs.get(job.job_id)
    assert (found.status, found.attempts) == ("pending", 0)
    kept.clear()
    assert (rag.jobs.wait(job.job_id).status, rag.jobs.get(job.job_id).attempts) == ("succeeded", 1)


def test_what_is_done_every_so_often_is_done_by_a_worker_and_then_by_nobody_else(rag):
    from recollect.pipeline.upkeep import Upkeep
    from recollect.pipeline.working import periodic_tasks

    rag.ingest("Annual leave is 30 days.")
    tasks = {one.name: one.run() for one in periodic_tasks(rag.standpoint.assembly)}
    assert set(tasks) >= {"cleanup", "statistics", "indexes", "jobs"}
    upkeep = Upkeep(rag.standpoint.store, rag.config.temporal)
    assert not upkeep._is_served()
    with JobQueue(rag.standpoint.store.database, Heartbeats(every_seconds=0.05)).presence():
        assert not upkeep._is_served(), "a process that runs its own jobs serves nobody"
    begun = threading.Event()
    with JobQueue(rag.standpoint.store.database, Heartbeats(every_seconds=0.05)).presence(serves=True):
        deadline = time.monotonic() + 20
        while not upkeep._is_served() and time.monotonic() < deadline:
            begun.wait(0.01)
        assert upkeep._is_served()
    assert not upkeep._is_served()


def test_a_worker_refuses_a_read_replica(rag, task):
    job = ask(rag, task(lambda *_: None))
    with rag.standpoint.store.database.autocommit() as connection:
        connection.execute(f'ALTER DATABASE "{connection.info.dbname}" SET default_transaction_read_only = on')
    # Connections that are opened from now on can write nothing, as on a replica.
    reader = RAGPipeline(rag.config, embedder=HashingEmbedder())
    with reader, pytest.raises(StoreError, match="read replica"):
        work_off(reader)
    assert rag.jobs.get(job.job_id).status == "pending"


def test_an_export_holds_no_credentials_of_jobs(rag, task):
    from recollect.store.tenants import TenantRowRepository

    ask(rag, task(lambda *_: None), arguments={"url": "https://example.org/"}, withheld={"Authorization": "Bearer 7k"})
    exported = "".join(TenantRowRepository(rag.standpoint.store.database).lines(Scope(), "jobs"))
    assert "example.org" in exported
    assert "7k" not in exported
