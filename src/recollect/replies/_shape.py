"""What the shapes of replies have in common."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Annotated, Any, overload

# That of Python 3.11's own typing has no bases at runtime, so pydantic refuses it.
from typing_extensions import TypedDict


class Shape(TypedDict):
    """A JSON object; the docstrings of its keys become descriptions in its schema, inherited ones too."""


def _describe(schema: dict[str, Any], shape: type) -> None:
    """Adds what pydantic leaves out: it reads the docstrings of a shape's own keys alone."""
    for base in getattr(shape, "__orig_bases__", ()):
        for key, text in _docstrings(base).items():
            if key in schema["properties"]:
                schema["properties"][key].setdefault("description", text)
        _describe(schema, base)


def _docstrings(shape: type) -> dict[str, str]:
    try:
        (body,) = ast.parse(inspect.getsource(shape)).body
    except (OSError, TypeError, ValueError, SyntaxError):
        return {}  # without its source, or made by a call
    statements = body.body if isinstance(body, ast.ClassDef) else []
    return {
        one.target.id: inspect.cleandoc(next_one.value.value)
        for one, next_one in pairwise(statements)
        if isinstance(one, ast.AnnAssign)
        and isinstance(one.target, ast.Name)
        and isinstance(next_one, ast.Expr)
        and isinstance(next_one.value, ast.Constant)
        and isinstance(next_one.value.value, str)
    }


# By the name that pydantic looks for; a class body of this kind takes no assignments.
setattr(Shape, "__pydantic_config__", {"use_attribute_docstrings": True, "json_schema_extra": _describe})  # noqa: B010


@dataclass(frozen=True, slots=True)
class _Format:
    """The ``format`` of strings in a schema."""

    name: str

    def __get_pydantic_json_schema__(self, schema: Any, handler: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:  # noqa: ANN401 - pydantic's
        return {**handler(schema), "format": self.name}


#: A time in ISO 8601, with its offset from UTC.
Timestamp = Annotated[str, _Format("date-time")]


@overload
def iso(moment: datetime) -> Timestamp: ...
@overload
def iso(moment: datetime | None) -> Timestamp | None: ...
def iso(moment: datetime | None) -> Timestamp | None:
    """A time as JSON has it."""
    return None if moment is None else moment.isoformat()


def rounded(timings_ms: Mapping[str, float]) -> dict[str, float]:
    """Milliseconds to the microsecond."""
    return {stage: round(milliseconds, 3) for stage, milliseconds in timings_ms.items()}
