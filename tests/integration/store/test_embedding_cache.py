"""The persistent embedding cache."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from shelf import second_tenant

from recollect.embedding.cached import text_key
from recollect.model import Scope
from recollect.store.embedding_cache import EmbeddingCacheRepository
from recollect.store.store import Store


@pytest.fixture
def cache(store: Store) -> EmbeddingCacheRepository:
    return EmbeddingCacheRepository(store.database, Scope())


def unit(seed: int, dimension: int = 8) -> np.ndarray:
    vector = np.random.default_rng(seed).standard_normal(dimension).astype(np.float32)
    return vector / np.linalg.norm(vector)


def test_what_is_kept_comes_back_at_half_precision(cache: EmbeddingCacheRepository):
    items = {text_key(str(n)): unit(n) for n in range(5)}
    cache.put_many("m", items)
    found = cache.get_many("m", [*items, text_key("unknown")])
    assert set(found) == set(items)
    for key, vector in found.items():
        assert vector.dtype == np.float32
        assert vector.tolist() == items[key].astype(np.float16).astype(np.float32).tolist()


def test_models_dimensions_and_tenants_stand_apart(store: Store, cache: EmbeddingCacheRepository):
    key = text_key("x")
    cache.put_many("a", {key: unit(1, 4)})
    cache.put_many("b", {key: unit(2, 3072)})
    assert cache.get_many("a", [key])[key].shape == (4,)
    assert cache.get_many("b", [key])[key].shape == (3072,)
    assert cache.get_many("c", [key]) == {}
    assert EmbeddingCacheRepository(store.database, second_tenant(store)).get_many("a", [key]) == {}


def test_nothing_in_nothing_out(cache: EmbeddingCacheRepository):
    cache.put_many("m", {})
    assert cache.get_many("m", []) == {}


def test_the_first_vector_stays(cache: EmbeddingCacheRepository):
    key = text_key("x")
    cache.put_many("m", {key: unit(1)})
    cache.put_many("m", {key: unit(2)})
    assert cache.get_many("m", [key])[key] == pytest.approx(unit(1), abs=1e-3)


def test_overlapping_writers_do_not_block_each_other(cache: EmbeddingCacheRepository):
    keys = [text_key(str(n)) for n in range(60)]
    barrier = threading.Barrier(4)

    def work(seed: int) -> None:
        order = np.random.default_rng(seed)
        barrier.wait()
        for _ in range(8):
            cache.put_many("m", {keys[n]: unit(n) for n in order.permutation(60)[:40]})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert len(cache.get_many("m", keys)) == 60
