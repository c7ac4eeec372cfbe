from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import NotFoundError, UsageError
from recollect.evaluation.case_files import parse_suite
from recollect.evaluation.rag_test import Found, plain, run_suite, score, selected

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
GOOD = {
    "how long is leave?": [Found("leave.md", "You have 30\n  DAYS of leave.")],
    "when is pay day?": [Found("x.md", "nothing"), Found("pay.md", "Pay day"), Found("bank.md", "the 25th of a month")],
    "what about pets?": [],
    "how high is the bonus?": [],
}


def run(replies=GOOD, refuses=lambda asked: "pets" in asked.query, **options):
    return run_suite(SUITE, search=lambda asked: replies[asked.query][: asked.top_k], refuses=refuses, **options)


def test_good_answers_pass():
    result = run()
    assert result.passed
    leave, pay, pets, _bonus = result.results
    assert (leave.scores.precision, leave.scores.recall, leave.scores.mrr) == (1, 1, 1)
    assert (pay.scores.precision, pay.scores.recall, pay.scores.mrr) == (pytest.approx(2 / 3), 1, 0.5)
    assert pets.scores is None
    assert pets.refused is True
    assert result.means().mrr == 0.75
    report = result.as_json()
    assert report["summary"]["cases"] == report["summary"]["passed"] == 4
    assert report["cases"][2]["precision"] is None
    assert report["cases"][1]["found"] == ["x.md", "pay.md", "bank.md"]


@pytest.mark.parametrize(
    ("query", "found", "failure"),
    [
        ("how long is leave?", [], "recall 0.00 is below 1 (missing: “30 days” in leave.md)"),
        ("how long is leave?", [Found("old.md", "30 days")], "recall 0.00"),
        (
            "how long is leave?",
            [Found("leave.md", "30 days"), Found("old.md", "it was 28 days")],
            "found what it must not: “28 days”",
        ),
        ("when is pay day?", [Found("x.md", ""), Found("x.md", ""), Found("pay.md", "25th")], "mrr 0.33 is below 0.5"),
        ("when is pay day?", [Found("pay.md", "the 24th")], "recall 0.50"),
    ],
)
def test_bad_answers_fail_and_say_why(query, found, failure):
    result = run({**GOOD, query: found})
    assert not result.passed
    failures = [text for one in result.results for text in one.failures]
    assert len(failures) == 1
    assert failures[0].startswith(failure)


def test_refusals_are_judged_both_ways():
    never = run(refuses=lambda asked: False)
    assert [one.failures for one in never.results] == [(), (), ("answered, though it has no answer",), ()]
    always = run(refuses=lambda asked: True)
    assert [one.failures for one in always.results] == [(), (), (), ("refused, though it has an answer",)]


def test_the_engine_is_given_filters_and_depth_and_runs_are_averaged():
    asked = []
    answers = itertools.cycle([GOOD["how long is leave?"], []])

    def search(case):
        asked.append((case.query, case.filters.department, case.top_k))
        return next(answers)

    cases = selected(SUITE, ["leave"])
    result = run_suite(SUITE, search=search, refuses=lambda asked: False, cases=cases, runs=4)
    (leave,) = result.results
    assert asked == [("how long is leave?", (), 3)] * 4
    assert leave.scores.recall == 0.5
    assert not leave.stable
    assert len(leave.latencies_ms) == 4
    assert leave.missing == leave.case.must_have
    seen = []
    run_suite(
        SUITE,
        search=lambda case: [],
        refuses=lambda case: seen.append(case.filters.department),
        cases=selected(SUITE, ["bonus"]),
    )
    assert seen == [("hr",)]


def test_a_slow_search_fails_a_case_that_limits_it():
    suite = parse_suite("cases:\n- {name: a, query: q, must_have: x, thresholds: {latency_ms: 0.000001}}")
    result = run_suite(suite, search=lambda asked: [Found("x", "")], refuses=lambda asked: False)
    assert result.results[0].failures[0].startswith("took ")


def test_selection():
    assert [case.name for case in selected(SUITE, ["p*", "leave"])] == ["leave", "pay", "pets"]
    assert selected(SUITE, []) == SUITE.cases
    with pytest.raises(NotFoundError, match=r"'nope'.*leave, pay, pets, bonus"):
        selected(SUITE, ["pay", "nope"])
    with pytest.raises(UsageError):
        run(runs=0)


found = st.lists(st.builds(Found, st.sampled_from(["leave.md", "pay.md", "x"]), st.sampled_from(["30 days", "25th"])))


@given(found, found)
def test_more_passages_never_lower_recall_or_the_first_hit(before, after):
    for case in SUITE.cases[:2]:
        short, long = score(case, before), score(case, before + after)
        assert long.recall >= short.recall
        assert long.mrr >= short.mrr
        assert 0 <= long.precision <= 1


@given(st.text())
def test_comparison_forgives_case_and_white_space(text):
    assert plain(plain(text)) == plain(text)
    assert plain(f" {text}\n\t") == plain(text)
