from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import UsageError


@given(st.lists(st.text(), max_size=5), st.integers(2, 200))
def test_every_text_has_a_vector_of_unit_length(texts, dimension):
    vectors = HashingEmbedder(dimension).embed_documents(texts)
    assert vectors.shape == (len(texts), dimension)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)


def test_shared_words_and_stems_make_texts_similar():
    embedder = HashingEmbedder(512)
    question = embedder.embed_query("annual leave policy")
    same, stem, other = embedder.embed_documents(["the policy on annual leave", "annually leaving", "GPU driver crash"])
    assert question @ same > question @ stem > question @ other


def test_the_vector_is_the_same_on_every_machine():
    vector = HashingEmbedder(8).embed_query("Leave policy")
    expected = [-0.5322, 0.0, -0.684257, -0.304114, -0.228086, 0.0, -0.228086, 0.228086]
    np.testing.assert_allclose(vector, expected, atol=1e-5)


def test_a_vector_of_one_number_is_refused():
    with pytest.raises(UsageError, match="at least 2"):
        HashingEmbedder(1)
