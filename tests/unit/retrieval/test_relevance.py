"""Relevance: from 0 to 1, the same whatever else is searched, on the scale of the model that measured it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import ProviderError
from recollect.retrieval.relevance import BELOW_FLOOR, RelevanceMeter, SimilarityScale, Thresholds, load_model, scale

MODEL = load_model()
unknown = st.none()
measures = st.floats(-2, 2)
shares = st.floats(0, 1)


@given(unknown | measures, unknown | shares)
def test_relevance_is_a_probability_of_whatever_is_known(similarity, coverage):
    found = MODEL.relevance(similarity, coverage)
    assert (found is None) == (similarity is None and coverage is None)
    assert found is None or 0 <= found <= 1


@given(measures, shares, st.floats(0.01, 1))
def test_more_similarity_or_more_of_the_words_is_never_less_relevant(similarity, coverage, more):
    assert MODEL.relevance(similarity + more, coverage) > MODEL.relevance(similarity, coverage)
    assert MODEL.relevance(similarity, coverage + more) > MODEL.relevance(similarity, coverage)
    assert MODEL.relevance(similarity + more, None) > MODEL.relevance(similarity, None)
    assert MODEL.relevance(None, coverage + more) > MODEL.relevance(None, coverage)


class Shifted:
    """A model whose similarities lie between 0.6 and 0.9, as those of some do."""

    dimension, model_name = 512, "shifted"

    def embed_documents(self, texts):
        return np.array([self.embed_query(text) for text in texts])

    def embed_query(self, text):
        own = HashingEmbedder(dimension=511).embed_query(text)
        return np.concatenate([[0.6**0.5], own * 0.4**0.5]).astype(np.float32)


def test_models_of_other_ranges_are_brought_to_one_scale():
    plain, shifted = (scale(one, MODEL.anchors) for one in (HashingEmbedder(dimension=511), Shifted()))
    assert shifted.unrelated == pytest.approx(0.6 + 0.4 * plain.unrelated, abs=1e-4)
    assert shifted.standardised(0.6 + 0.4 * 0.3) == pytest.approx(plain.standardised(0.3), abs=1e-3)


def test_a_model_that_cannot_be_asked_leaves_words_to_go_by():
    class Broken(HashingEmbedder):
        model_name = "broken"

        def embed_documents(self, texts):
            raise ProviderError("no answer", provider="test")

    found = RelevanceMeter(Broken()).measure([1, 2], similarities={1: 0.9, 2: 0.9}, coverage={1: 1.0})
    assert found == {1: MODEL.relevance(None, 1.0)}


@given(st.dictionaries(st.integers(1, 9), measures), st.dictionaries(st.integers(1, 9), shares))
def test_what_is_measured_where_it_is_asked_for_is_what_the_model_says(similarities, coverage):
    ((name, known),) = MODEL.scales.items()
    meter = RelevanceMeter(type("Known", (HashingEmbedder,), {"model_name": name})())
    found = meter.measure(range(1, 12), similarities=similarities, coverage=coverage)
    standard = {chunk_id: known.standardised(one) for chunk_id, one in similarities.items()}
    expected = {one: MODEL.relevance(standard.get(one), coverage.get(one)) for one in standard.keys() | coverage.keys()}
    assert dict(found) == expected and len(found) == len(expected)
    assert found.get(11) is None and 11 not in found


def test_only_models_that_it_was_fitted_with_have_a_floor():
    (name,) = MODEL.scales
    meter = RelevanceMeter(type("Known", (HashingEmbedder,), {"model_name": name})())
    assert meter.floor(similarities=True, coverage=True) == MODEL.floors["both"]
    assert meter.floor(similarities=True, coverage=False) == MODEL.floors["similarity"]
    assert meter.floor(similarities=False, coverage=True) == 0
    assert RelevanceMeter(HashingEmbedder()).floor(similarities=True, coverage=True) == 0


def test_without_difference_a_scale_divides_by_nothing():
    assert SimilarityScale(0.5, 0.5).standardised(0.5) == 0


@pytest.mark.parametrize(
    ("relevance", "threshold", "kept", "reasons"),
    [
        ({1: 0.5, 2: 0.01}, None, [1, 2], {}),
        ({1: 0.02, 2: 0.01}, None, [], {BELOW_FLOOR: 2}),
        ({1: 0.02, 2: 0.01}, 0.0, [1, 2], {"below min_relevance": 0}),
        ({1: 0.5, 2: 0.01}, 0.1, [1], {"below min_relevance": 1}),
        ({}, None, [1, 2], {}),
        ({}, 0.1, [1, 2], {"below min_relevance": 0}),
    ],
)
def test_the_floor_is_for_all_a_threshold_for_each(relevance, threshold, kept, reasons):
    dropped = {}
    found = Thresholds(None, threshold, None, floor=True).apply(
        [(1, 2.0), (2, 1.0)], similarities={}, relevance=relevance, floor=0.05, dropped=dropped
    )
    assert [chunk_id for chunk_id, _ in found] == kept
    assert dropped == reasons
