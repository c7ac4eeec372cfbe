"""What a search may be asked, and what is said of what it may not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from recollect.errors import UsageError
from recollect.model import RetrievalOptions
from recollect.model.search_options import MAX_QUERY_CHARACTERS, validate


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"top_k": 1, "candidates": 10_000, "neighbours": 0, "rerank_candidates": 1},
        {"top_k": np.int64(1000), "dense_weight": np.float32(0.5), "min_score": -3, "similarity_threshold": -1},
        {"mode": "lexical", "fusion": "rrf", "rrf_k": 1, "mmr_lambda": 1, "department": ["hr"], "tags": ()},
        {"top_k": 100, "neighbours": 10},
        {"top_k": 1000, "neighbours": 1, "rerank_candidates": 1000, "rrf_k": 10_000},
        {"mode": "a retriever of somebody's own, which who searches knows"},
        {"explain": True, "pseudo_relevance": None, "use_cache": False, "metadata_filters": {"a": {"b": [1, None]}}},
    ],
)
def test_what_makes_sense_passes(options):
    validate("x" * MAX_QUERY_CHARACTERS, RetrievalOptions(**options))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"top_k": 0}, "top_k must lie between 1 and 1,000, not 0"),
        ({"top_k": "5"}, "top_k must be a whole number, not '5'"),
        ({"top_k": True}, "top_k must be a whole number, not True"),
        ({"top_k": 2.0}, "top_k must be a whole number"),
        ({"candidates": 10**400}, "candidates must lie between 1 and 10,000"),
        ({"rrf_k": 10**7}, "rrf_k must lie between 1 and 10,000"),
        ({"rrf_k": 0}, "rrf_k must lie between 1 and 10,000"),
        ({"rerank_candidates": 1001}, "rerank_candidates must lie between 1 and 1,000"),
        ({"top_k": 101, "neighbours": 10}, r"With neighbours=10 a search returns at most 100 passages, not 101\."),
        ({"neighbours": 11}, "neighbours must lie between 0 and 10, not 11"),
        ({"similarity_threshold": 1.01}, "similarity_threshold must lie between -1 and 1"),
        ({"similarity_threshold": math.nan}, "similarity_threshold must lie between -1 and 1, not nan"),
        ({"min_score": math.nan}, "min_score must be a number, not nan"),
        ({"min_score": "high"}, "min_score must be a number, not 'high'"),
        ({"mmr_lambda": -0.1}, "mmr_lambda must lie between 0 and 1"),
        ({"dense_weight": [1]}, "dense_weight must be a number"),
        ({"mode": ["hybrid"]}, r"mode must be a text, not \['hybrid'\]"),
        ({"fusion": "sum"}, "fusion must be weighted or rrf"),
        ({"explain": "yes"}, "explain must be true or false, not 'yes'"),
        ({"department": "hr"}, r"department must be a tuple of strings, for instance department=\(\"one\",\)"),
        ({"tags": ("a\0",)}, "tags must be a tuple of strings"),
        ({"filters": {"year": 3}}, "There is no field 'year'"),
        ({"filters": "x"}, "filter must be an object"),
        ({"metadata_filters": {"a": math.nan}}, "metadata_filters must be JSON values"),
    ],
)
def test_what_makes_none_is_named_with_what_is_allowed(options, said):
    with pytest.raises(UsageError, match=said):
        validate("leave", RetrievalOptions(**options))


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("", "empty"),
        (" \n", "empty"),
        ("a\0", "NUL"),
        ("x" * (MAX_QUERY_CHARACTERS + 1), "20,001 characters; at most 20,000"),
        (None, "must be text, not None"),
        (b"leave", "must be text"),
    ],
)
def test_a_question_is_text_of_a_bearable_length(query, said):
    with pytest.raises(UsageError, match=said):
        validate(query, RetrievalOptions())
