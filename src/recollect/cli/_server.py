"""A view as commands ask it, of a server: what they do with a `recollect.View`, a client does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.errors import NotFoundError, UsageError
from recollect.ingest.line_files import require_file

if TYPE_CHECKING:
    from recollect.client.client import Client, RemoteView
    from recollect.client.place import Place
    from recollect.config import RAGConfig
    from recollect.context.strategies import ContextStrategy
    from recollect.model import Answer, RetrievalOptions
    from recollect.model.job import Job
    from recollect.model.time import Moment
    from recollect.replies.me import MeJson


class Server:
    """A server that a command asks.

    Args:
        url: Where it is.
        key: What the caller is known by.
    """

    def __init__(self, url: str, key: str | None) -> None:
        from recollect.client import Client

        self.url = url
        self.client: Client = Client(url, key)

    @cached_property
    def me(self) -> MeJson:
        """Who asks, and what the server is configured with."""
        return self.client.me()

    def config(self, collection: str | None) -> RAGConfig:
        """The settings as the server has them, as far as commands need to know them; the others are the defaults."""
        from recollect.config import (
            AnswerConfig,
            ChunkingConfig,
            MemoryConfig,
            RAGConfig,
            RetrievalConfig,
        )

        told = self.me["settings"]
        return RAGConfig.model_construct(
            collection=collection or told["collection"],
            language=told["language"],
            retrieval=RetrievalConfig(mode=told["mode"], fusion=told["fusion"], top_k=told["top_k"]),
            chunking=ChunkingConfig(**told["chunking"]),
            memory=MemoryConfig(adaptive_weights=told["adaptive_weights"]),
            # Which provider writes the answers is the server's to know; that one does is shown while they come.
            answer=AnswerConfig.model_construct(
                passages=told["passages"], provider="openai" if told["writes_answers"] else "extractive"
            ),
        )

    def view(self, config: RAGConfig, **where: Any) -> ServerView:  # noqa: ANN401 - as of `recollect.Client.view`
        """What a command sees."""
        self.client.standpoint.known.settings = self.me["settings"]
        view = self.client.view(**{name: value for name, value in where.items() if value is not None})
        return ServerView(view, config, asks_as_somebody=self.me["principal"] is not None)

    def close(self) -> None:
        """Close the connections."""
        self.client.close()


@dataclass(frozen=True)
class _Standpoint:
    """Where a view of a server stands, as commands ask it."""

    at: Place
    config: RAGConfig
    asks_as_somebody: bool

    @property
    def principal(self) -> object:
        """Somebody in particular, named or by the credential; None: the owner of the store."""
        return self.at.principal or (True if self.asks_as_somebody else None)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - of the place
        return getattr(self.at, name)


class _Group:
    """A group of a client's, of which commands ask more than a server is told."""

    def __init__(self, group: Any, view: RemoteView) -> None:  # noqa: ANN401 - each class names its own
        self._group = group
        self._view = view

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - of the group
        return getattr(self._group, name)


class _Documents(_Group):
    def get(self, document: int | str) -> Any:  # noqa: ANN401 - a record
        """With its text, as a view gives it."""
        record = self._group.get(document)
        if record.status != "embedded":
            return record
        return replace(record, content="".join(_text(self._view, record.document_id)))

    def list(self, *, limit: int = 100, **how: Any) -> Any:  # noqa: ANN401 - records
        """Of a session, those that the server shows with it."""
        session = self._view.standpoint.session
        return (
            self._group.list(limit=limit, **how) if session is None else self._view.sessions.documents(session)[:limit]
        )


def _text(view: RemoteView, document_id: int) -> Iterator[str]:
    start = 0
    while True:
        part = view.contents.read(document_id, start=start, length=_PIECE_CHARACTERS)
        yield part.text
        start = part.end_offset
        if start >= part.characters or not part.text:
            return


_PIECE_CHARACTERS = 50_000


class _Memory(_Group):
    def assembler(self, **how: Any) -> _Assembler:  # noqa: ANN401 - as of `ConversationMemory.assembler`
        """Puts contexts together."""
        return _Assembler(self._view, {name: value for name, value in how.items() if value is not None})


class _Assembler:
    """What a command puts a context together with."""

    def __init__(self, view: RemoteView, how: dict[str, Any]) -> None:
        self._view = view
        self._how = how

    def assemble(self, query: str, strategy: ContextStrategy, token_budget: int, session: str | None) -> Any:  # noqa: ANN401
        """A context; of the conversation at hand, where there is one."""
        view = self._view if session is None else self._view.view(session=session)
        return view.memory.assemble(query, strategy, token_budget, **self._how)


_IMPORT_SECONDS = 600.0


class _Collections(_Group):
    def import_file(self, path: Path, **how: Any) -> Any:  # noqa: ANN401 - a report
        """Send a file of JSON Lines; the collection is made where it is missing, as here."""
        require_file(path)
        _ensure_collection(self._view)
        # A part is replied to when it is stored, which takes a slow machine its time.
        patient = self._view.with_options(timeout_seconds=_IMPORT_SECONDS)
        return patient.collections.import_file(path, **how)


class _Jobs(_Group):
    def ingest(self, paths: Sequence[Path], *, sync: bool = False, **how: Any) -> list[Job]:  # noqa: ANN401 - of the group
        """Send files; a job each."""
        if sync:
            raise UsageError("--sync is of an ingest where the store is: a server does not know what is gone here.")
        _ensure_collection(self._view)
        made: list[Job] = self._group.ingest(paths, **how)
        return made

    def reembed(self, model: str, *, cases: Path | None, **how: Any) -> Job:  # noqa: ANN401 - of the group
        """Have everything embedded with another model."""
        if cases is not None:
            raise UsageError("--cases is a file where the store is: a server compares by questions that it samples.")
        made: Job = self._group.reembed(model, **how)
        return made


def _ensure_collection(view: RemoteView) -> None:
    """Make the collection that is named where there is none."""
    name = view.standpoint.named
    if name is None:
        return
    try:
        view.collections.get(name)
    except NotFoundError:
        view.collections.create(name)


class _OfTenant:
    """What a tenant's view is asked by a command that has none of it."""

    def __init__(self, view: RemoteView, tenant: int | str) -> None:
        self._view = view
        self._tenant = tenant

    @property
    def collections(self) -> _OfTenant:
        """Its collections, of which those are told that others share with it."""
        return self

    def shared(self) -> Any:  # noqa: ANN401 - collections
        """What others let it read."""
        return self._view.tenants.shared(self._tenant)

    def share(self, name: str, reader: int | str) -> None:
        """Let another read one of its collections."""
        self._view.tenants.share(self._tenant, name, reader)

    def unshare(self, name: str, reader: int | str) -> None:
        """Keep another from it again."""
        self._view.tenants.unshare(self._tenant, name, reader)


class ServerView:
    """A view of a server's, with what commands ask of a `recollect.View` beside its methods.

    Args:
        view: The client's.
        config: The settings as the server has them.
        asks_as_somebody: Whether the credential is somebody's in particular.
    """

    def __init__(self, view: RemoteView, config: RAGConfig, *, asks_as_somebody: bool) -> None:
        self._view = view
        self.config = config
        self._asks_as_somebody = asks_as_somebody

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - of the client's view
        return getattr(self._view, name)

    @property
    def standpoint(self) -> _Standpoint:
        """Whose, who, when and where."""
        return _Standpoint(self._view.standpoint, self.config, self._asks_as_somebody)

    def view(self, *, tenant: int | str | None = None, **changes: Any) -> Any:  # noqa: ANN401 - as of `recollect.View.view`
        """A view that differs from this one in what is named."""
        if tenant is not None:
            return _OfTenant(self._view, tenant)
        return ServerView(self._view.view(**changes), self.config, asks_as_somebody=self._asks_as_somebody)

    @property
    def collections(self) -> _Collections:
        """Collections."""
        return _Collections(self._view.collections, self._view)

    @property
    def documents(self) -> _Documents:
        """Documents."""
        return _Documents(self._view.documents, self._view)

    @property
    def memory(self) -> _Memory:
        """Conversations."""
        return _Memory(self._view.memory, self._view)

    @property
    def jobs(self) -> _Jobs:
        """Jobs."""
        return _Jobs(self._view.jobs, self._view)

    def ingest(self, paths: Sequence[Path], *, sync: bool = False, **how: Any) -> Any:  # noqa: ANN401 - a report
        """Send files and wait until they are stored; the collection is made where it is missing, as here."""
        if sync:
            raise UsageError("--sync is of an ingest where the store is: a server does not know what is gone here.")
        _ensure_collection(self._view)
        return self._view.ingest(list(paths), **how)

    def conversation(self, *, session: str | None, options: RetrievalOptions | None) -> ServerConversation:
        """A conversation about what the view finds."""
        if session is None:
            raise UsageError(
                "--forget: a server remembers what is asked in a conversation. recollect ask remembers nothing."
            )
        return ServerConversation(self, session=session, options=options)


class ServerConversation:
    """As `recollect.pipeline.chat.Conversation`, held by a server.

    Args:
        view: What is searched, and who asks.
        session: The conversation.
        options: How to search.

    Attributes:
        answers: All answers so far, oldest first.
        usage: What the language model has cost.
    """

    def __init__(self, view: ServerView, *, session: str, options: RetrievalOptions | None) -> None:
        from recollect.model import TokenUsage

        self._view = view
        self._session = session
        self._options = options
        self.answers: list[Answer] = []
        self.usage = TokenUsage(input_tokens=0, output_tokens=0, requests=0)

    def as_of(self, moment: Moment | None) -> None:
        """From now on, ask what was known at a time; None: the present."""
        self._view = self._view.view(as_of=moment)

    def ask(self, question: str) -> Iterator[Any]:
        """The answer as it comes."""
        from recollect.model import Answer

        for event in self._view.chat_events(question, self._options, session=self._session):
            if isinstance(event, Answer):
                self.answers.append(event)
                if event.usage is not None:
                    self.usage += event.usage
            yield event
