"""Rules over paths: which items of a source are read, and who may read them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache

from recollect.errors import UsageError
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
    # Where the segments so far can have come to; a folder that they name holds all that is below it.
    reached = {0} if anchored else set(range(len(parts)))
    for segment in segments:
        if segment == "**":
            reached = set(range(min(reached), len(parts) + 1))
        else:
            matcher = _segment(segment)
            reached = {place + 1 for place in reached if place < len(parts) and matcher.match(parts[place])}
        if not reached:
            return False
    return bool(segments) and (not pattern.endswith("/") or min(reached) < len(parts))


@lru_cache(maxsize=1024)
def _segment(pattern: str) -> re.Pattern[str]:
    # Its patterns take time in proportion to the text.
    return re.compile(translate(pattern))
