from __future__ import annotations

import itertools
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import NotFoundError, UsageError
from recollect.evaluation.case_files import parse_suite, plain
from recollect.evaluation.rag_test import run_suite, score, selected
from recollect.model import Answer, Outcome
from unit.answer.samples import passage

OUTCOMES = get_args(Outcome)
SUITE = parse_suite(
    """
defaults: {top_k: 3}
personas: {anna: {department: hr}}
cases:
- name: leave
  query: how long is leave?
  must_have: [{source: leave.md, text: 30 days}]
  must_not_have: [{text: 28 days}]
- name: pay
  query: when is pay day?
  must_have: [pay.md, {source: [pay.md, bank.md], text: "25th"}]
  thresholds: {mrr: 0.5}
- name: pets
  query: what about pets?
  answerable: false
- name: bonus
  query: how high is the bonus?
  answerable: true
  as: anna
"""
)


def hit(source, text=""):
    return passage(text, source=source)


GOOD = {
    "how long is leave?": [hit("leave.md", "You have 30\n  DAYS of leave.")],
    "when is pay day?": [hit("x.md", "nothing"), hit("pay.md", "Pay day"), hit("bank.md", "the 25th of a month")],
}


def run(replies=GOOD, becomes=lambda asked: "none" if "pets" in asked.query else "answer", **options):
    def ask(asked):
        return Answer(question=asked.query, text="", outcome=becomes(asked), citations=())

    return run_suite(SUITE, search=lambda asked: replies.get(asked.query, [])[: asked.top_k], ask=ask, **options)


def test_good_answers_pass():
    result = run()
    assert result.passed
    leave, pay, pets, _ = result.results
    assert leave.metrics == {"precision": 1, "recall": 1, "mrr": 1}
    assert pay.metrics == {"precision": pytest.approx(2 / 3), "recall": 1, "mrr": 0.5}
    assert (set(pets.metrics.values()), pets.outcome, pets.refused) == ({None}, "none", True)
    assert result.mean("mrr") == 0.75


@pytest.mark.parametrize(
    ("query", "found", "failure"),
    [
        ("how long is leave?", [], "recall 0.00 is below 1 (missing: “30 days” in leave.md)"),
        ("how long is leave?", [hit("old.md", "30 days")], "recall 0.00"),
        (
            "how long is leave?",
            [hit("leave.md", "30 days"), hit("old.md", "it was 28 days")],
            "found what it must not: “28 days”",
        ),
        ("when is pay day?", [hit("x.md"), hit("x.md"), hit("pay.md", "25th")], "mrr 0.33 is below 0.5"),
        ("when is pay day?", [hit("pay.md", "the 24th")], "recall 0.50"),
    ],
)
def test_bad_answers_fail_and_say_why(query, found, failure):
    failures = [text for one in run({**GOOD, query: found}).results for text in one.failures]
    assert len(failures) == 1
    assert failures[0].startswith(failure)


def test_refusals_are_judged_both_ways():
    told = {outcome: [one.failures for one in run(becomes=lambda _, o=outcome: o).results] for outcome in OUTCOMES}
    assert told == {
        "answer": [(), (), ("answered, though it has no answer",), ()],
        "passages": [(), (), (), ("showed passages, though it has an answer",)],
        "none": [(), (), (), ("refused, though it has an answer",)],
    }


def test_runs_are_averaged_and_a_slow_search_fails_a_case_that_limits_it():
    suite = parse_suite("cases:\n- {name: a, query: q, must_have: x, thresholds: {recall: 0, latency_ms: 0.000001}}")
    answers = itertools.cycle([[hit("x")], []])
    (result,) = run_suite(suite, search=lambda asked: next(answers), ask=lambda asked: None, runs=4).results
    assert (result.metrics["recall"], result.stable, len(result.milliseconds)) == (0.5, False, 4)
    assert result.missing == ("x",)
    (failure,) = result.failures
    assert failure.startswith("took ")


def test_selection():
    assert [case.name for case in selected(SUITE, ["p*", "leave"])] == ["leave", "pay", "pets"]
    assert selected(SUITE, []) == SUITE.cases
    with pytest.raises(NotFoundError, match=r"'nope'.*leave, pay, pets, bonus"):
        selected(SUITE, ["pay", "nope"])
    with pytest.raises(UsageError):
        run(runs=0)


found = st.lists(st.builds(hit, st.sampled_from(["leave.md", "pay.md", "x"]), st.sampled_from(["30 days", "25th"])))


@given(found, found)
def test_more_passages_never_lower_recall_or_the_first_hit(before, after):
    for case in SUITE.cases[:2]:
        short, long = score(case, before), score(case, before + after)
        assert long["recall"] >= short["recall"]
        assert long["mrr"] >= short["mrr"]
        assert 0 <= long["precision"] <= 1


@given(st.text())
def test_comparison_forgives_case_and_white_space(text):
    assert plain(plain(text)) == plain(text)
    assert plain(f" {text}\n\t") == plain(text)
