from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.evaluation.scoring import RANKING_METRICS, fitting, ranking_metrics, span_scores

spans = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)).map(lambda pair: (pair[0], sum(pair))), max_size=8)


def test_ranking_metrics_by_hand():
    figures = ranking_metrics({"q": ["x", "a", "y", "b"]}, {"q": {"a": 3, "b": 1, "c": 2, "x": 0}})
    gained = 3 / math.log2(3) + 1 / math.log2(5)
    ideal = 3 + 2 / math.log2(3) + 1 / math.log2(4)
    assert figures == pytest.approx(
        {"nDCG@10": gained / ideal, "R@100": 2 / 3, "RR@10": 1 / 2, "AP": (1 / 2 + 2 / 4) / 3}, rel=1e-6
    )


def test_only_the_first_ten_or_hundred_places_count():
    filler = [f"f{i}" for i in range(200)]
    late = ranking_metrics({"q": [*filler[:10], "a", *filler[10:110], "b"]}, {"q": {"a": 1, "b": 1}})
    assert late["nDCG@10"] == late["RR@10"] == 0
    assert late["R@100"] == 0.5
    assert late["AP"] == pytest.approx((1 / 11 + 2 / 112) / 2)


def test_a_judged_query_without_results_counts_as_zero():
    judgements = {"1": {"a": 1}, "2": {"a": 1}, "3": {"a": 1}}
    figures = ranking_metrics({"1": ["a"], "2": []}, judgements)
    assert figures == pytest.approx(dict.fromkeys(RANKING_METRICS, 1 / 3))


def test_a_query_without_judgements_is_left_out():
    assert set(ranking_metrics({"1": ["a"], "9": ["z"]}, {"1": {"a": 1}}).values()) == {1.0}


def test_a_query_without_a_relevant_document_counts_as_zero():
    assert set(ranking_metrics({"1": ["a"], "2": ["a"]}, {"1": {"a": 1}, "2": {"a": 0}}).values()) == {0.5}


def test_nothing_judged_or_nothing_found():
    assert ranking_metrics({"1": ["a"]}, {}) == dict.fromkeys(RANKING_METRICS, 0.0)
    assert ranking_metrics({}, {"1": {"a": 1}}) == dict.fromkeys(RANKING_METRICS, 0.0)


def test_the_first_place_of_a_repeated_document_counts():
    once = ranking_metrics({"1": ["x", "a", "b"]}, {"1": {"a": 1, "b": 1}})
    assert ranking_metrics({"1": ["x", "a", "x", "a", "b"]}, {"1": {"a": 1, "b": 1}}) == once


@given(st.permutations(["é", "b", "c d", "\u2028"]))
def test_the_order_given_is_the_order_judged(ranking):
    place = ranking.index("c d") + 1
    assert ranking_metrics({"1": ranking}, {"1": {"c d": 1}})["RR@10"] == pytest.approx(1 / place)


def test_span_scores_by_hand():
    # Wanted 0-10 and 20-30; shown 5-25 (10 of them wanted) and 5-10 again, and 15 characters of another document.
    scores = span_scores([(0, 10), (20, 30)], [(5, 25), (5, 10)], shown_elsewhere=15)
    assert scores == {"recall": 10 / 20, "precision": 10 / 40, "iou": 10 / (20 + 40 - 10)}


def test_nothing_shown():
    assert set(span_scores([(0, 10)], []).values()) == {0}


@given(spans, st.integers(1, 100))
def test_what_fits_is_the_longest_beginning_within_the_budget(found, budget):
    passages = [("a", span) for span in found]
    shown = fitting(passages, budget)
    assert shown == passages[: len(shown)]
    lengths = [end - start for start, end in found]
    assert sum(lengths[: len(shown)]) <= budget
    if len(shown) < len(found):
        assert sum(lengths[: len(shown) + 1]) > budget


@given(spans.filter(bool), spans, st.integers(0, 50))
def test_span_scores_agree_with_sets_of_characters(references, shown, elsewhere):
    wanted = {character for start, end in references for character in range(start, end)}
    shown_characters = [character for start, end in shown for character in range(start, end)]
    found = len(wanted & set(shown_characters))
    total = len(shown_characters) + elsewhere
    scores = span_scores(references, shown, shown_elsewhere=elsewhere)
    assert scores == {
        "recall": found / len(wanted),
        "precision": found / total if total else 0,
        "iou": found / (len(wanted) + total - found),
    }


@given(
    rankings=st.dictionaries(
        st.sampled_from("pqr"), st.lists(st.integers(0, 150).map(str), max_size=160, unique=True), max_size=3
    ),
    judgements=st.dictionaries(
        st.sampled_from("pqr"),
        st.dictionaries(st.integers(0, 150).map(str), st.integers(-1, 4), min_size=1),
        min_size=1,
    ),
)
def test_the_measures_are_those_of_trec_eval(rankings, judgements):
    reference = pytest.importorskip("ir_measures")
    # trec_eval orders by score, and would order ties its own way; it leaves out queries that nothing was found for.
    run = {key: {name: float(-place) for place, name in enumerate(names)} for key, names in rankings.items()}
    measures = {reference.parse_measure(name): name for name in RANKING_METRICS}
    expected = dict.fromkeys(RANKING_METRICS, 0.0)
    for found in reference.iter_calc(list(measures), judgements, run):
        expected[measures[found.measure]] += found.value / len(judgements)
    assert ranking_metrics(rankings, judgements) == pytest.approx(expected, abs=1e-9)
