"""Options that are not given come from the configuration, whatever else is given."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from fastapi.testclient import TestClient

from recollect import Document, RAGConfig, RAGPipeline, RetrievalOptions, SearchReply, TemporalRAG, View
from recollect.embedding.hashing import HashingEmbedder
from recollect.integrations.langchain import RecollectRetriever
from recollect.pipeline.chat import Conversation
from recollect.server.app import create_app

QUESTION = "How many days of annual leave?"
HR = RetrievalOptions(department=("hr",))
HR_JSON = {"department": ["hr"]}


@pytest.fixture
def rag(dsn: str, tmp_path) -> Iterator[RAGPipeline]:
    config = RAGConfig.load(
        storage={"data_dir": tmp_path / "unused", "dsn": dsn},
        embedding={"provider": "hashing"},
        retrieval={"top_k": 5, "mode": "lexical"},
        answer={"passages": 4, "provider": "extractive"},
    )
    with RAGPipeline(config, embedder=HashingEmbedder()) as opened:
        texts = [f"Office {number} has {number} days of annual leave." for number in range(20, 40)]
        opened.ingest([Document(content=text, source=f"{text}.md", department="hr") for text in texts])
        yield opened


@pytest.mark.parametrize(
    "search",
    [
        lambda rag: rag.search(QUESTION),
        lambda rag: rag.search(QUESTION, HR),
        lambda rag: rag.view(collections="*").search(QUESTION, HR),
        lambda rag: TemporalRAG(rag).search(QUESTION, HR),
    ],
)
def test_a_search_keeps_the_configured_number_and_mode(rag, search: Callable[[View], SearchReply]):
    reply = search(rag)
    assert (len(reply.results), reply.mode) == (5, "lexical")


def test_what_is_given_counts(rag):
    reply = rag.search(QUESTION, RetrievalOptions(top_k=7, mode="dense"))
    assert (len(reply.results), reply.mode) == (7, "dense")


def answered(rag: View, events: Callable[[View], Iterator[object]]) -> SearchReply:
    return next(one for one in events(rag) if isinstance(one, SearchReply))


@pytest.mark.parametrize(
    "events",
    [
        lambda rag: rag.ask_events(QUESTION),
        lambda rag: rag.ask_events(QUESTION, HR),
        lambda rag: Conversation(rag, session=None, options=HR).ask(QUESTION),
    ],
)
def test_an_answer_keeps_the_configured_passages_and_mode(rag, events):
    reply = answered(rag, events)
    assert (len(reply.results), reply.mode) == (4, "lexical")


def test_contexts_and_retrievers_do_too(rag):
    assert len(rag.context(QUESTION, HR).blocks) == 5
    assert len(RecollectRetriever(view=rag, options=HR).invoke(QUESTION)) == 5
    assert rag.why_not(QUESTION, "Office 20 has 20 days of annual leave..md", HR).stages


def test_the_server_and_its_client_do_too(rag):
    with TestClient(create_app(rag), base_url="http://127.0.0.1:8321") as client:
        for body in ({}, HR_JSON):
            found = client.post("/v1/search", json={"query": QUESTION, **body}).json()
            assert (len(found["results"]), found["mode"]) == (5, "lexical")
        whole = client.post("/v1/context", json={"query": QUESTION, **HR_JSON}).json()
        assert len(whole["passages"]) == 5
