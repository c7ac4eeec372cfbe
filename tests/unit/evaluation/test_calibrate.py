from __future__ import annotations

from dataclasses import asdict
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.answer.refusal import RefusalRule
from recollect.config import RAGConfig
from recollect.errors import UsageError
from recollect.evaluation.calibrate import ALWAYS_REFUSED, calibrate, errors, find_threshold, stored_rule
from recollect.model import RetrievalOptions
from recollect.pipeline.answering import _calibrated_rule, reranker_of

scores = st.lists(st.floats(0, 0.999), min_size=1, max_size=60)


def test_the_threshold_stands_just_above_what_must_be_refused():
    bad = [n / 100 for n in range(40)]
    # 5 % of 41 is 2: one of the forty may be answered, so that a new one is with a probability of at most 2 in 41.
    threshold = find_threshold(bad, 0.05)
    assert sum(score >= threshold for score in bad) == 1
    assert 0.38 < threshold < 0.39


@given(scores, st.floats(0, 0.5))
def test_false_answers_stay_at_the_target(bad, target):
    threshold = find_threshold(bad, target)
    assert sum(score >= threshold for score in bad) <= target * len(bad)
    lower = max((score for score in bad if score < threshold), default=None)
    assert lower is None or lower >= threshold - 0.000_101


def test_the_last_digits_of_a_score_decide_nothing():
    # Computed in 32 bits, a score differs a little from one run to the next.
    computed = [0.048945058306885225, 0.048945059575619516]
    first, second = (find_threshold([score] * 25, 0.05) for score in computed)
    assert first == second
    assert all(errors(np.ones(1), np.array([score]), first)["false_answers"] == 0 for score in computed)


@given(scores, scores, st.floats(0.01, 0.2))
def test_a_looser_target_never_refuses_more(good, bad, target):
    strict, loose = (calibrate(good, bad, target=t) for t in (target, 2 * target))
    assert loose.threshold <= strict.threshold
    assert loose.fitted["false_refusals"] <= strict.fitted["false_refusals"]


def test_the_promise_holds_on_questions_not_seen():
    random = np.random.default_rng(4)
    shares = []
    for _ in range(200):
        threshold = find_threshold(random.random(40), 0.1)
        shares.append(errors(random.random(200), random.random(200), threshold)["false_answers"])
    assert 0.05 < np.mean(shares) <= 0.11


def test_held_out_errors_are_those_of_cases_left_out():
    random = np.random.default_rng(9)
    good, bad = 0.4 + 0.6 * random.random(80), 0.6 * random.random(60)
    found = calibrate(good, bad, target=0.05)
    assert found.enough_cases
    assert found.held_out["false_answers"] == pytest.approx(0.05, abs=0.03)
    assert found.held_out["false_refusals"] == pytest.approx(found.fitted["false_refusals"], abs=0.05)
    assert found.before == errors(good, bad, 0.5)
    assert found == calibrate(good, bad, target=0.05)


def test_few_cases_promise_nothing_and_say_so():
    found = calibrate([0.9] * 3, [0.1, 0.5, 0.3], target=0.05)
    assert not found.enough_cases
    assert found.held_out is None
    assert found.fitted["false_answers"] == 0
    assert found.fitted["false_refusals"] == 0


def test_cases_that_are_refused_regardless_ask_for_no_threshold():
    found = calibrate([0.2], [ALWAYS_REFUSED] * 30, target=0.05)
    assert found.threshold == 0
    assert found.fitted["false_answers"] == 0


@pytest.mark.parametrize(
    ("good", "bad", "target"), [([], [0.1], 0.05), ([0.1], [], 0.05), ([0.1], [0.1], 1.0), ([0.1], [0.1], -0.1)]
)
def test_what_cannot_be_calibrated(good, bad, target):
    with pytest.raises(UsageError):
        calibrate(good, bad, target=target)


def test_the_rule_is_kept_whole_and_reads_back():
    found = calibrate([0.9] * 30, [0.1] * 30)
    kept = stored_rule(RefusalRule(), found, embedding_model="m", reranker="consensus")
    assert RefusalRule.from_mapping(kept) == RefusalRule(threshold=found.threshold)
    assert kept["held_out"] == {"false_answers": 0.0, "false_refusals": 0.0}
    for broken in ({"threshold": "high"}, {"threshold": 3}, {"threshold": True}):
        with pytest.raises(UsageError):
            RefusalRule.from_mapping(broken)


def test_a_threshold_counts_for_the_models_and_the_rule_that_it_was_found_with(caplog):
    stored = {**asdict(RefusalRule(threshold=0.8)), "embedding_model": "m"}
    place = SimpleNamespace(name="mine", refusal=stored)
    assert _calibrated_rule(place, "m", "consensus") == RefusalRule(threshold=0.8)
    assert _calibrated_rule(SimpleNamespace(name="mine", refusal=None), "m", "consensus") is None
    assert caplog.text == ""
    assert _calibrated_rule(place, "another", "consensus") is None
    assert "'mine' was calibrated with the model 'm', and 'another' is used now" in caplog.text
    older = SimpleNamespace(name="old", refusal={**stored, "bias": -9.0})
    assert _calibrated_rule(older, "m", "consensus") is None
    assert "another version of the rule" in caplog.text
    reranked = SimpleNamespace(name="reranked", refusal={**stored, "reranker": "cohere/rerank-v3.5"})
    assert _calibrated_rule(reranked, "m", "cohere/rerank-v3.5") is not None
    assert _calibrated_rule(reranked, "m", "cohere/rerank-v4.0-pro") is None
    assert "the reranker 'cohere/rerank-v3.5', and 'cohere/rerank-v4.0-pro' is used now" in caplog.text
    told = len(caplog.records)
    assert _calibrated_rule(older, "m", "consensus") is None
    assert len(caplog.records) == told, "said once"


def test_a_reranker_is_its_name_and_of_a_provider_its_model_too():
    config = RAGConfig.load()
    assert reranker_of(config, RetrievalOptions()) == "consensus"
    assert reranker_of(config, RetrievalOptions(rerank="bm25")) == "bm25"
    assert reranker_of(config, RetrievalOptions(mode="lexical")) == "none"
    hosted = RAGConfig.load(reranking={"provider": "cohere"})
    assert reranker_of(hosted, RetrievalOptions()) == "cohere/rerank-v4.0-pro"
    assert reranker_of(hosted, RetrievalOptions(rerank="none")) == "none"
