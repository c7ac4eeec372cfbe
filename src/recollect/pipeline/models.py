"""The models of a pipeline, made from settings: embedders of collections, language models and scorers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from cachetools import LRUCache

from recollect.config.models import ANSWER_PROVIDERS
from recollect.embedding.cached import CacheCounts, CachedEmbedder
from recollect.embedding.making import is_of_this_machine, make_machine_embedder
from recollect.errors import ConfigurationError, RecollectError, UsageError
from recollect.model.embedding_spec import EmbeddingSpec

if TYPE_CHECKING:
    from recollect.config import AnswerConfig, EmbeddingConfig, RAGConfig, RerankingConfig
    from recollect.embedding._download import Progress
    from recollect.embedding.base import EmbeddingProvider
    from recollect.llm.base import ChatModel
    from recollect.model.collection import Collection
    from recollect.providers.connection import Connection
    from recollect.providers.requesting import Recorder
    from recollect.retrieval.relevance import RelevanceMeters
    from recollect.retrieval.rerank.base import PairScorer


#: Stands for no language model: answers are quotes.
EXTRACTIVE = "extractive"


def embedding_model(
    settings: EmbeddingConfig, *, recorder: Recorder | None = None, progress: Progress | None = None
) -> EmbeddingProvider:
    """The model of ``[rag.embedding]``, or of settings like those.

    Raises:
        ConfigurationError: Its settings do not fit together, or its package or key is missing.
    """
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
        connection=_connection(
            settings, parallel=settings.parallel, batch_size=settings.batch_size, batch_tokens=settings.batch_tokens
        ),
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


def language_model(settings: AnswerConfig, *, recorder: Recorder | None = None) -> ChatModel | None:
    """The model of ``[rag.answer]``, or of settings like those; None: answers are extracted.

    Raises:
        ConfigurationError: As of `embedding_model`.
    """
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


# The embedding models of collections: the configured one for new ones, of each that there is its own.


# Models beside the configured one that are kept at hand.
_MODELS = 8


class Embedders:
    """Makes the embedding models of collections, each once. Safe to share between threads, not with children of a fork.

    Args:
        config: All settings.
        given: Used in place of the configured model.
        recorder: Told of each request to a provider.
        progress: Told how the download of a model advances.
    """

    def __init__(
        self,
        config: RAGConfig,
        *,
        given: EmbeddingProvider | None = None,
        recorder: Recorder | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._config = config
        self._given = given
        self._recorder = recorder
        self._progress = progress
        self._lock = threading.Lock()
        self._configured: EmbeddingProvider | None = None
        self._others: LRUCache[tuple[str, EmbeddingSpec], EmbeddingProvider] = LRUCache(_MODELS)
        self._asking: LRUCache[int, CachedEmbedder] = LRUCache(_MODELS + 1)

    @property
    def configured(self) -> EmbeddingProvider:
        """The model of new collections, before any cache."""
        if self._given is not None:
            return self._given
        with self._lock:
            if self._configured is None:
                self._configured = self._made(self._config.embedding)
            return self._configured

    def load_ahead(self) -> None:
        """Load the configured model before its first use, where it is on this machine and is one that is loaded."""
        # Whatever is wrong is said where the model is used.
        with suppress(RecollectError, OSError):
            load = getattr(self.configured, "load_ahead", None)
            if load is not None:
                load()

    @cached_property
    def meters(self) -> RelevanceMeters:
        """The scales of similarities of the models that something was searched with."""
        from recollect.retrieval.relevance import RelevanceMeters

        return RelevanceMeters()

    @property
    def spec(self) -> dict[str, Any] | None:
        """How the configured model is made again, as new collections remember it; None: nobody but the caller knows."""
        return None if self._given is not None else spec_of(self._config.embedding).as_mapping()

    def of(self, place: Collection) -> EmbeddingProvider:
        """The model of a collection, before any cache: of its own provider, with the configured keys.

        Raises:
            UsageError: It cannot be made here: it is unknown, its package is not installed, or its key is missing.
        """
        whose = "A session's documents are" if place.hidden else f"The collection {place.name!r} is"
        remedy = "" if place.hidden else f" (recollect reembed --collection {place.name} --model MODEL)"
        return self.named(
            place.embedding_model,
            spec=place.embedding_spec,
            refused=lambda why: (
                f"{whose} embedded with {place.embedding_model!r}, which cannot be used here: {why} Set that right, "
                f"embed everything in it with another model{remedy}, or search it by words alone (mode lexical)."
            ),
        )

    def of_session(self, model: str) -> EmbeddingProvider:
        """The model of a conversation's vectors, by its name.

        Raises:
            UsageError: It cannot be made here.
        """
        return self.named(
            model,
            refused=lambda why: (
                f"A conversation was embedded with {model!r}, which cannot be used here: {why} Set that right, or "
                "recall by words alone (mode lexical)."
            ),
        )

    def named(
        self, name: str, *, refused: Callable[[object], str], spec: Mapping[str, Any] | None = None
    ) -> EmbeddingProvider:
        """The model of a name, as embedders tell their own.

        Args:
            name: Of the model.
            refused: What to say where it cannot be made, by why.
            spec: How it is made; None: as its name tells.

        Raises:
            UsageError: It cannot be made here.
        """
        configured = self.configured
        if configured.model_name == name:
            return configured
        wanted = _from_name(name, self._config.embedding) if spec is None else EmbeddingSpec.from_mapping(spec)
        if wanted is None:
            raise UsageError(refused("no provider is known to have it: it was handed to whoever made the vectors."))
        with self._lock:
            found = self._others.get((name, wanted))
            if found is None:
                try:
                    found = self._made(settings_of(wanted, self._config.embedding))
                except UsageError as exc:
                    raise UsageError(refused(exc)) from exc
                if found.model_name != name:
                    raise UsageError(refused(f"its provider gives {found.model_name!r} in its place."))
                self._others[name, wanted] = found
            return found

    def made(self, spec: EmbeddingSpec) -> tuple[EmbeddingProvider, dict[str, Any]]:
        """The model that a caller asks for, and what collections remember of it.

        Raises:
            UsageError: It cannot be made here.
        """
        settings = settings_of(spec, self._config.embedding)
        remembered = spec_of(settings)
        embedder = self._made(settings)
        with self._lock:
            self._others[embedder.model_name, remembered] = embedder
        return embedder, remembered.as_mapping()

    def of_length(self, dimensions: int) -> tuple[EmbeddingProvider, dict[str, Any] | None]:
        """Return the configured model with vectors of a length, and what collections remember of it.

        Raises:
            UsageError: The model does not offer that length, or nothing is known of its lengths.
        """
        if self._given is not None:
            embedder: EmbeddingProvider = self._given
            spec = None
        else:
            wanted = spec_of(self._config.embedding)
            if wanted.dimensions not in {None, dimensions} and not (wanted.truncate or _offers_lengths(wanted)):
                raise UsageError(
                    f"Nothing is known of the lengths that {wanted.model!r} ({wanted.provider}) offers: leave "
                    f"dimensions out, which gives {wanted.dimensions}, or set rag.embedding.truncate if its vectors "
                    "may be cut."
                )
            try:
                embedder, spec = self.made(replace(wanted, dimensions=dimensions))
            except ConfigurationError as exc:  # here it is the caller's choice
                raise UsageError(str(exc)) from exc
        if embedder.dimension != dimensions:
            raise UsageError(
                f"The vectors of {embedder.model_name!r} have {embedder.dimension} dimensions, not {dimensions}: leave "
                "dimensions out, or configure a model that offers several lengths."
            )
        return embedder, spec

    def spec_of_name(self, model: str, *, provider: str | None, dimensions: int | None) -> EmbeddingSpec:
        """What a caller means by a model.

        Args:
            model: As its provider names it, or with a provider's name before it and its length behind, as collections
                show it.
            provider: As ``[rag.embedding]`` names it; None: as the model's name tells, or the configured one.
            dimensions: The length of a vector; None: as the model's name tells, or the model's own.
        """
        configured = self._config.embedding
        told = _from_name(model, configured) if provider is None and dimensions is None else None
        if told is not None:
            return told
        provider = provider or configured.provider
        same = provider == configured.provider
        return EmbeddingSpec(
            provider=provider,
            model=None if provider == "hashing" else model,
            dimensions=dimensions,
            precision=configured.precision if provider == "local" else None,
            base_url=_without_user(configured.base_url) if same else None,
        )

    def asking(self, place: Collection) -> CachedEmbedder:
        """The model of a collection, for questions: the latest of each tenant are kept.

        Raises:
            UsageError: As of `of`.
        """
        embedder = self.of(place)
        with self._lock:
            found = self._asking.get(id(embedder))
            if found is None:
                size = self._config.retrieval.query_cache_entries
                found = CachedEmbedder(embedder, None, query_cache_size=size)
                self._asking[id(embedder)] = found  # which keeps the embedder, so that its id is nobody else's
            return found

    def take_query_counts(self) -> CacheCounts:
        """Hits and misses of questions in the calling thread, since it last took them."""
        with self._lock:
            asking = list(self._asking.values())
        counts = [one.take_query_counts() for one in asking]
        return CacheCounts(sum(one.hits for one in counts), sum(one.misses for one in counts))

    def close(self) -> None:
        """Close what was made; the next use makes it anew."""
        with self._lock:
            for made in (self._configured, *self._others.values()):
                # A model of this machine holds nothing open.
                close = getattr(made, "close", None)
                if close is not None:
                    close()

    def _made(self, settings: EmbeddingConfig) -> EmbeddingProvider:
        return embedding_model(settings, recorder=self._recorder, progress=self._progress)


def _offers_lengths(spec: EmbeddingSpec) -> bool:
    from recollect.providers.catalogue import PROVIDERS

    row = PROVIDERS[spec.provider]
    return spec.provider == "hashing" or row.known_dimension(row.model("embedding", spec.model)) is not None


def spec_of(settings: EmbeddingConfig) -> EmbeddingSpec:
    """What collections remember of a configured model."""
    return EmbeddingSpec(
        provider=settings.provider,
        model=settings.model,
        dimensions=settings.dimensions,
        precision=settings.precision if settings.provider == "local" else None,
        query_model=settings.query_model,
        truncate=settings.truncate,
        base_url=_without_user(settings.base_url),
    )


def settings_of(spec: EmbeddingSpec, configured: EmbeddingConfig) -> EmbeddingConfig:
    """The settings of a remembered model: with the configured key where its provider and its address are configured.

    A key goes nowhere but where it is configured for; what was reached elsewhere is asked there without it, and a
    provider's own address with the key from the environment.
    """
    same_provider = spec.provider == configured.provider
    same_address = same_provider and spec.base_url == _without_user(configured.base_url)
    own = {
        "provider": spec.provider,
        "model": spec.model,
        "dimensions": spec.dimensions,
        "query_model": spec.query_model,
        "truncate": spec.truncate,
        "precision": spec.precision or configured.precision,
    }
    if not same_address:
        own |= {"api_key": None, "base_url": spec.base_url}
    if not same_provider:
        own |= dict.fromkeys(("region", "batch_size", "batch_tokens", "input_price"))
    return configured.model_copy(update=own)


def _from_name(name: str, configured: EmbeddingConfig) -> EmbeddingSpec | None:
    """What a model's name tells, at the address that is configured for its provider."""
    told = EmbeddingSpec.from_name(name)
    if told is None or told.provider != configured.provider:
        return told
    return replace(told, base_url=_without_user(configured.base_url))


def _without_user(address: str | None) -> str | None:
    if address is None:
        return None
    parts = urlsplit(address)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


# The languages that much of a collection is in and that its embedding model does not know.
