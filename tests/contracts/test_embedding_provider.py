"""What every embedding provider promises, checked on each of them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.embedding.cached import CachedEmbedder, MemoryEmbeddingCache
from recollect.embedding.hashing import HashingEmbedder
from recollect.embedding.local import LocalEmbedder

TEXTS = [
    "How many days of annual leave do I have?",
    "",
    " \n\t",
    "ERR-4012: connection refused",
    "يرجى مراجعة سياسة الخصوصية",
    "数据库连接失败",
    "👩‍👩‍👧‍👦 e\u0301 \x00 \u202e \ud800",
    "a" * 3000,
]
PROVIDERS = ["local int8", "local fp32", "hashing", "cached hashing", "cached local"]


@pytest.fixture(scope="module")
def local_embedders(model_cache):
    return {precision: LocalEmbedder(cache=model_cache, precision=precision) for precision in ("int8", "fp32")}


@pytest.fixture(scope="module", params=PROVIDERS)
def embedder(request):
    if request.param == "hashing":
        return HashingEmbedder(64)
    if request.param == "cached hashing":
        return CachedEmbedder(HashingEmbedder(64), MemoryEmbeddingCache())
    locals_ = request.getfixturevalue("local_embedders")
    if request.param == "cached local":
        return CachedEmbedder(locals_["int8"], MemoryEmbeddingCache())
    return locals_[request.param.split()[-1]]


def test_vectors_are_float32_of_unit_length_in_order(embedder):
    vectors = embedder.embed_documents(TEXTS)
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(TEXTS), embedder.dimension)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    alone = np.stack([embedder.embed_documents([text])[0] for text in TEXTS])
    np.testing.assert_allclose(vectors, alone, atol=1e-5)
    np.testing.assert_allclose(embedder.embed_documents(TEXTS[::-1]), vectors[::-1], atol=1e-5)


def test_no_texts_give_no_vectors(embedder):
    vectors = embedder.embed_documents([])
    assert vectors.shape == (0, embedder.dimension)
    assert vectors.dtype == np.float32


def test_a_question_has_one_vector(embedder):
    vector = embedder.embed_query("How many days of annual leave do I have?")
    assert vector.shape == (embedder.dimension,)
    assert vector.dtype == np.float32
    # None of these models has a prefix, so a question and a document of the same text agree.
    np.testing.assert_allclose(vector, embedder.embed_documents(TEXTS)[0], atol=1e-5)


def test_a_long_text_is_not_cut(embedder):
    beginning = "Employees may carry over five days of unused annual leave. " * 200
    whole = beginning + "Turbine blades crack when harbour glaciers meet violins. " * 1000
    assert len(whole.split()) >= 10_000
    one, other = embedder.embed_documents([whole, beginning[:3000]])
    assert abs(np.linalg.norm(one) - 1.0) < 1e-5
    assert one @ other < 0.9


def test_the_same_text_has_the_same_vector(embedder):
    first = embedder.embed_documents(TEXTS)
    np.testing.assert_array_equal(embedder.embed_documents(TEXTS), first)


def test_related_texts_are_closer_than_unrelated_ones(embedder):
    question = embedder.embed_query("annual leave days")
    related, unrelated = embedder.embed_documents(
        ["Employees have 25 days of annual leave.", "The GPU driver crashed."]
    )
    assert question @ related > question @ unrelated


@settings(max_examples=25, deadline=None)
@given(texts=st.lists(st.text(st.characters(), max_size=60), min_size=1, max_size=4))
def test_any_unicode_has_a_vector(embedder, texts):
    vectors = embedder.embed_documents(texts)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)


def test_threads_may_share_it(embedder):
    expected = embedder.embed_documents(TEXTS)
    with ThreadPoolExecutor(6) as pool:
        for found in pool.map(lambda _: embedder.embed_documents(TEXTS), range(12)):
            np.testing.assert_allclose(found, expected, atol=1e-5)
        for found in pool.map(embedder.embed_query, [TEXTS[0]] * 12):
            np.testing.assert_allclose(found, expected[0], atol=1e-5)


def test_the_name_tells_models_and_precisions_apart(local_embedders):
    names = {embedder.model_name for embedder in local_embedders.values()}
    assert names == {
        "sentence-transformers/all-MiniLM-L6-v2:int8",
        "sentence-transformers/all-MiniLM-L6-v2:fp32",
    }


def test_the_local_model_is_the_published_one(local_embedders):
    # What sentence-transformers gives for this text with the same weights.
    published = [-0.03447723, 0.03102319, 0.00673498]
    vector = local_embedders["fp32"].embed_query("hello world")
    np.testing.assert_allclose(vector[:3], published, atol=1e-5)
    assert vector @ local_embedders["int8"].embed_query("hello world") > 0.98
