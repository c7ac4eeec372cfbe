"""PgBouncer between the program and the server, in each of its modes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from pooler import PROGRAM, bouncing
from recollect import Document, RAGConfig, RAGPipeline
from recollect.errors import StoreError
from recollect.model import Scope
from recollect.pipeline.working import worker_of
from recollect.store.connections import is_pooled
from recollect.store.job_queue import Heartbeats, JobQueue

pytestmark = pytest.mark.skipif(
    PROGRAM is None, reason="PgBouncer is not installed (Debian: apt-get install pgbouncer)"
)
DOCUMENTS = 6


@pytest.fixture(params=["round robin", "reset", "session"])
def pooled(request: pytest.FixtureRequest, dsn: str) -> Iterator[str]:
    """The test's database, through a pooler."""
    given = {
        "round robin": {"mode": "transaction", "server_round_robin": "1"},
        "reset": {"mode": "transaction", "server_reset_query": "DISCARD ALL", "server_reset_query_always": "1"},
        "session": {"mode": "session", "server_reset_query": "DISCARD ALL", "size": 20},
    }[request.param]
    with bouncing(dsn, **given) as through:
        yield through


def opened(dsn: str, folder: Path, **storage: str) -> RAGPipeline:
    return RAGPipeline(
        RAGConfig.load(
            storage={"data_dir": folder, "dsn": dsn, "max_connections": 6, **storage},
            embedding={"provider": "hashing"},
        )
    )


def fill(rag: RAGPipeline, tenant: int | None = None) -> None:
    rag.view(tenant=tenant).ingest(
        [Document(content=f"The zebrafish {n} of {tenant} swims.", source=f"{n}.txt") for n in range(DOCUMENTS)]
    )


def search_at_once(rag: RAGPipeline, tenants: list[int]) -> list[object]:
    """What was wrong with the searches of several threads, each for its own tenant."""
    wrong: list[object] = []

    def run(tenant: int) -> None:
        for turn in range(3):
            try:
                reply = rag.view(tenant=tenant).search(f"zebrafish t{tenant}x{turn}")
                told = [one.content for one in reply.results]
                if len(told) != DOCUMENTS or any(f"of {tenant} " not in text for text in told):
                    wrong.append(told)
                for n in range(6):  # statements that would be prepared by now
                    assert rag.view(tenant=tenant).documents.get(f"{n}.txt").source == f"{n}.txt"
            except Exception as exc:  # noqa: BLE001 - whatever it is, the test must see it
                wrong.append(exc)

    threads = [threading.Thread(target=run, args=(tenant,)) for tenant in tenants]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return wrong


def test_several_tenants_search_and_write_at_the_same_time(pooled: str, tmp_path: Path):
    with opened(pooled, tmp_path) as rag:
        tenants = [rag.tenants.create(name).tenant_id for name in ("one", "two", "three")]
        for tenant in tenants:
            fill(rag, tenant)
        assert rag.tenants.isolation().in_force
        assert search_at_once(rag, tenants) == []
        rag.view(session="chat", user="ann", tenant=tenants[0]).remember("I like zebrafish.")
        assert rag.view(user="ann", tenant=tenants[0]).recall("zebrafish")
        assert rag.view(tenant=tenants[0]).maintenance.check() == [] and rag.maintenance.verify().clean
        rag.view(tenant=tenants[0]).collections.delete("default")
        rag.tenants.erase("two")


def test_the_application_goes_through_the_pooler_and_the_owner_does_not(dsn: str, tmp_path: Path):
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("ALTER ROLE recollect_app LOGIN")
    try:
        with bouncing(dsn, "transaction") as through:
            login = make_conninfo(through, user="recollect_app")
            with opened(dsn, tmp_path, application_dsn=login) as rag:
                tenants = [rag.tenants.create(name).tenant_id for name in ("one", "two")]
                for tenant in tenants:
                    fill(rag, tenant)
                assert search_at_once(rag, tenants) == []
                assert rag.tenants.isolation().login == "recollect_app"
                # What needs a session has one.
                rag.store.dense_indexer.build(Scope(tenant_id=tenants[0]), "default")
                assert rag.store.collections.get(Scope(tenant_id=tenants[0]), "default").indexed
    finally:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("ALTER ROLE recollect_app NOLOGIN")


def test_nothing_that_is_set_or_made_meets_who_has_the_session_next(dsn: str, tmp_path: Path):
    with bouncing(dsn, "transaction", size=1) as through:
        with opened(through, tmp_path) as rag:
            fill(rag)
            rag.search("zebrafish")
        with psycopg.connect(through, autocommit=True, prepare_threshold=None) as other:
            found = other.execute(
                "SELECT current_user, current_setting('recollect.tenant_id', true), current_setting('enable_seqscan'), "
                "current_setting('search_path'), (SELECT count(*) FROM pg_class WHERE relpersistence = 't'), "
                "(SELECT count(*) FROM pg_prepared_statements), "
                "(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory')"
            ).fetchone()
    assert found[0] == "postgres" and not found[1] and found[2:] == ("on", '"$user", public', 0, 0, 0)


def test_an_index_is_not_built_through_a_pooler(dsn: str, tmp_path: Path, caplog: pytest.LogCaptureFixture):
    with bouncing(dsn, "transaction") as through, opened(through, tmp_path, index_threshold=1) as rag:
        fill(rag)
        assert "not built through a connection pooler" in caplog.text
        assert len(rag.search("zebrafish").results) == DOCUMENTS
        with pytest.raises(StoreError, match="dsn name the server itself"):
            rag.store.dense_indexer.build(Scope(), "default")


def test_a_session_that_was_not_kept_is_noticed_whoever_answers_the_login(pipeline: RAGPipeline):
    """A pooler that hands on the server's own number looks like the server itself, until something is gone."""
    fill(pipeline)
    database = pipeline.store.database
    with database.single_reads(Scope()) as connection:
        assert not is_pooled(connection)
        connection.execute("DISCARD ALL")
    database._tenants.clear()
    assert len(pipeline.search("zebrafish").results) == DOCUMENTS
    with database.single_reads(Scope()) as connection:
        assert is_pooled(connection)


@pytest.mark.parametrize("losing", ["RESET recollect.tenant_id", "SET recollect.tenant_id = ''"])
def test_a_read_of_a_connection_that_has_lost_its_tenant_raises(pipeline: RAGPipeline, losing: str):
    fill(pipeline)
    for read in (pipeline.documents.list, lambda: pipeline.search(f"zebrafish {losing}")):
        with pipeline.store.database.single_reads(Scope()) as connection:
            connection.execute(losing)
        with pytest.raises(StoreError, match="no tenant is set"):
            read()


def test_jobs_are_run_and_waited_for_through_a_pooler(pooled: str, tmp_path: Path):
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "leave.md").write_text("Annual leave is 30 days.")
    with opened(pooled, tmp_path) as rag:
        (here,) = rag.jobs.ingest(folder)
        assert rag.jobs.wait(here.job_id).status == "succeeded"
        jobs = [*rag.jobs.ingest(folder, force=True), *rag.jobs.ingest(folder, force=True)]
        worker_of(rag.standpoint.assembly, concurrency=2, ends="empty").run()
        assert {rag.jobs.get(job.job_id).status for job in jobs} == {"succeeded"}
        # Its heartbeats have no session that they come from: those that are missed tell.
        queue = JobQueue(rag.standpoint.store.database, Heartbeats(every_seconds=0.05, stalled_seconds=3600))
        with queue.presence(serves=True):
            assert queue.recover() == 0
