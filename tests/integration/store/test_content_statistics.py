"""Nothing of what documents and conversations say stands in the planner's statistics."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from recollect import Document, RAGPipeline, Turn
from recollect.model import Scope

PLANTED = "Quelltal"

_STATISTICS = """
    SELECT c.relname || '.' || a.attname, concat_ws(' ', s.stavalues1::text, s.stavalues2::text, s.stavalues3::text,
                                                    s.stavalues4::text, s.stavalues5::text)
    FROM pg_statistic s JOIN pg_class c ON c.oid = s.starelid JOIN pg_attribute a
      ON a.attrelid = c.oid AND a.attnum = s.staattnum
    WHERE c.relnamespace = 'recollect'::regnamespace
"""


@pytest.fixture
def filled(pipeline: RAGPipeline) -> RAGPipeline:
    for number in range(3):
        pipeline.ingest(
            Document(
                content=f"# {PLANTED} part {number}\n\nThe merger with {PLANTED} closes ({PLANTED} Works, QW).",
                source=f"{PLANTED}/{number}.md",
                title=f"{PLANTED} {number}",
                tags=(f"{PLANTED}-tag", f"t{number}"),
                metadata={"who": f"{PLANTED} {number}"},
            )
        )
        pipeline.view(session=f"{PLANTED}-{number}").remember(
            [Turn(role=PLANTED, content=f"I live in {PLANTED} {number}.")]
        )
    pipeline.recall("Where do I live?")
    pipeline.memory.patterns.flush()
    pipeline.facts.consolidate(min_retrievals=1)
    return pipeline


def sampled(rag: RAGPipeline) -> dict[str, str]:
    with rag.store.database.autocommit() as connection:
        connection.execute("ANALYZE")
        return dict(connection.execute(_STATISTICS).fetchall())


def test_nothing_of_content_is_sampled(filled: RAGPipeline):
    filled.store.audit.maintain(Scope(), partitions="daily", retention_days=None)
    filled.store.dense_indexer.build(Scope(), "default")
    found = sampled(filled)
    assert "chunks.position" in found and "chunk_lexical.lexemes" in found
    assert {name: values for name, values in found.items() if PLANTED.lower() in values.lower()} == {}
    with filled.store.database.autocommit() as connection:
        left = connection.execute(
            "SELECT relation, name FROM content_columns() WHERE target <> 0 OR is_sampled"
        ).fetchall()
        indexed = connection.execute("SELECT count(*) FROM content_columns() WHERE is_index").fetchone()
    assert left == [] and indexed == (3,)


def test_an_erasure_clears_what_was_sampled_before(filled: RAGPipeline, dsn: str):
    """Of an emptied table too, whose statistics ANALYZE leaves as they are."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        for table, column in (("documents", "uri"), ("document_versions", "tags"), ("texts", "content")):
            connection.execute(f"ALTER TABLE recollect.{table} ALTER COLUMN {column} SET STATISTICS 100")
    assert PLANTED in sampled(filled)["documents.uri"]
    before = sampled(filled)["chunk_lexical.lexemes"]
    receipt = filled.documents.erase([f"{PLANTED}/{number}.md" for number in range(3)])
    assert receipt.complete
    after = sampled(filled)
    assert {name: values for name, values in after.items() if PLANTED in values} == {}
    assert after.get("chunk_lexical.lexemes") != before
    assert "documents.uri" not in after


def test_an_owner_who_is_no_superuser_clears_them_too(filled: RAGPipeline, dsn: str):
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("ALTER TABLE recollect.episodes ALTER COLUMN content SET STATISTICS 100")
        connection.execute("ANALYZE recollect.episodes")
        connection.execute("SET search_path = recollect, public")
        with connection.transaction(force_rollback=True):
            connection.execute("CREATE ROLE plain_owner")
            connection.execute("GRANT USAGE, CREATE ON SCHEMA recollect TO plain_owner")
            connection.execute("ALTER TABLE episodes OWNER TO plain_owner")
            connection.execute("SET LOCAL ROLE plain_owner")
            query = (
                "SELECT is_sampled FROM content_columns() WHERE relation = 'episodes'::regclass AND name = 'content'"
            )
            assert connection.execute(query).fetchone() == (True,)
            connection.execute("SELECT forget_statistics('episodes', 'content')")
            assert connection.execute(query).fetchone() == (False,)


def test_whoever_erases_at_the_same_time_takes_the_samples_one_after_the_other(filled: RAGPipeline):
    """ANALYZE fails where another one removes the row of a sample that it writes."""
    held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
    with psycopg.connect(filled.store.dsn, options="-c search_path=recollect,public") as connection:
        connection.execute("SELECT sample_lexemes_anew()")
        assert connection.execute(held).fetchone() == (1,)

    def sample() -> None:
        with filled.store.database.autocommit() as own:
            for _ in range(20):
                own.execute("SELECT sample_lexemes_anew()")

    with ThreadPoolExecutor(4) as threads:
        for done in [threads.submit(sample) for _ in range(4)]:
            done.result()
