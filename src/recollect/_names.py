"""Public names whose modules are imported when they are used: a command and a parsing process need few of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def imported_on_use(
    package: str, homes: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """What a package takes for its ``__getattr__`` and its ``__dir__``.

    Args:
        package: Its name.
        homes: The names that each module gives it.
    """
    home_of = {name: module for module, names in homes.items() for name in names}

    def get(name: str) -> Any:  # noqa: ANN401 - whatever has that name
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(home_of[name]), name)

    return get, lambda: sorted(home_of)
