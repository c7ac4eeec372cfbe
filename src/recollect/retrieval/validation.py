"""What a search may be asked."""

from __future__ import annotations

import json
from collections.abc import Mapping

from recollect.errors import UsageError
from recollect.model import RetrievalOptions

MAX_QUERY_CHARACTERS = 20_000
MAX_TOP_K = 1_000
MAX_CANDIDATES = 10_000
MAX_NEIGHBOURS = 10


def validate(query: str, options: RetrievalOptions) -> None:
    """Refuse a query or options that make no sense.

    Raises:
        UsageError: Says what is wrong, and what is allowed.
    """
    if not query.strip():
        raise UsageError("The query is empty: ask something.")
    if len(query) > MAX_QUERY_CHARACTERS:
        raise UsageError(f"The query has {len(query):,} characters; at most {MAX_QUERY_CHARACTERS:,} are allowed.")
    if "\0" in query:
        raise UsageError("The query holds a NUL character: remove it.")
    if options.mode not in {"hybrid", "dense", "lexical"}:
        raise UsageError(f"mode must be hybrid, dense or lexical, not {options.mode!r}.")
    if options.fusion not in {None, "weighted", "rrf"}:
        raise UsageError(f"fusion must be weighted or rrf, not {options.fusion!r}.")
    for name in ("department", "source", "tags"):
        _require_names(name, getattr(options, name))
    _require_json(options.metadata_filters)
    _require_range("top_k", options.top_k, 1, MAX_TOP_K)
    _require_range("candidates", options.candidates, 1, MAX_CANDIDATES)
    _require_range("dense_weight", options.dense_weight, 0, 1)
    _require_range("rrf_k", options.rrf_k, 0, 1_000_000)
    _require_range("similarity_threshold", options.similarity_threshold, -1, 1)
    _require_range("rerank_candidates", options.rerank_candidates, 1, 10_000)
    _require_range("mmr_lambda", options.mmr_lambda, 0, 1)
    _require_range("neighbours", options.neighbours, 0, MAX_NEIGHBOURS)


def _require_names(name: str, given: object) -> None:
    if not isinstance(given, tuple | list) or not all(isinstance(item, str) and "\0" not in item for item in given):
        raise UsageError(f'{name} must be a tuple of strings, for instance {name}=("one",), not {given!r}.')


def _require_json(given: object) -> None:
    # What PostgreSQL's jsonb takes: no NaN, no NUL, no lone surrogates.
    try:
        text = json.dumps(dict(given) if isinstance(given, Mapping) else None, allow_nan=False, ensure_ascii=False)
        text.encode("utf-8")
    except (TypeError, ValueError) as exc:
        raise UsageError(f"metadata_filters must be JSON values by name, not {given!r}: {exc}.") from exc
    if not isinstance(given, Mapping) or "\\u0000" in text:
        raise UsageError(f"metadata_filters must be JSON values by name, without NUL characters, not {given!r}.")


def _require_range(name: str, value: float | None, low: float, high: float) -> None:
    if value is not None and not low <= value <= high:
        raise UsageError(f"{name} must lie between {low:,} and {high:,}, not {value!r}.")
