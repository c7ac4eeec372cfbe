"""Builds the parts from the configuration, each once and when it is first needed: the only place that knows all."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from recollect.errors import ConfigurationError, UsageError
from recollect.forking import computes_properties, leave_to_parent, renew_in_children
from recollect.model import DEFAULT_TENANT_ID, Principal, Scope
from recollect.model.principal import DefaultPermissions, reads_as
from recollect.model.time import Moment, read_duration, read_time
from recollect.model.time_to_live import ExpiryPolicy

if TYPE_CHECKING:
    from recollect.chunking.base import ChunkingStrategy, Tokenize
    from recollect.config import RAGConfig
    from recollect.documents.workers import ParserWorkers
    from recollect.embedding.base import EmbeddingProvider
    from recollect.embedding.models import ModelCache
    from recollect.ingest.documents import BatchWriter
    from recollect.ingest.prepare import Preparer, TokenPacker
    from recollect.llm.base import ChatModel
    from recollect.memory import QueryPatternTracker
    from recollect.memory.consolidation import Consolidator
    from recollect.memory.facts import FactMemory
    from recollect.memory.forgetting import Forgetter
    from recollect.memory.service import Memory
    from recollect.pipeline.upkeep import Upkeep
    from recollect.retrieval.search import Searcher
    from recollect.retrieval.turns import TurnTerms
    from recollect.retrieval.why_not import WhyNotInquiry
    from recollect.store.collections import Collection
    from recollect.store.store import Store

#: Called with the bytes fetched so far and the expected total, None where it is unknown.
DownloadProgress: TypeAlias = "Callable[[int, int | None], None]"


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionSettings:
    """What a new collection is made with; see `recollect.store.collections.Collection`."""

    embedding_model: str
    embedding_dimension: int
    language: str
    chunking: Mapping[str, Any]
    token_vectors: bool


@computes_properties
class Parts:
    """The parts of one pipeline. Safe to share between threads.

    Args:
        config: What to build.
        embedder: Used in place of the configured one.
        chat_model: Used in place of the configured one.
        on_download: Told how the download of a model advances.
    """

    def __init__(
        self,
        config: RAGConfig,
        *,
        embedder: EmbeddingProvider | None = None,
        chat_model: ChatModel | None = None,
        on_download: DownloadProgress | None = None,
    ) -> None:
        _require_chunking(config)
        self._config = config
        self._given_embedder = embedder
        self._given_chat_model = chat_model
        self._on_download = on_download
        self._begin()
        renew_in_children(self)

    def _begin(self) -> None:
        self._lock = threading.RLock()
        self._embedder_lock = threading.Lock()
        self._store: Store | None = None
        self._named_tenant: int | None = None
        self._searcher: Searcher | None = None
        self._memories: dict[int, Memory] = {}
        self._terms: dict[int, TurnTerms] = {}
        self._questions: dict[int, EmbeddingProvider] = {}
        self._patterns: QueryPatternTracker | None = None
        self._upkeep: Upkeep | None = None

    def renew_in_child(self) -> None:
        """In the child of a fork: everything is made anew when it is needed; what there was is the parent's."""
        leave_to_parent(dict(self.__dict__))
        for name in ("models", "_configured_embedder", "chat_model"):
            self.__dict__.pop(name, None)
        self._begin()

    def close(self) -> None:
        """Close the store and let go of its server; the next use opens it again."""
        with self._lock:
            if self._upkeep is not None:
                self._upkeep.close()
            if self._searcher is not None:
                self._searcher.close()
            if self._patterns is not None:
                self._patterns.close()
            if self._store is not None:
                self._store.close()
            self._searcher = self._store = self._patterns = self._upkeep = None
            self._memories = {}
            self._named_tenant = None
            self._questions = {}
            if "parser_workers" in vars(self):
                self.parser_workers.close()

    def scope(self, tenant_id: int | None, as_of: Moment | None = None, *, principal: Principal | None = None) -> Scope:
        """A tenant's knowledge as of a time, as somebody sees it; what that means is configured (``[rag.access]``).

        Raises:
            UsageError: ``as_of`` is no time, or ``principal`` no `Principal`.
        """
        scope, access = self.scope_of(tenant_id, as_of), self._config.access
        if principal is not None and not isinstance(principal, Principal):
            raise UsageError(f"principal must be a recollect.Principal, not {principal!r}.")
        match access.mode:
            case "enforce":
                return replace(scope, principal=principal, reads_as=reads_as(principal, access.role_departments))
            case "preference":
                return replace(scope, ranked_for=principal)
            case _:
                return scope

    def scope_of(self, tenant_id: int | None, as_of: Moment | None = None) -> Scope:
        """A tenant's knowledge as of a time (without a zone: UTC), all of it.

        Args:
            tenant_id: None: the configured one (``[rag] tenant``), or else the store's own.
            as_of: None: the present.

        Raises:
            UsageError: ``as_of`` is no time.
            NotFoundError: There is no such tenant as is configured.
        """
        moment = None if as_of is None else read_time(as_of, name="as_of")
        return Scope(tenant_id=self._default_tenant if tenant_id is None else tenant_id, as_of=moment)

    @property
    def _default_tenant(self) -> int:
        named = self._config.tenant
        if named is None:
            return DEFAULT_TENANT_ID
        with self._lock:
            if self._named_tenant is None:
                self._named_tenant = self.store.tenants.number(named)
            return self._named_tenant

    @property
    def store(self) -> Store:
        """The open store.

        Raises:
            StoreUnavailableError: It cannot be started or reached.
            SchemaVersionError: It was written by a newer recollect.
        """
        with self._lock:
            if self._store is None:
                from recollect.store.store import Store

                storage = self._config.storage
                self._store = Store(
                    data_dir=storage.data_dir,
                    dsn=storage.dsn.get_secret_value() if storage.dsn else None,
                    application_dsn=storage.application_dsn.get_secret_value() if storage.application_dsn else None,
                    max_connections=storage.max_connections,
                    index_threshold=storage.index_threshold,
                    expiry=_expiry_policy(self._config),
                    default_permissions=DefaultPermissions(self._config.access.default_permissions),
                )
                if self._config.temporal.cleanup_interval_hours:
                    from recollect.pipeline.upkeep import Upkeep

                    self._upkeep = Upkeep(self._store, self._config.temporal)
                    self._upkeep.start()
            return self._store

    @cached_property
    def parser_workers(self) -> ParserWorkers:
        """The processes that parse files."""
        from recollect.documents.workers import ParseLimits, ParserWorkers

        settings = self._config.ingest
        limits = ParseLimits(
            seconds=settings.parse_seconds,
            memory_bytes=settings.parse_memory_bytes,
            characters=settings.max_characters,
        )
        return ParserWorkers(limits, at_once=settings.readers)

    @cached_property
    def models(self) -> ModelCache:
        """The local models that are fetched already, and the way to fetch more."""
        from recollect.embedding.models import ModelCache

        return ModelCache(self._config.embedding.model_dir)

    @property
    def embedder(self) -> EmbeddingProvider:
        """The embedding model, before any cache."""
        if self._given_embedder is not None:
            return self._given_embedder
        # A lock of its own: the store can be opened while a model is being fetched.
        with self._embedder_lock:
            return self._configured_embedder

    @cached_property
    def _configured_embedder(self) -> EmbeddingProvider:
        from recollect.embedding.registry import make_embedder

        settings = self._config.embedding
        local = settings.provider == "local"
        return make_embedder(
            settings.provider,
            settings.model if local else None,
            model_directory=settings.model_dir,
            precision=settings.precision,
            threads=settings.threads,
            progress=self._on_download,
        )

    @cached_property
    def chat_model(self) -> ChatModel | None:
        """The language model that writes answers; None: answers are extracted."""
        settings = self._config.answer
        if self._given_chat_model is not None or settings.provider == "extractive":
            return self._given_chat_model
        from recollect.llm.registry import make_chat_model

        return make_chat_model(
            settings.provider,
            model=settings.model,
            api_key=settings.api_key,
            base_url=settings.base_url,
            timeout_seconds=settings.timeout_seconds,
        )

    @property
    def count_tokens(self) -> Callable[[str], int]:
        """Counts tokens as the model that reads a context does, as far as that is known.

        A language model that was handed over counts for itself where it can (``count_tokens``). Of one behind a server
        nothing is known: four bytes are a token. Without one, the local embedding model's tokenizer counts.
        """
        from recollect.context import counter_of, estimate_tokens

        if self._given_chat_model is not None:
            own: Callable[[str], int] = getattr(self._given_chat_model, "count_tokens", estimate_tokens)
            return own
        token_spans: Tokenize | None = getattr(self.embedder, "token_spans", None)
        if token_spans is None or self._config.answer.provider != "extractive":
            return estimate_tokens
        return counter_of(token_spans)

    @property
    def searcher(self) -> Searcher:
        """Runs searches against the open store."""
        with self._lock:
            if self._searcher is None:
                # Its server starts while what searches is imported, and a model that is loaded ahead.
                store = self.store
                from recollect.pipeline.searching import make_searcher

                self._searcher = make_searcher(store, self.embedder, self._config, chat_model=lambda: self.chat_model)
            return self._searcher

    @property
    def query_patterns(self) -> QueryPatternTracker:
        """Counts what memory is asked for, until the store is closed."""
        with self._lock:
            if self._patterns is None:
                from recollect.memory import QueryPatternTracker

                self._patterns = QueryPatternTracker(self.store.memory)
            return self._patterns

    def memory(self, scope: Scope) -> Memory:
        """Remembers and recalls the conversations of a tenant."""
        with self._lock:
            found = self._memories.get(scope.tenant_id)
            if found is None:
                from recollect.memory.service import Memory

                found = self._memories[scope.tenant_id] = Memory(
                    self.store.memory,
                    self.store.recalls,
                    self._question_embedder(scope),
                    self._turn_terms(scope),
                    tracker=self.query_patterns,
                )
            return found

    def fact_memory(self, scope: Scope) -> FactMemory:
        """Searches the facts of a tenant."""
        from recollect.memory.facts import FactMemory
        from recollect.memory.search import MemorySearcher

        searcher = MemorySearcher(
            self.store.memory, self.store.recalls, self._question_embedder(scope), self._turn_terms(scope)
        )
        return FactMemory(searcher, self.store.facts)

    def forgetter(self, scope: Scope) -> Forgetter:
        """Erases single turns of a tenant's conversations."""
        from recollect.memory.forgetting import Forgetter

        return Forgetter(self.store.memory, self.store.forgetting, self.embedder, self._turn_terms(scope))

    def consolidator(self, scope: Scope) -> Consolidator:
        """Draws facts from the conversations of a tenant."""
        from recollect.memory.consolidation import Consolidator
        from recollect.memory.writing import FactWriter

        settings = self._config.memory
        lexicon = self._turn_terms(scope)
        model = self.chat_model if settings.facts_by_model else None
        return Consolidator(
            self.query_patterns,
            self.store.facts,
            self.store.recalls,
            embedder=self.embedder,
            lexicon=lexicon,
            language=self._config.language,
            writer=None if model is None else FactWriter(model, lexicon, timeout_seconds=settings.timeout_seconds),
        )

    def _question_embedder(self, scope: Scope) -> EmbeddingProvider:
        """The embedding model with a tenant's latest questions, which turns and facts are both searched for."""
        with self._lock:
            found = self._questions.get(scope.tenant_id)
            if found is None:
                from recollect.embedding.cached import CachedEmbedder

                # Only questions are kept: turns are seldom said twice, and what is deleted must leave nothing behind.
                found = self._questions[scope.tenant_id] = CachedEmbedder(
                    self.embedder, None, query_cache_size=self._config.retrieval.query_cache_entries
                )
            return found

    def _turn_terms(self, scope: Scope) -> TurnTerms:
        with self._lock:
            found = self._terms.get(scope.tenant_id)
            if found is None:
                from recollect.retrieval.turns import TurnTerms

                found = self._terms[scope.tenant_id] = TurnTerms(self._config.language, salt=scope.tenant_id)
            return found

    def why_not(self) -> WhyNotInquiry:
        """Says why searches of the open store do not find a document."""
        from recollect.pipeline.searching import make_why_not

        return make_why_not(self.store, self.embedder, self._config, chat_model=lambda: self.chat_model)

    def preparer(self, scope: Scope, place: Collection) -> Preparer:
        """Cuts and embeds documents for a collection.

        Raises:
            UsageError: The collection is embedded with another model than the configured one.
        """
        from recollect.ingest.prepare import Preparer
        from recollect.retrieval.indexing import TermIndexer

        if place.embedding_model != self.embedder.model_name:
            raise UsageError(
                f"The collection {place.name!r} is embedded with {place.embedding_model!r}, but "
                f"{self.embedder.model_name!r} is configured. Configure that model ([rag.embedding]) or choose another "
                "collection (--collection)."
            )
        # A text that is in the store already is embedded faster: somebody in particular must not measure which ones
        # those are, and a session's texts are nobody else's.
        cached = self._config.embedding.cache and not place.hidden and scope.principal is None
        embedder = self._cached(scope) if cached else self.embedder
        chunking = dict(place.chunking)
        return Preparer(
            self._chunker(chunking),
            TermIndexer(place.language, salt=place.collection_id),
            embedder,
            settings={"chunking": chunking, "embedding": place.embedding_model, "language": place.language},
            token_packer=self.token_packer() if place.token_vectors else None,
            cache=cached,
        )

    def token_packer(self) -> TokenPacker:
        """Computes token vectors and packs them.

        Raises:
            UsageError: The configured model gives none.
        """
        from recollect.retrieval.rerank.late_interaction import TokenEncoder
        from recollect.retrieval.rerank.packing import pack

        encoder = self.embedder
        if not isinstance(encoder, TokenEncoder):
            raise UsageError(
                "Token vectors require the local embedding model (embedding.provider = 'local'): other providers give "
                "none. Configure it, or make a collection without token vectors."
            )
        return lambda texts: [pack(own) for own in encoder.token_vectors(texts)]

    def _cached(self, scope: Scope) -> EmbeddingProvider:
        from recollect.embedding.cached import CachedEmbedder
        from recollect.store.embedding_cache import EmbeddingCacheRepository

        # An embedding is kept in the transaction that stores a chunk of its text: the chunk is what it goes with.
        cache = EmbeddingCacheRepository(self.store.database, scope)
        return CachedEmbedder(self.embedder, cache, keep_computed=False)

    def collection_settings(
        self,
        *,
        language: str | None = None,
        chunking: Mapping[str, Any] | None = None,
        token_vectors: bool | None = None,
    ) -> CollectionSettings:
        """How a new collection is cut, embedded and searched; what is None is as configured.

        Raises:
            UsageError: The chunking is not valid, or the embedding model gives no token vectors.
        """
        from recollect.retrieval.analysis import Analyzer

        settings = self._config
        wanted = settings.embedding.token_vectors if token_vectors is None else token_vectors
        if wanted:
            self.token_packer()
        configured = {"strategy": settings.chunking.strategy, **settings.chunking.parameters}
        return CollectionSettings(
            embedding_model=self.embedder.model_name,
            embedding_dimension=self.embedder.dimension,
            language=Analyzer(language or settings.language).language,
            chunking=self.chunking_description(chunking or configured),
            token_vectors=wanted,
        )

    def chunking_description(self, chunking: Mapping[str, Any]) -> dict[str, Any]:
        """The canonical description of a chunker: its strategy and every parameter.

        Raises:
            UsageError: The strategy or a parameter is unknown, or a value is not allowed.
        """
        from recollect.chunking.registry import describe_chunker

        return dict(describe_chunker(self._chunker(chunking)))

    def _chunker(self, description: Mapping[str, Any]) -> ChunkingStrategy:
        from recollect.chunking.registry import DEFAULT_STRATEGY, make_chunker

        parameters = {key: value for key, value in description.items() if key not in {"algorithm", "tokenize"}}
        strategy = str(parameters.pop("strategy", DEFAULT_STRATEGY))
        # `similarity` is a function of the embedding model; as a setting it says whether to use one.
        similarity = self._neighbour_similarity if parameters.pop("similarity", None) else None
        tokenize: Tokenize | None = getattr(self.embedder, "token_spans", None)
        by_tokens = parameters.get("unit") == "tokens" or "max_tokens" in parameters or strategy == "markdown"
        return make_chunker(strategy, tokenize=tokenize if by_tokens else None, similarity=similarity, **parameters)

    def _neighbour_similarity(self, texts: Sequence[str]) -> list[float]:
        vectors = self.embedder.embed_documents(texts)
        return [float(similarity) for similarity in (vectors[:-1] * vectors[1:]).sum(axis=1)]

    def batch_writer(self, scope: Scope, place: Collection, preparer: Preparer) -> BatchWriter:
        """Stores what ``preparer`` has made of documents."""
        from recollect.ingest.documents import BatchWriter

        return BatchWriter(preparer, self.store.collections, self.store.writer, scope=scope, collection=place)


def _require_chunking(config: RAGConfig) -> None:
    """Raises ConfigurationError where the strategy does not know a parameter: an existing collection would not ask."""
    if not config.chunking.model_fields_set:
        return
    from recollect.chunking.registry import make_chunker

    parameters = {key: value for key, value in config.chunking.parameters.items() if key != "similarity"}
    try:
        make_chunker(config.chunking.strategy, **parameters)
    except UsageError as exc:
        raise ConfigurationError(f"rag.chunking: {exc}") from exc


def _expiry_policy(config: RAGConfig) -> ExpiryPolicy:
    temporal = config.temporal
    ttl = temporal.default_ttl
    return ExpiryPolicy(
        default_ttl=None if ttl is None else read_duration(ttl, name="rag.temporal.default_ttl"),
        preserve_tags=temporal.preserve_tags,
    )
