"""Filters as SQL conditions on document versions: only fixed text and parameters, never a given name or value."""

from __future__ import annotations

from typing import Any, LiteralString, assert_never

from psycopg.types.json import Jsonb

from recollect.model.filter import EVERY_FIELD, And, Condition, Filter, Not, Operator, Or

_COMPARISONS: dict[str, LiteralString] = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}


class ConditionBuilder:
    """Turns a filter into a condition and its parameters.

    Attributes:
        params: By name, for the placeholders in the conditions built.
    """

    def __init__(self) -> None:
        self.params: dict[str, Any] = {}

    def build(self, given: Filter) -> LiteralString:
        """The condition; true or false for every version, never null."""
        match given:
            case And(parts):
                return _joined([self.build(part) for part in parts], "AND", "true")
            case Or(parts):
                return _joined([self.build(part) for part in parts], "OR", "false")
            case Not(part):
                return f"(NOT {self.build(part)})"
            case Condition():
                return f"coalesce({self._condition(given)}, false)"
            case _:
                assert_never(given)

    def _param(self, value: Any) -> LiteralString:  # noqa: ANN401 - any value that PostgreSQL takes
        name = f"filter_{len(self.params)}"
        self.params[name] = value
        return f"%({name})s"

    def _condition(self, condition: Condition) -> LiteralString:
        positive: dict[Operator, Operator] = {"ne": "eq", "nin": "in"}
        if condition.operator in positive:
            opposite = Condition(condition.field, positive[condition.operator], condition.value, condition.path)
            return f"NOT coalesce({self._condition(opposite)}, false)"
        match EVERY_FIELD[condition.field].kind:
            case "json":
                return self._metadata(condition)
            case "names":
                return self._names(condition)
            case _:
                return self._column(condition)

    def _column(self, condition: Condition) -> LiteralString:
        field, operator, value = EVERY_FIELD[condition.field], condition.operator, condition.value
        column = field.column
        if operator == "exists":
            return f"({column} IS NOT NULL) = {self._param(value)}"
        if operator == "in":
            known = self._param([item for item in value if item is not None])
            return f"({column} = ANY ({known}) OR ({column} IS NULL AND {self._param(None in value)}))"
        if value is None:
            return f"{column} IS NULL"
        if operator == "contains":
            return f"strpos({column}, {self._param(value)}) > 0"
        if operator == "eq":
            return f"{column} = {self._param(value)}"
        # Texts are compared by code point, whatever the database's collation.
        collated: LiteralString = ' COLLATE "C"' if field.kind == "text" else ""
        return f"{column}{collated} {_COMPARISONS[operator]} {self._param(value)}"

    def _names(self, condition: Condition) -> LiteralString:
        column, operator, value = EVERY_FIELD[condition.field].column, condition.operator, condition.value
        if operator == "exists":
            return f"(cardinality({column}) > 0) = {self._param(value)}"
        if operator == "in":
            return f"{column} && {self._param([item for item in value if item is not None])}::text[]"
        if value is None:
            return f"cardinality({column}) = 0"
        return f"{column} @> ARRAY[{self._param(value)}::text]"

    def _metadata(self, condition: Condition) -> LiteralString:
        operator, value = condition.operator, condition.value
        if len(condition.path) == 1:
            found: LiteralString = f"(v.metadata -> {self._param(condition.path[0])}::text)"
        else:
            found = f"(v.metadata #> {self._param(list(condition.path))}::text[])"
        if operator == "exists":
            return f"({found} IS NOT NULL) = {self._param(value)}"
        if operator == "in":
            return f"{found} = ANY ({self._param([Jsonb(item) for item in value])}::jsonb[])"
        if operator == "contains":
            return self._metadata_contains(found, value)
        if operator == "eq":
            return f"{self._indexed(condition)} AND {found} = {self._param(Jsonb(value))}"
        sign = _COMPARISONS[operator]
        if isinstance(value, int | float):
            # As JSON, whose numbers are compared as such: no text is made of each to be read again.
            return f"({found} {sign} {self._param(Jsonb(value))} AND jsonb_typeof({found}) = 'number')"
        return f"(jsonb_typeof({found}) = 'string' AND {found} #>> '{{}}' COLLATE \"C\" {sign} {self._param(value)})"

    def _metadata_contains(self, found: LiteralString, value: object) -> LiteralString:
        contained = f"(jsonb_typeof({found}) = 'array' AND {found} @> jsonb_build_array({self._param(Jsonb(value))}))"
        if not isinstance(value, str):
            return contained
        part_of = f"strpos({found} #>> '{{}}', {self._param(value)}) > 0"
        return f"({contained} OR (jsonb_typeof({found}) = 'string' AND {part_of}))"

    def _indexed(self, condition: Condition) -> LiteralString:
        """Containment, which the index on metadata finds; equality is checked beside it."""
        nested: Any = condition.value
        for key in reversed(condition.path):
            nested = {key: nested}
        # A number in the path may be a position in a list, which containment does not know.
        if any(key.isdecimal() for key in condition.path):
            return "true"
        return f"v.metadata @> {self._param(Jsonb(nested))}"


def _joined(parts: list[LiteralString], word: LiteralString, empty: LiteralString) -> LiteralString:
    return f"({f' {word} '.join(parts)})" if parts else empty
