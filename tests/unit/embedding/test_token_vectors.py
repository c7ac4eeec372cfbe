from __future__ import annotations

import numpy as np
import pytest

from recollect.embedding._tokens import TextTokenizer
from recollect.embedding.local import LocalEmbedder
from recollect.errors import UsageError

from .tiny_bert import HIDDEN, POSITIONS, random_tensors, reference_tokens

TEXTS = ["annual leave policy", "", "how many days", "leave"]


@pytest.fixture(scope="module")
def embedder(tiny_model, shared_cache):
    return LocalEmbedder(str(tiny_model), cache=shared_cache, precision="fp32", threads=2)


@pytest.fixture(scope="module")
def tokenizer(tiny_model):
    return TextTokenizer(tiny_model / "tokenizer.json")


def reference(ids):
    vectors = reference_tokens([2, *ids, 3], random_tensors())[1:-1]
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_token_vectors_are_the_models_without_special_tokens(embedder, tokenizer):
    for found, ids in zip(embedder.token_vectors(TEXTS), tokenizer.ids_batch(TEXTS), strict=True):
        assert found.shape == (len(ids), HIDDEN)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, reference(ids), atol=2e-5)


def test_a_text_beyond_the_window_has_all_its_tokens_in_order(embedder, tokenizer):
    text = "annual leave policy of the first year " * 12
    ids = tokenizer.ids_batch([text])[0]
    room = POSITIONS - 2
    assert len(ids) > 2 * room
    wanted = np.concatenate([reference(ids[start : start + room]) for start in range(0, len(ids), room)])
    np.testing.assert_allclose(embedder.token_vectors([text])[0], wanted, atol=2e-5)


def test_no_texts_have_none_and_one_text_is_refused(embedder):
    assert embedder.token_vectors([]) == []
    with pytest.raises(UsageError):
        embedder.token_vectors("leave")
