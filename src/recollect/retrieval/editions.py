"""Editions of documents, as their paths and titles tell them: years, dates, versions. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

_DATE = re.compile(
    r"(?<!\d)(?P<year>19\d\d|20\d\d)"
    r"(?:(?P<gap>[-_.]?)(?P<month>0[1-9]|1[0-2])(?:(?P=gap)(?P<day>0[1-9]|[12]\d|3[01]))?)?(?!\d)"
)
_VERSION = re.compile(r"(?<![a-z0-9])(?:version|ver|rev|v)[-_. ]?(?P<number>\d{1,3}(?:[._]\d{1,3}){0,2})(?![a-z0-9])")
_EXTENSION = re.compile(r"\.[a-z0-9]{1,5}$")
_GAPS = re.compile(r"[-_.,;:()\[\] ]+")
_WORDS = re.compile(r"[^\W\d_]{3,}")

#: Passages cover the same where the smaller vocabulary is shared to this degree; numbers count for nothing.
SAME_SUBJECT = 0.5
_FEWEST_WORDS = 5


@dataclass(frozen=True, slots=True)
class Edition:
    """What a name says of which edition it is.

    Attributes:
        group: The name without it: equal for the editions of one thing.
        dates: Year, month and day, as far as they are named.
        versions: Numbers of the version.
        label: As the name writes them.
    """

    group: str
    dates: tuple[int, ...]
    versions: tuple[int, ...]
    label: str

    @property
    def named(self) -> bool:
        """Whether the name says anything."""
        return bool(self.dates or self.versions)

    @property
    def serial(self) -> bool:
        """Whether it names a month or a day, as minutes, reports and logs do."""
        return len(self.dates) > 1

    def older_than(self, other: Edition) -> bool | None:
        """Whether the other one came later; None where the names do not tell.

        A name without an edition stands for the newest: ``policy.md`` beside ``policy-2023.md``.
        """
        if not self.group or self.group != other.group or not self.named:
            return None
        if not other.named:
            return True
        if bool(self.dates) != bool(other.dates) or bool(self.versions) != bool(other.versions):
            return None
        mine, yours = (self.dates, self.versions), (other.dates, other.versions)
        return None if mine == yours else mine < yours


@lru_cache(maxsize=4_096)
def edition_of(name: str, *, path: bool = True) -> Edition:
    """Read an edition.

    Args:
        name: A path, or a title.
        path: Whether it is a path, whose extension does not count.
    """
    rest = _EXTENSION.sub("", name.casefold()) if path else name.casefold()
    dates: list[int] = []
    versions: list[int] = []
    labels: list[str] = []

    def date(match: re.Match[str]) -> str:
        dates.extend(int(part) for part in match.group("year", "month", "day") if part)
        labels.append("-".join(part for part in match.group("year", "month", "day") if part))
        return " "

    def version(match: re.Match[str]) -> str:
        versions.extend(int(part) for part in re.split(r"[._]", match["number"]))
        labels.append(f"version {match['number'].replace('_', '.')}")
        return " "

    rest = _VERSION.sub(version, rest)
    rest = _DATE.sub(date, rest)
    group = "/".join(_GAPS.sub(" ", part).strip() for part in rest.split("/"))
    return Edition(group, tuple(dates), tuple(versions), ", ".join(labels))


def covers_the_same(one: str, other: str) -> bool:
    """Whether two passages are about the same: they share half of the smaller one's words, or more."""
    first, second = (set(_WORDS.findall(text.casefold())) for text in (one, other))
    smaller = min(len(first), len(second))
    return smaller >= _FEWEST_WORDS and len(first & second) >= SAME_SUBJECT * smaller


def is_older(one: Edition, one_time: datetime | None, other: Edition, other_time: datetime | None) -> bool:
    """Whether one document of an edition group is older than another: by its name, and not against its dates."""
    by_name = one.older_than(other)
    if by_name is None:
        return False
    contradicted = one_time is not None and other_time is not None and other_time < one_time
    # A name without an edition is no more than a habit; of two that name theirs, the names decide.
    return by_name and not (contradicted and not other.named)
