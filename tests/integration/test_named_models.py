"""Answers by a language model that the caller names."""

from __future__ import annotations

import pytest

from chat_server import ChatServer
from recollect import Answer, RAGConfig, RAGPipeline
from recollect.config import AnswerConfig
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import UsageError
from recollect.model.requests import RequestRecord
from recollect.pipeline.assembly import Observer
from recollect.pipeline.chat import Conversation
from recollect.pipeline.models import named_answer_settings
from recollect.server.openai.errors import RefusedRequestError
from recollect.server.openai.models import chosen, named_models

SETTINGS = AnswerConfig(provider="openai", model="gpt-a", api_key="sk-secret", base_url="http://127.0.0.1:1/v1")


class Told(Observer):
    """The models that were asked."""

    def __init__(self) -> None:
        self.models: list[str] = []

    def requested(self, record: RequestRecord) -> None:
        self.models.append(record.model)


def test_a_key_goes_nowhere_but_where_it_is_configured_for():
    same = named_answer_settings(SETTINGS, "openai/gpt-b")
    assert (same.model, same.base_url, same.api_key) == ("gpt-b", SETTINGS.base_url, SETTINGS.api_key)
    priced = SETTINGS.model_copy(update={"input_price": 2.0})
    assert named_answer_settings(priced, "openai/gpt-a").input_price == 2.0
    assert named_answer_settings(priced, "openai/gpt-b").input_price is None
    other = named_answer_settings(SETTINGS, "ollama/qwen3")
    assert (other.provider, other.model, other.base_url, other.api_key) == ("ollama", "qwen3", None, None)
    with pytest.raises(UsageError, match="provider/model"):
        named_answer_settings(SETTINGS, "nobody/x")


def test_what_is_named_writes_and_only_what_the_server_allows_is_named(dsn, tmp_path):
    server = ChatServer(lambda _: "Thirty days of leave [1].")
    config = RAGConfig.load(
        storage={"data_dir": tmp_path / "unused", "dsn": dsn},
        embedding={"provider": "hashing"},
        answer={"provider": "openai", "model": "gpt-a", "api_key": "x", "base_url": server.base_url, "api": "chat"},
        server={"answer_models": ["openai/gpt-b", "ollama/*"]},
    )
    try:
        with RAGPipeline(config, embedder=HashingEmbedder()) as rag:
            rag.ingest("Employees have thirty days of leave.")
            written = {}
            told = Told()
            rag.standpoint.assembly.observers += (told,)
            for name in (None, "openai/gpt-b", "extractive"):
                *_, answer = Conversation(rag, model=name).ask("How many days of leave do employees have?")
                assert isinstance(answer, Answer)
                written[name] = answer.model
            assert written == {None: "gpt-a", "openai/gpt-b": "gpt-b", "extractive": None}
            # Whoever observes hears of requests to a model that is named, too.
            assert told.models == ["gpt-a", "gpt-b"]
            assert named_models(rag) == ["extractive", "openai/gpt-a", "openai/gpt-b"]
            assert chosen(rag, "*@ollama/qwen3:8b@q4").model == "ollama/qwen3:8b@q4"
            for refused in ("default@openai/gpt-c", "default@anthropic/claude"):
                with pytest.raises(RefusedRequestError):
                    chosen(rag, refused)
    finally:
        server.close()
