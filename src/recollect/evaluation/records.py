"""The records of evaluation files: strict about what they hold, and plain about what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from recollect.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_V = TypeVar("_V")
_R = TypeVar("_R")

#: A text that is not empty.
Line = Annotated[str, Field(min_length=1, strict=True)]

#: An id: text, or a whole number written as one.
Id = Annotated[str, Field(min_length=1), BeforeValidator(lambda value: str(value) if type(value) is int else value)]


def _listed(value: object) -> object:
    return value if isinstance(value, list | tuple | Mapping) else (value,)


#: Several texts, or one in place of a list.
Lines = Annotated[tuple[Line, ...], BeforeValidator(_listed)]

_MESSAGES = {
    "extra_forbidden": "there is no such key",
    "missing": "is missing",
    "tuple_type": "must be a list",
    "model_type": "must be a mapping",
    "mapping_type": "must be a mapping",
    "dict_type": "must be a mapping",
    "string_too_short": "is empty",
    "too_short": "there must be one at least",
}


def refusing(read: Callable[[_V], _R]) -> Callable[[_V], _R]:
    """Make a validator of a function: its `UsageError` becomes an error of the value."""

    def checked(value: _V) -> _R:
        try:
            return read(value)
        except UsageError as exc:
            raise ValueError(str(exc)) from exc

    return checked


class Strict(BaseModel):
    """A record of a file that people write: an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Lenient(BaseModel):
    """A record of a published data set, which may hold more than is read."""

    model_config = ConfigDict(frozen=True)


def complaint(error: ErrorDetails) -> str:
    """Describe an error of a value."""
    if error["type"] == "string_type":
        return f"must be text: put {str(error['input'])!r} in quotes"
    return _MESSAGES.get(error["type"], error["msg"].removeprefix("Value error, "))


def complaints(errors: list[ErrorDetails]) -> str:
    """Describe the errors of a record, each with its place."""
    return "; ".join(": ".join(filter(None, (".".join(map(str, one["loc"])), complaint(one)))) for one in errors)


def existing_file(*alternatives: Path) -> Path:
    """Return the first of some files that exists.

    Raises:
        NotFoundError: None exists.
    """
    for path in alternatives:
        if path.is_file():
            return path
    raise NotFoundError(f"{' or '.join(map(str, alternatives))} is missing")
