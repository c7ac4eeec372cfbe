"""Token vectors stored at ingest: they rank as computed ones do, in bounded space, and go with their documents."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from recollect import Document, RAGConfig, RAGPipeline, RetrievalOptions
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import UsageError
from recollect.model import Scope
from recollect.retrieval.rerank.packing import MAX_BYTES, unpack

SUBJECTS = ("leave", "invoices", "laptops", "visitors", "parking", "salaries")
DOCUMENTS = [
    Document(
        content=f"# Rules for {subject}\n\n"
        + f"Everyone asks about {subject}, and rule {n} of {subject} says so. " * n,
        source=f"{subject}-{n}.md",
    )
    for n, subject in enumerate(SUBJECTS * 3, 1)
]
QUESTIONS = ("which rule says so", "rules for parking", "what everyone asks about laptops")
OPTIONS = RetrievalOptions(top_k=8, rerank="late_interaction", explain=True, use_cache=False)


def word_vector(word: str) -> np.ndarray:
    vector = np.random.default_rng(zlib.crc32(word.encode())).normal(size=384)
    return vector / np.linalg.norm(vector)


class Words(HashingEmbedder):
    """A vector a word; remembers the passages that it was asked about."""

    def __init__(self):
        super().__init__(384)
        self.passages: list[str] = []

    def token_vectors(self, texts, *, as_query=False):
        if not as_query:
            self.passages += texts
        return [np.array([word_vector(word) for word in text.split()], np.float32) for text in texts]


@pytest.fixture
def words() -> Words:
    return Words()


@pytest.fixture
def rag(dsn: str, tmp_path, words: Words):
    config = RAGConfig.load(storage={"data_dir": tmp_path / "unused", "dsn": dsn})
    with RAGPipeline(config, embedder=words) as opened:
        opened.collections.create("stored", token_vectors=True)
        opened.collections.create("plain")
        yield opened


def packed(rag: RAGPipeline) -> dict[int, bytes]:
    with rag.store.database.transaction(Scope()) as connection:
        return dict(connection.execute("SELECT chunk_id, packed FROM chunk_token_vectors").fetchall())


def chunk_count(rag: RAGPipeline, name: str) -> int:
    return rag.store.collections.get(Scope(), name).chunk_count


def ranking(rag: RAGPipeline, question: str, collection: str) -> list[tuple[str, int, float]]:
    results = rag.view(collections=collection).search(question, OPTIONS).results
    return [(one.source, one.start_offset, one.explain.rerank_score) for one in results]


def test_they_rank_as_computed_ones_do_and_nothing_is_computed_again(rag: RAGPipeline, words: Words):
    for name in ("stored", "plain"):
        rag.view(collections=name).ingest(DOCUMENTS)
    words.passages.clear()
    stored = [ranking(rag, question, "stored") for question in QUESTIONS]
    assert words.passages == []
    assert stored == [ranking(rag, question, "plain") for question in QUESTIONS]
    assert words.passages


def test_quantised_they_order_as_the_vectors_themselves(rag: RAGPipeline, words: Words):
    rag.view(collections="stored").ingest(DOCUMENTS)
    exact, quantised = [], []
    for question in QUESTIONS:
        results = rag.view(collections="stored").search(question, OPTIONS).results
        query = words.token_vectors([question], as_query=True)[0]
        exact += [
            (query @ words.token_vectors([f"{one.title}\n{one.content}"])[0].T).max(axis=1).mean() for one in results
        ]
        quantised += [one.explain.rerank_score for one in results]
    # All passages hold the words of the first question: apart from the others its scores are equal.
    assert np.corrcoef(exact, quantised)[0, 1] > 0.9


def test_a_chunk_of_many_tokens_takes_4_kb_at_most(rag: RAGPipeline):
    rag.collections.create("long", token_vectors=True, chunking={"strategy": "fixed_size", "size": 20_000})
    rag.view(collections="long").ingest(Document(content="many different words stand here " * 3_000, source="long"))
    assert len(packed(rag)) == chunk_count(rag, "long") > 1
    assert all(0 < len(one) <= MAX_BYTES for one in packed(rag).values())
    assert all(unpack(one).shape[1] == 384 for one in packed(rag).values())


def test_only_a_collection_that_asks_stores_them(rag: RAGPipeline):
    rag.view(collections="plain").ingest(DOCUMENTS)
    assert packed(rag) == {}
    rag.view(collections="stored").ingest(DOCUMENTS)
    assert len(packed(rag)) == chunk_count(rag, "stored")


def test_they_stay_with_closed_versions_and_go_with_erased_documents(rag: RAGPipeline):
    rag.view(collections="stored").ingest(DOCUMENTS[:3])
    before = packed(rag)
    rag.view(collections="stored").ingest(Document(content="Something else entirely.", source=DOCUMENTS[0].source))
    assert before.items() < packed(rag).items()
    assert [rag.documents.erase([document.source]).counts["documents"] for document in DOCUMENTS[:3]] == [1, 1, 1]
    assert packed(rag) == {}


def test_a_change_of_one_document_leaves_those_of_others(rag: RAGPipeline):
    rag.view(collections="stored").ingest(DOCUMENTS[:3])
    before = packed(rag)
    rag.documents.delete([DOCUMENTS[1].source])
    assert packed(rag) == before
    assert all(source != DOCUMENTS[1].source for source, *_ in ranking(rag, QUESTIONS[0], "stored"))


def test_an_imported_collection_has_them_too(rag: RAGPipeline, tmp_path):
    rag.view(collections="plain").ingest(DOCUMENTS)
    file = tmp_path / "plain.jsonl"
    file.write_text("".join(rag.view(collections="plain").collections.export_lines()), encoding="utf-8")
    report = rag.view(collections="stored").collections.import_file(file)
    assert report.added == len(DOCUMENTS)
    assert len(packed(rag)) == chunk_count(rag, "stored")
    assert ranking(rag, QUESTIONS[0], "stored") == ranking(rag, QUESTIONS[0], "plain")


def test_chunks_with_a_parent_are_scored_by_it(rag: RAGPipeline, words: Words):
    chunking = {"strategy": "hierarchical"}
    for name, asked in (("tree", True), ("bare-tree", False)):
        rag.collections.create(name, token_vectors=asked, chunking=chunking)
        rag.view(collections=name).ingest(DOCUMENTS)
    words.passages.clear()
    stored = ranking(rag, QUESTIONS[1], "tree")
    assert words.passages == []
    assert stored == ranking(rag, QUESTIONS[1], "bare-tree")


def test_a_model_without_token_vectors_is_refused_where_the_collection_is_made(pipeline: RAGPipeline):
    with pytest.raises(UsageError, match="local embedding model"):
        pipeline.collections.create("stored", token_vectors=True)
    assert pipeline.collections.list() == []


def test_new_collections_follow_the_configuration(dsn: str, tmp_path, words: Words):
    config = RAGConfig.load(storage={"data_dir": tmp_path / "unused", "dsn": dsn}, embedding={"token_vectors": True})
    with RAGPipeline(config, embedder=words) as rag:
        rag.ingest(DOCUMENTS[0])
        assert [place.token_vectors for place in rag.collections.list()] == [True]
        assert not rag.collections.create("none", token_vectors=False).token_vectors
        assert packed(rag)
