"""Token vectors stored at ingest: they rank as computed ones do, in bounded space, and go with their documents."""

from __future__ import annotations

import zlib
from collections import Counter

import numpy as np
import pytest

from recollect import Document, RAGConfig, RAGPipeline, RetrievalOptions
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import UsageError
from recollect.model import Scope
from recollect.retrieval.rerank.late_interaction import MAX_BYTES, unpack

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
    erase = rag.view(collections="stored").documents.erase
    assert [erase([document.source]).counts["documents"] for document in DOCUMENTS[:3]] == [1, 1, 1]
    assert packed(rag) == {}


def test_a_change_of_one_document_leaves_those_of_others(rag: RAGPipeline):
    rag.view(collections="stored").ingest(DOCUMENTS[:3])
    before = packed(rag)
    rag.view(collections="stored").documents.delete([DOCUMENTS[1].source])
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
    assert not pipeline.collections.list()


def test_new_collections_follow_the_configuration(dsn: str, tmp_path, words: Words):
    config = RAGConfig.load(storage={"data_dir": tmp_path / "unused", "dsn": dsn}, embedding={"token_vectors": True})
    with RAGPipeline(config, embedder=words) as rag:
        rag.ingest(DOCUMENTS[0])
        assert [place.token_vectors for place in rag.collections.list()] == [True]
        assert not rag.collections.create("none", token_vectors=False).token_vectors
        assert packed(rag)


# Another model


@pytest.fixture
def encoders(monkeypatch):
    """Every hashing model gives token vectors of its own length; counts the passages that each is asked about."""

    def token_vectors(self, texts, *, as_query=False):
        computed[self.model_name] += 0 if as_query else len(texts)
        vectors = [[self.embed_query(word[::-1]) for word in text.split()] for text in texts]
        return [np.array(own, np.float32).reshape(-1, self.dimension) for own in vectors]

    computed = Counter()
    monkeypatch.setattr(HashingEmbedder, "token_vectors", token_vectors, raising=False)
    return computed


def spaces(rag: RAGPipeline) -> dict[int, int]:
    with rag.store.database.transaction(Scope()) as connection:
        return dict(connection.execute("SELECT space_id, count(*) FROM chunk_token_vectors GROUP BY 1").fetchall())


def rankings(rag: RAGPipeline, collection: str) -> list[list[tuple[str, int, float]]]:
    return [ranking(rag, question, collection) for question in QUESTIONS]


@pytest.mark.parametrize("strategy", ["recursive", "hierarchical"])
def test_another_model_brings_its_own_and_the_way_back_finds_the_first(pipeline: RAGPipeline, encoders, strategy):
    for name, asked in (("stored", True), ("plain", False)):
        pipeline.collections.create(name, token_vectors=asked, chunking={"strategy": strategy})
        pipeline.view(collections=name).ingest(DOCUMENTS[:9])
    count, stored = chunk_count(pipeline, "stored"), pipeline.view(collections="stored")
    first = rankings(pipeline, "stored")
    stored.spaces.reembed("hashing:96", samples=0, rest=0, switch=False)
    assert list(spaces(pipeline).values()) == [count, count]
    assert rankings(pipeline, "stored") == first
    for name in ("stored", "plain"):
        pipeline.view(collections=name).spaces.reembed("hashing:96", samples=0, rest=0)
    encoders.clear()
    second = rankings(pipeline, "stored")
    assert encoders["hashing:96"] == 0, "what is stored is of the model in use"
    assert second == rankings(pipeline, "plain") != first and encoders["hashing:96"]
    stored.ingest(Document(content="# Rules for dogs\n\nEvery rule for dogs says so.", source="dogs.md"))
    assert stored.maintenance.verify(deep=True).clean
    stored.documents.erase(["dogs.md"])
    stored.spaces.rollback()
    assert rankings(pipeline, "stored") == first
    stored.spaces.drop()
    assert list(spaces(pipeline).values()) == [count] and pipeline.maintenance.verify(deep=True).clean


def test_what_was_written_meanwhile_gets_them_before_the_change(pipeline: RAGPipeline, encoders):
    pipeline.collections.create("stored", token_vectors=True)
    view = pipeline.view(collections="stored")
    view.ingest(DOCUMENTS[:3])
    view.spaces.reembed("hashing:96", samples=0, rest=0, switch=False)
    view.ingest(DOCUMENTS[3:6])
    view.documents.delete([DOCUMENTS[0].source])
    view.spaces.reembed("hashing:96", samples=0, rest=0)
    assert view.maintenance.verify(deep=True).clean
    view.documents.restore(DOCUMENTS[0].source, 1)
    assert view.maintenance.verify(deep=True).clean
    assert len(set(spaces(pipeline).values())) == 1, "a restored version has those of every space"


def test_a_model_that_gives_none_is_refused_with_what_to_do(rag: RAGPipeline):
    rag.view(collections="stored").ingest(DOCUMENTS[:1])
    with pytest.raises(UsageError, match="gives none: take a local model, or make a collection without them"):
        rag.view(collections="stored").spaces.reembed("hashing:96")
