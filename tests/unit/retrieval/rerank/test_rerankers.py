from __future__ import annotations

import tracemalloc
from contextvars import copy_context

import numpy as np
import pytest

from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import UsageError
from recollect.interruption import Interrupted, Interruption, current
from recollect.retrieval.rerank.apply import Bm25Reranker, ConsensusReranker
from recollect.retrieval.rerank.base import Candidate
from recollect.retrieval.rerank.late_interaction import (
    BestSentenceReranker,
    BoundedMemory,
    LateInteractionReranker,
    pack,
)
from recollect.retrieval.rerank.registry import DEFAULTS, make_reranker


class Counting:
    """A real embedder, and a token encoder made of it, that count what they compute."""

    def __init__(self):
        self.inner = HashingEmbedder(64)
        self.computed = []

    def embed_query(self, text):
        return self.inner.embed_query(text)

    def embed_documents(self, texts):
        self.computed.extend(texts)
        return self.inner.embed_documents(texts)

    def token_vectors(self, texts, *, as_query=False):
        if not as_query:
            self.computed.extend(texts)
        return [self.inner.embed_documents(text.split()) for text in texts]


def passages(*texts, **common):
    return [Candidate(chunk_id=i, text=text, score=-i, **common) for i, text in enumerate(texts)]


def test_bm25_prefers_the_rarer_word_and_the_shorter_text():
    texts = passages(
        "leave and pay", "leave and leave request", "pay the turbine", "leave " + "filler words here " * 20
    )
    scores = Bm25Reranker().rerank("turbine leave", texts)
    assert int(np.argmax(scores)) == 2
    assert scores[0] > scores[3] > 0
    assert Bm25Reranker().rerank("glacier", texts) == [0.0] * 4
    assert Bm25Reranker().rerank("the", texts) == [0.0] * 4


def test_bm25_uses_a_collections_frequencies_where_they_are_given():
    texts = passages("alpha", "beta")
    common_beta = {"alpha": 1, "beta": 90}
    scores = Bm25Reranker(document_frequencies=common_beta, chunks=100).rerank("alpha beta", texts)
    assert scores[0] > 5 * scores[1]


def test_the_best_sentence_decides_not_the_rest():
    filler = "Nothing of the kind stands here at all. "
    texts = passages(f"{filler * 8}Turbine blades crack. {filler * 8}", filler * 17)
    counting = Counting()
    scores = BestSentenceReranker(counting).rerank("turbine blades crack", texts)
    assert scores[0] == pytest.approx(1, abs=1e-4)
    assert scores[1] < 0.5


@pytest.mark.parametrize("make", [BestSentenceReranker, LateInteractionReranker])
def test_a_passage_is_computed_once_unless_nothing_may_be_kept(make):
    texts = passages("one two three", "one two three", "four five")
    counting = Counting()
    reranker = make(counting)
    first = reranker.rerank("two", texts)
    computed = len(counting.computed)
    assert computed == 2
    assert reranker.rerank("two", texts[::-1]) == pytest.approx(first[::-1])
    assert len(counting.computed) == computed
    forgetful = make(Counting(), cache_bytes=0)
    assert forgetful.rerank("two", texts) == pytest.approx(first)


def test_stored_token_vectors_are_not_computed_again():
    counting = Counting()
    texts = passages("annual leave days", "error code")
    stored = {0: pack(counting.token_vectors(["annual leave days"])[0])}
    counting.computed.clear()
    reranker = LateInteractionReranker(counting, stored=lambda ids: {i: stored[i] for i in ids if i in stored})
    scores = reranker.rerank("annual leave", texts)
    assert counting.computed == ["error code"]
    assert scores == pytest.approx(LateInteractionReranker(Counting()).rerank("annual leave", texts))
    assert scores[0] > scores[1]


def test_consensus_lifts_what_resembles_the_best_and_sinks_the_outlier():
    near = np.eye(8, dtype=np.float16)[0]
    far = np.eye(8, dtype=np.float16)[5]
    tilted = (near + 0.3 * np.eye(8, dtype=np.float16)[1]) / np.float16(1.044)
    scored = [(3.0, near), (2.0, near), (0.0, tilted), (1.0, far), (-1.0, far)]
    texts = [Candidate(chunk_id=i, text="", score=s, embedding=v) for i, (s, v) in enumerate(scored)]
    scores = ConsensusReranker(neighbours=2).rerank("any", texts)
    assert scores[2] == pytest.approx(2.5, abs=0.01)
    assert scores[3] == pytest.approx(-1, abs=0.01)


def many(count: int) -> list[Candidate]:
    random = np.random.default_rng(3)
    vectors = random.normal(size=(count, 32)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return [Candidate(chunk_id=i, text="", score=float(i % 17), embedding=v) for i, v in enumerate(vectors)]


def test_consensus_of_many_needs_little_memory_and_scores_them_as_a_whole_matrix_does(monkeypatch):
    candidates = many(4000)
    reranker = ConsensusReranker()
    reranker.rerank("any", candidates[:20])
    tracemalloc.start()
    scores = reranker.rerank("any", candidates)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 16 << 20, "a matrix of all would take 128 MB"
    monkeypatch.setattr("recollect.retrieval.rerank.apply._BLOCK", 1 << 30)
    assert ConsensusReranker().rerank("any", candidates) == pytest.approx(scores)


def test_consensus_of_many_ends_where_nobody_waits_for_it():
    interruption = Interruption()
    interruption.interrupt()
    context = copy_context()
    context.run(current.set, interruption)
    with pytest.raises(Interrupted):
        context.run(ConsensusReranker().rerank, "any", many(20))


def test_consensus_without_vectors_keeps_the_scores():
    texts = passages("a", "b", "c")
    assert ConsensusReranker().rerank("q", texts) == [0.0, -1.0, -2.0]


def test_a_bounded_memory_drops_what_was_used_least_recently():
    memory = BoundedMemory(80)
    memory.put_many({b"a": np.zeros(5), b"b": np.zeros(5)})
    memory.get_many([b"a"])
    memory.put_many({b"c": np.zeros(3), b"huge": np.zeros(100)})
    assert set(memory.get_many([b"a", b"b", b"c", b"huge"])) == {b"a", b"c"}
    assert memory.size_bytes == 64


def test_every_reranker_can_be_named():
    assert set(DEFAULTS) == {"best_sentence", "bm25", "consensus", "cross_encoder", "hosted", "late_interaction"}
    for name in ("best_sentence", "bm25", "consensus"):
        assert make_reranker(name, embedder=HashingEmbedder()).name == name


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("cohere", "There is no reranker 'cohere'; there are best_sentence, bm25"),
        ("best_sentence", "embedder"),
        ("late_interaction", "local"),
        ("cross_encoder", "model"),
    ],
)
def test_what_a_reranker_lacks_is_named(name, named):
    with pytest.raises(UsageError, match=named):
        make_reranker(name)
