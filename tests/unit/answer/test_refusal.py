from __future__ import annotations

from dataclasses import asdict, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.answer.refusal import RefusalRule, Support
from recollect.errors import UsageError

RULE = RefusalRule()
SURE = Support(score=6.0, lead=-0.2, similarity=0.8, alone=-0.3)
UNREAD = Support(score=6.0, margin=1.2)
shares, similarities, logarithms = st.floats(-4, 0), st.floats(-0.2, 1), st.floats(-10, 0)
scores, margins = st.floats(0, 7), st.floats(0, 4)


def refuses(rule: RefusalRule, support: Support) -> bool:
    return rule.probability(support) < rule.threshold


@given(shares, shares, similarities, similarities, logarithms, logarithms, st.booleans())
def test_more_support_never_turns_an_answer_into_a_refusal(lead, ahead, similarity, nearer, alone, surer, missing):
    weaker = Support(
        score=4.0,
        lead=min(lead, ahead),
        similarity=min(similarity, nearer),
        alone=min(alone, surer),
        missing_number=missing,
    )
    stronger = Support(score=4.0, lead=max(lead, ahead), similarity=max(similarity, nearer), alone=max(alone, surer))
    assert RULE.probability(stronger) >= RULE.probability(weaker)
    assert refuses(RULE, weaker) or not refuses(RULE, stronger)


@given(scores, scores, margins, margins, st.booleans(), st.booleans())
def test_so_it_is_without_the_reader(score, more, margin, further, missing, by_meaning):
    weaker = Support(score=min(score, more), margin=min(margin, further), missing_number=missing, by_meaning=by_meaning)
    stronger = Support(score=max(score, more), margin=max(margin, further), by_meaning=by_meaning)
    assert RULE.probability(stronger) >= RULE.probability(weaker)
    assert refuses(RULE, weaker) or not refuses(RULE, stronger)


def test_the_ends():
    assert refuses(RULE, Support(score=1.2, lead=-3.0, similarity=0.1, alone=-9.0))
    assert not refuses(RULE, SURE)
    assert refuses(RULE, Support(score=1.2))
    assert not refuses(RULE, UNREAD)
    assert not refuses(RefusalRule(threshold=0), Support(score=0.0, missing_number=True))
    assert refuses(RefusalRule(threshold=1), SURE)
    assert refuses(RefusalRule(threshold=1), Support(score=7.0, margin=4.0))


@pytest.mark.parametrize("threshold", [-0.1, 1.1])
def test_a_threshold_out_of_range(threshold):
    with pytest.raises(UsageError, match="threshold"):
        RefusalRule(threshold=threshold)


def test_a_number_that_is_missing_costs_whether_meaning_or_words_decide():
    for supported in (SURE, UNREAD, Support(score=4.4, by_meaning=False)):
        assert not refuses(RULE, supported)
        assert refuses(RULE, replace(supported, missing_number=True))


def test_a_rule_that_was_kept_is_read_with_its_threshold():
    kept = RefusalRule(threshold=0.7)
    assert RefusalRule.from_mapping(asdict(kept)) == kept
    assert RefusalRule.from_mapping({}) == RULE


@pytest.mark.parametrize("wrong", ["0.7", True, None])
def test_a_stored_threshold_of_the_wrong_kind_says_what_to_do(wrong):
    with pytest.raises(UsageError, match="recollect calibrate"):
        RefusalRule.from_mapping({"threshold": wrong})
