"""Collections whose texts a provider's model embeds: long vectors, several tenants, a model that is replaced."""

from __future__ import annotations

import psycopg
import pytest

from contracts.wire_formats import openai, voyage
from contracts.wire_formats.server import DIMENSION, ModelServer
from recollect import Document, RAGConfig, RAGPipeline
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import ConfigurationError, ProviderError, UsageError
from recollect.model import RetrievalOptions, Scope

DOCUMENTS = [
    Document(content=f"The pump {number} leaked in May.", source=f"{number}.txt", title="t") for number in range(8)
]


@pytest.fixture
def server():
    server = ModelServer(openai.Embeddings())
    yield server
    server.close()


@pytest.fixture
def configured(dsn, tmp_path, server):
    def configured(**embedding):
        settings = {"model": "unknown-model", "base_url": f"{server.base_url}/v1", "dimensions": DIMENSION}
        return RAGConfig.load(
            storage={"data_dir": tmp_path / "unused", "dsn": dsn},
            embedding={"provider": "openai", "max_retries": 0, **settings, **embedding},
        )

    return configured


@pytest.mark.parametrize("dimension", [256, 3072, 4000])
def test_long_vectors_are_stored_indexed_and_found(dsn, tmp_path, dimension):
    config = RAGConfig.load(storage={"data_dir": tmp_path / "unused", "dsn": dsn, "index_threshold": 4})
    with RAGPipeline(config, embedder=HashingEmbedder(dimension)) as rag:
        for document in DOCUMENTS:
            rag.ingest(document)
        rag.store.dense_indexer.build(Scope(), "default")
        place = rag.store.collections.get(Scope(), "default")
        assert (place.embedding_dimension, place.indexed) == (dimension, True)
        reply = rag.search("pump 3 leaked", RetrievalOptions(mode="dense", top_k=1))
        assert [passage.source for passage in reply.results] == ["3.txt"]


def test_requests_are_logged_for_the_tenant_that_asked(configured):
    with RAGPipeline(configured()) as rag:
        views = [rag.view(tenant=rag.tenants.create(name).tenant_id) for name in ("a", "b")]
        for number, view in enumerate(views):
            view.collections.ensure()
            for document in DOCUMENTS[: 2 + number]:
                view.ingest(document)
        first = [sum(one.inputs for one in view.audit.requests()) for view in views]
        assert first[1] > first[0] > 0
        views[0].search("pump")
        again = [sum(one.inputs for one in view.audit.requests()) for view in views]
        assert again[0] > first[0] and again[1] == first[1]
        assert len(rag.audit.requests()) == 0


def test_a_text_is_embedded_once(configured, server):
    with RAGPipeline(configured()) as rag:
        rag.ingest(DOCUMENTS[0])
        asked = len(server.requests)
        rag.ingest(Document(content=DOCUMENTS[0].content, source="again.txt", title="t"))
        assert len(server.requests) == asked


def test_a_provider_that_fails_loses_nothing(configured, server):
    with RAGPipeline(configured()) as rag:
        rag.ingest(DOCUMENTS[0])
        server.fault = "half-a-batch"
        with pytest.raises(ProviderError, match="vectors for"):
            rag.ingest(Document(content="One.\n\nTwo.\n\n" * 400, source="long.txt"))
        server.fault = ""
        assert [one.source for one in rag.documents.list()] == ["0.txt"]
        rag.ingest(DOCUMENTS[1])
        assert len(rag.documents.list()) == 2


def test_another_model_or_length_that_is_configured_leaves_a_collection_its_own(configured, server):
    with RAGPipeline(configured()) as rag:
        rag.ingest(DOCUMENTS[0])
    for number, other in enumerate(
        (configured(dimensions=4), configured(model="another-model"), configured(provider="voyage", api_key="k")), 1
    ):
        server.requests.clear()
        with RAGPipeline(other) as rag:
            rag.ingest(DOCUMENTS[number])
            assert len(rag.search("pump").results) == number + 1
            assert rag.store.collections.get(Scope(), "default").embedding_model == f"openai/unknown-model:{DIMENSION}"
        assert {one.body["model"] for one in server.requests} == {"unknown-model"}


def test_models_of_one_space_index_and_ask(dsn, tmp_path):
    server = ModelServer(voyage.Embeddings())
    models = []

    def texts(path, body):
        models.append((body["model"], body["input_type"]))
        return body["input"]

    server.wire.texts = texts
    settings = {
        "provider": "voyage",
        "model": "voyage-4-large",
        "query_model": "voyage-4-lite",
        "dimensions": 256,
        "base_url": f"{server.base_url}/v1",
        "truncate": False,
    }
    config = RAGConfig.load(storage={"data_dir": tmp_path / "unused", "dsn": dsn}, embedding=settings)
    with RAGPipeline(config) as rag:
        assert rag.embedder.model_name == "voyage/voyage-4:256"
        with pytest.raises(ProviderError, match="8 dimensions, not 256"):
            rag.embedder.embed_query("pump")
        with pytest.raises(ProviderError):
            rag.embedder.embed_documents(["pump"])
    server.close()
    assert models == [("voyage-4-lite", "query"), ("voyage-4-large", "document")]


def test_a_model_is_calibrated_once_and_not_in_every_process(configured, server):
    def searched(question, **settings):
        """What a process asks of the provider for its first search, and the relevance of what it finds."""
        server.requests.clear()
        with RAGPipeline(configured(**settings)) as rag:
            found = rag.search(question).results
        return len(server.requests), found[0].relevance

    server.wire.texts = lambda path, body: body["input"]
    with RAGPipeline(configured()) as rag:
        rag.ingest(DOCUMENTS)
    asked, relevance = searched("Which pump leaked?")
    assert asked == 3  # the question, and questions and passages that tell where the model's similarities lie
    assert searched("Which pump leaked?") == (1, relevance)
    with RAGPipeline(configured()) as rag:
        rag.spaces.reembed("another-model", dimensions=DIMENSION, samples=0)
    assert searched("Which pump leaked?", model="another-model")[0] == 3
    assert searched("Which pump leaked?", model="another-model")[0] == 1
    with RAGPipeline(configured()) as rag:
        rag.spaces.rollback()
    assert searched("Which pump leaked?") == (1, relevance)


def test_a_chunk_in_tokens_is_bounded_in_characters(configured):
    words = " ".join(f"identifier_of_some_length_{number:04}" for number in range(1_000))
    with RAGPipeline(configured()) as rag:
        rag.collections.create("words", chunking={"strategy": "markdown", "max_tokens": 100})
        view = rag.view(collections="words")
        view.ingest(Document(content=words, source="words.txt"))
        found = view.search("identifier", RetrievalOptions(top_k=300, rerank="none", collapse_duplicates=False)).results
    assert len(found) > 50
    assert max(len(one.content) for one in found) < 100 * 5


def test_collections_of_one_model_have_vectors_of_their_own_lengths(configured, server):
    server.wire.texts = lambda path, body: body["input"]
    with RAGPipeline(configured(truncate=True)) as rag:
        made = rag.collections.create("short", dimensions=4)
        assert (made.embedding_dimension, made.embedding_model) == (4, "openai/unknown-model:4")
        rag.view(collections="short").ingest(DOCUMENTS[:2])
        rag.ingest(DOCUMENTS[2:])
    with RAGPipeline(configured(truncate=True)) as rag:
        assert len(rag.view(collections="short").search("pump").results) == 2
        assert len(rag.view(collections=["short", "default"]).search("pump").results) == 8
    with RAGPipeline(configured(model="text-embedding-3-small", dimensions=None)) as rag:
        assert rag.collections.create("small", dimensions=512).embedding_dimension == 512


@pytest.mark.parametrize(
    ("settings", "dimensions", "said"),
    [
        ({}, 4, "Nothing is known of the lengths that 'unknown-model'"),
        ({"model": "text-embedding-3-small", "dimensions": None}, 3072, "have 1 to 1536 dimensions, not 3072"),
        ({"model": "text-embedding-ada-002", "dimensions": None}, 512, "have 1536 dimensions, not 512"),
        ({}, 0, "dimensions: should be greater than or equal to 1"),
    ],
)
def test_a_length_that_a_model_does_not_offer_is_refused(configured, settings, dimensions, said):
    with RAGPipeline(configured(**settings)) as rag:
        with pytest.raises(UsageError, match=said) as caught:
            rag.collections.create("other", dimensions=dimensions)
        assert not isinstance(caught.value, ConfigurationError)
        assert not rag.collections.list()


def test_a_model_of_this_machine_has_one_length(dsn, tmp_path):
    config = RAGConfig.load(storage={"data_dir": tmp_path / "unused", "dsn": dsn}, embedding={"provider": "hashing"})
    refused = pytest.raises(UsageError, match="have 64 dimensions, not 32")
    with RAGPipeline(config, embedder=HashingEmbedder()) as rag, refused:
        rag.collections.create("other", dimensions=32)


def test_a_search_does_not_wait_to_keep_a_calibration(configured, dsn):
    with RAGPipeline(configured()) as rag:
        rag.ingest(DOCUMENTS)
    with psycopg.connect(dsn) as writing:
        writing.execute("SELECT FROM recollect.collections FOR UPDATE")
        with RAGPipeline(configured()) as rag:
            assert rag.search("Which pump leaked?").results


def test_settings_that_do_not_fit_are_refused_before_anything_is_asked(configured, server):
    for wrong, said in (
        ({"dimensions": None}, "set rag.embedding.dimensions to their number, or give it with --dimensions"),
        ({"model": "text-embedding-3-small", "dimensions": 3072}, "not 3072"),
        ({"base_url": "localhost:8000"}, "must begin with http"),
    ):
        with RAGPipeline(configured(**wrong)) as rag, pytest.raises(ConfigurationError, match=said):
            rag.ingest(DOCUMENTS[0])
    assert server.requests == []
