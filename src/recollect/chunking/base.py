"""What every chunking strategy promises, and how its parameters are checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, Protocol, get_args

from recollect.errors import UsageError
from recollect.model import Chunk, Document

Span = tuple[int, int]

#: Splits a text into tokens and returns their character spans, in order.
Tokenize = Callable[[str], Sequence[Span]]

#: Returns one similarity per pair of neighbouring texts: n texts give n - 1 numbers in -1..1.
NeighbourSimilarity = Callable[[Sequence[str]], Sequence[float]]

Unit = Literal["characters", "tokens"]


class ChunkingStrategy(Protocol):
    """Cuts a document into chunks.

    For every document: ``content[c.start_offset:c.end_offset] == c.text`` for each chunk; every character that is
    not whitespace lies in at least one chunk; positions are 0…n-1 in order of start offsets; no chunk is longer
    than the strategy's limit; no chunk is empty or whitespace alone. A document of whitespace alone has no chunks.
    """

    def chunk(self, document: Document) -> list[Chunk]:
        """The document's chunks, in order."""
        ...


# Checks of a strategy's parameters, in words for the person who set them.


def require_whole_number(name: str, value: object, *, at_least: int) -> None:
    """Raise unless ``value`` is an int of at least ``at_least``."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise UsageError(f"{name} must be a whole number, not {value!r}")
    if value < at_least:
        raise UsageError(f"{name} ({value}) must be at least {at_least}")


def require_strings(name: str, value: object) -> None:
    """Raise unless ``value`` is a list or tuple that holds a string which is not empty, and nothing but strings."""
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value) or not any(value):
        raise UsageError(f"{name} must be a list of strings, not {value!r}")


def require_smaller(name: str, value: int, limit_name: str, limit: int) -> None:
    """Raise unless ``value < limit``."""
    if value >= limit:
        raise UsageError(f"{name} ({value}) must be smaller than {limit_name} ({limit})")


def require_unit(unit: object) -> None:
    """Raise unless ``unit`` is one of the units."""
    if unit not in get_args(Unit):
        raise UsageError(f"unit must be one of {', '.join(get_args(Unit))}, not {unit!r}")


def require_number(name: str, value: object, *, low: float, high: float) -> None:
    """Raise unless ``value`` is a number in ``low … high``."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not low <= value <= high:
        raise UsageError(f"{name} must be a number from {low:g} to {high:g}, not {value!r}")
