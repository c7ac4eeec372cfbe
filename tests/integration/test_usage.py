"""The usage of an answer is that of every request to the language model that it took."""

from __future__ import annotations

import pytest

from chat_server import ChatServer
from recollect import Document, RAGConfig, RAGPipeline
from recollect.embedding.hashing import HashingEmbedder
from recollect.llm.base import ChatUsage
from recollect.llm.scripted import ScriptedChatModel
from recollect.model import Answer, RetrievalOptions, TokenUsage
from recollect.pipeline.chat import Conversation

CANTEEN = Document(content="Lunch costs EUR 6. Guests pay EUR 9 for lunch.", source="canteen.md")
WRITTEN = {
    "You make questions": "What do guests pay for lunch?",
    "You rewrite": "Price of lunch?",
    "You write a short passage": "EUR 6.",
}


def script(messages):
    first = messages[0]
    rules = first["content"] if isinstance(first, dict) else first.content
    return next((text for begin, text in WRITTEN.items() if rules.startswith(begin)), "Lunch costs EUR 6 [1].")


@pytest.fixture
def server():
    server = ChatServer(script)
    yield server
    server.close()


@pytest.fixture(params=["scripted", "openai"])
def lunch(request, dsn, tmp_path, server):
    """A model that is asked three times for an answer: 100 tokens in and 20 out each time."""
    hosted = {"provider": "openai", "api": "chat", "model": "m", "base_url": server.base_url, "api_key": "sk-test"}
    config = RAGConfig.load(
        storage={"data_dir": tmp_path / "unused", "dsn": dsn},
        embedding={"provider": "hashing"},
        retrieval={"enhance": {"multi_query": 2, "hyde": True}},
        answer=hosted if request.param == "openai" else {},
    )
    scripted = ScriptedChatModel(script, usage=ChatUsage(100, 20)) if request.param == "scripted" else None
    with RAGPipeline(config, embedder=HashingEmbedder(), chat_model=scripted) as rag:
        rag.view().ingest(CANTEEN)
        rag.asked = lambda: len(server.requests if scripted is None else scripted.calls)
        yield rag


def times(count):
    return TokenUsage(input_tokens=100 * count, output_tokens=20 * count, requests=count)


def test_what_the_search_asks_a_language_model_counts(lunch):
    assert lunch.view().ask("What does lunch cost?").usage == times(3) and lunch.asked() == 3
    # The search's part is remembered, and costs nothing the second time.
    assert lunch.view().ask("What does lunch cost?").usage == times(1) and lunch.asked() == 4
    found = lunch.view().search("Who pays for lunch?")
    assert found.usage == times(2) and lunch.view().search("Who pays for lunch?").usage is None


def test_what_was_asked_for_a_refusal_counts(lunch):
    lunch.view(collections="empty").ingest(Document(content="Badges are green.", source="badges.md"))
    refused = lunch.view(collections="empty").ask("zzz?", RetrievalOptions(min_relevance=1.0))
    assert refused.refused and refused.model is None
    assert refused.usage == times(lunch.asked())


def test_collections_that_are_searched_together_count_each(lunch):
    lunch.view(collections="more").ingest(Document(content="Lunch is at noon.", source="more.md"))
    assert lunch.view(collections="*").ask("When is lunch?").usage == times(lunch.asked())


def test_a_follow_up_question_counts_what_making_it_stand_alone_took(lunch):
    talk = Conversation(lunch.view())
    last = [event for question in ("What does lunch cost?", "And guests?") for event in talk.ask(question)][-1]
    assert isinstance(last, Answer) and last.rewritten_question == "What do guests pay for lunch?"
    assert [one.usage for one in talk.answers] == [times(3), times(4)]
    assert talk.usage == times(lunch.asked()) == times(7)


def test_what_nobody_tells_is_counted_and_said_to_be(dsn, tmp_path):
    config = RAGConfig.load(
        storage={"data_dir": tmp_path / "unused", "dsn": dsn}, retrieval={"enhance": {"hyde": True}}
    )
    with RAGPipeline(config, embedder=HashingEmbedder(), chat_model=ScriptedChatModel(script)) as rag:
        rag.view().ingest(CANTEEN)
        usage = rag.view().ask("What does lunch cost?").usage
    assert usage.requests == 2 and usage.estimated and usage.input_tokens > usage.output_tokens > 4
