"""What a filter names that no document has: said where nothing is found, so that a slip of the pen is seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

from recollect.model.filter import Condition, conditions_in, parse_filter

if TYPE_CHECKING:
    from recollect.model import RetrievalOptions

_SHOWN = 8
_NAMES = {"department": "department", "tags": "tag", "metadata": "metadata field"}


def named_values(options: RetrievalOptions) -> list[tuple[str, str]]:
    """The departments, tags and keys of metadata that the filters of a search ask for, each once."""
    named = [("department", name) for name in options.department]
    named += [("tags", name) for name in options.tags]
    named += [("metadata", key) for key in options.metadata_filters]
    if options.filters:
        for condition in conditions_in(parse_filter(options.filters)):
            named += _of_condition(condition)
    return list(dict.fromkeys(named))


def _of_condition(condition: Condition) -> Iterator[tuple[str, str]]:
    if condition.field == "metadata" and condition.operator not in {"exists", "ne", "nin"}:
        yield "metadata", condition.path[0]
    elif condition.field in {"department", "tags"} and condition.operator in {"eq", "in", "contains"}:
        values = condition.value if isinstance(condition.value, tuple) else (condition.value,)
        yield from ((condition.field, value) for value in values if isinstance(value, str))


def hints(named: Sequence[tuple[str, str]], there: Mapping[str, Sequence[str]]) -> list[str]:
    """A line for each name that no document has, with those that there are, the nearest first.

    Args:
        named: As of `named_values`.
        there: The names that documents have, by kind.
    """
    return [_line(kind, name, there[kind]) for kind, name in named if name not in there[kind]]


def _line(kind: str, name: str, there: Sequence[str]) -> str:
    what = _NAMES[kind]
    if not there:
        return f"No document has the {what} {name!r}, or any other."
    folded = {one.casefold(): one for one in reversed(there)}
    near = [folded[one] for one in get_close_matches(name.casefold(), folded, n=3)]
    if near:
        return f"No document has the {what} {name!r}. Did you mean {' or '.join(map(repr, near))}?"
    more = f" and {len(there) - _SHOWN:,} more" if len(there) > _SHOWN else ""
    return f"No document has the {what} {name!r}. There are: {', '.join(there[:_SHOWN])}{more}."
