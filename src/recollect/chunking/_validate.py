"""Checks of a strategy's parameters, in words for the person who set them."""

from __future__ import annotations

from typing import get_args

from recollect.chunking.base import Unit
from recollect.errors import UsageError


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
