"""Objects as ``--json`` prints them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from pathlib import Path
from typing import Any


def shown(value: object, *names: str) -> dict[str, Any]:
    """Attributes of an object as JSON values, in this order.

    Args:
        value: The object.
        names: Of the attributes; ``key=attribute`` where it has another name in JSON.
    """
    pairs = (name.rpartition("=") for name in names)
    return {key or attribute: plain(getattr(value, attribute)) for key, _, attribute in pairs}


def plain(value: Any) -> Any:  # noqa: ANN401 - whatever JSON holds
    """A value as JSON has it: times in ISO 8601, dataclasses and mappings as objects, what holds several as a list."""
    match value:
        case datetime():
            return value.isoformat()
        case Path():
            return str(value)
        case Mapping():
            return dict(value)
        case list() | tuple():
            return [plain(one) for one in value]
        case _ if is_dataclass(value):
            return shown(value, *(field.name for field in fields(value)))
        case _:
            return value
