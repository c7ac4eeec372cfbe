"""What the shapes of replies have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, overload

# That of Python 3.11's own typing has no bases at runtime, so pydantic refuses it.
from typing_extensions import TypedDict


class Shape(TypedDict):
    """A JSON object; the docstrings of its keys become descriptions in its schema."""


# By the name that pydantic looks for; a class body of this kind takes no assignments.
setattr(Shape, "__pydantic_config__", {"use_attribute_docstrings": True})  # noqa: B010 - no attribute of the type


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
