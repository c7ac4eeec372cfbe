"""What a pipeline is put together from: each part made from the configuration, once, when it is first needed."""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeAlias

import platformdirs
from cachetools import LRUCache

from recollect.buffered_log import BufferedLog
from recollect.errors import ConfigurationError, UsageError
from recollect.forking import computes_properties, leave_to_parent, renew_in_children
from recollect.model import DEFAULT_TENANT_ID, Answer, RetrievalOptions, Scope, SearchReply
from recollect.model.activity import ANSWER_LABELS, Access, ActivityName, Tally, outcome_of
from recollect.model.document import ExpiryPolicy
from recollect.model.principal import DefaultPermissions
from recollect.model.scope import Target, asking_tenant
from recollect.model.time import read_lifetime
from recollect.model.written_files import close_folder
from recollect.pipeline.models import Embedders, language_model, named_answer_settings, reranking_model
from recollect.pipeline.upkeep import Upkeep
from recollect.retrieval.retrievers import MODES
from recollect.store.store import Store

if TYPE_CHECKING:
    from pathlib import Path

    from recollect.answer.prompt import PromptTemplate
    from recollect.answer.reader import Reader
    from recollect.chunking.base import Tokenize
    from recollect.config import RAGConfig
    from recollect.documents.pictures import PictureDescriber
    from recollect.documents.workers import ParserWorkers
    from recollect.embedding.base import EmbeddingProvider
    from recollect.embedding.models import ModelCache
    from recollect.fetching.client import Fetcher
    from recollect.llm.base import ChatModel
    from recollect.memory import QueryPatternTracker
    from recollect.model.collection import Collection
    from recollect.model.remote import Remote
    from recollect.model.requests import LoggedRequest, RequestRecord
    from recollect.pipeline.remembering import TenantMemory
    from recollect.plugins import Plugins
    from recollect.retrieval.rerank.base import PairScorer
    from recollect.retrieval.resident.collections import ResidentCollections
    from recollect.retrieval.search import Searcher
    from recollect.retrieval.why_not import WhyNotInquiry


#: Called with the bytes fetched so far and the expected total, None where it is unknown.
DownloadProgress: TypeAlias = "Callable[[int, int | None], None]"

# Tenants whose memory (its lexicon and the latest questions) is kept at hand.
_TENANTS = 256

# Language models that are kept at hand beside the configured one.
_MODELS = 16


@computes_properties
class Assembly:
    """The parts of one pipeline. Safe to share between threads.

    Args:
        config: What to build.
        embedder: Used in place of the configured one.
        chat_model: Used in place of the configured one.
        on_download: Told how the download of a model advances.
        chunkers: Further chunking strategies, by name.
        rerankers: Further rerankers.
        retrievers: Further retrievers.
        remotes: What is searched together with the configured tenant's collections, beside what is configured.

    Raises:
        UsageError: A name is taken, or what is given lacks something.
        ConfigurationError: What is configured by name does not exist.
    """

    def __init__(
        self,
        config: RAGConfig,
        *,
        embedder: EmbeddingProvider | None = None,
        chat_model: ChatModel | None = None,
        on_download: DownloadProgress | None = None,
        chunkers: Mapping[str, Any] | None = None,
        rerankers: Mapping[str, Any] | None = None,
        retrievers: Mapping[str, Any] | None = None,
        remotes: Sequence[Any] = (),
    ) -> None:
        self.config = config
        self._given_parts = {"chunkers": chunkers, "rerankers": rerankers, "retrievers": retrievers}
        for kind, given in self._given_parts.items():
            if given:
                getattr(self, kind)
        _require_parts(self)
        #: What is searched together with collections where a view names nothing else.
        self.remotes: tuple[Remote, ...] = ()
        self._clients: Sequence[Any] = ()
        if remotes or config.remotes:
            from recollect.pipeline.federation import configured_remotes

            self.remotes, self._clients = configured_remotes(config, remotes)
        self._given_embedder = embedder
        self._given_chat_model = chat_model
        self._on_download = on_download
        #: Told what happens; replaced as a whole, so that it may change while others are told.
        self.observers: tuple[Observer, ...] = ()
        self._begin()
        renew_in_children(self)

    def _begin(self) -> None:
        self._lock = threading.RLock()
        self.embedders = Embedders(
            self.config, given=self._given_embedder, recorder=self.record_request, progress=self._on_download
        )
        self._store: Store | None = None
        self._default_tenant: int | None = None
        self._searcher: Searcher | None = None
        self._memories: LRUCache[int, TenantMemory] = LRUCache(_TENANTS)
        self._patterns: QueryPatternTracker | None = None
        self._upkeep: Upkeep | None = None
        self._prompts: dict[Path, PromptTemplate] = {}
        self._named_chat_models: LRUCache[tuple[str | None, float | None], ChatModel | None] = LRUCache(_MODELS)

    def renew_in_child(self) -> None:
        """In the child of a fork: everything is made anew when it is needed; what there was is the parent's."""
        leave_to_parent(dict(self.__dict__))
        for name in ("models", "reranking_model", "chat_model", "request_log", "access_log", "activity", "fetcher"):
            self.__dict__.pop(name, None)
        self._begin()

    def close(self) -> None:
        """Close the store and let go of its server; the next use opens it again."""
        # Without the lock, which the threads of the logs take for the store: they are waited for.
        for name in ("request_log", "access_log", "activity"):
            if name in vars(self):
                vars(self)[name].close()
        with self._lock:
            models = self.embedders, vars(self).get("reranking_model")
            for part in (*models, self._upkeep, self._searcher, self._patterns, self._store):
                # A model of this machine holds nothing open.
                close = getattr(part, "close", None)
                if close is not None:
                    close()
            self._searcher = self._store = self._patterns = self._upkeep = self._default_tenant = None
            self._memories.clear()
            for client in self._clients:
                client.close()
            if "parser_workers" in vars(self):
                self.parser_workers.close()
            if "fetcher" in vars(self):
                self.fetcher.close()

    @cached_property
    def chunkers(self) -> Plugins:
        """All chunking strategies."""
        from recollect.chunking.registry import CHUNKERS

        return CHUNKERS.with_given(self._given_parts["chunkers"])

    @cached_property
    def rerankers(self) -> Plugins:
        """All rerankers."""
        from recollect.retrieval.rerank.registry import RERANKERS

        return RERANKERS.with_given(self._given_parts["rerankers"])

    @cached_property
    def retrievers(self) -> Plugins:
        """All retrievers."""
        from recollect.retrieval.retrievers import RETRIEVERS

        return RETRIEVERS.with_given(self._given_parts["retrievers"])

    @property
    def default_tenant(self) -> int:
        """The number of the configured tenant (``[rag] tenant``), or else of the store's own.

        Raises:
            NotFoundError: There is no such tenant as is configured.
        """
        if self.config.tenant is None:
            return DEFAULT_TENANT_ID
        with self._lock:
            if self._default_tenant is None:
                self._default_tenant = self.store.tenants.number(self.config.tenant)
            return self._default_tenant

    @property
    def store(self) -> Store:
        """The open store.

        Raises:
            StoreUnavailableError: It cannot be started or reached.
            SchemaVersionError: It was written by a newer recollect.
        """
        with self._lock:
            if self._store is None:
                storage = self.config.storage
                # Older versions made the copies of private repositories readable by everybody.
                with suppress(UsageError):
                    close_folder(storage.data_dir / "sources")
                self._store = Store(
                    data_dir=storage.data_dir,
                    dsn=storage.dsn.get_secret_value() if storage.dsn else None,
                    application_dsn=storage.application_dsn.get_secret_value() if storage.application_dsn else None,
                    read_dsn=storage.read_dsn.get_secret_value() if storage.read_dsn else None,
                    max_connections=storage.max_connections,
                    index_threshold=storage.index_threshold,
                    expiry=_expiry_policy(self.config),
                    default_permissions=DefaultPermissions(self.config.access.default_permissions),
                )
                if self.config.temporal.cleanup_interval_hours:
                    days = self.config.embedding.keep_previous_days
                    self._upkeep = Upkeep(self._store, self.config.temporal, keep_previous_days=days)
                    self._upkeep.start()
            return self._store

    @cached_property
    def parser_workers(self) -> ParserWorkers:
        """The processes that parse files."""
        from recollect.documents.workers import ParseLimits, ParserWorkers

        settings = self.config.ingest
        limits = ParseLimits(
            seconds=settings.parse_seconds,
            memory_bytes=settings.parse_memory_bytes,
            characters=settings.max_characters,
        )
        return ParserWorkers(
            limits,
            at_once=settings.readers,
            readings=platformdirs.user_cache_path("recollect") / "pages",
            ocr=self.config.documents.ocr != "off",
            ocr_seconds=self.config.documents.ocr_seconds,
            describer=self._describer(),
        )

    def _describer(self) -> PictureDescriber | None:
        spec = self.config.documents.describe_images
        if spec is None:
            return None
        from recollect.pipeline.describing import ModelDescriber, require_seeing

        require_seeing(spec)
        model = self.given_chat_model
        if model is None:
            model = language_model(named_answer_settings(self.config.answer, spec), recorder=self.record_request)
        assert model is not None, "extractive sees nothing, and was refused"
        return ModelDescriber(
            model,
            spec,
            folder=platformdirs.user_cache_path("recollect") / "pictures",
            timeout_seconds=self.config.answer.timeout_seconds,
        )

    @cached_property
    def fetcher(self) -> Fetcher:
        """What fetches pages, within ``[rag.sources]``.

        Raises:
            UsageError: A host is none.
        """
        from recollect.fetching.client import Fetcher
        from recollect.fetching.guard import Guard, host_rules

        settings = self.config.sources
        guard = Guard(
            allow_private_addresses=settings.allow_private_addresses,
            allowed_hosts=host_rules(settings.allowed_hosts, name="allowed_hosts"),
            denied_hosts=host_rules(settings.denied_hosts, name="denied_hosts"),
        )
        return Fetcher(
            guard,
            max_bytes=settings.max_bytes,
            timeout_seconds=settings.timeout_seconds,
            user_agent=settings.user_agent,
        )

    @cached_property
    def models(self) -> ModelCache:
        """The local models that are fetched already, and the way to fetch more."""
        from recollect.embedding.models import ModelCache

        return ModelCache(self.config.embedding.model_dir)

    def reader_for(self, embedder: EmbeddingProvider) -> Reader | None:
        """What reads passages for the answer: it is made of the default embedding model, where that is used anyway."""
        from recollect.embedding.models import DEFAULT_MODEL

        return self._reader if embedder.model_name.startswith(f"{DEFAULT_MODEL}:") else None

    def checker_for(self, embedder: EmbeddingProvider) -> Reader | None:
        """What says whether passages support a statement, where the default embedding model is used anyway."""
        return None if self.reader_for(embedder) is None else self._checker

    @cached_property
    def _reader(self) -> Reader:
        from recollect.answer.reader import Reader

        settings = self.config.embedding
        return Reader(self.models, precision=settings.precision, threads=settings.threads)

    @cached_property
    def _checker(self) -> Reader:
        from recollect.answer.reader import CHECKER, Reader

        settings = self.config.embedding
        return Reader(self.models, weights=CHECKER, precision=settings.precision, threads=settings.threads)

    @property
    def embedder(self) -> EmbeddingProvider:
        """The configured embedding model, that of new collections, before any cache."""
        return self.embedders.configured

    def embedder_for(self, place: Collection) -> EmbeddingProvider:
        """The embedding model of a collection, whatever is configured for new ones, before any cache.

        Raises:
            UsageError: It cannot be made here; the message says why, and what to do.
        """
        return self.embedders.of(place)

    def record_request(self, record: RequestRecord) -> None:
        """Log a request to a provider for the tenant that asks, and tell whoever observes."""
        from recollect.model.requests import LoggedRequest

        self.request_log.add(asking_tenant(), LoggedRequest(at=datetime.now(UTC), **asdict(record)))
        for observer in self.observers:
            observer.requested(record)

    @property
    def given_chat_model(self) -> ChatModel | None:
        """The language model that takes the place of every configured one; None: none does."""
        return self._given_chat_model

    @cached_property
    def chat_model(self) -> ChatModel | None:
        """The language model that writes answers; None: answers are extracted."""
        if self._given_chat_model is not None:
            return self._given_chat_model
        return language_model(self.config.answer, recorder=self.record_request)

    def chat_model_of(self, name: str | None, *, temperature: float | None = None) -> ChatModel | None:
        """The language model that writes an answer; None: it is extracted.

        Args:
            name: ``provider/model``, or ``extractive``; None: the configured one.
            temperature: Of the model; None: as configured.

        Raises:
            UsageError: There is no such model, its package or key is missing, or its temperature cannot be set.
        """
        if name is None and (temperature is None or self.chat_model is None):
            return self.chat_model
        if name is None and self._given_chat_model is not None:
            raise UsageError(f"The model {self._given_chat_model.model_name!r} takes no temperature: leave it out.")
        with self._lock:
            key = (name, temperature)
            if key not in self._named_chat_models:
                settings = self.config.answer if name is None else named_answer_settings(self.config.answer, name)
                if temperature is not None:
                    settings = settings.model_copy(update={"temperature": temperature})
                self._named_chat_models[key] = language_model(settings, recorder=self.record_request)
            return self._named_chat_models[key]

    @cached_property
    def reranking_model(self) -> PairScorer | None:
        """The provider's model that orders what was found; None: there is none."""
        return reranking_model(self.config, recorder=self.record_request)

    @cached_property
    def request_log(self) -> BufferedLog[LoggedRequest]:
        """Where requests to providers are recorded: a log is no reason to fail or delay what asks."""
        return BufferedLog(lambda scope, requests: self.store.requests.append(scope, requests), name="requests")

    @cached_property
    def access_log(self) -> BufferedLog[Access]:
        """Where what the server shows is recorded."""
        from recollect.store.access_log import AccessLogRepository

        questions = self.config.server.audit.questions

        def append(scope: Scope, accesses: list[Access]) -> None:
            # Over a caretaker's connection: the tenant may have been suspended since.
            AccessLogRepository(self.store.caretaking).append(scope, accesses, questions=questions)

        return BufferedLog(append, name="accesses", keeps=True)

    @cached_property
    def activity(self) -> ActivityLog:
        """Where what happens is counted."""
        return ActivityLog(lambda: self.store)

    def prompt(self, collection: str | None) -> PromptTemplate | None:
        """The prompt of answers from a collection; None: the packaged one.

        Raises:
            ConfigurationError: Its file cannot be read, or something is missing in it.
        """
        settings = self.config.answer
        path = settings.prompts.get(collection or "", settings.prompt)
        if path is None:
            return None
        with self._lock:
            if path not in self._prompts:
                from recollect.answer.prompt import load_prompt

                self._prompts[path] = load_prompt(path)
            return self._prompts[path]

    @property
    def count_tokens(self) -> Callable[[str], int]:
        """Counts tokens as the model that reads a context does, as far as that is known.

        A language model counts for itself where it can (``count_tokens``); of others four bytes are a token. Without
        one, the local embedding model's tokenizer counts.
        """
        from recollect.context import estimate_tokens

        if self.chat_model is not None:
            own: Callable[[str], int] = getattr(self.chat_model, "count_tokens", estimate_tokens)
            return own
        return self._embedder_counter

    @cached_property
    def _embedder_counter(self) -> Callable[[str], int]:
        from recollect.context import counter_of, estimate_tokens

        token_spans: Tokenize | None = getattr(self.embedder, "token_spans", None)
        if token_spans is None:
            return estimate_tokens
        return counter_of(token_spans, by_words=getattr(self.embedder, "splits_at_blanks", None))

    @property
    def searcher(self) -> Searcher:
        """Runs searches against the open store."""
        with self._lock:
            if self._searcher is None:
                # Its server starts while what searches is imported, and a model that is loaded ahead.
                store = self.store
                from recollect.pipeline.searching import make_searcher

                self._searcher = make_searcher(
                    store,
                    self.embedders,
                    self.config,
                    chat_model=lambda: self.chat_model,
                    scorer=lambda: self.reranking_model,
                    rerankers=self.rerankers,
                )
            return self._searcher

    @property
    def held(self) -> ResidentCollections | None:
        """What holds copies of collections in memory; None: nothing does, or not yet."""
        return None if self._searcher is None else self._searcher.held

    def search(self, scope: Scope, query: str, options: RetrievalOptions, target: Target) -> SearchReply:
        """Run a search, of which the observers are told.

        Raises:
            UsageError: There is no such mode or reranker, beside what `Searcher.search` raises.
        """
        mode = options.mode or self.config.retrieval.mode
        if options.rerank is not None and options.rerank != "none":
            self.rerankers.find(options.rerank)
        search = partial(self.searcher.search, scope, query, options, target)
        if target.remotes or mode not in MODES:
            search = self._beyond_the_store(search, scope, query, options, target, mode)
        if not self.observers:
            return search()
        with ExitStack() as watched:
            for observer in self.observers:
                watched.enter_context(observer.searching())
            reply = search()
            for observer in self.observers:
                observer.searched(reply)
            return reply

    def _beyond_the_store(
        self,
        search: Callable[[], SearchReply],
        scope: Scope,
        query: str,
        options: RetrievalOptions,
        target: Target,
        mode: str,
    ) -> partial[SearchReply]:
        """A search that asks remotes too, or a retriever in the store's place."""
        from recollect.pipeline.federation import found_by, found_together

        whose, given = self.default_tenant, options
        if options.top_k is None:
            given = replace(options, top_k=self.config.top_k)
        if mode not in MODES:
            retriever = self.retrievers.shared(mode)
            search = partial(found_by, retriever, scope, query, given, target, mode=mode, tenant_id=whose)
        return partial(found_together, search, scope, query, given, target, whose)

    @property
    def query_patterns(self) -> QueryPatternTracker:
        """Counts what memory is asked for, until the store is closed."""
        with self._lock:
            if self._patterns is None:
                from recollect.memory import QueryPatternTracker

                self._patterns = QueryPatternTracker(self.store.memory)
            return self._patterns

    def why_not(self) -> WhyNotInquiry:
        """Says why searches of the open store do not find a document."""
        from recollect.pipeline.searching import make_why_not

        return make_why_not(
            self.store,
            self.embedders,
            self.config,
            chat_model=lambda: self.chat_model,
            scorer=lambda: self.reranking_model,
            rerankers=self.rerankers,
        )

    def memory(self, tenant_id: int) -> TenantMemory:
        """What remembers and recalls a tenant's conversations and facts."""
        with self._lock:
            found = self._memories.get(tenant_id)
            if found is None:
                from recollect.pipeline.remembering import TenantMemory

                found = self._memories[tenant_id] = TenantMemory(
                    tenant_id,
                    store=self.store,
                    embedders=self.embedders,
                    config=self.config,
                    tracker=self.query_patterns,
                    chat_model=lambda: self.chat_model,
                )
            return found


def _require_parts(assembly: Assembly) -> None:
    """Raises ConfigurationError where a part that is configured does not exist, or does not know a parameter.

    An existing collection would not ask for the chunking.
    """
    config = assembly.config
    if config.chunking.model_fields_set:
        from recollect.chunking.registry import make_chunker

        parameters = {key: value for key, value in config.chunking.parameters.items() if key != "similarity"}
        _named("chunking", partial(make_chunker, config.chunking.strategy, chunkers=assembly.chunkers, **parameters))
    if config.retrieval.rerank not in {"none", "consensus"}:
        _named("retrieval.rerank", partial(assembly.rerankers.find, config.retrieval.rerank))
    if config.retrieval.mode != "hybrid":
        _named("retrieval.mode", partial(assembly.retrievers.find, config.retrieval.mode))


def _named(setting: str, find: Callable[[], object]) -> None:
    try:
        find()
    except UsageError as exc:
        raise ConfigurationError(f"rag.{setting}: {exc}") from exc


def _expiry_policy(config: RAGConfig) -> ExpiryPolicy:
    temporal = config.temporal
    ttl = temporal.default_ttl
    return ExpiryPolicy(
        default_ttl=read_lifetime(ttl, name="rag.temporal.default_ttl"),
        preserve_tags=temporal.preserve_tags,
    )


class Observer:
    """Is told what a pipeline does, in the thread that does it; this one takes no notice.

    What it is told holds questions and texts: what it keeps, and where, is its own responsibility.
    """

    def searching(self) -> AbstractContextManager[None]:
        """Entered for the time of a search, for what must be known before it ends."""
        return nullcontext()

    def searched(self, reply: SearchReply) -> None:
        """A search has found what it found; told within `searching`."""

    def answered(self, answer: Answer) -> None:
        """A question has been answered, or the answer refused."""

    def requested(self, record: RequestRecord) -> None:
        """A provider's model has been asked, with or without success."""


# Counts of what happens on their way into the store: added up by the minute, off the path of whoever searches.


#: After so many seconds what was counted is in the store.
FLUSH_SECONDS = 5.0

#: How often the size of the store is noted.
_SIZE_SECONDS = 3_600.0

#: When (the minute), what, its label, and the milliseconds that it took.
_Event: TypeAlias = tuple[datetime, ActivityName, str, float | None]


class ActivityLog(Observer):
    """Counts what a process does for each tenant. Safe between threads.

    What cannot be stored is logged and lost: a count is no reason to fail or delay a search.

    Args:
        store: Gives the open store, once there is something.
        flush_seconds: How long a count may wait.
    """

    def __init__(self, store: Callable[[], Store], *, flush_seconds: float = FLUSH_SECONDS) -> None:
        self._store = store
        self._log: BufferedLog[_Event] = BufferedLog(
            self._append, name="events", flush_seconds=flush_seconds, batch=100_000, level=logging.INFO
        )

    def count(self, tenant_id: int, name: ActivityName, label: str, milliseconds: float | None = None) -> None:
        """Count something; returns at once."""
        self._log.add(tenant_id, (_minute(), name, label, milliseconds))

    def searched(self, reply: SearchReply) -> None:
        """Count a search: what the cache answered, what was found, and the time of its stages."""
        at, timings = _minute(), {} if reply.cached else reply.timings_ms
        self._log.add(
            asking_tenant(),
            (at, "cache", "hit" if reply.cached else "miss", None),
            (at, "found", outcome_of(reply) or "some", None),
            *((at, "search", stage, milliseconds) for stage, milliseconds in timings.items()),
        )

    def answered(self, answer: Answer) -> None:
        """Count an answer, by what became of its question."""
        self.count(asking_tenant(), "answer", ANSWER_LABELS[answer.outcome])

    def flush(self) -> None:
        """Store what waits."""
        self._log.flush()

    def close(self) -> None:
        """Store what waits and end the thread; another count starts it again."""
        self._log.close()

    def _append(self, scope: Scope, events: list[_Event]) -> None:
        tallies: defaultdict[tuple[datetime, str, str], Tally] = defaultdict(Tally)
        for at, name, label, milliseconds in events:
            tallies[at, name, label].add(milliseconds)
        store = self._store()
        if not self._log.is_closing and store.upkeep.claim(scope, "sizes", every_seconds=_SIZE_SECONDS):
            tallies[_minute(), "size", "database"] = Tally(1, float(store.activity.database_bytes(scope)))
        store.activity.add(scope, tallies)


def _minute() -> datetime:
    return datetime.now(UTC).replace(second=0, microsecond=0)
