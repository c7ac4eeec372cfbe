"""A small store that every kind of call has something to find in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import chdir

import psycopg
import pytest

from recollect import Document, RAGConfig, RAGPipeline, SessionRAG
from recollect.embedding.hashing import HashingEmbedder

_LEAVE = Document(
    content="# Leave\n\nAnnual leave is 30 days.",
    source="leave.md",
    department="hr",
    tags=("rules",),
    metadata={"a": {"b": 1}},
)


@pytest.fixture(scope="module")
def peopled(clone, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RAGPipeline]:
    """A pipeline on a store with a document, a conversation, a session and a second tenant, in a folder of its own."""
    folder = tmp_path_factory.mktemp("folder")
    (folder / "leave.md").write_text("# Leave\n\nAnnual leave is 30 days.\n", encoding="utf-8")
    with chdir(folder), clone() as dsn:
        config = RAGConfig.load(
            storage={"data_dir": folder / "unused", "dsn": dsn},
            embedding={"provider": "hashing"},
            temporal={"cleanup_interval_hours": 0},
        )
        with RAGPipeline(config, embedder=HashingEmbedder()) as rag:
            rag.ingest(_LEAVE)
            rag.view(session="chat", user="ada").remember(["My locker is 17.", "Noted."])
            rag.tenants.create("acme")
            SessionRAG(rag).create_session("desk")
            yield rag


class Stored:
    """What a store holds, as far as a call could have changed it.

    Args:
        dsn: Of the owner.
    """

    def __init__(self, dsn: str) -> None:
        self._connection = psycopg.connect(dsn, autocommit=True)
        self._seen: tuple[int, dict[str, int]] = (0, {})

    def rows(self) -> dict[str, int]:
        """How many rows each table has; counted anew only where somebody has written since the last time.

        Counts of earlier searches, recalls and other use are left out: threads write them a while later.
        """
        ((latest,),) = self._connection.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint")
        if latest != self._seen[0]:
            tables = [
                name
                for (name,) in self._connection.execute(
                    "SELECT c.oid::regclass::text FROM pg_class c WHERE c.relnamespace = 'recollect'::regnamespace "
                    "AND c.relkind = 'r' "
                    "AND c.relname NOT IN ('search_health', 'activity', 'upkeep', 'episode_retrievals')"
                )
            ]
            query = " UNION ALL ".join(f"SELECT '{name}', count(*) FROM {name}" for name in tables)
            self._seen = (latest, dict(self._connection.execute(query).fetchall()))
        return self._seen[1]

    def close(self) -> None:
        self._connection.close()


@pytest.fixture(scope="module")
def stored(peopled: RAGPipeline) -> Iterator[Stored]:
    dsn = peopled.config.storage.dsn
    assert dsn is not None
    opened = Stored(dsn.get_secret_value())
    yield opened
    opened.close()
