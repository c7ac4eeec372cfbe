"""Notes on passages that are not the last word: superseded versions, and newer documents that cover the same.

They are made of the few results of a search, after ranking, and change nothing of it. In the present a statement runs
only where a result's path names an edition; in the past, one always does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from typing import TYPE_CHECKING

from recollect.model import PassageNote, RetrievedContext
from recollect.retrieval.editions import covers_the_same, edition_of, is_older

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
