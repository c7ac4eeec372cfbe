"""Models by provider and name; a provider's file and its SDK are imported only when one of its models is made."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.embedding.local import CrossEncoder
from recollect.embedding.making import is_of_this_machine, make_machine_embedder, model_cache
from recollect.errors import ConfigurationError
from recollect.installation import install_command
from recollect.providers.catalogue import Provider, provider_named
from recollect.providers.chat import HostedChatModel
from recollect.providers.connection import Connection, Secret
from recollect.providers.embedder import HostedEmbedder, HostedScorer
from recollect.providers.requesting import Requester

if TYPE_CHECKING:
    from recollect.embedding._download import Progress
    from recollect.embedding.base import EmbeddingProvider
    from recollect.embedding.quantise import Precision
    from recollect.llm.base import ChatModel
    from recollect.model.requests import RequestKind
    from recollect.providers.requesting import Recorder


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """What a provider's file is asked to make.

    Attributes:
        model: As the provider names it.
        connection: With the key that applies, and an address of its own where one is configured.
        dimensions: For embeddings, the length of a vector.
        default_dimensions: For embeddings, the length that the model gives unasked; None: unknown.
        query_model: For embeddings, another model of the same space that embeds questions; None: the same.
        api: For chat, which of the provider's interfaces; None: the usual one.
        temperature: For chat; None: the server's default.
    """

    model: str
    connection: Connection
    dimensions: int = 0
    default_dimensions: int | None = None
    query_model: str | None = None
    api: str | None = None
    temperature: float | None = None


def make_embedder(
    provider: str,
    model: str | None = None,
    *,
    connection: Connection | None = None,
    dimensions: int | None = None,
    query_model: str | None = None,
    truncate: bool = False,
    recorder: Recorder | None = None,
    model_directory: Path | None = None,
    precision: Precision = "int8",
    threads: int | None = None,
    progress: Progress | None = None,
) -> EmbeddingProvider:
    """Make the embedding model that a configuration names.

    Args:
        provider: A row of the table that offers embeddings.
        model: As the provider names it; None: the provider's default.
        connection: How a hosted provider is reached; None: its own address, the key from the environment.
        dimensions: The length of a vector; None: the model's default, which must be known. For ``hashing`` 64.
        query_model: Embeds questions, where a provider has several models of one space.
        truncate: Whether longer vectors are cut to ``dimensions``: right for Matryoshka models that are not known.
        recorder: Told of each request to a hosted provider.
        model_directory: Where ``local`` keeps models; required there.
        precision: For ``local``, ``"int8"`` or ``"fp32"``.
        threads: For ``local``, how many texts are computed at once; by default one for each usable processor.
        progress: For ``local``, told how a download advances.

    Raises:
        UsageError: The provider is unknown, lacks an argument that it requires, or refuses one.

    Example:
        >>> make_embedder("hashing", dimensions=32).model_name
        'hashing:32'
    """
    row = provider_named(provider, "embedding")
    if is_of_this_machine(row.name):
        return make_machine_embedder(
            row.name,
            model,
            dimensions=dimensions,
            model_directory=model_directory,
            precision=precision,
            threads=threads,
            progress=progress,
        )

    name = row.model("embedding", model)
    length = row.dimension(name, dimensions)
    request = ModelRequest(
        model=name,
        connection=_connection(row, connection),
        dimensions=length,
        default_dimensions=row.known_dimension(name),
        query_model=query_model,
    )
    backend = _backend(row, "Embeddings")(request)
    return HostedEmbedder(
        backend,
        _requester(row, request, "embed", recorder, backend.sdk),
        dimension=length,
        matryoshka=truncate or row.can_be_cut(name),
    )


def make_scorer(
    provider: str,
    model: str | None = None,
    *,
    connection: Connection | None = None,
    recorder: Recorder | None = None,
    model_directory: Path | None = None,
    precision: Precision = "int8",
    threads: int | None = None,
) -> CrossEncoder | HostedScorer:
    """Make the reranking model that a configuration names: what it gives is a `PairScorer`.

    Args:
        provider: A row of the table that offers reranking.
        model: As the provider names it; None: the provider's default. For ``local`` a cross-encoder's directory.
        connection: How a hosted provider is reached; None: its own address, the key from the environment.
        recorder: Told of each request to a hosted provider.
        model_directory: Where ``local`` keeps models; required there.
        precision: For ``local``, ``"int8"`` or ``"fp32"``.
        threads: For ``local``, how many pairs are computed at once; by default one for each usable processor.

    Raises:
        UsageError: The provider is unknown, lacks an argument that it requires, or refuses one.
    """
    row = provider_named(provider, "reranking")
    name = row.model("reranking", model)
    if row.name == "local":
        return CrossEncoder(name, cache=model_cache(model_directory), precision=precision, threads=threads)

    request = ModelRequest(model=name, connection=_connection(row, connection))
    backend = _backend(row, "Reranking")(request)
    return HostedScorer(backend, _requester(row, request, "rerank", recorder, backend.sdk))


def make_chat_model(
    provider: str,
    model: str | None = None,
    *,
    connection: Connection | None = None,
    api: str | None = None,
    temperature: float | None = None,
    recorder: Recorder | None = None,
) -> ChatModel:
    """Make the language model that a configuration names.

    Args:
        provider: A row of the table that offers chat.
        model: As the provider names it; None: the provider's default.
        connection: How the provider is reached; None: its own address, the key from the environment.
        api: Of a provider with several interfaces, which; for ``openai`` ``"responses"`` or ``"chat"``.
        temperature: 0 for the most repeatable answers; None: the server's default (some models accept no other).
        recorder: Told of each request.

    Raises:
        UsageError: The provider is unknown, lacks an argument that it requires, or refuses one.

    Example:
        >>> make_chat_model("ollama", "qwen3").model_name
        'qwen3'
    """
    row = provider_named(provider, "chat")
    request = ModelRequest(
        model=row.model("chat", model), connection=_connection(row, connection), api=api, temperature=temperature
    )
    backend = _backend(row, "Chat")(request)
    return HostedChatModel(backend, _requester(row, request, "answer", recorder, backend.sdk))


def installed(row: Provider) -> bool:
    """Whether what a provider needs is installed."""
    return _missing(row) is None


def _missing(row: Provider) -> str | None:
    """The first package of a provider's extra that is not installed: its SDK, or what repeats requests."""
    wanted = () if row.sdk is None else (row.sdk, "tenacity")
    return next((package for package in wanted if not _is_installed(package)), None)


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # the parent of a package in parts
        return False


def environment_key(row: Provider) -> Secret | None:
    """The provider's key from the environment, where there is one."""
    found = next((value for name in row.key_variables if (value := os.environ.get(name, "").strip())), None)
    return None if found is None else Secret(found)


def _connection(row: Provider, given: Connection | None) -> Connection:
    connection = given or Connection()
    # The environment's key belongs to the provider, and is not sent to whatever server the configuration names.
    if connection.api_key is None and connection.base_url is None:
        connection = replace(connection, api_key=environment_key(row))
        if connection.api_key is None and row.needs_key:
            variables = " or ".join(row.key_variables)
            raise ConfigurationError(
                f"{row.title} needs an API key: set {variables} in the environment, or api_key, or base_url for a "
                "server that needs none."
            )
    if connection.base_url is None and row.base_url is not None:
        connection = replace(connection, base_url=row.base_url)
    return connection


def _backend(row: Provider, kind: str) -> Callable[[ModelRequest], Any]:
    missing = _missing(row)
    if missing is not None:
        raise ConfigurationError(
            f"The package {missing!r} is needed for models of {row.title}. Install it: {install_command(row.extra)}"
        )
    make: Callable[[ModelRequest], Any] = getattr(import_module(f"recollect.providers.{row.module}"), kind)
    return make


def _requester(
    row: Provider, request: ModelRequest, kind: RequestKind, recorder: Recorder | None, modules: Sequence[str]
) -> Requester:
    return Requester(
        provider=row.name,
        model=request.model,
        kind=kind,
        connection=request.connection,
        recorder=recorder,
        modules=modules,
    )
