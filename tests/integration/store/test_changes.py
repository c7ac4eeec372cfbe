"""A copy that asks what changed since its revision holds what the collection holds, whatever changed it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path

import psycopg
import pytest
from shelf import Shelf, second_tenant

from recollect import Document, RAGPipeline, SessionRAG
from recollect.model import Scope
from recollect.model.document_session import SessionConfig
from recollect.store.backup import backup
from recollect.store.changes import Changes
from recollect.store.restore import restore
from recollect.store.store import Store

# What a search reads of versions. The hash of a file is no such thing.
VERSIONS = """
    SELECT v.version_id, md5(concat(to_jsonb(v) - 'file_hash',
        (SELECT array_agg(to_jsonb(c) ORDER BY c.chunk_id) FROM chunks c
         WHERE c.tenant_id = v.tenant_id AND c.version_id = v.version_id),
        (SELECT array_agg(to_jsonb(l) ORDER BY l.chunk_id) FROM chunk_lexical l
         WHERE l.tenant_id = v.tenant_id AND l.version_id = v.version_id),
        (SELECT array_agg(to_jsonb(x) ORDER BY x.chunk_id) FROM chunk_vectors x
         WHERE x.tenant_id = v.tenant_id AND x.version_id = v.version_id AND x.space_id = p.space_id)))
    FROM document_versions v JOIN collections p USING (tenant_id, collection_id)
    WHERE v.tenant_id = %(tenant)s AND v.collection_id = %(collection)s
      AND (%(only)s::bigint[] IS NULL OR v.version_id = ANY (%(only)s))
"""
TERMS = """
    SELECT s.stats_chunks, s.stats_terms, (SELECT array_agg((t.lexeme, t.document_frequency) ORDER BY t.lexeme)
        FROM term_stats t WHERE t.tenant_id = s.tenant_id AND t.collection_id = s.collection_id)
    FROM collection_state s WHERE s.tenant_id = %(tenant)s AND s.collection_id = %(collection)s
"""
STATE = """
    SELECT revision, revision_id::text FROM collection_state
    WHERE tenant_id = %(tenant)s AND collection_id = %(collection)s
"""


class Copy:
    """Of a collection, as of a revision."""

    def __init__(self, store: Store, collection: str | int = "default", scope: Scope | None = None):
        self.store, self.scope = store, scope or Scope()
        named = isinstance(collection, str)
        self.collection = store.collections.get(self.scope, collection).collection_id if named else collection
        with self.store.database.transaction(self.scope, snapshot=True) as connection:
            self.revision, self.revision_id = self._read(STATE, connection)[0]
            self.versions, self.terms = self.read(connection)

    def _read(self, query: str, connection: psycopg.Connection, only: list[int] | None = None) -> list[tuple]:
        params = {"tenant": self.scope.tenant_id, "collection": self.collection, "only": only}
        return connection.execute(query, params).fetchall()

    def read(self, connection: psycopg.Connection) -> tuple[dict[int, str], tuple]:
        return dict(self._read(VERSIONS, connection)), self._read(TERMS, connection)[0]

    def changes(self) -> Changes | None:
        return self.store.changes.since(self.scope, self.collection, self.revision, self.revision_id)

    def follow(self) -> Changes:
        """Apply what changed, and compare with the collection."""
        changes = self.apply()
        with self.store.database.transaction(self.scope, snapshot=True) as connection:
            assert (self.versions, self.terms) == self.read(connection)
        return changes

    def apply(self) -> Changes:
        """Read what changed; versions may have changed once more since, which the next time tells."""
        changes = self.changes()
        assert changes is not None
        with self.store.database.transaction(self.scope, snapshot=True) as connection:
            for gone in changes.version_ids:
                self.versions.pop(gone, None)
            self.versions |= dict(self._read(VERSIONS, connection, list(changes.version_ids)))
            if changes.terms_counted:
                self.terms = self._read(TERMS, connection)[0]
        self.revision, self.revision_id = changes.revision, changes.revision_id
        return changes


@pytest.fixture
def shelf(store: Store) -> Shelf:
    return Shelf(store)


TEXTS = {
    "leave.md": "Leave is thirty days a year.",
    "pay.md": "Salaries are paid on the 25th.",
    "oslo.md": "The board meets in Oslo.",
    "short.md": "The canteen opens at noon.",
}


@pytest.fixture
def rag(pipeline: RAGPipeline) -> Iterator[RAGPipeline]:
    """Four documents, of which one has a past and one a list of its own, and one expires."""
    pipeline.ingest([Document(content=f"Draft. {text}", source=name) for name, text in TEXTS.items()])
    pipeline.ingest(
        [
            Document(content=TEXTS["leave.md"], source="leave.md"),
            Document(content=TEXTS["pay.md"], source="pay.md", permissions=("role:clerk",)),
            Document(content=TEXTS["short.md"], source="short.md", ttl="30d"),
        ]
    )
    return pipeline


def past_due(rag: RAGPipeline) -> None:
    rag.store.database.run(Scope(), "UPDATE document_versions SET expires_at = now() WHERE expires_at < 'infinity'", {})
    rag.store.database.run(Scope(), "UPDATE collection_state SET next_expiry = now()", {})


def restored(rag: RAGPipeline) -> None:
    rag.documents.delete(["leave.md"])
    rag.documents.restore("leave.md", 1)


def imported(rag: RAGPipeline) -> None:
    other = rag.view(collections="other")
    other.ingest([Document(content=f"Another one. {text}", source=f"other/{name}") for name, text in TEXTS.items()])
    file = rag.config.storage.data_dir.parent / "other.jsonl"
    file.write_text("".join(other.collections.export_lines()), encoding="utf-8")
    assert rag.collections.import_file(file).failed == 0


def adopted(rag: RAGPipeline) -> None:
    """A folder within a folder is read, then the outer one."""
    inner = rag.config.storage.data_dir.parent / "docs/inner"
    inner.mkdir(parents=True)
    (inner / "note.md").write_text("A note of the inner folder.", encoding="utf-8")
    rag.ingest(inner)
    rag.ingest(inner.parent)


def touched_by_hand(rag: RAGPipeline) -> None:
    rag.store.database.run(Scope(), "UPDATE document_versions SET tags = '{found}' WHERE uri = 'oslo.md'", {})


CLERKS = ["role:clerk", "user:ann"]
OPERATIONS: dict[str, Callable[[RAGPipeline], object]] = {
    "a new document": lambda rag: rag.ingest(Document(content="A new one.", source="new.md")),
    "a new version": lambda rag: rag.ingest(Document(content="Leave is forty days.", source="leave.md")),
    "a renewed time": lambda rag: rag.ingest(Document(content=TEXTS["short.md"], source="short.md", ttl="60d")),
    "a reread": lambda rag: rag.documents.update("leave.md", tags=["hr"]),
    "a deletion": lambda rag: rag.documents.delete(["leave.md", "oslo.md"]),
    "a lifetime": lambda rag: rag.documents.set_ttl("leave.md", "3d"),
    "no lifetime": lambda rag: rag.documents.set_ttl("short.md", None),
    "expiry": lambda rag: (past_due(rag), rag.maintenance.close_expired()),
    "expiry by a search": lambda rag: (past_due(rag), rag.retrieve("canteen")),
    "an erasure": lambda rag: rag.documents.erase(["leave.md"]),
    "an erasure of the past": lambda rag: (rag.documents.delete(["leave.md"]), rag.documents.erase(["leave.md"])),
    "a grant to one of several": lambda rag: rag.grants.add(CLERKS, documents=["leave.md"], only=True),
    "a denial": lambda rag: rag.grants.deny(["user:eve"], documents=["leave.md", "pay.md"]),
    "a grant that is taken away": lambda rag: rag.grants.remove(["role:clerk"], documents=["pay.md"]),
    "a default": lambda rag: rag.grants.add(CLERKS, default=True, only=True),
    "other readers": lambda rag: rag.grants.set_collection(readers=["role:clerk"]),
    "a restored version": restored,
    "an import": imported,
    "an adoption": adopted,
    "a statement of anybody": touched_by_hand,
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_operation_tells_what_it_changed(rag: RAGPipeline, operation: str):
    copy = Copy(rag.store)
    before = copy.revision
    OPERATIONS[operation](rag)
    changes = copy.follow()
    assert changes.revision > before
    assert copy.changes() == Changes(
        revision=changes.revision, revision_id=changes.revision_id, version_ids=(), terms_counted=False
    )


def test_a_repair_tells_what_it_mended(rag: RAGPipeline):
    with rag.store.database.transaction(Scope()) as connection:
        connection.execute("DELETE FROM chunk_lexical WHERE chunk_id % 2 = 0")
        connection.execute("UPDATE chunk_vectors SET access_id = 99 WHERE chunk_id % 2 = 1")
    copy = Copy(rag.store)
    damaged = dict(copy.versions)
    rag.maintenance.verify(repair=True)
    copy.follow()
    assert len(damaged.items() - copy.versions.items()) > 3


def test_terms_that_are_counted_are_told_and_where_nothing_differs_the_revision_stays(shelf: Shelf):
    shelf.add("a", "one two three")
    copy = Copy(shelf.store, shelf.name)
    assert shelf.store.collections.refresh_term_stats(shelf.scope, shelf.now())
    changes = copy.follow()
    assert changes.terms_counted
    assert changes.version_ids == ()
    assert shelf.store.collections.refresh_term_stats(shelf.scope, shelf.now())
    assert copy.follow().revision == changes.revision


def test_writers_are_told_in_the_order_in_which_they_commit(shelf: Shelf):
    copy = Copy(shelf.store, shelf.name)
    first = shelf.prepared("first", "one")
    with shelf.store.database.transaction(shelf.scope) as early:
        numbers = early.execute("SELECT nextval('document_versions_version_id_seq')").fetchone()
        late = shelf.add("late", "two")
        assert len(copy.follow().version_ids) == 1
        assert late.status == "added"
        early.execute("UPDATE document_versions SET tags = '{early}' WHERE uri = 'late'")
        assert copy.follow().version_ids == ()
    assert numbers is not None
    assert len(copy.follow().version_ids) == 1
    shelf.write(first)
    assert len(copy.follow().version_ids) == 1


def test_writers_at_the_same_time_are_all_told(shelf: Shelf):
    copy = Copy(shelf.store, shelf.name)
    prepared = [[shelf.prepared(f"{writer}/{n % 3}", f"number {n}") for n in range(9)] for writer in range(3)]
    with ThreadPoolExecutor(3) as pool:
        writers = [pool.submit(lambda own: [shelf.write(one) for one in own], own) for own in prepared]
        while not all(writer.done() for writer in writers):
            copy.apply()
    copy.follow()
    assert len(copy.versions) == 27


def test_what_goes_and_comes_in_a_session_is_told(pipeline: RAGPipeline):
    sessions = SessionRAG(pipeline)
    sessions.create_session("talk", SessionConfig(max_documents=2, when_full="oldest"))
    sessions.ingest_to_session("talk", Document(content="One.", source="1"))
    place = pipeline.store.document_sessions.get(Scope(), "talk")
    copy = Copy(pipeline.store, place.collection_id)
    for number in (2, 3):
        sessions.ingest_to_session("talk", Document(content=f"Number {number}.", source=str(number)))
        copy.follow()
    assert len(copy.versions) == 2
    sessions.end_session("talk")
    assert copy.changes() is None


def test_a_copy_of_another_vector_space_has_nothing_to_follow(rag: RAGPipeline):
    copy = Copy(rag.store)
    rag.spaces.reembed("hashing:96")
    assert copy.changes() is None
    other = Copy(rag.store)
    rag.documents.delete(["leave.md"])
    other.follow()


def test_after_a_restore_what_was_lost_is_known_by_its_id(
    shelf: Shelf, dsn: str, clone: Callable[..., AbstractContextManager[str]], tmp_path: Path
):
    shelf.add("a", "one")
    kept = Copy(shelf.store, shelf.name)
    backup(dsn, tmp_path / "file")
    shelf.add("lost", "two")
    lost = Copy(shelf.store, shelf.name)
    with clone() as other:
        restore(other, tmp_path / "file")
        store = Store(data_dir=tmp_path, dsn=other)
        kept.store = lost.store = store
        assert kept.follow().version_ids == ()
        assert lost.changes() is None
        Shelf(store).add("b", "three")
        assert len(kept.follow().version_ids) == 1
        assert kept.revision == lost.revision
        assert lost.changes() is None
        store.close()


def test_what_is_rolled_back_is_no_change(shelf: Shelf):
    shelf.add("a", "one")
    copy = Copy(shelf.store, shelf.name)
    with pytest.raises(RuntimeError), shelf.store.database.transaction(shelf.scope) as connection:
        connection.execute("UPDATE document_versions SET tags = '{never}'")
        raise RuntimeError
    before = copy.revision
    assert copy.follow().revision == before


def test_nobody_is_told_of_another_tenants_changes(store: Store):
    mine, theirs = Shelf(store), Shelf(store, scope=second_tenant(store))
    theirs.add("a", "one")
    copy = Copy(store, theirs.name, theirs.scope)
    theirs.add("b", "two")
    assert copy.changes() is not None
    assert store.changes.since(mine.scope, copy.collection, copy.revision, copy.revision_id) is None
    assert mine.rows("SELECT FROM collection_changes") == []


def test_a_collection_that_is_gone_has_no_changes_and_leaves_none(shelf: Shelf, dsn: str):
    shelf.add("a", "one")
    copy = Copy(shelf.store, shelf.name)
    shelf.store.collections.delete(shelf.scope, shelf.name)
    assert copy.changes() is None
    with psycopg.connect(dsn) as connection:
        assert connection.execute("SELECT count(*) FROM recollect.collection_changes").fetchone() == (0,)


def test_who_is_too_far_behind_is_told_so(shelf: Shelf):
    shelf.add("a", "one")
    copies = []
    while not copies or copies[-1].revision < 256:
        copies.append(Copy(shelf.store, shelf.name))
        # As if a collection had so many.
        note = "INSERT INTO collection_changes SELECT 1, %(c)s, NULL, NULL, array_fill(1, ARRAY[150]) RETURNING 1"
        shelf.rows(note, c=shelf.collection.collection_id)
    told = [copy.changes() for copy in copies]
    kept = [changes for changes in told if changes is not None]
    assert told == [None] * (len(told) - len(kept)) + kept
    assert 100 < len(kept) < 200
    copies[-len(kept)].follow()
