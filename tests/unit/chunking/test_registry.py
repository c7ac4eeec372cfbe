"""Strategies by name: validation and descriptions."""

from __future__ import annotations

import json

import pytest

from recollect.chunking.base import tokenize
from recollect.chunking.registry import describe_chunker, make_chunker, parameter_names, strategy_names
from recollect.errors import UsageError
from recollect.model import Document


@pytest.mark.parametrize("strategy", strategy_names())
def test_every_strategy_has_defaults_that_work(strategy):
    chunker = make_chunker(strategy)
    assert [chunk.text for chunk in chunker.chunk(Document(content=" A short text. "))] == ["A short text."]
    description = describe_chunker(chunker)
    assert json.loads(json.dumps(description)) == description
    assert {"strategy", *parameter_names(strategy)} <= set(description)


@pytest.mark.parametrize(
    ("strategy", "parameters", "message"),
    [
        ("recursive", {"size": 100, "overlap": 200}, r"overlap \(200\) must be smaller than size \(100\)"),
        ("fixed_size", {"size": 100, "overlap": 100}, r"overlap \(100\) must be smaller than size \(100\)"),
        ("fixed_size", {"size": 0}, r"size \(0\) must be at least 1"),
        ("recursive", {"overlap": -1}, r"overlap \(-1\) must be at least 0"),
        ("recursive", {"size": "400"}, "size must be a whole number, not '400'"),
        ("recursive", {"size": True}, "size must be a whole number, not True"),
        ("recursive", {"unit": "words"}, "unit must be one of characters, tokens, not 'words'"),
        ("sliding_window", {"window_size": 10, "stride": 11}, "text between two windows would be lost"),
        ("paragraph", {"min_size": 40, "max_size": 60}, r"max_size \(60\) must be at least twice min_size \(40\)"),
        ("semantic", {"min_size": 40, "max_size": 40}, r"min_size \(40\) must be smaller than max_size \(40\)"),
        ("semantic", {"breakpoint_percentile": 101}, "breakpoint_percentile must be a number from 0 to 100, not 101"),
        ("hierarchical", {"size": 9, "parent_max_size": 8}, r"parent_max_size \(8\) must be at least size \(9\)"),
        ("markdown", {"overlap": 3}, "markdown chunking has no parameter 'overlap'; it has max_tokens"),
        ("sentences", {}, "There is no chunking strategy 'sentences'; there are fixed_size, hierarchical"),
    ],
)
def test_wrong_parameters_say_what_is_allowed(strategy, parameters, message):
    with pytest.raises(UsageError, match=message):
        make_chunker(strategy, **parameters)


def test_a_description_changes_with_every_parameter_and_callable():
    descriptions = [
        describe_chunker(chunker)
        for chunker in (
            make_chunker("recursive"),
            make_chunker("recursive", size=123),
            make_chunker("recursive", overlap=7),
            make_chunker("recursive", unit="tokens"),
            make_chunker("recursive", tokenize=tokenize),
            make_chunker("fixed_size"),
            make_chunker("semantic"),
            make_chunker("semantic", similarity=lambda texts: [0.0] * (len(texts) - 1)),
        )
    ]
    assert len({json.dumps(description, sort_keys=True) for description in descriptions}) == len(descriptions)
    assert describe_chunker(make_chunker("recursive")) == descriptions[0]


def test_only_strategies_are_described():
    with pytest.raises(UsageError, match="object is not one of the strategies"):
        describe_chunker(object())
