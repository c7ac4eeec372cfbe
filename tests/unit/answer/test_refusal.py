from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.answer.refusal import RefusalRule, Support
from recollect.errors import UsageError

RULE = RefusalRule()
unit = st.floats(0, 1)


@given(unit, unit, unit, st.booleans())
def test_more_support_never_turns_an_answer_into_a_refusal(similarity, more, coverage, missing):
    weaker = Support(similarity=min(similarity, more), coverage=coverage, missing_number=missing)
    stronger = Support(similarity=max(similarity, more), coverage=coverage)
    assert RULE.probability(stronger) >= RULE.probability(weaker)
    assert RULE.refuses(weaker) or not RULE.refuses(stronger)


def test_the_ends():
    assert RULE.refuses(Support(similarity=0.1, coverage=0.0))
    assert not RULE.refuses(Support(similarity=0.8, coverage=0.8))
    assert RULE.refuses(Support(similarity=0.9, coverage=0.9, missing_identifier=True))
    anything = Support(similarity=0.0, coverage=0.0, missing_identifier=True)
    assert not RefusalRule(threshold=0, require_identifiers=False).refuses(anything)
    assert RefusalRule(threshold=1).refuses(Support(similarity=1.0, coverage=1.0))


def test_without_a_relevant_passage_the_best_sentence_does_not_count():
    rule = RefusalRule()
    assert not rule.refuses(Support(similarity=0.9, coverage=1.0, relevance=0.4))
    assert rule.probability(Support(similarity=0.9, coverage=1.0, relevance=0.05)) == 0.05
    assert rule.refuses(Support(similarity=0.9, coverage=1.0, relevance=0.05))
    assert not rule.refuses(Support(similarity=0.9, coverage=1.0, relevance=None))


@pytest.mark.parametrize("threshold", [-0.1, 1.1])
def test_a_threshold_out_of_range(threshold):
    with pytest.raises(UsageError, match="threshold"):
        RefusalRule(threshold=threshold)


def test_what_is_missing_costs():
    supported = Support(similarity=0.7, coverage=0.7)
    assert not RULE.refuses(supported)
    for missing in ({"missing_name": 1.0}, {"unknown_name": 1.0}, {"missing_attribute": 1.0}, {"missing_number": True}):
        assert RULE.probability(replace(supported, **missing)) < RULE.probability(supported)


def test_a_rule_of_the_first_shape_judges_as_it_did():
    stored = {
        "bias": -4.6,
        "similarity_weight": 8.5,
        "coverage_weight": 1.2,
        "missing_number_penalty": 2.0,
        "threshold": 0.7,
    }
    rule = RefusalRule.from_mapping(stored)
    support = Support(similarity=0.6, coverage=0.5, score=1.4, missing_name=1.0, missing_attribute=1.0, wrong_kind=True)
    assert rule.probability(support) == pytest.approx(1 / (1 + math.exp(4.6 - 8.5 * 0.6 - 1.2 * 0.5)))
    assert RefusalRule.from_mapping(RULE.as_mapping()) == RULE


@pytest.mark.parametrize("wrong", [{"score_weight": "3"}, {"missing_name_penalty": True}, {"require_identifiers": 1}])
def test_a_stored_parameter_of_the_wrong_kind_says_what_to_do(wrong):
    with pytest.raises(UsageError, match="recollect calibrate"):
        RefusalRule.from_mapping(wrong)
