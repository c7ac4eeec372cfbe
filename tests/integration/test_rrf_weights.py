"""Reciprocal rank fusion takes the weight of the dense retriever, as weighted fusion does."""

from __future__ import annotations

import pytest

from recollect import Document, RetrievalOptions

WORDS = ("train", "bus", "plane", "ship")


def test_the_dense_weight_is_the_share_of_its_ranks(pipeline):
    for number in range(12):
        words = " ".join(WORDS[: 1 + number % 4] * (1 + number % 3))
        pipeline.ingest(
            Document(content=f"{words}. Note {number} of the {'train' * (number % 2)} office.", source=f"{number}")
        )

    def scores(**options):
        found = pipeline.retrieve(
            "train bus", RetrievalOptions(fusion="rrf", rerank="none", rrf_k=60, top_k=50, **options)
        )
        return {one.chunk_id: one.score for one in found}

    def by_rank(mode):
        found = pipeline.retrieve("train bus", RetrievalOptions(mode=mode, top_k=50))
        return {one.chunk_id: 1 / (60 + one.rank) for one in found}

    dense, lexical = by_rank("dense"), by_rank("lexical")
    for share in (0.0, 0.3, 1.0):
        expected = {
            chunk_id: 2 * share * dense.get(chunk_id, 0) + 2 * (1 - share) * lexical.get(chunk_id, 0)
            for chunk_id in dense.keys() | lexical.keys()
        }
        assert scores(dense_weight=share) == pytest.approx(expected)
    assert scores() == pytest.approx(scores(dense_weight=0.5))
