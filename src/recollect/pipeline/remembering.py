"""A tenant's memory, put together: what remembers and recalls its turns and facts, and what forgets them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from cachetools import LRUCache

from recollect.embedding.cached import CachedEmbedder
from recollect.forking import computes_properties
from recollect.languages import AUTO, DEFAULT_LANGUAGE
from recollect.memory.search import FactMemory, MemorySearcher
from recollect.memory.service import Forgetter, Memory
from recollect.retrieval.indexing import TurnTerms

if TYPE_CHECKING:
    from recollect.config import RAGConfig
    from recollect.embedding.base import EmbeddingProvider
    from recollect.llm.base import ChatModel
    from recollect.memory.consolidation import Consolidator
    from recollect.memory.patterns import QueryPatternTracker
    from recollect.pipeline.models import Embedders
    from recollect.retrieval.relevance import RelevanceMeters
    from recollect.store.store import Store

# Embedding models whose questions are kept.
_MODELS = 4


@computes_properties
@dataclass(eq=False)
class TenantMemory:
    """The parts of one tenant's memory, each made when it is first needed. Safe to share between threads.

    Args:
        tenant_id: Whose memory.
        store: Open.
        embedders: Of turns, facts and questions.
        config: All settings.
        tracker: Told what was found.
        chat_model: Gives the language model, where one is configured, once facts are written.
    """

    tenant_id: int
    _: KW_ONLY
    store: Store
    embedders: Embedders
    config: RAGConfig
    tracker: QueryPatternTracker
    chat_model: Callable[[], ChatModel | None]

    @cached_property
    def turns(self) -> Memory:
        """Remembers and recalls conversations."""
        store = self.store
        return Memory(store.memory, store.recalls, self._questions, self._terms, tracker=self.tracker)

    @cached_property
    def facts(self) -> FactMemory:
        """Searches facts."""
        store = self.store
        return FactMemory(MemorySearcher(store.memory, store.recalls, self._questions, self._terms), store.facts)

    @cached_property
    def forgetter(self) -> Forgetter:
        """Erases single turns of conversations."""
        from recollect.memory.service import Forgetter

        return Forgetter(self.store.memory, self.store.forgetting, self.embedders, self._terms)

    @cached_property
    def consolidator(self) -> Consolidator:
        """Draws facts from conversations."""
        from recollect.memory.consolidation import Consolidator, FactWriter

        store, config = self.store, self.config
        model = self.chat_model() if config.memory.facts_by_model else None
        writer = None
        if model is not None:
            writer = FactWriter(model, self._terms, timeout_seconds=config.memory.timeout_seconds)
        return Consolidator(
            self.tracker,
            store.facts,
            store.recalls,
            embedders=self.embedders,
            lexicon=self._terms,
            language=conversation_language(config),
            writer=writer,
        )

    @cached_property
    def _questions(self) -> _Questions:
        """The embedding models with the latest questions, which turns and facts are both searched for."""
        return _Questions(self.embedders, size=self.config.retrieval.query_cache_entries)

    @cached_property
    def _terms(self) -> TurnTerms:
        return TurnTerms(conversation_language(self.config), salt=self.tenant_id)


class _Questions:
    """Embedding models that remember one tenant's questions.

    Only questions are kept: turns are seldom said twice, and what is deleted must leave nothing behind.
    """

    def __init__(self, embedders: Embedders, *, size: int) -> None:
        self._embedders = embedders
        self._size = size
        self._lock = threading.Lock()
        self._kept: LRUCache[int, CachedEmbedder] = LRUCache(_MODELS)

    @property
    def configured(self) -> EmbeddingProvider:
        return self._asking(self._embedders.configured)

    @property
    def meters(self) -> RelevanceMeters:
        return self._embedders.meters

    def of_session(self, model: str) -> EmbeddingProvider:
        return self._asking(self._embedders.of_session(model))

    def _asking(self, embedder: EmbeddingProvider) -> CachedEmbedder:
        with self._lock:
            found = self._kept.get(id(embedder))
            if found is None:
                found = self._kept[id(embedder)] = CachedEmbedder(embedder, None, query_cache_size=self._size)
            return found


def conversation_language(config: RAGConfig) -> str:
    """The language that turns are analysed in: one for all of a tenant's, because they are stored without their own."""
    return DEFAULT_LANGUAGE if config.language == AUTO else config.language
