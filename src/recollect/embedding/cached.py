"""An embedder that remembers: the same text is computed once."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from cachetools import LRUCache

from recollect.embedding.base import EmbeddingProvider, Vectors
from recollect.errors import UsageError


class EmbeddingCache(Protocol):
    """Keeps vectors by model and by the SHA-256 of a text's UTF-8. Safe to share between threads."""

    def get_many(self, model: str, keys: Sequence[bytes]) -> Mapping[bytes, Vectors]:
        """The vectors that are kept, each of shape (dimension,); keys that are unknown are left out."""
        ...

    def put_many(self, model: str, items: Mapping[bytes, Vectors]) -> None:
        """Keep vectors; what is kept under a key already may be kept or replaced."""
        ...


@dataclass(frozen=True, slots=True)
class CacheCounts:
    """How often the cache knew a text, queries included.

    Attributes:
        hits: Texts that were not computed, repeated ones within a call among them.
        misses: Texts that were.
    """

    hits: int
    misses: int


_NONE = CacheCounts(0, 0)


class MemoryEmbeddingCache:
    """An `EmbeddingCache` in this process, without a bound: for tests and short-lived work."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._vectors: dict[tuple[str, bytes], Vectors] = {}

    def __len__(self) -> int:
        return len(self._vectors)

    def get_many(self, model: str, keys: Sequence[bytes]) -> Mapping[bytes, Vectors]:
        """See `EmbeddingCache`."""
        with self._lock:
            return {key: self._vectors[model, key] for key in keys if (model, key) in self._vectors}

    def put_many(self, model: str, items: Mapping[bytes, Vectors]) -> None:
        """See `EmbeddingCache`."""
        with self._lock:
            for key, vector in items.items():
                self._vectors[model, key] = vector.copy()


class CachedEmbedder:
    """Wraps an embedder: documents go through a cache, the latest questions are kept in this process.

    Questions and documents are kept apart, because a model may embed the same text differently as either.

    Args:
        inner: Computes what is not known.
        cache: Keeps documents' vectors; None keeps only questions.
        query_cache_size: How many questions to keep; 0 keeps none.
        keep_computed: Whether what is computed is put into the cache at once; else whoever stores the texts does that.

    Raises:
        UsageError: ``query_cache_size`` is negative.
    """

    def __init__(
        self,
        inner: EmbeddingProvider,
        cache: EmbeddingCache | None,
        *,
        query_cache_size: int = 256,
        keep_computed: bool = True,
    ) -> None:
        if query_cache_size < 0:
            raise UsageError(f"query_cache_size must be at least 0, not {query_cache_size!r}")
        self._inner = inner
        self._cache = cache
        self._keep_computed = keep_computed
        self._queries: LRUCache[tuple[Hashable, str], Vectors] = LRUCache(query_cache_size)
        self._lock = threading.Lock()
        self._hits = 0
        self._misses = 0
        self._here = threading.local()

    @property
    def inner(self) -> EmbeddingProvider:
        """The embedder that computes."""
        return self._inner

    @property
    def dimension(self) -> int:
        """The wrapped embedder's."""
        return self._inner.dimension

    @property
    def model_name(self) -> str:
        """The wrapped embedder's: remembering changes no vector."""
        return self._inner.model_name

    @property
    def counts(self) -> CacheCounts:
        """Hits and misses since construction."""
        with self._lock:
            return CacheCounts(self._hits, self._misses)

    def take_query_counts(self) -> CacheCounts:
        """Hits and misses of questions in the calling thread, since it last took them: those of one search, say."""
        counts: CacheCounts = getattr(self._here, "counts", _NONE)
        self._here.counts = _NONE
        return counts

    def ask_for(self, whom: Hashable) -> None:
        """Keep the calling thread's questions from now on apart from those of anybody else.

        How fast a question is embedded would tell whether somebody else has asked it.

        Args:
            whom: For instance a tenant; None, as it is at first, is one of them.
        """
        self._here.whom = whom

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Embed texts, computing each different one once and only if it is unknown; see `EmbeddingProvider`."""
        if not texts:
            return self._inner.embed_documents(texts)
        if self._cache is None:
            self._count(hits=0, misses=len(texts))
            return self._inner.embed_documents(texts)
        keys = [text_key(text) for text in texts]
        text_of = dict(zip(keys, texts, strict=True))
        model = self._inner.model_name
        # Copied, because the cache's mapping is its own.
        known = dict(self._cache.get_many(model, list(text_of)))
        missing = [key for key in text_of if key not in known]
        if missing:
            computed = self._inner.embed_documents([text_of[key] for key in missing])
            fresh = dict(zip(missing, computed, strict=True))
            if self._keep_computed:
                self._cache.put_many(model, fresh)
            known.update(fresh)
        self._count(hits=len(keys) - len(missing), misses=len(missing))
        return np.stack([known[key] for key in keys]).astype(np.float32, copy=False)

    def embed_query(self, text: str) -> Vectors:
        """Embed a question, or return what it was the last time; see `EmbeddingProvider`."""
        key = (getattr(self._here, "whom", None), text)
        with self._lock:
            found = self._queries.get(key)
            self._hits += found is not None
        if found is not None:
            self._count_here(hits=1, misses=0)
            return found.copy()
        vector = self._inner.embed_query(text)
        with self._lock:
            self._misses += 1
            if self._queries.maxsize:
                self._queries[key] = vector.copy()
        self._count_here(hits=0, misses=1)
        return vector

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Embed several questions, which are not kept: in one request where the wrapped embedder can."""
        together = getattr(self._inner, "embed_queries", None)
        return together(texts) if together else np.stack([self._inner.embed_query(text) for text in texts])

    def _count_here(self, *, hits: int, misses: int) -> None:
        counts: CacheCounts = getattr(self._here, "counts", _NONE)
        self._here.counts = CacheCounts(counts.hits + hits, counts.misses + misses)

    def _count(self, *, hits: int, misses: int) -> None:
        with self._lock:
            self._hits += hits
            self._misses += misses


def text_key(text: str) -> bytes:
    """The key under which a text's vector is kept: the SHA-256 of its UTF-8, lone surrogates allowed."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
