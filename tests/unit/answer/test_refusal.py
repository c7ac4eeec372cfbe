from __future__ import annotations

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
