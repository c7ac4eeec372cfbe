"""Notes on passages that are not the last word: superseded versions, and newer documents that cover the same.

They are made of the few results of a search, after ranking, and change nothing of it. In the present a statement runs
only where a result's path names an edition; in the past, one always does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING

from recollect.model import PassageNote, RetrievedContext

if TYPE_CHECKING:
    from recollect.retrieval.targets import Searched
    from recollect.store.staleness import Sibling, StalenessRepository, VersionEnd


#: Results beyond these get no notes.
MOST_RESULTS = 50


class StalenessNotes:
    """Adds notes to results. Safe to share between threads.

    Args:
        repository: Looks up what became of versions, and the other documents of an edition group.
    """

    def __init__(self, repository: StalenessRepository) -> None:
        self._repository = repository

    def annotate(
        self, origins: Sequence[tuple[Searched, Set[int]]], results: Sequence[RetrievedContext]
    ) -> list[RetrievedContext]:
        """The results, those with a note replaced.

        Args:
            origins: The collections that were searched, as whom and as of when, and the chunks found in each.
            results: Best first.
        """
        first, rest = list(results[:MOST_RESULTS]), list(results[MOST_RESULTS:])
        notes: dict[int, list[PassageNote]] = {}
        found = [(searched, [one for one in first if one.chunk_id in chunk_ids]) for searched, chunk_ids in origins]
        for one, end in self._ended(found):
            notes.setdefault(one.chunk_id, []).append(_ended(end))
        for chunk_id, note in self._newer(found, first).items():
            notes.setdefault(chunk_id, []).append(note)
        if not notes:
            return [*first, *rest]
        annotated = [replace(one, notes=tuple(notes[one.chunk_id])) if one.chunk_id in notes else one for one in first]
        return [*annotated, *rest]

    def _ended(
        self, found: Sequence[tuple[Searched, Sequence[RetrievedContext]]]
    ) -> Iterator[tuple[RetrievedContext, VersionEnd]]:
        for scope in {searched.scope.tenant_id: searched.scope for searched, _ in found}.values():
            own = [one for searched, those in found if searched.scope.tenant_id == scope.tenant_id for one in those]
            if scope.as_of is None or not own:
                continue
            ends = self._repository.endings(scope, [one.version_id for one in own if one.version_id is not None])
            for one in own:
                if one.version_id is not None and (end := ends.get(one.version_id)) is not None:
                    yield one, end

    def _newer(
        self, found: Sequence[tuple[Searched, Sequence[RetrievedContext]]], results: Sequence[RetrievedContext]
    ) -> dict[int, PassageNote]:
        siblings: dict[int, list[Sibling]] = {}
        for searched, own in found:
            named = {one.chunk_id: one.document_id for one in own if edition_of(one.source).named}
            if named:
                siblings |= self._repository.siblings(searched.scope, searched.collection, named)
        newer: dict[int, PassageNote] = {}
        for one in results:
            note = _newest_sibling(one, siblings.get(one.chunk_id, ())) or _newer_result(one, results)
            if note is not None:
                newer[one.chunk_id] = note
        return newer


def _ended(end: VersionEnd) -> PassageNote:
    date = end.at.date().isoformat()
    if end.expired:
        return PassageNote(kind="expired", text=f"expired on {date}", at=end.at)
    if end.replaced:
        return PassageNote(kind="superseded", text=f"superseded on {date}", at=end.at)
    return PassageNote(kind="deleted", text=f"deleted on {date}", at=end.at)


def _newest_sibling(passage: RetrievedContext, siblings: Sequence[Sibling]) -> PassageNote | None:
    own = edition_of(passage.source)
    newest: Sibling | None = None
    for sibling in siblings:
        theirs = edition_of(sibling.source)
        if not is_older(own, passage.event_time, theirs, sibling.event_time):
            continue
        # What has a month or a day in its name may be one of many that each tell something else.
        if own.serial and not covers_the_same(passage.content, sibling.text):
            continue
        best = None if newest is None else edition_of(newest.source)
        if best is None or newest is None or is_older(best, newest.event_time, theirs, sibling.event_time):
            newest = sibling
    if newest is None:
        return None
    covered = covers_the_same(passage.content, newest.text)
    return _newer_document(newest, covered=covered)


def _newer_result(passage: RetrievedContext, results: Sequence[RetrievedContext]) -> PassageNote | None:
    """Of the other results, the newest that has the same title, is of a later date and covers the same."""
    if passage.event_time is None:
        return None
    title = edition_of(passage.title, path=False).group
    newest: RetrievedContext | None = None
    for other in results:
        if other.document_id == passage.document_id or other.event_time is None:
            continue
        least = passage.event_time if newest is None or newest.event_time is None else newest.event_time
        if other.event_time.date() <= least.date() or edition_of(other.title, path=False).group != title:
            continue
        if title and covers_the_same(passage.content, other.content):
            newest = other
    if newest is None:
        return None
    return _newer_document(newest, covered=True)


def _newer_document(newer: Sibling | RetrievedContext, *, covered: bool) -> PassageNote:
    label = newer.event_time.date().isoformat() if newer.event_time is not None else edition_of(newer.source).label
    dated = f" dated {label}" if label else ""
    what = f"a newer document{dated} covers this" if covered else f"there is a newer edition of this document{dated}"
    return PassageNote(
        kind="newer_document",
        text=f"{what}: {newer.source}",
        at=newer.event_time,
        document_id=newer.document_id,
        source=newer.source,
        department=newer.department,
    )


# Editions of documents, as their paths and titles tell them: years, dates, versions. Pure.


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
