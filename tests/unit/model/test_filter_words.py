"""Filters in words, and what they are made of."""

from __future__ import annotations

import pytest

from recollect.model.filter import And, Condition, conditions_in, describe, field_name, parse_filter, top_level


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"department": "hr"}, "department = 'hr'"),
        ({"metadata.year": {"gte": 2024, "lt": 2026}}, "metadata.year ≥ 2024 and metadata.year < 2026"),
        ({"tags": {"nin": ["a", "b"]}}, "tags not in ('a', 'b')"),
        ({"language": {"exists": False}}, "language is missing"),
        ({"title": {"exists": True}}, "title exists"),
        ({"event_time": {"gt": "2026-01-31"}}, "event_time > 2026-01-31T00:00:00+00:00"),
        ({"not": {"source": {"contains": "x"}}}, "not (source contains 'x')"),
        (
            {"or": [{"department": "hr"}, {"title": "a", "language": {"ne": "en"}}]},
            "department = 'hr' or (title = 'a' and language ≠ 'en')",
        ),
        ({}, "always"),
    ],
)
def test_in_words(given: dict, words: str):
    assert describe(parse_filter(given)) == words


def test_what_must_hold_is_taken_apart_and_alternatives_are_not():
    nested = parse_filter({"department": "hr", "and": [{"title": "a"}, {"or": [{"title": "b"}, {"title": "c"}]}]})
    assert [describe(part) for part in top_level(nested)] == [
        "department = 'hr'",
        "title = 'a'",
        "title = 'b' or title = 'c'",
    ]
    assert [condition.value for condition in conditions_in(nested)] == ["hr", "a", "b", "c"]
    assert top_level(And(())) == [] and conditions_in(And(())) == []
    assert field_name(Condition("metadata", "eq", 1, ("a", "b"))) == "metadata.a.b"
