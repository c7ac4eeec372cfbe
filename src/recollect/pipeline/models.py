"""The configured models of providers: settings as `recollect.providers` takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from recollect.config.models import ANSWER_PROVIDERS
from recollect.embedding.making import is_of_this_machine, make_machine_embedder
from recollect.errors import UsageError

if TYPE_CHECKING:
    from recollect.config import AnswerConfig, EmbeddingConfig, RAGConfig, RerankingConfig
    from recollect.embedding._download import Progress
    from recollect.embedding.base import EmbeddingProvider
    from recollect.llm.base import ChatModel
    from recollect.providers.connection import Connection
    from recollect.providers.requesting import Recorder
    from recollect.retrieval.rerank.base import PairScorer

#: Stands for no language model: answers are quotes.
EXTRACTIVE = "extractive"


def embedding_model(
    config: RAGConfig, *, recorder: Recorder | None = None, progress: Progress | None = None
) -> EmbeddingProvider:
    """The model of ``[rag.embedding]``.

    Raises:
        ConfigurationError: Its settings do not fit together, or its package or key is missing.
    """
    return make_embedding_model(config.embedding, recorder=recorder, progress=progress)


def make_embedding_model(
    settings: EmbeddingConfig, *, recorder: Recorder | None = None, progress: Progress | None = None
) -> EmbeddingProvider:
    """The model of settings like those of ``[rag.embedding]``; the rest is as of `embedding_model`."""
    if is_of_this_machine(settings.provider):  # providers would be imported for nothing
        return make_machine_embedder(
            settings.provider,
            settings.model,
            dimensions=settings.dimensions,
            model_directory=settings.model_dir,
            precision=settings.precision,
            threads=settings.threads,
            progress=progress,
        )
    from recollect.providers.registry import make_embedder

    return make_embedder(
        settings.provider,
        settings.model,
        connection=embedding_connection(settings),
        dimensions=settings.dimensions,
        query_model=settings.query_model,
        truncate=settings.truncate,
        recorder=recorder,
    )


def reranking_model(config: RAGConfig, *, recorder: Recorder | None = None) -> PairScorer | None:
    """The model of ``[rag.reranking]``; None: there is none.

    Raises:
        ConfigurationError: As of `embedding_model`.
    """
    settings = config.reranking
    if settings.provider == "none":
        return None
    from recollect.providers.registry import make_scorer

    return make_scorer(
        settings.provider,
        settings.model,
        connection=_connection(settings, search_price=settings.search_price),
        recorder=recorder,
        model_directory=config.embedding.model_dir,
        precision=config.embedding.precision,
        threads=config.embedding.threads,
    )


def language_model(config: RAGConfig, *, recorder: Recorder | None = None) -> ChatModel | None:
    """The model of ``[rag.answer]``; None: answers are extracted.

    Raises:
        ConfigurationError: As of `embedding_model`.
    """
    return make_language_model(config.answer, recorder=recorder)


def model_name(settings: AnswerConfig) -> str:
    """The language model of settings like those of ``[rag.answer]``, as `named_answer_settings` takes it."""
    if settings.provider == EXTRACTIVE:
        return EXTRACTIVE
    from recollect.providers.catalogue import PROVIDERS

    model = settings.model or PROVIDERS[settings.provider].default_models.get("chat", "")
    return f"{settings.provider}/{model}".rstrip("/")


def named_answer_settings(settings: AnswerConfig, name: str) -> AnswerConfig:
    """``[rag.answer]`` with another model.

    A key, an address and a temperature go nowhere but to the provider that they are configured for, and prices are the
    configured model's.

    Args:
        settings: As configured.
        name: ``provider/model``, or the provider alone for its default model; ``extractive``: no model.

    Raises:
        UsageError: There is no such provider.
    """
    provider, _, model = name.partition("/")
    if provider not in ANSWER_PROVIDERS:
        raise UsageError(f"{name!r} is no language model: name it provider/model, with {_listed(ANSWER_PROVIDERS)}.")
    if name in (model_name(settings), settings.provider):
        return settings
    own: dict[str, object] = {"provider": provider, "model": model or None, "input_price": None, "output_price": None}
    if provider != settings.provider:
        own |= dict.fromkeys(("api", "api_key", "base_url", "region", "temperature"))
    return settings.model_copy(update=own)


def with_model(config: RAGConfig, name: str) -> RAGConfig:
    """The settings with another language model; see `named_answer_settings`."""
    return config.model_copy(update={"answer": named_answer_settings(config.answer, name)})


def make_language_model(settings: AnswerConfig, *, recorder: Recorder | None = None) -> ChatModel | None:
    """The model of settings like those of ``[rag.answer]``; the rest is as of `language_model`."""
    if settings.provider == EXTRACTIVE:
        return None
    from recollect.providers.registry import make_chat_model

    return make_chat_model(
        settings.provider,
        settings.model,
        connection=_connection(settings, output_price=settings.output_price),
        api=settings.api,
        temperature=settings.temperature,
        recorder=recorder,
    )


def embedding_connection(settings: EmbeddingConfig) -> Connection:
    """How the provider of embeddings is reached."""
    return _connection(
        settings, parallel=settings.parallel, batch_size=settings.batch_size, batch_tokens=settings.batch_tokens
    )


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


def _connection(
    settings: EmbeddingConfig | RerankingConfig | AnswerConfig,
    *,
    output_price: float | None = None,
    search_price: float | None = None,
    parallel: int = 4,
    batch_size: int | None = None,
    batch_tokens: int | None = None,
) -> Connection:
    from recollect.providers.connection import Connection, Secret

    return Connection(
        api_key=None if settings.api_key is None else Secret(settings.api_key.get_secret_value()),
        base_url=settings.base_url,
        region=settings.region,
        timeout_seconds=settings.timeout_seconds,
        max_retries=settings.max_retries,
        input_price=settings.input_price,
        output_price=output_price,
        search_price=search_price,
        parallel=parallel,
        batch_size=batch_size,
        batch_tokens=batch_tokens,
    )
