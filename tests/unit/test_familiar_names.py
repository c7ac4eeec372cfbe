"""Who writes another system's name is told ours, wherever it is written."""

from __future__ import annotations

from dataclasses import replace

import pytest

from recollect import Client, Document, RAGConfig, RAGPipeline, RetrievalOptions, TemporalRAG
from recollect.chunking.registry import make_chunker
from recollect.errors import ConfigurationError, UsageError
from recollect.model.memory import Turn


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"default_top_k": 5}, "Did you mean rag.retrieval.top_k?"),
        ({"retrieval": {"default_top_k": 5}}, "Did you mean rag.retrieval.top_k?"),
        ({"retrieval": {"enable_reranking": True}}, "Did you mean rag.retrieval.rerank?"),
        ({"embedding": {"cache_embeddings": True}}, "Did you mean rag.embedding.cache?"),
        ({"storage": {"backend": "qdrant"}}, "Did you mean rag.storage.dsn? The store is PostgreSQL"),
        ({"sentence_detector": "nltk"}, "there is nothing to choose"),
        ({"multi_tenant": {"enabled": True}}, "There is nothing to switch on"),
        ({"reranking": {"model_name": "x"}}, "Did you mean rag.reranking.model?"),
    ],
)
def test_a_setting(given, words):
    with pytest.raises(ConfigurationError) as refused:
        RAGConfig(**given)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("RECOLLECT_DEFAULT_TOP_K", "Did you mean RECOLLECT_RETRIEVAL__TOP_K?"),
        ("RECOLLECT_RAG__ENABLE_RERANKING", "Did you mean RECOLLECT_RETRIEVAL__RERANK?"),
        ("RECOLLECT_CHUNK_SIZE", "Did you mean RECOLLECT_CHUNKING__SIZE?"),
        ("RECOLLECT_MULTI_TENANT__ENABLED", "There is nothing to switch on"),
    ],
)
def test_a_variable(monkeypatch, name, words):
    monkeypatch.setenv(name, "5")
    with pytest.raises(ConfigurationError) as refused:
        RAGConfig()
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: RetrievalOptions(default_top_k=5), "Did you mean 'top_k'?"),
        (lambda: RetrievalOptions(enable_reranking=True), "Did you mean 'rerank'? It is a reranker's name"),
        (lambda: RetrievalOptions(min_similarity=0.7), "Did you mean 'similarity_threshold'? It is a cosine."),
        (lambda: RetrievalOptions(similarity_treshold=0.7), "Did you mean 'similarity_threshold'?"),
        (lambda: replace(RetrievalOptions(), k=5), "Did you mean 'top_k'?"),
        (lambda: Document(page_content="Leave."), "Did you mean 'content'?"),
        (lambda: Turn(text="Hello."), "Did you mean 'content'?"),
        (lambda: RAGPipeline(persist_directory="x"), "Did you mean the setting rag.storage.data_dir?"),
        (lambda: RAGPipeline(embedding_model="x"), "Did you mean 'embedder'?"),
        (lambda: Client("http://x", timeout=3), "Did you mean 'timeout_seconds'?"),
        (
            lambda: TemporalRAG.find_recent_discoveries(None, "leaks", ingestion_window="7d"),
            "unexpected keyword argument 'ingestion_window'. Did you mean 'discovery_window'? A duration is a text",
        ),
        (lambda: TemporalRAG.find_recent_discoveries(None, "leaks", event_age_days=90), "Did you mean 'event_age'?"),
    ],
)
def test_an_argument(call, words):
    with pytest.raises(TypeError) as refused:
        call()
    assert words in str(refused.value)


def test_what_is_called_like_nothing_is_refused_as_python_does():
    with pytest.raises(TypeError, match=r"^RetrievalOptions\(\) got an unexpected keyword argument 'zzz'\.$"):
        RetrievalOptions(zzz=1)
    with pytest.raises(TypeError, match=r"missing 1 required keyword-only argument: 'content'"):
        Document()


def test_a_parameter_of_chunking():
    with pytest.raises(UsageError, match="Did you mean 'size'"):
        make_chunker("recursive", chunk_size=200)


def test_a_cosine_has_a_variable_of_its_own(monkeypatch):
    monkeypatch.setenv("RAG_MIN_SIMILARITY", "0.7")
    monkeypatch.setenv("RAG_MIN_RELEVANCE", "0.3")
    retrieval = RAGConfig().retrieval
    assert (retrieval.similarity_threshold, retrieval.min_relevance) == (0.7, 0.3)
