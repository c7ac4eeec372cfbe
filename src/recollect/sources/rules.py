"""Rules over paths: which items of a source are read, and who may read them."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from recollect.errors import UsageError
from recollect.model.globs import reached
from recollect.model.principal import read_permissions


@dataclass(frozen=True, slots=True)
class GrantRules:
    """Who may read what, by path; the last rule that matches a path decides.

    A rule is a pattern and grants, as in a code owners file: ``hr/** role:hr !group:interns``. ``*`` stands for
    anything but a slash, ``**`` for any folders; a pattern without a slash matches at any depth, one that names a
    folder all that is below it. Empty lines and those that begin with ``#`` are left out.

    Example:
        >>> rules = GrantRules.read(["* role:staff", "hr/ role:hr"])
        >>> rules.of("hr/pay/2024.md"), rules.of("guide.md")
        (('role:hr',), ('role:staff',))
    """

    rules: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @classmethod
    def read(cls, lines: Iterable[str], *, name: str = "grants") -> GrantRules:
        """Read rules, one a line.

        Raises:
            UsageError: A line has no grants, or one of them is none.
        """
        rules: list[tuple[str, tuple[str, ...]]] = []
        for line in lines:
            try:
                words = shlex.split(line, comments=True)
            except ValueError as exc:
                raise UsageError(f"{name}: {line!r} cannot be read: {exc}.") from exc
            if not words:
                continue
            pattern, *given = words
            if not given:
                raise UsageError(f"{name}: {line!r} has no grants: write a path and who may read it, hr/** role:hr.")
            rules.append((pattern, read_permissions(given, name=name).as_tokens()))
        return cls(tuple(rules))

    def of(self, path: str) -> tuple[str, ...] | None:
        """The grants of a path; None: no rule matches it."""
        for pattern, grants in reversed(self.rules):
            if matches(pattern, path):
                return grants
        return None


def wanted(path: str, *, include: Sequence[str], exclude: Sequence[str]) -> bool:
    """Whether a path is to be read: one of ``include`` matches, where there are any, and none of ``exclude``."""
    if include and not any(matches(pattern, path) for pattern in include):
        return False
    return not any(matches(pattern, path) for pattern in exclude)


def matches(pattern: str, path: str) -> bool:
    """Whether a pattern names a path, or a folder that it is in."""
    anchored = "/" in pattern.rstrip("/")
    segments = [part for part in pattern.split("/") if part]
    parts = path.split("/")
    places = reached(segments, parts, {0} if anchored else set(range(len(parts))))
    # A folder that is named holds all that is below it.
    return bool(segments and places) and (not pattern.endswith("/") or min(places) < len(parts))
