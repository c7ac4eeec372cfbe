"""A store is damaged in every way, and found, and mended to what it was before."""

from __future__ import annotations

import threading
import time
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from recollect import Document, Principal, RAGConfig, RAGPipeline, RetrievalOptions
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import NotFoundError, ProviderError
from recollect.model import Scope
from recollect.store import verification
from recollect.store.verification import CHECKS, VerifyProgress, VerifyReport

# Longer than a chunk: the pieces behind the first are indexed with what names the table and its columns.
TABLE = "Sales by country, in millions\n\n| Country | 2018 | 2017 |\n|---|---|---|\n" + "".join(
    f"| The sales of country {n} | {n * 37} | {n * 31} |\n" for n in range(20)
)
SUBJECTS = ("parking", "invoices", "visitors", "salaries")
QUERIES = ("rules for parking", "annual leave", "who pays invoices", "visitors and laptops")


def text_about(subject: str, rules: int = 9) -> str:
    lines = [
        f"Rule {n} of {subject}: whoever asks for {subject} number {n} reads this, and then asks again."
        for n in range(rules)
    ]
    return f"# All about {subject}\n\n" + "\n\n".join(f"## Part {n}\n\n{line}" for n, line in enumerate(lines))


def word_vector(word: str) -> np.ndarray:
    vector = np.random.default_rng(zlib.crc32(word.encode())).normal(size=32)
    return vector / np.linalg.norm(vector)


class Words(HashingEmbedder):
    """Gives token vectors too; fails where it is told to."""

    def __init__(self, dimension: int = 32):
        super().__init__(dimension)
        self.out_of_order = False

    def embed_documents(self, texts):
        if self.out_of_order:
            raise ProviderError("out of order", provider="test")
        return super().embed_documents(texts)

    def token_vectors(self, texts, *, as_query=False):
        return [np.array([word_vector(word) for word in text.split()], np.float32) for text in texts]


Clone: TypeAlias = "Callable[..., AbstractContextManager[str]]"


@contextmanager
def opened(dsn: str, folder: Path, words: Words | None = None) -> Iterator[RAGPipeline]:
    config = RAGConfig.load(
        storage={"data_dir": folder / "unused", "dsn": dsn, "index_threshold": 5000},
        chunking={"strategy": "recursive", "size": 200},
    )
    with RAGPipeline(config, embedder=words or Words()) as rag:
        yield rag


def fill(rag: RAGPipeline) -> None:
    """Two collections, one of them with token vectors, with closed and superseded versions."""
    rag.collections.create("stored", token_vectors=True)
    for collection in ("default", "stored"):
        for rules in (4, 9):
            rag.view(collections=collection).ingest(
                [Document(content=text_about(subject, rules), source=f"{subject}.md") for subject in SUBJECTS]
            )
    rag.ingest(Document(content="Fireworks are on Friday.", source="friday.md", ttl="30d"))
    gone = rag.ingest(Document(content="Parking on Sundays is free: it is Free Parking Day (FPD).", source="sunday.md"))
    rag.store.writer.close(Scope(), [gone.document_id])
    rag.grants.add("role:payroll", documents="friday.md", only=True)
    stored = rag.view(collections="stored")
    for document in stored.documents.list():
        if document.source == "salaries.md":
            stored.grants.deny("role:intern", documents=document.document_id)
    for place in rag.collections.list():
        rag.store.collections.refresh_term_stats(Scope(), place)


@dataclass(frozen=True)
class Template:
    """A filled store to be copied, with what it holds and answers."""

    name: str
    rows: list[list[tuple]]
    answers: list[tuple[str, float]]


@pytest.fixture(scope="module")
def template(clone: Clone, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Template]:
    with clone() as made:
        with opened(made, tmp_path_factory.mktemp("template")) as rag:
            fill(rag)
            sound = rag.maintenance.verify(deep=True)
            assert (found(sound), sound.clean) == ({}, True)
            answers = searched(rag)
        yield Template(conninfo_to_dict(made)["dbname"], dumped(made), answers)


@pytest.fixture
def dsn(request: pytest.FixtureRequest, clone: Clone) -> Iterator[str]:
    """A filled store where the test asks for one, otherwise an empty one."""
    wanted = [request.getfixturevalue("template").name] if "filled" in request.fixturenames else []
    with clone(*wanted) as made:
        yield made


@pytest.fixture
def words() -> Words:
    return Words()


@pytest.fixture
def rag(dsn: str, tmp_path: Path, words: Words) -> Iterator[RAGPipeline]:
    with opened(dsn, tmp_path, words) as pipeline:
        yield pipeline


@pytest.fixture
def filled(rag: RAGPipeline) -> RAGPipeline:
    return rag


def damage(dsn: str, *statements: str) -> int:
    """Change rows as their owner may: what a constraint refuses cannot happen."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("SET search_path = recollect, public")
        return sum(connection.execute(statement).rowcount for statement in statements)


DUMPS = (
    "SELECT tenant_id, document_id, collection_id, access_id, uri FROM documents",
    "SELECT tenant_id, collection_id, access_id, grants, denials FROM access_lists",
    "SELECT version_id, document_id, collection_id, access_id, uri, version, chunk_count, content_hash, known_from, "
    "known_to FROM document_versions",
    "SELECT version_id, content FROM document_contents LEFT JOIN texts USING (tenant_id, text_hash)",
    "SELECT version_id, position, start_offset, end_offset, parent_start, parent_end, page, token_count, content_hash, "
    "section, text, metadata FROM chunks",
    "SELECT c.version_id, c.position, x.space_id, x.version_id, x.known_from, x.known_to, x.access_id, "
    "x.embedding::text FROM chunk_vectors x LEFT JOIN chunks c USING (tenant_id, chunk_id)",
    "SELECT c.version_id, c.position, x.collection_id, x.version_id, x.known_from, x.known_to, x.access_id, "
    "x.length, x.lexemes, x.weights::text FROM chunk_lexical x LEFT JOIN chunks c USING (tenant_id, chunk_id)",
    "SELECT c.version_id, c.position, x.packed FROM chunk_token_vectors x "
    "LEFT JOIN chunks c USING (tenant_id, chunk_id)",
    "SELECT version_id, collection_id, short, long FROM version_acronyms",
    "SELECT collection_id, document_count, chunk_count, stats_chunks, stats_terms, next_expiry, "
    "round(reference_length::numeric, 3) FROM collection_state",
    "SELECT collection_id, lexeme, document_frequency FROM term_stats",
)


def dumped(dsn: str) -> list[list[tuple]]:
    """Everything that the store holds, but for the numbers of chunks."""
    with psycopg.connect(dsn) as connection:
        connection.execute("SET search_path = recollect, public")
        return [sorted(connection.execute(f"SELECT q::text FROM ({query}) AS q").fetchall()) for query in DUMPS]


def searched(rag: RAGPipeline) -> list[tuple[str, float]]:
    options = RetrievalOptions(top_k=5, use_cache=False)
    return [
        (result.content, round(result.score, 5))
        for collection in ("default", "stored")
        for query in QUERIES
        for result in rag.view(collections=collection).retrieve(query, options)
    ]


def found(report: VerifyReport) -> dict[str, int]:
    return {check.name: check.found for check in report.checks if check.found}


def left(report: VerifyReport) -> dict[str, int]:
    return {check.name: check.found - check.repaired for check in report.checks if check.found != check.repaired}


# What is done to the store, and what must be found then. Afterwards everything is as it was before.
DAMAGES = {
    # First: what others remove with its chunk is no longer in the cache.
    "cached embeddings wrong": (
        "UPDATE embedding_cache SET embedding = '[1,0]'; DELETE FROM chunk_vectors WHERE chunk_id % 3 = 0",
        {"embedding_cache", "missing_vectors"},
    ),
    "vectors lost": ("DELETE FROM chunk_vectors WHERE chunk_id % 3 = 0", {"missing_vectors"}),
    "every vector lost": ("DELETE FROM chunk_vectors", {"missing_vectors"}),
    "vectors grown": (
        "UPDATE chunk_vectors SET embedding = embedding + embedding WHERE chunk_id % 3 = 1",
        {"wrong_vectors"},
    ),
    "vectors of another model": (
        "UPDATE chunk_vectors SET embedding = '[1,0]' WHERE chunk_id % 4 = 1",
        {"wrong_vectors"},
    ),
    "vectors of nothing": (
        "UPDATE chunk_vectors SET embedding = embedding - embedding WHERE chunk_id % 4 = 1",
        {"wrong_vectors"},
    ),
    "vectors closed": ("UPDATE chunk_vectors SET known_to = now() WHERE chunk_id % 4 = 1", {"stale_vector_copies"}),
    "vectors opened again": ("UPDATE chunk_vectors SET known_to = 'infinity'", {"stale_vector_copies"}),
    "vectors elsewhere": (
        "UPDATE chunk_vectors SET space_id = 99, version_id = version_id + 1 WHERE chunk_id % 4 = 1",
        {"missing_vectors", "stray_vectors", "stale_vector_copies"},
    ),
    "terms lost": ("DELETE FROM chunk_lexical WHERE chunk_id % 3 = 0", {"missing_lexical_rows"}),
    "terms elsewhere": (
        "UPDATE chunk_lexical SET collection_id = 99, known_from = now() WHERE chunk_id % 4 = 1",
        {"stale_lexical_copies"},
    ),
    "terms of another chunk": (
        "UPDATE chunk_lexical l SET lexemes = o.lexemes, weights = o.weights, length = o.length FROM chunk_lexical o "
        "WHERE o.chunk_id = l.chunk_id + 1 AND l.chunk_id % 5 = 0",
        {"lexical_rows"},
    ),
    "terms without their weights": (
        "UPDATE chunk_lexical SET lexemes = lexemes[2:] WHERE chunk_id % 5 = 0",
        {"lexical_rows"},
    ),
    "lengths wrong": ("UPDATE chunk_lexical SET length = length + 7 WHERE chunk_id % 5 = 0", {"lexical_rows"}),
    "token vectors lost": ("DELETE FROM chunk_token_vectors WHERE chunk_id % 2 = 0", {"missing_token_vectors"}),
    "token vectors cut": (
        "UPDATE chunk_token_vectors SET packed = substring(packed FOR 9) WHERE chunk_id % 2 = 0",
        {"token_vectors"},
    ),
    "chunks lost": (
        "DELETE FROM chunks WHERE position % 3 = 1",
        {"chunk_counts", "chunk_positions"},
    ),
    "last chunks lost": (
        "DELETE FROM chunks c USING document_versions v WHERE v.version_id = c.version_id "
        "AND c.position = v.chunk_count - 1",
        {"chunk_counts"},
    ),
    "every chunk lost": ("DELETE FROM chunks", {"chunk_counts"}),
    "counts of chunks wrong": (
        "UPDATE document_versions SET chunk_count = 40 WHERE version_id % 3 = 0",
        {"chunk_counts"},
    ),
    "texts of chunks changed": ("UPDATE chunks SET text = reverse(text) WHERE chunk_id % 3 = 0", {"chunk_texts"}),
    "offsets moved": (
        "UPDATE chunks SET start_offset = start_offset + 2, end_offset = end_offset + 2 WHERE chunk_id % 3 = 0",
        {"chunk_texts"},
    ),
    "numbers of chunks with gaps": (
        "UPDATE chunks SET position = position + 100 WHERE chunk_id % 3 = 0",
        {"chunk_positions"},
    ),
    "hashes of chunks wrong": (r"UPDATE chunks SET content_hash = '\x00' WHERE chunk_id % 3 = 0", {"chunk_hashes"}),
    "hashes of texts wrong": (r"UPDATE document_versions SET content_hash = '\x00'", {"content_hashes"}),
    "texts changed": (
        "UPDATE texts SET content = replace(content, 'reads', 'READS')",
        {"content_hashes", "chunk_texts"},
    ),
    "versions that others may read": (
        "UPDATE document_versions SET access_id = 0",
        {"version_copies", "stale_vector_copies", "stale_lexical_copies"},
    ),
    "vectors that others may read": ("UPDATE chunk_vectors SET access_id = 0", {"stale_vector_copies"}),
    "terms that others may read": ("UPDATE chunk_lexical SET access_id = 0", {"stale_lexical_copies"}),
    "rows that nobody may read": (
        "UPDATE chunk_vectors SET access_id = 9999 WHERE chunk_id % 4 = 1; "
        "UPDATE chunk_lexical SET access_id = 9999 WHERE chunk_id % 4 = 1",
        {"stale_vector_copies", "stale_lexical_copies"},
    ),
    "ids that nobody gave": ("UPDATE document_versions SET given_id = 'x' WHERE version = 1", {"version_copies"}),
    "acronyms elsewhere": ("UPDATE version_acronyms SET collection_id = 99", {"version_copies"}),
    "counters wrong": ("UPDATE collection_state SET document_count = 1, chunk_count = -5", {"counters"}),
    "expiry forgotten": (
        "UPDATE collection_state SET next_expiry = 'infinity' "
        "WHERE collection_id = (SELECT collection_id FROM collections WHERE name = 'default')",
        {"counters"},
    ),
    "statistics lost": ("DELETE FROM term_stats", {"term_statistics"}),
    "statistics wrong": (
        "UPDATE term_stats SET document_frequency = document_frequency + 1 WHERE lexeme % 2 = 0",
        {"term_statistics"},
    ),
    "totals of statistics wrong": (
        "UPDATE collection_state SET stats_chunks = 3, stats_terms = 1",
        {"term_statistics"},
    ),
    "pending below nothing": ("UPDATE collection_state SET stats_pending = -4", {"term_statistics"}),
    "documents of nothing": (
        "INSERT INTO documents (tenant_id, collection_id, source_id, uri) "
        "SELECT tenant_id, collection_id, source_id, 'x' FROM sources",
        {"orphaned_documents"},
    ),
    "texts of no version": (
        r"INSERT INTO texts (tenant_id, text_hash, content) VALUES (1, '\x00', 'left behind')",
        {"texts"},
    ),
    "everything at once": (
        "DELETE FROM chunk_vectors WHERE chunk_id % 3 = 0; DELETE FROM chunk_lexical WHERE chunk_id % 4 = 0; "
        "DELETE FROM chunks WHERE position = 2; UPDATE chunks SET text = reverse(text) WHERE position = 3; "
        r"UPDATE chunks SET content_hash = '\x00' WHERE position = 1; UPDATE collection_state SET chunk_count = 0; "
        "UPDATE chunk_vectors SET known_to = now() WHERE chunk_id % 5 = 0; DELETE FROM term_stats; "
        "DELETE FROM chunk_token_vectors",
        {"missing_vectors", "chunk_counts", "chunk_texts", "counters", "term_statistics"},
    ),
    # Last: the reference length is recovered to three digits, and rows that are made with it differ a little then.
    "counters lost": ("DELETE FROM collection_state", {"stateless_collections"}),
    "reference length lost": ("UPDATE collection_state SET reference_length = NULL", {"reference_length"}),
    "reference length wrong": ("UPDATE collection_state SET reference_length = 3", {"reference_length"}),
}


@pytest.fixture(scope="module")
def mended(
    template: Template, clone: Clone, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[RAGPipeline, str]]:
    """A filled store that is damaged and mended again and again."""
    with clone(template.name) as made, opened(made, tmp_path_factory.mktemp("mended")) as rag:
        yield rag, made


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_found_and_mended_to_what_was_before(mended: tuple[RAGPipeline, str], template: Template, name: str):
    statements, expected = DAMAGES[name]
    rag, dsn = mended
    assert damage(dsn, *statements.split("; ")) > 0
    report = rag.maintenance.verify(repair=True)
    assert (left(report), report.clean) == ({}, True)
    assert expected <= set(found(report))
    # Which were found to be sound, deeply.
    assert dumped(dsn) == template.rows


# What nothing is looked for, because it cannot be: a statement each that the database refuses.
REFUSED = {
    "counters of no collection": "INSERT INTO collection_state (tenant_id, collection_id) VALUES (1, 99)",
    "terms of no collection": "UPDATE term_stats SET collection_id = 99",
    "measurements of no collection": "INSERT INTO search_health (tenant_id, collection_id, day) VALUES (1, 99, now())",
    "access lists of no collection": "INSERT INTO access_lists (tenant_id, collection_id) VALUES (1, 99)",
    "sources of no collection": "UPDATE sources SET collection_id = 99",
    "documents of no source": "UPDATE documents SET source_id = 99",
    "documents of no collection": "UPDATE documents SET collection_id = 99",
    "documents elsewhere than their source": "UPDATE documents SET collection_id = 3 - collection_id",
    "sources elsewhere than their documents": "UPDATE sources SET collection_id = 3 - collection_id",
    "versions of no document": "UPDATE document_versions SET document_id = document_id + 1000",
    "versions elsewhere than their document": "UPDATE document_versions SET collection_id = 3 - collection_id",
    "versions of another path": "UPDATE document_versions SET uri = 'x'",
    "two current versions": "UPDATE document_versions SET known_to = 'infinity'",
    "versions closed before they began": "UPDATE document_versions SET known_to = '-infinity'",
    "contents of no version": "UPDATE document_contents SET version_id = version_id + 1000",
    "texts that are not there": r"UPDATE document_contents SET text_hash = '\x00'",
    "texts that versions have lost": "DELETE FROM texts",
    "texts of another tenant": "UPDATE texts SET tenant_id = 2",
    "acronyms of no version": "UPDATE version_acronyms SET version_id = 9999",
    "chunks of no version": "UPDATE chunks SET version_id = version_id + 1000",
    "chunks of one number": "UPDATE chunks SET position = 0",
    "chunks before the first": "UPDATE chunks SET position = -1 - position",
    "chunks of another length than their text": "UPDATE chunks SET end_offset = end_offset + 1",
    "chunks outside their parent": "UPDATE chunks SET parent_start = start_offset + 1, parent_end = end_offset",
    "vectors of no chunk": "UPDATE chunk_vectors SET chunk_id = chunk_id + 1000",
    "lexical rows of no chunk": "UPDATE chunk_lexical SET chunk_id = chunk_id + 1000",
    "token vectors of no chunk": "UPDATE chunk_token_vectors SET chunk_id = chunk_id + 1000",
}


def test_what_a_constraint_says_is_not_looked_for(filled: RAGPipeline, dsn: str):
    for name, statement in REFUSED.items():
        try:
            damage(dsn, statement)
        except psycopg.errors.IntegrityError:
            continue
        pytest.fail(name)
    assert found(filled.maintenance.verify(deep=True)) == {}


def test_what_is_removed_takes_along_what_belongs_to_it(filled: RAGPipeline, dsn: str):
    damage(dsn, "DELETE FROM sources WHERE collection_id = 1", "DELETE FROM documents WHERE uri = 'friday.md'")
    # What was counted is all that is wrong then.
    assert set(found(filled.maintenance.verify(deep=True))) == {"counters", "term_statistics", "embedding_cache"}
    assert filled.maintenance.verify(repair=True).clean
    assert found(filled.maintenance.verify(deep=True)) == {} and filled.maintenance.check() == []


def test_looking_changes_nothing_and_mending_brings_the_answers_back(filled: RAGPipeline, dsn: str, template: Template):
    damage(dsn, *DAMAGES["everything at once"][0].split("; "))
    before = dumped(dsn)
    assert not filled.maintenance.verify(deep=True).clean
    assert dumped(dsn) == before
    assert filled.maintenance.verify(repair=True).clean
    assert searched(filled) == template.answers and filled.maintenance.check() == []


def test_checks_are_all_listed_in_order(filled: RAGPipeline):
    assert [check.name for check in filled.maintenance.verify().checks] == list(CHECKS)
    alone = [check.name for check in filled.view(collections="stored").maintenance.verify().checks]
    assert alone == [name for name in CHECKS if name in alone]
    assert "missing_vectors" in alone and "orphaned_documents" not in alone
    with pytest.raises(NotFoundError):
        filled.view(collections="missing").maintenance.verify()


def test_one_collection_is_mended_and_the_other_left(filled: RAGPipeline, dsn: str):
    damage(dsn, "DELETE FROM chunk_vectors WHERE chunk_id % 3 = 0")
    assert filled.view(collections="stored").maintenance.verify(repair=True).clean
    assert found(filled.view(collections="stored").maintenance.verify()) == {}
    assert set(found(filled.maintenance.verify())) == {"missing_vectors"}


def test_every_tenant_is_looked_at(filled: RAGPipeline, dsn: str):
    damage(dsn, "INSERT INTO tenants (tenant_id, name) VALUES (2, 'second')")
    filled.view(tenant=2).ingest(Document(content=text_about("boats"), source="boats.md"))
    damage(dsn, "DELETE FROM chunk_lexical WHERE tenant_id = 2")
    assert found(filled.view(tenant=1).maintenance.verify()) == {}
    assert "missing_lexical_rows" in found(filled.view(tenant=2).maintenance.verify())
    assert filled.maintenance.verify(repair=True).clean
    assert found(filled.maintenance.verify()) == {}
    assert filled.view(tenant=2).retrieve("boats")


def test_two_current_versions_become_one(filled: RAGPipeline, dsn: str, template: Template):
    damage(
        dsn,
        "DROP INDEX document_versions_current",
        "UPDATE document_versions SET known_to = 'infinity' WHERE version = 1 "
        "AND uri NOT IN ('sunday.md', 'friday.md')",
    )
    assert {"overlapping_versions", "counters"} <= set(found(filled.maintenance.verify()))
    # The index can be made again once no row contradicts it.
    assert left(filled.maintenance.verify(repair=True)) == {}
    assert dumped(dsn) == template.rows
    assert searched(filled) == template.answers


def test_one_repair_removes_doubles_and_makes_every_key_again(filled: RAGPipeline, dsn: str, template: Template):
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("SET search_path = recollect, public")
        keys = connection.execute(
            "SELECT conrelid::regclass::text, conname FROM pg_constraint JOIN pg_class c ON c.oid = conrelid "
            "WHERE connamespace = 'recollect'::regnamespace AND contype IN ('p', 'u') AND relkind = 'r' "
            "AND NOT relispartition AND relname !~ '^schema_'"
        ).fetchall()
        for table, key in keys:
            connection.execute(f"ALTER TABLE {table} DROP CONSTRAINT {key} CASCADE")
        connection.execute("DROP INDEX document_versions_current")
        for table in {table for table, _ in keys}:
            ((columns,),) = connection.execute(
                "SELECT string_agg(quote_ident(attname), ', ') FROM pg_attribute WHERE attrelid = %s::regclass "
                "AND attnum > 0 AND NOT attisdropped AND attgenerated = ''",
                [table],
            )
            connection.execute(f"INSERT INTO {table} ({columns}) OVERRIDING SYSTEM VALUE SELECT {columns} FROM {table}")
    # What is made of others need not even be equal.
    damage(dsn, "UPDATE chunk_lexical SET length = length + 7 WHERE ctid IN (SELECT max(ctid) FROM chunk_lexical)")
    damage(dsn, "UPDATE collection_state SET revision = revision + 1")
    mended = filled.maintenance.verify(repair=True)
    assert (left(mended), mended.clean) == ({}, True), mended
    assert found(filled.maintenance.verify(deep=True)) == {} and filled.maintenance.check() == []
    assert dumped(dsn) == template.rows


def test_documents_whose_access_list_is_lost_are_for_owners_alone(filled: RAGPipeline, dsn: str):
    clerk, owner = Principal(roles=("payroll",)), Principal(user_id="ann")
    filled.grants.set_collection(owners=["user:ann"])
    damage(
        dsn,
        "DELETE FROM access_lists WHERE access_id <> 0 "
        "OR collection_id = (SELECT collection_id FROM collections WHERE name = 'stored')",
    )
    # Neither before the repair nor after it is what is lost taken for everybody's.
    for repair in (False, True):
        report = filled.maintenance.verify(repair=repair)
        assert found(report) == {"missing_access_lists": 3, "version_copies": 9}
        assert report.clean == repair
        for collection, sources in (("default", {f"{subject}.md" for subject in SUBJECTS}), ("stored", set())):
            options = RetrievalOptions(top_k=100, use_cache=repair)
            told = filled.view(collections=collection, principal=clerk).retrieve(
                "who reads fireworks and rules", options
            )
            assert {one.source for one in told} == sources
            assert {
                one.source for one in filled.view(collections=collection, principal=clerk).documents.list()
            } == sources
        assert filled.view(principal=owner).documents.get("friday.md").source == "friday.md"
    filled.grants.add("role:payroll", documents="friday.md")
    assert filled.view(principal=clerk).documents.get("friday.md").source == "friday.md"
    assert filled.maintenance.check() == []


def test_a_lost_text_is_put_together_from_its_chunks_where_the_hash_proves_it(
    filled: RAGPipeline, dsn: str, template: Template
):
    damage(dsn, "DELETE FROM document_contents")
    assert set(found(filled.maintenance.verify())) == {"missing_contents"}
    report = filled.maintenance.verify(repair=True)
    assert (left(report), report.clean) == ({}, True)
    assert dumped(dsn) == template.rows


def test_a_damaged_text_is_put_together_from_the_chunks_of_any_document_that_has_it(filled: RAGPipeline, dsn: str):
    alone, copy = (
        Document(content=text_about("hops"), source="hops.md"),
        Document(content=text_about("hops"), source="copy.md"),
    )
    filled.ingest([alone, copy])
    damage(
        dsn,
        "UPDATE texts SET content = reverse(content)",
        "UPDATE chunks SET text = reverse(text) WHERE version_id IN (SELECT version_id FROM document_versions "
        "WHERE uri = 'hops.md')",
    )
    assert {"content_hashes", "chunk_texts"} <= set(found(filled.maintenance.verify()))
    assert filled.maintenance.verify(repair=True).clean
    assert [filled.documents.get(one).content for one in ("hops.md", "copy.md")] == [text_about("hops")] * 2


def test_what_is_lost_is_named_with_what_to_do(filled: RAGPipeline, dsn: str):
    stored = filled.view(collections="stored")
    stored.ingest(Document(content=text_about("nothing that others tell of"), source="alone.md"))
    victim = stored.documents.get("alone.md")
    damage(
        dsn,
        f"UPDATE texts SET content = 'other' WHERE text_hash IN (SELECT content_hash FROM document_versions "
        f"WHERE document_id = {victim.document_id})",
        r"UPDATE chunks SET text = reverse(text), content_hash = '\x00' WHERE version_id IN (SELECT version_id FROM "
        f"document_versions WHERE document_id = {victim.document_id})",
    )
    report = filled.maintenance.verify(repair=True)
    assert set(left(report)) == {"content_hashes", "chunk_texts"}
    detail = next(check.detail for check in report.checks if check.name == "content_hashes")
    assert f"documents erase {victim.document_id}" in detail and victim.source in detail
    stored.documents.erase([victim.document_id]).counts["documents"]
    filled.view(collections="stored").ingest(Document(content=text_about("parking"), source=victim.source))
    assert filled.maintenance.verify().clean


def test_without_the_model_what_needs_none_is_mended(filled: RAGPipeline, dsn: str, words: Words, template: Template):
    damage(
        dsn,
        "DELETE FROM chunk_vectors WHERE chunk_id % 3 = 0",
        "DELETE FROM chunk_lexical",
        "DELETE FROM embedding_cache",
    )
    words.out_of_order = True
    report = filled.maintenance.verify(repair=True)
    assert set(left(report)) == {"missing_vectors"}
    assert "out of order" in next(check.detail for check in report.checks if check.name == "missing_vectors")
    words.out_of_order = False
    assert filled.maintenance.verify(repair=True).clean
    assert dumped(dsn) == template.rows


def test_a_model_that_cannot_be_made_is_told_by_name(filled: RAGPipeline, dsn: str):
    damage(dsn, "DELETE FROM chunk_vectors WHERE chunk_id % 3 = 0")
    with RAGPipeline(filled.config, embedder=HashingEmbedder(16)) as other:
        report = other.maintenance.verify(repair=True)
    assert set(left(report)) == {"missing_vectors"}
    assert "Token vectors require" in next(check.detail for check in report.checks if check.name == "missing_vectors")


def test_a_sample_is_compared_and_all_with_deep(rag: RAGPipeline, dsn: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(verification, "SAMPLE_ROWS", 100)
    lines = "\n".join(f"Line {n} about number {n} and nothing else at all." for n in range(600))
    rag.ingest(Document(content=lines, source="lines.txt"))
    unseen = "SELECT chunk_id FROM chunk_lexical ORDER BY hashint8(chunk_id) DESC LIMIT 1"
    damage(dsn, f"UPDATE chunk_lexical SET length = 1 WHERE chunk_id = ({unseen})")
    assert "100 rows" in next(check.detail for check in rag.maintenance.verify().checks if check.name == "lexical_rows")
    assert "lexical_rows" not in found(rag.maintenance.verify())
    assert found(rag.maintenance.verify(deep=True))["lexical_rows"] == 1
    damage(dsn, "UPDATE chunk_lexical SET length = 1 WHERE chunk_id % 10 = 0")
    in_sample = found(rag.maintenance.verify())["lexical_rows"]
    mended = found(rag.maintenance.verify(repair=True))["lexical_rows"]
    assert mended > in_sample
    assert found(rag.maintenance.verify(deep=True)) == {}


@pytest.fixture
def indexed(dsn: str, tmp_path: Path) -> Iterator[RAGPipeline]:
    config = RAGConfig.load(storage={"data_dir": tmp_path / "unused", "dsn": dsn, "index_threshold": 20})
    with RAGPipeline(config, embedder=Words()) as opened:
        for subject in SUBJECTS:
            opened.ingest(Document(content=text_about(subject, 40), source=f"{subject}.md"))
        assert opened.collections.list()[0].indexed
        yield opened


def test_a_vector_index_that_is_missing_or_broken_is_built_again(indexed: RAGPipeline, dsn: str):
    number = indexed.collections.list()[0].collection_id
    name = f"recollect.chunk_vectors_hnsw_{number}"
    assert found(indexed.maintenance.verify()) == {}
    for statement in (
        f"DROP INDEX {name}",
        f"UPDATE pg_index SET indisvalid = false WHERE indexrelid = '{name}'::regclass",
    ):
        damage(dsn, statement)
        assert found(indexed.maintenance.verify()) == {"dense_index": 1}
        assert indexed.maintenance.verify(repair=True).clean
        assert indexed.collections.list()[0].indexed
        assert found(indexed.maintenance.verify()) == {}


def test_an_index_of_no_collection_is_dropped(indexed: RAGPipeline, dsn: str):
    damage(dsn, "CREATE INDEX chunk_vectors_hnsw_4711 ON chunk_vectors (chunk_id)")
    assert found(indexed.maintenance.verify()) == {"orphaned_indexes": 1}
    assert indexed.maintenance.verify(repair=True).clean
    assert found(indexed.maintenance.verify()) == {}


def test_every_way_of_cutting_and_of_coming_in_is_sound(rag: RAGPipeline, tmp_path: Path):
    for strategy in ("fixed_size", "hierarchical", "markdown", "paragraph", "recursive", "semantic", "sliding_window"):
        rag.collections.create(strategy, chunking={"strategy": strategy})
        for subject in SUBJECTS[:2]:
            rag.view(collections=strategy).ingest(
                Document(content=text_about(subject) + "\n\nMülltonne 🗑️ ‏مرحبا", source=subject)
            )
        rag.view(collections=strategy).ingest(Document(content=TABLE, source="sales"))
    lines = tmp_path / "lines.jsonl"
    lines.write_text("".join(rag.view(collections="hierarchical").collections.export_lines()), encoding="utf-8")
    rag.view(collections="imported").collections.import_file(lines)
    assert found(rag.maintenance.verify(deep=True)) == {}


def test_pieces_of_a_table_are_mended_to_what_they_were(rag: RAGPipeline, dsn: str):
    rag.ingest(Document(content=TABLE, source="sales"))
    before = dumped(dsn)
    damage(
        dsn,
        "UPDATE chunks SET text = overlay(text PLACING 'xy' FROM 5) WHERE position = 2",
        "UPDATE chunk_lexical SET length = length + 1",
        "DELETE FROM chunk_vectors x USING chunks c WHERE c.chunk_id = x.chunk_id AND c.position = 3",
    )
    assert found(rag.maintenance.verify(deep=True)).keys() >= {"chunk_texts", "lexical_rows", "missing_vectors"}
    assert left(rag.maintenance.verify(repair=True, deep=True)) == {}
    assert dumped(dsn) == before and found(rag.maintenance.verify(deep=True)) == {}


def test_no_false_alarms_while_others_write(filled: RAGPipeline):
    rounds: list[int] = []
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            number = len(rounds)
            for subject in SUBJECTS[:3]:
                made = filled.ingest(Document(content=text_about(subject, 2 + number % 9), source=f"{subject}.md"))
                filled.ingest(Document(content=text_about(f"{subject} {number}", 3), source=f"new{number % 5}"))
            if number % 2:
                filled.documents.delete([made.document_id])
            if number % 5 == 0:
                filled.documents.erase([made.document_id]).counts["documents"]
            rounds.append(number)

    reports = []
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        try:
            while len(reports) < 6 or (len(rounds) < 8 and not writing.done()):
                reports.append(filled.maintenance.verify(deep=len(reports) % 2 == 0, repair=len(reports) % 3 == 2))
        finally:
            stop.set()
        writing.result()
    assert [found(report) for report in reports] == [{}] * len(reports)
    assert found(filled.maintenance.verify(deep=True)) == {}


def test_an_index_that_is_still_to_come_is_no_false_alarm(dsn: str, tmp_path: Path):
    config = RAGConfig.load(storage={"data_dir": tmp_path / "unused", "dsn": dsn, "index_threshold": 20})
    reports = []
    with RAGPipeline(config, embedder=Words()) as rag, ThreadPoolExecutor(1) as pool:
        rag.collections.create("default")
        texts = (Document(content=text_about(f"rule {n}", 8), source=str(n)) for n in range(150))
        writing = pool.submit(rag.ingest, texts)
        while not writing.done():
            reports.append(rag.maintenance.verify())
        assert len(writing.result()) == 150
        assert rag.collections.list()[0].indexed
    assert [found(report) for report in reports] == [{}] * len(reports)


def test_mending_while_others_write(filled: RAGPipeline, dsn: str):
    rounds: list[int] = []
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            content = text_about("salaries", 2 + len(rounds) % 9)
            rounds.append(filled.ingest(Document(content=content, source="salaries.md")).version)

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        try:
            for wanted in (3, 6, 9):
                damage(
                    dsn,
                    "DELETE FROM chunk_vectors WHERE chunk_id % 3 = 0",
                    "DELETE FROM chunk_lexical WHERE chunk_id % 4 = 0",
                )
                filled.maintenance.verify(repair=True)
                while len(rounds) < wanted and not writing.done():
                    time.sleep(0.01)
        finally:
            stop.set()
        writing.result()
    assert filled.maintenance.verify(repair=True).clean
    assert found(filled.maintenance.verify(deep=True)) == {}
    assert filled.maintenance.check() == []


@pytest.mark.parametrize("repair", [False, True])
def test_a_collection_that_is_deleted_meanwhile_is_no_finding(filled: RAGPipeline, dsn: str, repair: bool):
    damage(dsn, "DELETE FROM chunk_vectors WHERE space_id = 1")  # the first one made: "stored"

    def delete(state: VerifyProgress) -> None:
        if any(place.name == "stored" for place in filled.collections.list()):
            filled.collections.delete("stored")

    assert found(filled.maintenance.verify(repair=repair, on_progress=delete)) == {}


def test_a_collection_that_is_deleted_while_it_is_mended(filled: RAGPipeline, dsn: str):
    damage(dsn, "DELETE FROM chunk_vectors WHERE space_id = 1")  # the first one made: "stored"

    def delete(state: VerifyProgress) -> None:
        if state.stage == "mending" and any(place.name == "stored" for place in filled.collections.list()):
            filled.collections.delete("stored")

    assert filled.maintenance.verify(repair=True, on_progress=delete).clean
    assert found(filled.maintenance.verify()) == {}


def test_progress_ends_with_all(filled: RAGPipeline, dsn: str):
    told: list[VerifyProgress] = []
    filled.maintenance.verify(on_progress=told.append)
    assert told[-1] == VerifyProgress("checking", told[-1].total, told[-1].total)
    assert told[-1].total == sum(place.chunk_count for place in filled.collections.list())
    assert [state.done for state in told] == sorted(state.done for state in told)

    told.clear()
    damage(dsn, "DELETE FROM chunk_lexical WHERE collection_id = 1")
    filled.maintenance.verify(repair=True, on_progress=told.append)
    mending = [state for state in told if state.stage == "mending"]
    versions = 2 * len(SUBJECTS)
    assert mending[-1] == VerifyProgress("mending", versions, versions)
    assert [state.done for state in mending] == sorted(state.done for state in mending)
    assert told[-1].stage == "checking" and told[-1].done == told[-1].total
