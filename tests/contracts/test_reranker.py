"""What every reranker promises, checked on each of them."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.embedding.hashing import HashingEmbedder
from recollect.embedding.local import LocalEmbedder
from recollect.retrieval.rerank.base import Candidate
from recollect.retrieval.rerank.registry import DEFAULTS, RERANKERS, make_reranker

TEXTS = [
    "Employees have 25 days of annual leave.",
    "",
    " \n\t",
    "ERR-4012: connection refused",
    "يرجى مراجعة سياسة الخصوصية",
    "数据库连接失败",
    "👩‍👩‍👧‍👦 e\u0301 \x00 \u202e \ud800",
    "word " * 3000,
]


class Shortest:
    """One of somebody's own."""

    def rerank(self, query, candidates):
        return [-float(len(one.text)) for one in candidates]


@pytest.fixture(scope="module", params=[*sorted(set(DEFAULTS) - {"cross_encoder", "hosted"}), "shortest"])
def reranker(request):
    if request.param == "shortest":
        return make_reranker("shortest", rerankers=RERANKERS.with_given({"shortest": Shortest}))
    if request.param != "late_interaction":
        return make_reranker(request.param, embedder=HashingEmbedder(64))
    return make_reranker(request.param, embedder=LocalEmbedder(cache=request.getfixturevalue("model_cache")))


def candidates(texts):
    vectors = HashingEmbedder(64).embed_documents(texts)
    return [
        Candidate(chunk_id=i, text=text, score=1.0 / (i + 1), embedding=vector)
        for i, (text, vector) in enumerate(zip(texts, vectors, strict=True))
    ]


def test_one_finite_score_a_candidate(reranker):
    scores = reranker.rerank("How many days of annual leave do I have?", candidates(TEXTS))
    assert len(scores) == len(TEXTS)
    assert all(isinstance(score, float) and math.isfinite(score) for score in scores)


def test_no_candidates_have_no_scores(reranker):
    assert reranker.rerank("anything", []) == []


def test_the_order_of_the_candidates_does_not_matter(reranker):
    given_candidates = candidates(TEXTS)
    forward = reranker.rerank("annual leave", given_candidates)
    backward = reranker.rerank("annual leave", given_candidates[::-1])
    np.testing.assert_allclose(forward, backward[::-1], atol=1e-5)


def test_threads_may_share_it(reranker):
    given_candidates = candidates(TEXTS[:6])
    expected = reranker.rerank("annual leave", given_candidates)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: reranker.rerank("annual leave", given_candidates), range(8)):
            np.testing.assert_allclose(found, expected, atol=1e-5)


@settings(max_examples=20, deadline=None)
@given(query=st.text(st.characters(), max_size=60), texts=st.lists(st.text(st.characters(), max_size=60), max_size=4))
def test_any_unicode_has_scores(reranker, query, texts):
    scores = reranker.rerank(query, candidates(texts))
    assert len(scores) == len(texts)
    assert all(math.isfinite(score) for score in scores)


def test_they_tell_themselves_apart():
    names = {make_reranker(name, embedder=HashingEmbedder()).name for name in ("bm25", "consensus", "best_sentence")}
    assert names == {"bm25", "consensus", "best_sentence"}
