"""Documents that expire leave every search, whoever closes them and whether or not anybody can."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from psycopg.conninfo import make_conninfo

from recollect import Document, RAGConfig, RAGPipeline, RetrievalOptions
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import UsageError
from recollect.model import Scope
from recollect.store import closing

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


def configured(dsn: str, **temporal) -> RAGConfig:
    return RAGConfig.load(
        storage={"data_dir": Path("unused"), "dsn": dsn}, embedding={"provider": "hashing"}, temporal=temporal
    )


def found(rag: RAGPipeline, **options) -> set[str]:
    as_of = options.pop("as_of", None)
    return {result.source for result in rag.view(as_of=as_of).retrieve("leave", RetrievalOptions(**options))}


def expire(rag: RAGPipeline, *sources: str) -> None:
    """Let time pass: what was to expire some day has expired a minute ago."""
    with rag.store.database.transaction(Scope()) as connection:
        connection.execute(
            "UPDATE document_versions SET known_from = known_from - interval '1 hour', "
            "expires_at = clock_timestamp() - interval '1 minute' WHERE uri = ANY (%s) AND known_to = 'infinity'",
            [list(sources)],
        )
        for table in ("chunk_vectors", "chunk_lexical"):
            connection.execute(
                f"UPDATE {table} x SET known_from = v.known_from FROM document_versions v "
                "WHERE v.version_id = x.version_id"
            )
        connection.execute("UPDATE collection_state SET next_expiry = clock_timestamp() - interval '1 minute'")


def value(rag: RAGPipeline, query: str):
    with rag.store.database.transaction(Scope()) as connection:
        return connection.execute(query).fetchone()[0]


def add(rag: RAGPipeline, *sources: str, ttl="1h", **fields) -> None:
    rag.ingest(Document(content=f"leave {name}", source=name, ttl=ttl, **fields) for name in sources)


def test_a_lifetime_is_counted_from_when_the_version_became_known(pipeline: RAGPipeline):
    add(pipeline, "a", ttl="2h")
    add(pipeline, "b", ttl=None)
    lifetime = "SELECT expires_at - known_from FROM document_versions WHERE uri = 'a'"
    assert value(pipeline, lifetime) == timedelta(hours=2)
    assert value(pipeline, "SELECT expires_at = 'infinity' FROM document_versions WHERE uri = 'b'")
    assert value(pipeline, "SELECT next_expiry = (SELECT min(expires_at) FROM document_versions) FROM collection_state")


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("mode", ["hybrid", "dense", "lexical"])
def test_what_expired_is_not_found_not_even_by_a_search_of_a_moment_ago(pipeline: RAGPipeline, mode, cached):
    add(pipeline, "short")
    add(pipeline, "long", ttl="2h")
    add(pipeline, "kept", ttl=None)
    options = {"mode": mode, "use_cache": cached}
    assert found(pipeline, **options) == {"short", "long", "kept"}
    before = pipeline.collections.list()[0]
    expire(pipeline, "short")
    assert found(pipeline, **options) == {"long", "kept"}
    after = pipeline.collections.list()[0]
    assert (after.document_count, after.chunk_count) == (before.document_count - 1, before.chunk_count - 1)
    assert after.revision > before.revision and not after.expiry_due
    assert value(pipeline, "SELECT known_to = expires_at FROM document_versions WHERE uri = 'short'")
    assert pipeline.maintenance.check() == []
    # The next one is known of.
    expire(pipeline, "long")
    assert found(pipeline, **options) == {"kept"}
    assert value(pipeline, "SELECT next_expiry = 'infinity' FROM collection_state")


def test_the_past_knows_it_until_it_expired_and_the_future_does_not(pipeline: RAGPipeline):
    add(pipeline, "short")
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    assert found(pipeline, as_of=tomorrow) == set()
    assert found(pipeline, as_of=datetime.now(UTC)) == {"short"}
    expire(pipeline, "short")
    # Not closed yet, closed, and not at all before it was known.
    for _ in range(2):
        assert found(pipeline, as_of=datetime.now(UTC)) == set()
        assert found(pipeline, as_of=datetime.now(UTC) - timedelta(minutes=30)) == {"short"}
        assert found(pipeline, as_of=LONG_AGO) == set()
        assert found(pipeline) == set()


def test_a_database_that_takes_no_writes_hides_what_expired(pipeline: RAGPipeline, dsn: str):
    add(pipeline, "short")
    add(pipeline, "kept", ttl=None)
    reading = make_conninfo(dsn, options="-c default_transaction_read_only=on")
    with RAGPipeline(configured(reading), embedder=HashingEmbedder()) as standby:
        assert found(standby) == {"short", "kept"}
        expire(pipeline, "short")
        for mode in ("hybrid", "dense", "lexical"):
            assert found(standby, mode=mode) == {"kept"}
        assert standby.collections.list()[0].expiry_due


def test_a_document_that_is_being_written_is_hidden_until_it_can_be_closed(pipeline: RAGPipeline):
    add(pipeline, "short", "busy")
    expire(pipeline, "short", "busy")
    with pipeline.store.database.transaction(Scope()) as connection:
        connection.execute("SELECT FROM documents WHERE uri = 'busy' FOR UPDATE")
        assert found(pipeline) == set()
        assert pipeline.collections.list()[0].document_count == 1
    assert found(pipeline) == set()
    assert pipeline.collections.list()[0].document_count == 0
    assert pipeline.maintenance.check() == []


def test_more_than_one_search_closes(pipeline: RAGPipeline, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(closing, "BATCH_VERSIONS", 2)
    names = [f"d{n}" for n in range(5)]
    add(pipeline, *names)
    add(pipeline, "kept", ttl=None)
    expire(pipeline, *names)
    assert found(pipeline) == {"kept"}
    assert pipeline.collections.list()[0].document_count == 4
    assert pipeline.store.expiry.close_all(Scope()) == 3
    assert pipeline.store.expiry.close_all(Scope()) == 0
    assert pipeline.collections.list()[0].document_count == 1


def test_many_close_at_once_and_each_document_is_counted_once(pipeline: RAGPipeline):
    names = [f"d{n}" for n in range(20)]
    add(pipeline, *names)
    add(pipeline, "kept", ttl=None)
    expire(pipeline, *names)
    with ThreadPoolExecutor(4) as pool:
        runs = [pool.submit(pipeline.store.expiry.close_all, Scope()) for _ in range(4)]
        searches = [pool.submit(found, pipeline, use_cache=False) for _ in range(4)]
        assert all(search.result() == {"kept"} for search in searches)
        assert sum(run.result() for run in runs) <= 20
    assert pipeline.collections.list()[0].document_count == 1
    assert pipeline.maintenance.check() == []


def test_the_default_and_the_tags_that_preserve(dsn: str):
    with RAGPipeline(configured(dsn, default_ttl="1d", preserve_tags=["legal"]), embedder=HashingEmbedder()) as rag:
        add(rag, "plain", ttl=None)
        add(rag, "own", ttl=60)
        add(rag, "preserved", ttl="1h", tags=("x", "Legal"))
        add(rag, "critical", ttl=None, tags=("critical",))
        expires = "SELECT extract(epoch FROM expires_at - known_from)::int FROM document_versions WHERE uri = '{}'"
        assert value(rag, expires.format("plain")) == 86_400
        assert value(rag, expires.format("own")) == 60
        assert value(rag, expires.format("critical")) == 86_400
        assert value(rag, "SELECT expires_at = 'infinity' FROM document_versions WHERE uri = 'preserved'")
    bad = configured(dsn, default_ttl="soon")
    with pytest.raises(UsageError, match=r"rag\.temporal\.default_ttl must be a length of time"):
        RAGPipeline(bad, embedder=HashingEmbedder()).maintenance.status()


def test_searches_need_not_leave_it_out(dsn: str):
    with RAGPipeline(configured(dsn, auto_expire=False), embedder=HashingEmbedder()) as rag:
        add(rag, "short")
        expire(rag, "short")
        assert found(rag) == {"short"}
        assert rag.store.expiry.close_all(Scope()) == 1
        assert found(rag) == set()


def test_storing_it_again_begins_its_time_anew(pipeline: RAGPipeline):
    add(pipeline, "a", ttl="1h")
    before = value(pipeline, "SELECT expires_at FROM document_versions")
    again = pipeline.ingest(Document(content="leave a", source="a", ttl="1h"))
    assert (again.status, again.version) == ("unchanged", 1)
    assert value(pipeline, "SELECT expires_at FROM document_versions") > before
    expire(pipeline, "a")
    revived = pipeline.ingest(Document(content="leave a", source="a", ttl="1h"))
    assert (revived.status, revived.version) == ("updated", 2)
    assert found(pipeline) == {"a"}


def test_a_lifetime_can_be_set_and_taken_back(pipeline: RAGPipeline):
    add(pipeline, "a", ttl=None)
    (record,) = pipeline.documents.list()
    repository = pipeline.store.expiry
    assert repository.set_lifetime(Scope(), record.document_id, timedelta(hours=1))
    assert value(pipeline, "SELECT next_expiry < 'infinity' FROM collection_state")
    assert repository.set_lifetime(Scope(), record.document_id, None)
    assert value(pipeline, "SELECT expires_at = 'infinity' FROM document_versions")
    assert not repository.set_lifetime(Scope(), 10**9, None)
    assert not repository.set_lifetime(Scope(tenant_id=2), record.document_id, None)


def test_a_ttl_that_is_none_is_refused(pipeline: RAGPipeline):
    for ttl in ["soon", 0, -5, "0d", True]:
        with pytest.raises(UsageError, match="The ttl of 'a' must be a length of time"):
            add(pipeline, "a", ttl=ttl)
        assert not pipeline.documents.list()
