"""One served store for all tests of OpenAI's door, whose clients are the ``openai`` package's, unchanged."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

import openai
import pytest
import uvicorn

from recollect import Document, RAGConfig, RAGPipeline
from recollect.embedding.hashing import HashingEmbedder
from recollect.llm.base import ChatMessage, ChatUsage
from recollect.llm.scripted import ScriptedChatModel
from recollect.server.app import create_app

LEAVE = "Every employee has thirty days of annual leave. Leave is asked for two weeks ahead."
PAY = "Salaries are paid on the twenty-fifth of each month."


@dataclass
class Shelf:
    """What is served.

    Attributes:
        rag: The store: ``default`` holds two documents, one of them for the role ``hr``.
        model: Writes the answers.
        base_url: Where OpenAI's clients find it.
        reply: What the model writes, from the messages.
    """

    rag: RAGPipeline
    model: ScriptedChatModel
    base_url: str
    reply: Callable[[Sequence[ChatMessage]], str]

    def client(self, key: str = "none") -> openai.OpenAI:
        return openai.OpenAI(base_url=self.base_url, api_key=key, max_retries=0)

    def asynchronous(self, key: str = "none") -> openai.AsyncOpenAI:
        return openai.AsyncOpenAI(base_url=self.base_url, api_key=key, max_retries=0)


@pytest.fixture(scope="package")
def served(clone: Callable[..., AbstractContextManager[str]], tmp_path_factory) -> Iterator[Shelf]:
    model = ScriptedChatModel(lambda messages: shelf.reply(messages), usage=ChatUsage(100, 20), piece_size=3)
    with clone() as dsn:
        config = RAGConfig.load(
            storage={"data_dir": tmp_path_factory.mktemp("unused"), "dsn": dsn}, embedding={"provider": "hashing"}
        )
        with RAGPipeline(config, embedder=HashingEmbedder(), chat_model=model) as rag:
            rag.ingest(
                [
                    Document(content=LEAVE, source="leave.md", title="Leave", metadata={"topic": "leave"}),
                    Document(content=PAY, source="https://intra.example/pay", title="Pay", permissions=("role:hr",)),
                ]
            )
            with _listening(rag) as url:
                shelf = Shelf(rag, model, f"{url}/v1", lambda _: "")
                yield shelf


@pytest.fixture
def shelf(served: Shelf) -> Shelf:
    """The served store, whose model says what it says first of all."""
    served.reply = lambda _: "Thirty days of annual leave [1]."
    served.model.calls.clear()
    return served


@pytest.fixture
def client(shelf: Shelf) -> Iterator[openai.OpenAI]:
    """The one user of a server that nobody else reaches; the SDK insists on a key."""
    with shelf.client() as made:
        yield made


@contextmanager
def _listening(rag: RAGPipeline) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as bound:
        config = uvicorn.Config(create_app(rag), log_config=None, lifespan="on", timeout_graceful_shutdown=5)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{bound.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
