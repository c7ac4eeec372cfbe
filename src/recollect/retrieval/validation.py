"""What a search may be asked."""

from __future__ import annotations

import json
import math
import numbers
from collections.abc import Mapping
from typing import cast

from recollect.errors import OutOfBoundsError, UsageError
from recollect.model import RetrievalOptions
from recollect.model.bounds import MAX_QUERY_CHARACTERS, most_passages
from recollect.model.filter import parse_filter
from recollect.model.search_options import SearchOption, search_options


def validate(query: str, options: RetrievalOptions) -> None:
    """Refuse a query or options that make no sense.

    Raises:
        OutOfBoundsError: The query is too long, or a number too small or too large; says what is allowed.
        UsageError: Something else is wrong; says what, and what is allowed.
    """
    require_question(query)
    if options.mode is not None and not isinstance(options.mode, str):
        raise UsageError(f"mode must be a text, not {options.mode!r}.")
    if options.fusion not in (None, "weighted", "rrf"):
        raise UsageError(f"fusion must be weighted or rrf, not {options.fusion!r}.")
    _require_json(options.metadata_filters)
    if options.filters:
        parse_filter(options.filters)
    for option in search_options():
        _require_allowed(option, getattr(options, option.field))
    require_width(options)


def _require_allowed(option: SearchOption, value: object) -> None:
    if option.type in (int, int | None, float, float | None):
        if value is not None or option.type is int:
            _require_number(option, value, whole=option.type in (int, int | None))
    elif option.type in (bool, bool | None):
        if value not in (None, True, False):
            raise UsageError(f"{option.field} must be true or false, not {value!r}.")
    elif option.type == tuple[str, ...]:
        _require_names(option.field, value)


def require_width(options: RetrievalOptions) -> None:
    """Refuse more passages than can be widened; also to be called once the configured ``top_k`` is known.

    Raises:
        OutOfBoundsError: Says how many passages and neighbours are allowed together.
    """
    most = most_passages(options.neighbours)
    if (options.top_k or 0) > most:
        raise OutOfBoundsError(
            f"With neighbours={options.neighbours} a search returns at most {most:,} passages, not {options.top_k:,}. "
            "Lower top_k or neighbours."
        )


def require_question(query: object) -> None:
    """Refuse what is no question.

    Raises:
        OutOfBoundsError: It is too long.
        UsageError: It is no text, or empty.
    """
    if not isinstance(query, str):
        raise UsageError(f"The query must be text, not {query!r}.")
    if not query.strip():
        raise UsageError("The query is empty: ask something.")
    if len(query) > MAX_QUERY_CHARACTERS:
        raise OutOfBoundsError(
            f"The query has {len(query):,} characters; at most {MAX_QUERY_CHARACTERS:,} are allowed."
        )
    if "\0" in query:
        raise UsageError("The query holds a NUL character: remove it.")


def _require_names(name: str, given: object) -> None:
    if not isinstance(given, tuple | list) or not all(isinstance(item, str) and "\0" not in item for item in given):
        raise UsageError(f'{name} must be a tuple of strings, for instance {name}=("one",), not {given!r}.')


def _require_json(given: object) -> None:
    if isinstance(given, dict) and not given:
        return
    # What PostgreSQL's jsonb takes: no NaN, no NUL, no lone surrogates.
    try:
        text = json.dumps(dict(given) if isinstance(given, Mapping) else None, allow_nan=False, ensure_ascii=False)
        text.encode("utf-8")
    except (TypeError, ValueError) as exc:
        raise UsageError(f"metadata_filters must be JSON values by name, not {given!r}: {exc}.") from exc
    if not isinstance(given, Mapping) or "\\u0000" in text:
        raise UsageError(f"metadata_filters must be JSON values by name, without NUL characters, not {given!r}.")


def _require_number(option: SearchOption, value: object, *, whole: bool) -> None:
    name = option.field
    if isinstance(value, bool) or not isinstance(value, numbers.Integral if whole else numbers.Real):
        raise UsageError(f"{name} must be a {'whole ' if whole else ''}number, not {value!r}.")
    low, high = (
        (-math.inf if option.least is None else option.least),
        (math.inf if option.most is None else option.most),
    )
    if not low <= cast("float", value) <= high:
        allowed = f"lie between {low:,} and {high:,}" if math.isfinite(high) else "be a number"
        raise OutOfBoundsError(f"{name} must {allowed}, not {value!r}.")
