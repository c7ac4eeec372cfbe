from __future__ import annotations

import numpy as np
import pytest

from recollect.embedding.cached import CacheCounts, CachedEmbedder, MemoryEmbeddingCache, text_key
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import ProviderError, UsageError


class Recording(HashingEmbedder):
    """The hashing embedder, which also notes what it was asked for."""

    def __init__(self, dimension=16, *, fail=False):
        super().__init__(dimension)
        self.documents, self.queries, self.fail = [], [], fail

    def embed_documents(self, texts):
        if self.fail:
            raise ProviderError("down", provider="test")
        self.documents.append(list(texts))
        return super().embed_documents(texts)

    def embed_query(self, text):
        self.queries.append(text)
        return super().embed_documents([text])[0]


def test_each_text_is_computed_once_and_the_order_kept():
    inner = Recording()
    embedder = CachedEmbedder(inner, MemoryEmbeddingCache())
    texts = ["b", "a", "b", "", "a"]
    found = embedder.embed_documents(texts)
    assert inner.documents == [["b", "a", ""]]
    np.testing.assert_array_equal(found, HashingEmbedder(16).embed_documents(texts))
    assert embedder.counts == CacheCounts(hits=2, misses=3)

    again = embedder.embed_documents(["new", "a"])
    assert inner.documents[1:] == [["new"]]
    np.testing.assert_array_equal(again, HashingEmbedder(16).embed_documents(["new", "a"]))
    assert embedder.counts == CacheCounts(hits=3, misses=4)


def test_a_failure_leaves_nothing_behind():
    cache = MemoryEmbeddingCache()
    with pytest.raises(ProviderError):
        CachedEmbedder(Recording(fail=True), cache).embed_documents(["a"])
    assert len(cache) == 0


def test_the_latest_questions_are_kept_and_the_oldest_forgotten():
    inner = Recording()
    embedder = CachedEmbedder(inner, MemoryEmbeddingCache(), query_cache_size=2)
    for text in ["a", "b", "a", "c", "a", "b"]:
        embedder.embed_query(text)
    assert inner.queries == ["a", "b", "c", "b"]
    assert embedder.counts == CacheCounts(hits=2, misses=4)


def test_what_a_caller_does_to_a_vector_does_not_reach_the_cache():
    embedder = CachedEmbedder(HashingEmbedder(16), MemoryEmbeddingCache())
    for embed in (embedder.embed_query, lambda text: embedder.embed_documents([text])[0]):
        before = embed("a").copy()
        for _ in range(2):
            embed("a")[:] = 0
        np.testing.assert_array_equal(embed("a"), before)


def test_the_key_is_the_hash_of_the_utf8():
    assert text_key("").hex() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert text_key("\ud800") != text_key("\udfff")


def test_a_negative_size_is_refused():
    with pytest.raises(UsageError, match="query_cache_size"):
        CachedEmbedder(HashingEmbedder(), MemoryEmbeddingCache(), query_cache_size=-1)


def test_questions_are_counted_apart_too():
    embedder = CachedEmbedder(HashingEmbedder(16), MemoryEmbeddingCache(), query_cache_size=1)
    embedder.embed_documents(["a", "a", "b"])
    for question in ("a", "a", "b", "a"):
        embedder.embed_query(question)
    assert embedder.counts == CacheCounts(hits=2, misses=5)
    assert embedder.take_query_counts() == CacheCounts(hits=1, misses=3)
    embedder.embed_query("a")
    assert embedder.take_query_counts() == CacheCounts(hits=1, misses=0)
    assert embedder.take_query_counts() == CacheCounts(hits=0, misses=0)


def test_a_question_of_one_caller_is_remembered_for_no_other():
    inner = Recording()
    embedder = CachedEmbedder(inner, None)
    for tenant in (1, 2, 1, 2):
        embedder.ask_for(tenant)
        embedder.embed_query("merger")
    assert inner.queries == ["merger", "merger"]
    assert embedder.counts == CacheCounts(hits=2, misses=2)
