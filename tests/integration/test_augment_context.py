"""A context from everything that may be read, and how much a reranker sees."""

from __future__ import annotations

import pytest

from contracts.wire_formats import huggingface
from contracts.wire_formats.server import ModelServer
from recollect import Document, RAGConfig, RAGPipeline
from recollect.errors import UsageError
from recollect.model import Principal, RetrievalOptions


@pytest.fixture
def server():
    server = ModelServer(huggingface.Reranking())
    yield server
    server.close()


@pytest.fixture
def configured(dsn, tmp_path):
    def configured(**sections):
        return RAGConfig.load(
            storage={"data_dir": tmp_path / "unused", "dsn": dsn}, embedding={"provider": "hashing"}, **sections
        )

    return configured


@pytest.fixture
def hosted(configured, server):
    reranking = {"provider": "huggingface", "model": "m", "base_url": server.base_url, "api_key": "k", "max_retries": 0}
    return configured(reranking=reranking)


def fill(rag, collection, numbers):
    rag.view(collections=collection).ingest(
        Document(content=f"Pump {number} leaked in hall {number}.", source=f"{collection}{number}.txt")
        for number in numbers
    )


def seen(server):
    """The passages that the reranker was given."""
    return sum(len(one.body["texts"]) for one in server.requests)


def test_few_passages_are_not_reranked_and_many_are(hosted, server):
    with RAGPipeline(hosted) as rag:
        fill(rag, "a", range(20))
        fill(rag, "b", range(20, 39))
        found = rag.augment_context("Which pump leaked?", token_budget=10_000)
        assert seen(server) == 0
        assert {passage.collection for passage in found.passages} == {"a", "b"} and len(found.passages) == 39
        fill(rag, "b", [39])
        assert len(rag.augment_context("Which pump leaked?", token_budget=10_000).passages) == 40
        assert seen(server) == 40
        assert rag.augment_context("Which pump leaked?", rerank_from=41, token_budget=100).token_count <= 100
        assert seen(server) == 40


def test_a_hundred_passages_are_searched_for(hosted, server):
    roomy = hosted.model_copy(update={"context": hosted.context.model_copy(update={"max_context_length": 1_000_000})})
    with RAGPipeline(roomy) as rag:
        fill(rag, "a", range(120))
        found = rag.augment_context("Which pump leaked?", token_budget=100_000)
        assert len(found.passages) == 100
        assert seen(server) == 100


def test_what_may_not_be_read_is_not_in_it(configured):
    with RAGPipeline(configured()) as rag:
        fill(rag, "a", range(3))
        rag.view(collections="b").ingest(Document(content="Pump 9 is secret.", source="secret.txt"))
        rag.view(collections="b").grants.add("user:eve", documents="secret.txt", only=True)
        text = rag.view(principal=Principal(user_id="bob")).augment_context("Which pump?").text
        assert "a0.txt" in text and "secret" not in text
        assert "secret" in rag.view(principal=Principal(user_id="eve")).augment_context("Which pump?").text


def test_an_empty_store_gives_an_empty_context_and_limits_are_checked(configured):
    with RAGPipeline(configured()) as rag:
        assert rag.augment_context("Which pump?").text == ""
        for wrong in ({"top_k": 0}, {"rerank_from": -1}, {"token_budget": 0}):
            with pytest.raises(UsageError):
                rag.augment_context("Which pump?", **wrong)


def test_fifty_passages_are_reranked_and_five_shown(hosted, server):
    with RAGPipeline(hosted) as rag:
        fill(rag, "default", range(80))
        reply = rag.search("Which pump leaked?")
        assert (len(reply.results), seen(server), reply.reranked) == (5, 50, True)
    fewer = hosted.reranking.model_copy(update={"candidates": 20, "top_k": 3})
    with RAGPipeline(hosted.model_copy(update={"reranking": fewer})) as rag:
        server.requests.clear()
        assert (len(rag.search("Which pump leaked?").results), seen(server)) == (3, 20)


def test_every_providers_reranker_sees_fifty_for_five(configured):
    for provider in ["local", "cohere", "bedrock", "voyage", "huggingface"]:
        from recollect.pipeline.searching import search_settings

        config = configured(reranking={"provider": provider, "model": "m"})
        assert (config.top_k, search_settings(config).ranking.rerank_candidates) == (5, 50)


def test_how_much_other_rerankers_see_is_configured(configured):
    for name in ["consensus", "bm25", "best_sentence"]:
        with RAGPipeline(configured(retrieval={"rerank": name, "rerank_candidates": 12, "top_k": 4})) as rag:
            fill(rag, "default", range(30))
            reply = rag.search("Which pump leaked?", RetrievalOptions(top_k=30, explain=True))
            assert sum(one.explain.rerank_score is not None for one in reply.results) == 24
            assert len(rag.search("Which pump leaked?", rag.default_options()).results) == 4
