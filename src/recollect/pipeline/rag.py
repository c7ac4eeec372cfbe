"""The whole of recollect behind one object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from typing_extensions import get_protocol_members

from recollect.config import RAGConfig
from recollect.embedding.base import EmbeddingProvider
from recollect.errors import UsageError
from recollect.model.arguments import checked
from recollect.pipeline.assembly import Assembly, DownloadProgress
from recollect.pipeline.standpoint import Standpoint
from recollect.pipeline.view import View

if TYPE_CHECKING:
    from recollect.chunking.base import ChunkingStrategy
    from recollect.llm.base import ChatModel
    from recollect.model.remote import Remote
    from recollect.retrieval.rerank.base import Reranker
    from recollect.retrieval.retrievers import Retriever


@checked
class RAGPipeline(View):
    """Ingests documents, searches them and answers from them: the view of the defaults, and the way to every other one.

    The defaults are the configured tenant and collection, the owner of the store, and the present. A context manager,
    safe to share between threads. Nothing is opened before it is needed: the store at the first call, the embedding
    model at the first text that must be embedded.

    Args:
        config: Settings; None: the defaults and the environment.
        embedder: Used in place of the configured one.
        chat_model: Used in place of the configured one.
        on_download: Told how the download of a model advances, in bytes.
        chunkers: Chunking strategies of your own (`ChunkingStrategy`), by name: classes whose arguments are the
            strategy's parameters, or objects.
        rerankers: The same of rerankers (`Reranker`); classes are made without arguments.
        retrievers: The same of retrievers (`Retriever`), each the name of a search mode.
        remotes: What is searched together with the configured tenant's collections, beside what is configured; see
            `View.view`.

    Raises:
        UsageError: The embedder, the language model or a part by name lacks what it must have, or a name is taken.
        ConfigurationError: A part that is configured by name does not exist.

    Example:
        >>> from recollect import Document, RAGPipeline
        >>> with RAGPipeline() as rag:  # doctest: +SKIP
        ...     rag.ingest(Document(content="Annual leave is 30 days.", source="leave.txt"))
        ...     rag.ask("How long is annual leave?").text
    """

    def __init__(
        self,
        config: RAGConfig | None = None,
        *,
        embedder: EmbeddingProvider | None = None,
        chat_model: ChatModel | None = None,
        on_download: DownloadProgress | None = None,
        chunkers: Mapping[str, ChunkingStrategy | type[ChunkingStrategy]] | None = None,
        rerankers: Mapping[str, Reranker | type[Reranker]] | None = None,
        retrievers: Mapping[str, Retriever | type[Retriever]] | None = None,
        remotes: Sequence[Remote | Retriever] = (),
    ) -> None:
        _require_protocols(embedder, chat_model)
        assembly = Assembly(
            config or RAGConfig(),
            embedder=embedder,
            chat_model=chat_model,
            on_download=on_download,
            chunkers=chunkers,
            rerankers=rerankers,
            retrievers=retrievers,
            remotes=remotes,
        )
        super().__init__(Standpoint(assembly=assembly))

    def __enter__(self) -> RAGPipeline:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the store and let go of its server; the next call opens it again, of every view."""
        self._at.assembly.close()


def _require_protocols(embedder: object | None, chat_model: object | None) -> None:
    """Raise a UsageError that names what a model of somebody's own lacks."""
    if embedder is not None:
        _require(embedder, EmbeddingProvider, name="embedder")
    if chat_model is not None:
        from recollect.llm.base import ChatModel

        _require(chat_model, ChatModel, name="chat_model")


def _require(given: object, protocol: type, *, name: str) -> None:
    # By its class where that has it: a property may load a model.
    kind = type(given)
    missing = [one for one in get_protocol_members(protocol) if not (hasattr(kind, one) or hasattr(given, one))]
    if missing:
        raise UsageError(f"{name} is no {protocol.__name__}: {kind.__name__} has no {', '.join(sorted(missing))}.")
