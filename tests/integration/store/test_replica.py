"""Searches and texts are read from a streaming replica, and say what the primary would."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from pooler import PROGRAM, bouncing
from recollect import Document, Principal, RAGConfig, RAGPipeline, RetrievalOptions
from recollect.cli.main import app
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import ConfigurationError, NotFoundError, StoreError, StoreUnavailableError
from recollect.model import Scope
from recollect.server.metrics import Metrics
from recollect.store.replica import Standing, require_replica
from recollect.store.store import Store
from replication import TEMPLATE, Cluster, Server, replicated

FRESH = RetrievalOptions(use_cache=False)
BOB = Principal(user_id="bob")
STANDING = Standing(cluster=1, database=2, follows=True, timeline=3, position=4)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with replicated() as made:
        yield made


@pytest.fixture
def database(cluster: Cluster) -> Iterator[str]:
    with cluster.database() as name:
        yield name


@contextmanager
def opened(cluster: Cluster, database: str, read_dsn: str | None) -> Iterator[RAGPipeline]:
    storage = {"dsn": cluster.primary.dsn(database), "read_dsn": read_dsn}
    config = RAGConfig.load(storage=storage, embedding={"provider": "hashing"}, access={"mode": "enforce"})
    with RAGPipeline(config, embedder=HashingEmbedder()) as rag:
        # The replica must come as far as the store was when it was opened.
        assert rag.store
        yield rag


@pytest.fixture
def rag(cluster: Cluster, database: str) -> Iterator[RAGPipeline]:
    """Reads on the replica, and holds one document, which the replica has."""
    with opened(cluster, database, cluster.replica.dsn(database)) as rag:
        rag.ingest(Document(content="Annual leave is thirty days.", source="leave.md"))
        cluster.caught_up()
        yield rag


@pytest.fixture
def elsewhere(cluster: Cluster, database: str) -> Iterator[RAGPipeline]:
    """Another process, as far as the store can tell."""
    with opened(cluster, database, None) as rag:
        yield rag


def counts(rag: RAGPipeline) -> dict[str, int]:
    """What became of reads, those left out that there were none of."""
    assert rag.store.replica is not None
    return {outcome: count for outcome, count in rag.store.replica.counts.items() if count}


def standing(rag: RAGPipeline) -> tuple[int, int, str]:
    """The collection, its revision and the revision's id."""
    query = "SELECT collection_id, revision, revision_id::text FROM collection_state"
    return rag.store.database.run(Scope(), query, {})[0]


def found(rag: RAGPipeline, query: str = "annual leave", **view) -> list[str]:
    return sorted({one.source for one in rag.view(**view).retrieve(query, FRESH)})


def test_searches_run_on_the_replica_and_say_the_same(cluster, database, rag, elsewhere):
    for number, mode in enumerate(("lexical", "dense", "hybrid"), 1):
        options = replace(FRESH, mode=mode, explain=True, source=("leave.md",))
        reply, same = (one.search("annual leave", options) for one in (rag, elsewhere))
        assert [one.source for one in reply.results] == ["leave.md"]
        assert reply.results == same.results
        assert counts(rag) == {"replica": number}
    ran = cluster.replica.ask(f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{database}'")
    assert ran == 2  # a hybrid search reads in two threads


def test_texts_are_read_on_the_replica_and_listings_and_answers_come_from_there(rag: RAGPipeline):
    document_id = rag.contents.list()[0].document_id
    assert rag.contents.read(document_id).text == "Annual leave is thirty days."
    assert rag.contents.grep("thirty").documents
    assert [one.position for one in rag.contents.chunks(document_id)] == [0]
    assert rag.contents.outline(document_id).characters == 28
    assert "thirty" in rag.ask("Is annual leave thirty days?").text
    assert "thirty" in rag.context("annual leave").text
    assert set(counts(rag)) == {"replica"}


def test_an_unchanged_collection_is_asked_for_its_revision_once(rag: RAGPipeline, monkeypatch):
    asked: list[object] = []
    connections = rag.store.replica._connections
    held = connections.held
    monkeypatch.setattr(connections, "held", lambda *given: asked.append(given) or held(*given))
    for _ in range(3):
        found(rag)
    assert len(asked) == 1
    assert counts(rag) == {"replica": 3}


def test_what_was_just_written_is_found_however_far_behind_the_replica_is(cluster, rag, elsewhere):
    assert found(rag) == ["leave.md"]
    with cluster.paused():
        rag.ingest(Document(content="Annual fees are due in May.", source="mine.md"))
        assert found(rag) == ["leave.md", "mine.md"]
        elsewhere.ingest(Document(content="Annual reports are due in June.", source="theirs.md"))
        assert found(rag) == ["leave.md", "mine.md", "theirs.md"]
        assert len(rag.contents.list()) == 3
        assert counts(rag) == {"replica": 1, "behind": 3}
    cluster.caught_up()
    assert found(rag) == ["leave.md", "mine.md", "theirs.md"]
    assert counts(rag)["replica"] == 2


def test_what_is_erased_or_withdrawn_is_gone_at_once(cluster, rag, elsewhere):
    document_id = rag.contents.list()[0].document_id
    elsewhere.ingest(Document(content="Annual salaries.", source="salaries.md", permissions=("user:bob",)))
    cluster.caught_up()
    assert found(rag, principal=BOB) == ["leave.md", "salaries.md"]
    with cluster.paused():
        elsewhere.grants.add("user:ann", documents="salaries.md", only=True)
        assert found(rag, principal=BOB) == ["leave.md"]
        elsewhere.documents.erase(["leave.md"])
        assert found(rag, principal=BOB) == []
        with pytest.raises(NotFoundError):
            rag.contents.read(document_id)


def test_rights_that_are_withdrawn_while_the_replica_is_read_are_looked_at_again(cluster, rag, elsewhere, monkeypatch):
    elsewhere.ingest(Document(content="Annual salaries.", source="salaries.md", permissions=("user:bob",)))
    cluster.caught_up()
    searcher = rag.standpoint.assembly.searcher
    compute = searcher._compute

    def withdrawn_meanwhile(search):
        reply = compute(search)
        elsewhere.grants.add("user:ann", documents="salaries.md", only=True)
        return reply

    monkeypatch.setattr(searcher, "_compute", withdrawn_meanwhile)
    assert found(rag, principal=BOB) == ["leave.md"]


def test_replies_that_the_replica_computed_are_kept_no_longer_than_they_are_true(cluster, rag, elsewhere):
    options = RetrievalOptions()
    assert [rag.search("annual leave", options).cached for _ in range(2)] == [False, True]
    with cluster.paused():
        elsewhere.documents.erase(["leave.md"])
        assert rag.search("annual leave", options).results == ()


def test_several_replicas_behind_one_address_never_answer_from_the_past(cluster, database, elsewhere):
    with cluster.another_replica() as other:
        both = f"{cluster.replica.folder},{other.folder}"
        dsn = make_conninfo(cluster.replica.dsn(database), host=both, load_balance_hosts="random")
        with opened(cluster, database, dsn) as rag, cluster.paused(other):
            for number in range(6):
                elsewhere.ingest(Document(content=f"Annual report {number}.", source=f"{number}.md"))
                cluster.caught_up()
                hybrid = rag.retrieve("annual report", replace(FRESH, top_k=50))
                assert len({one.source for one in hybrid}) == number + 1
                assert len(rag.contents.list()) == number + 1


def test_a_replica_that_dies_is_done_without_and_read_from_again(cluster, database, elsewhere, caplog):
    elsewhere.ingest(Document(content="Annual leave is thirty days.", source="leave.md"))
    with cluster.another_replica() as own, opened(cluster, database, own.dsn(database)) as rag:
        cluster.caught_up(own)
        assert found(rag) == ["leave.md"]
        own.stop()
        assert found(rag) == found(rag) == ["leave.md"]
        assert counts(rag) == {"replica": 1, "failed": 1, "away": 1}
        assert "everything is read on the primary" in caplog.text
        own.start()
        rag.store.replica.look_again()
        assert found(rag) == ["leave.md"]
        assert counts(rag)["replica"] == 2
        assert "read from again" in caplog.text


def test_a_replica_that_is_away_at_the_start_does_not_keep_anybody_from_starting(cluster, database, caplog):
    nowhere = make_conninfo(cluster.replica.dsn(database), host=str(cluster.root))
    with opened(cluster, database, nowhere) as rag:
        rag.ingest(Document(content="Annual leave.", source="leave.md"))
        assert found(rag) == ["leave.md"]
        assert "cannot be read from" in caplog.text
        assert rag.store.replica.status().problem


def test_a_promoted_replica_is_not_read_from(cluster, database, elsewhere):
    elsewhere.ingest(Document(content="Annual leave is thirty days.", source="leave.md"))
    with cluster.another_replica() as own, opened(cluster, database, own.dsn(database)) as rag:
        cluster.caught_up(own)
        assert found(rag) == ["leave.md"]
        own.promote()
        # Two histories of the same length: each has a revision of this number, and they differ.
        elsewhere.ingest(Document(content="Annual fees, here.", source="here.md"))
        with opened_at(own, database) as fork:
            fork.ingest(Document(content="Annual fees, there.", source="there.md"))
        assert found(rag) == ["here.md", "leave.md"]
        assert "promoted" in rag.store.replica.status().problem


def test_after_a_failover_what_was_lost_is_not_read_where_it_still_is():
    """The server that took over gives the revision of what was lost to something else."""
    with replicated() as own, own.another_replica() as left_behind:
        hosts = f"{own.primary.folder},{own.replica.folder}"
        storage = {
            "dsn": make_conninfo(own.primary.dsn(TEMPLATE), host=hosts, target_session_attrs="read-write"),
            "read_dsn": left_behind.dsn(TEMPLATE),
        }
        config = RAGConfig.load(storage=storage, embedding={"provider": "hashing"})
        with RAGPipeline(config, embedder=HashingEmbedder()) as rag:
            rag.ingest(Document(content="Annual leave.", source="leave.md"))
            own.caught_up()
            own.replica.stop()
            kept = standing(rag)
            rag.ingest(Document(content="Annual loss.", source="lost.md"))
            lost = standing(rag)
            own.caught_up(left_behind)
            assert found(rag) == ["leave.md", "lost.md"]
            assert counts(rag) == {"replica": 1}
            own.primary.stop()
            own.replica.start()
            own.replica.promote()
            with opened_at(own.replica, TEMPLATE) as elsewhere:
                elsewhere.ingest(Document(content="Annual news.", source="news.md"))
            assert found(rag) == ["leave.md", "news.md"]
            changes = rag.store.changes.since(Scope(), *kept)
            assert changes is not None
            assert changes.revision >= lost[1]
            assert len(changes.version_ids) == 1
            assert rag.store.changes.since(Scope(), *lost) is None
            assert "timeline" in rag.store.replica.status().problem


@pytest.mark.skipif(PROGRAM is None, reason="PgBouncer is not installed (Debian: apt-get install pgbouncer)")
def test_a_pooler_may_stand_before_the_replica(cluster: Cluster, database: str, elsewhere: RAGPipeline):
    elsewhere.ingest(Document(content="Annual leave.", source="leave.md"))
    server = cluster.replica.dsn(database)
    with bouncing(server, "transaction", server_round_robin="1") as pooled, opened(cluster, database, pooled) as rag:
        cluster.caught_up()
        assert found(rag) == ["leave.md"]
        with cluster.paused():
            elsewhere.ingest(Document(content="Annual fees.", source="fees.md"))
            assert found(rag) == ["fees.md", "leave.md"]
        assert counts(rag) == {"replica": 1, "behind": 1}


@contextmanager
def opened_at(server: Server, database: str) -> Iterator[RAGPipeline]:
    config = RAGConfig.load(storage={"dsn": server.dsn(database)}, embedding={"provider": "hashing"})
    with RAGPipeline(config, embedder=HashingEmbedder()) as rag:
        yield rag


@pytest.mark.parametrize("ended", ["pg_cancel_backend", "pg_terminate_backend"])
def test_a_read_that_the_replica_ends_is_done_on_the_primary(rag: RAGPipeline, ended: str):
    def read() -> bool:
        with rag.store.database.single_reads(Scope()) as connection:
            query = f"SELECT CASE WHEN pg_is_in_recovery() THEN {ended}(pg_backend_pid()) ELSE false END"
            return connection.execute(query).fetchone()[0]

    needed = [rag.standpoint.assembly.searcher.places(Scope(), rag.standpoint.target())[0].revision]
    assert rag.store.database.on_replica(needed, read) is False
    assert counts(rag) == {"failed": 1}


def test_a_read_that_stands_in_the_way_of_replay_is_done_on_the_primary(cluster, database, rag, elsewhere):
    """PostgreSQL cancels it: what it may still see was vacuumed on the primary (SQLSTATE 40001)."""
    waits = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE query LIKE 'SELECT CASE%pg_sleep%' AND state = 'active')"

    def vacuum() -> None:
        while not cluster.replica.ask(waits):
            pass
        elsewhere.documents.erase(["leave.md"])
        with psycopg.connect(cluster.primary.dsn(database), autocommit=True) as connection:
            connection.execute("VACUUM recollect.documents")

    def read() -> object:
        with rag.store.database.single_reads(Scope()) as connection:
            return connection.execute("SELECT CASE WHEN pg_is_in_recovery() THEN pg_sleep(9) END").fetchone()[0]

    thread = threading.Thread(target=vacuum)
    thread.start()
    needed = [rag.standpoint.assembly.searcher.places(Scope(), rag.standpoint.target())[0].revision]
    assert rag.store.database.on_replica(needed, read) is None
    thread.join()
    assert counts(rag) == {"failed": 1}


def test_what_a_read_finds_missing_because_the_replica_failed_is_looked_for_on_the_primary(rag: RAGPipeline):
    def read() -> str:
        try:
            with rag.store.database.single_reads(Scope()) as connection:
                connection.execute("SELECT CASE WHEN pg_is_in_recovery() THEN pg_cancel_backend(pg_backend_pid()) END")
        except Exception:  # noqa: BLE001 - as enhancements do without what fails
            return "without it"
        return "with it"

    needed = [rag.standpoint.assembly.searcher.places(Scope(), rag.standpoint.target())[0].revision]
    assert rag.store.database.on_replica(needed, read) == "with it"


def test_an_error_that_is_the_callers_own_is_told_once(rag: RAGPipeline):
    calls: list[None] = []

    def read() -> None:
        calls.append(None)
        raise NotFoundError("no such thing")

    needed = [rag.standpoint.assembly.searcher.places(Scope(), rag.standpoint.target())[0].revision]
    with pytest.raises(NotFoundError):
        rag.store.database.on_replica(needed, read)
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("wrong", "error", "told"),
    [
        ({"cluster": 9}, ConfigurationError, "another server"),
        ({"database": 9}, ConfigurationError, "another database"),
        ({"follows": False}, StoreUnavailableError, "no replica"),
        ({"position": None}, ConfigurationError, "does not tell"),
        ({"timeline": 9}, StoreUnavailableError, "promoted"),
    ],
)
def test_what_is_no_replica_is_refused_with_the_reason(wrong, error, told):
    require_replica(STANDING, of=STANDING)
    with pytest.raises(error, match=told):
        require_replica(replace(STANDING, **wrong), of=STANDING)


def test_a_store_does_not_open_with_a_wrong_read_dsn(cluster: Cluster, database: str, dsn: str, tmp_path: Path):
    for wrong, told in ((dsn, "another server"), (cluster.replica.dsn(), "another database")):
        with pytest.raises(ConfigurationError, match=told):
            Store(data_dir=tmp_path, dsn=cluster.primary.dsn(database), read_dsn=wrong)
    with pytest.raises(ConfigurationError, match="needs dsn"):
        Store(data_dir=tmp_path, read_dsn=dsn)
    with pytest.raises(StoreError, match="Not a PostgreSQL DSN"):
        Store(data_dir=tmp_path, dsn=cluster.primary.dsn(database), read_dsn="postgresql://a:p@ss@host/db")


def test_the_primary_named_twice_is_told_and_served_from(cluster: Cluster, database: str, caplog):
    with caplog.at_level(logging.WARNING), opened(cluster, database, cluster.primary.dsn(database)) as rag:
        rag.ingest(Document(content="Annual leave.", source="leave.md"))
        assert found(rag) == ["leave.md"]
    assert "names the primary" in caplog.text


def test_status_tells_how_far_behind_it_is(cluster: Cluster, rag: RAGPipeline):
    replica = rag.store.replica
    assert (replica.status().problem, replica.status().behind_bytes) == (None, 0)
    with cluster.paused():
        rag.ingest(Document(content="Annual fees.", source="fees.md"))
        assert replica.status().behind_bytes > 0


def test_metrics_tell_where_reads_were_done(rag: RAGPipeline):
    found(rag)
    told = Metrics(rag).exposition(None)[0].decode()
    assert 'recollect_replica_reads_total{outcome="replica"} 1.0' in told
    assert "recollect_replica_up 1.0" in told
    assert "recollect_replica_behind_bytes" in told


def test_the_command_line_tells_how_it_stands(cluster: Cluster, database: str, dsn: str, monkeypatch, capsys):
    monkeypatch.setenv("RECOLLECT_DSN", cluster.primary.dsn(database))
    for read_dsn, command, told in (
        (cluster.replica.dsn(database), ["config", "check", "--connect"], "The replica: reached"),
        (cluster.primary.dsn(database), ["config", "check", "--connect"], "names the primary"),
        (dsn, ["config", "check", "--connect"], "another server"),
        (cluster.replica.dsn(database), ["db", "check"], "The replica is read from"),
    ):
        monkeypatch.setenv("RECOLLECT_STORAGE__READ_DSN", read_dsn)
        app(command, standalone_mode=False)
        assert told in capsys.readouterr().out
