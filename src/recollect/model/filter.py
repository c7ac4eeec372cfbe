"""The language of filters: conditions on documents, joined by and, or and not.

A filter is a mapping that can be written as JSON. Every entry must hold::

    {"department": "hr"}                                       equal
    {"metadata.year": {"gte": 2024, "lt": 2026}}               operators
    {"metadata.size": {"eq": {"width": 3}}}                    equal to an object
    {"tags": {"contains": "policy"}, "language": {"in": ["en", "de"]}}
    {"or": [{"department": "hr"}, {"not": {"source_type": "web"}}]}

``ne`` and ``nin`` are the exact opposites of ``eq`` and ``in``: a document that lacks the field passes them. The
others hold only for documents that have the field, in a value of the same kind (a number is never compared to a text).
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, Literal, LiteralString, TypeAlias, assert_never, cast, get_args

from recollect.errors import UsageError

Operator = Literal["eq", "ne", "in", "nin", "gt", "gte", "lt", "lte", "contains", "exists"]
OPERATORS: tuple[Operator, ...] = get_args(Operator)

#: How the values of a field are read and compared: ``name`` has no order, ``names`` is a list of them.
FieldKind = Literal["text", "name", "names", "number", "moment", "json"]


@dataclass(frozen=True, slots=True)
class FilterField:
    """One thing that filters compare.

    Attributes:
        name: In filters, in their descriptions and in what `why_not` says.
        kind: Which values and operators it takes.
        column: Its value, or NULL, as an SQL expression over ``v``, a row of ``document_versions``. It may use the
            parameters ``tenant_id`` and ``collection_id``.
        in_language: Whether a filter may name it; the others belong to the options of a search.
    """

    name: str
    kind: FieldKind
    column: LiteralString
    in_language: bool = True


#: Every field, by its name: filters read and compare values by this table, and `why_not` reads a document's own ones.
EVERY_FIELD: Mapping[str, FilterField] = {
    field.name: field
    for field in (
        FilterField("department", "name", "v.department"),
        FilterField("document_id", "number", "v.document_id"),
        FilterField("event_time", "moment", "v.event_from"),
        # Where an interval ends, and when the version became known.
        FilterField("event_end", "moment", "coalesce(v.event_to, v.event_from)", in_language=False),
        FilterField("known_from", "moment", "v.known_from", in_language=False),
        # A document that says nothing else is in the language that it was analysed in, or in its collection's.
        FilterField(
            "language",
            "name",
            "coalesce(v.language, v.analysed_as[1], (SELECT c.language FROM collections c "
            "WHERE c.tenant_id = %(tenant_id)s AND c.collection_id = %(collection_id)s))",
        ),
        # Filtered by keys below it, ``metadata.<key>``.
        FilterField("metadata", "json", "v.metadata", in_language=False),
        FilterField("source", "text", "v.uri"),
        FilterField(
            "source_type",
            "name",
            "(SELECT s.type FROM documents d JOIN sources s USING (tenant_id, source_id) "
            "WHERE d.tenant_id = v.tenant_id AND d.document_id = v.document_id)",
        ),
        FilterField("tags", "names", "v.tags"),
        FilterField("title", "text", "v.title"),
    )
}

#: What a document is filtered by, beside ``metadata.<key>`` (``metadata.<key>.<key>`` inside objects).
FIELDS = tuple(sorted(name for name, field in EVERY_FIELD.items() if field.in_language))

_ORDERED: frozenset[Operator] = frozenset({"gt", "gte", "lt", "lte"})
_MAX_DEPTH = 32
_MAX_CONDITIONS = 1_000


@dataclass(frozen=True, slots=True)
class Condition:
    """One field compared with a value.

    Attributes:
        field: A name of `EVERY_FIELD`.
        path: The keys below ``metadata``; empty for the other fields.
    """

    field: str
    operator: Operator
    value: Any
    path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class And:
    """All of the parts hold; with no parts, always."""

    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """At least one of the parts holds."""

    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The part does not hold."""

    part: Filter


Filter: TypeAlias = Condition | And | Or | Not


def parse_filter(given: Mapping[str, Any]) -> Filter:
    """Read a filter.

    Raises:
        UsageError: Names the field and the operator that are wrong, and what is allowed.
    """
    budget = [_MAX_CONDITIONS]
    return _mapping(given, "filter", _MAX_DEPTH, budget)


_SIGNS: Mapping[Operator, str] = {"eq": "=", "ne": "≠", "gt": ">", "gte": "≥", "lt": "<", "lte": "≤", "nin": "not in"}


def describe(given: Filter) -> str:
    """A filter in words for people, for instance ``department = 'hr' and metadata.year ≥ 2024``.

    Args:
        given: As parsed.
    """
    match given:
        case Condition(operator="exists"):
            return f"{field_name(given)} {'exists' if given.value else 'is missing'}"
        case Condition():
            return f"{field_name(given)} {_SIGNS.get(given.operator, given.operator)} {_shown(given.value)}"
        case Not(part):
            return f"not ({describe(part)})"
        case And(parts):
            return " and ".join(_inner(part) for part in parts) or "always"
        case Or(parts):
            return " or ".join(_inner(part) for part in parts)
        case _:
            assert_never(given)


def field_name(condition: Condition) -> str:
    """The field that a condition looks at, as a filter names it: ``department``, ``metadata.year``."""
    return ".".join((condition.field, *condition.path))


def conditions_in(given: Filter) -> list[Condition]:
    """Every condition of a filter, from left to right."""
    match given:
        case Condition():
            return [given]
        case Not(part):
            return conditions_in(part)
        case And(parts) | Or(parts):
            return [condition for part in parts for condition in conditions_in(part)]
        case _:
            assert_never(given)


def top_level(given: Filter) -> list[Filter]:
    """The parts that must all hold, one by one."""
    return [inner for part in given.parts for inner in top_level(part)] if isinstance(given, And) else [given]


def _inner(part: Filter) -> str:
    return f"({describe(part)})" if isinstance(part, And | Or) and len(part.parts) > 1 else describe(part)


def _shown(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, tuple):
        return f"({', '.join(_shown(item) for item in value)})"
    return repr(value)


def _mapping(given: object, place: str, depth: int, budget: list[int]) -> Filter:
    if not isinstance(given, Mapping):
        raise UsageError(f"{place} must be an object of fields and conditions, not {given!r}.")
    if not depth:
        raise UsageError(f"The filter is nested more than {_MAX_DEPTH} levels deep.")
    parts = tuple(_entry(str(key), value, place, depth - 1, budget) for key, value in given.items())
    return parts[0] if len(parts) == 1 else And(parts)


def _entry(key: str, value: object, place: str, depth: int, budget: list[int]) -> Filter:
    if key in {"and", "or"}:
        if not isinstance(value, Sequence) or isinstance(value, str) or not value:
            raise UsageError(f"{key!r} takes a list of at least one filter, not {value!r}.")
        parts = tuple(_mapping(item, f"{place}.{key}", depth, budget) for item in value)
        return And(parts) if key == "and" else Or(parts)
    if key == "not":
        return Not(_mapping(value, f"{place}.not", depth, budget))
    name, path = _field(key)
    # An object that is no operator is a slip of the pen more often than a value: {"gte ": 3}, {"$gte": 3}.
    conditions = value if isinstance(value, Mapping) else {"eq": value}
    if not conditions:
        raise UsageError(f"{key!r} has an empty condition: give it a value, or one of {', '.join(OPERATORS)}.")
    found = tuple(_condition(key, name, path, str(operator), operand) for operator, operand in conditions.items())
    budget[0] -= len(found)
    if budget[0] < 0:
        raise UsageError(f"The filter has more than {_MAX_CONDITIONS} conditions.")
    return found[0] if len(found) == 1 else And(found)


def _field(key: str) -> tuple[str, tuple[str, ...]]:
    if key in FIELDS:
        return key, ()
    head, *path = key.split(".")
    if head == "metadata" and path and all(path):
        return head, tuple(path)
    near = difflib.get_close_matches(key.lower(), (*FIELDS, "metadata.<key>", "and", "or", "not"), n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise UsageError(f"There is no field {key!r} to filter by.{hint} There are {', '.join(FIELDS)} and metadata.<key>.")


def _condition(key: str, name: str, path: tuple[str, ...], operator: str, operand: object) -> Condition:
    if operator not in OPERATORS:
        near = difflib.get_close_matches(operator.lstrip("$").strip().lower(), OPERATORS, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        objects = ' An object to compare with is written {"eq": {…}}.' if EVERY_FIELD[name].kind == "json" else ""
        raise UsageError(f"{key!r} has no operator {operator!r}; there are {', '.join(OPERATORS)}.{hint}{objects}")
    known: Operator = operator
    _require_operand(key, name, known, operand)
    if operator in {"in", "nin"}:
        operand = tuple(_value(key, name, known, item) for item in cast("Sequence[object]", operand))
    elif operator != "exists":
        operand = _value(key, name, known, operand)
    return Condition(name, known, operand, path)


def _require_operand(key: str, name: str, operator: Operator, operand: object) -> None:
    if operator == "exists" and not isinstance(operand, bool):
        raise UsageError(f"{key!r}: 'exists' takes true or false, not {operand!r}.")
    if operator in {"in", "nin"} and (not isinstance(operand, list | tuple | set | frozenset)):
        raise UsageError(f"{key!r}: {operator!r} takes a list of values, not {operand!r}.")
    kind = EVERY_FIELD[name].kind
    if operator in _ORDERED and kind in {"name", "names"}:
        raise UsageError(f"{key!r} has no order: {operator!r} cannot compare it.")
    if operator in _ORDERED and not isinstance(operand, int | float | str | date):
        raise UsageError(f"{key!r}: {operator!r} takes a number or a text, not {operand!r}.")
    if operator in _ORDERED and isinstance(operand, bool):
        raise UsageError(f"{key!r}: {operator!r} takes a number or a text, not {operand!r}.")
    if operator == "contains" and kind in {"number", "moment"}:
        raise UsageError(f"{key!r} is a single value: 'contains' cannot look into it.")


def _value(key: str, name: str, operator: Operator, value: object) -> object:
    kind = EVERY_FIELD[name].kind
    if kind == "number":
        if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 2**63:
            raise UsageError(f"{key!r}: {operator!r} takes whole numbers, not {value!r}.")
        return value
    if kind == "moment":
        return _moment(key, operator, value)
    if kind == "json":
        return _json(key, operator, value)
    if value is not None and not isinstance(value, str):
        several = " For one of several, use 'in'." if isinstance(value, list | tuple) else ""
        raise UsageError(f"{key!r}: {operator!r} takes a text, not {value!r}.{several}")
    return _text(key, value) if isinstance(value, str) else None


def _moment(key: str, operator: Operator, value: object) -> datetime:
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    except ValueError as exc:
        raise UsageError(f"{key!r}: {operator!r} takes a time such as 2026-01-31T12:00:00Z, not {value!r}.") from exc
    # Times without a zone are read as UTC, here as everywhere.
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def _json(key: str, operator: Operator, value: object) -> object:
    if isinstance(value, Mapping):
        return {_text(key, str(name)): _json(key, operator, item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_json(key, operator, item) for item in value]
    if isinstance(value, str):
        return _text(key, value)
    if isinstance(value, float) and not math.isfinite(value):
        raise UsageError(f"{key!r}: {operator!r} takes finite numbers, not {value!r}.")
    if value is None or isinstance(value, bool | int | float):
        return value
    raise UsageError(f"{key!r}: {operator!r} takes a value that JSON can hold, not {value!r}.")


def _text(key: str, value: str) -> str:
    if "\0" in value or any("\ud800" <= letter <= "\udfff" for letter in value):
        raise UsageError(f"{key!r}: the value holds a character that no document can hold (NUL or half a pair).")
    return value
