"""The shape of passages: neighbours joined into one, with exact offsets. Pure: what the store must add is handed in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from recollect.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from recollect.model import RetrievedContext

MAX_GAP = 64
MAX_MERGED_LENGTH = 4_000


class Gap(NamedTuple):
    """Characters between two passages of a document that neither of them holds.

    Attributes:
        document_id: The document.
        version_id: The version that the passages were cut from, where it is known.
        start_offset: The first passage's end.
        end_offset: The next passage's start.
    """

    document_id: int
    version_id: int | None
    start_offset: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class Stretch:
    """A chunk together with its neighbours, as the store cut it out of the document.

    Attributes:
        start_offset: Where the first neighbour begins.
        end_offset: Just behind the last one.
        content: The document's characters between the two.
        page: The first neighbour's.
    """

    start_offset: int
    end_offset: int
    content: str
    page: int | None = None


def gaps_between(passages: Sequence[RetrievedContext], *, max_gap: int = MAX_GAP) -> tuple[Gap, ...]:
    """The gaps whose characters ``merge_adjacent`` needs to close them.

    Args:
        passages: What will be merged, in any order.
        max_gap: As for ``merge_adjacent``.

    Raises:
        UsageError: ``max_gap`` is negative.
    """
    links = (link for part in _parts(passages) for link in _links(part, max_gap))
    return tuple(dict.fromkeys(link.gap for link in links if link.gap is not None))


def merge_adjacent(
    passages: Sequence[RetrievedContext],
    *,
    gap_texts: Mapping[Gap, str] | None = None,
    max_gap: int = MAX_GAP,
    max_length: int = MAX_MERGED_LENGTH,
) -> list[RetrievedContext]:
    """Make one passage of those that overlap or follow one another in the same version of a document.

    Of every passage, merged or not, ``document.content[start_offset:end_offset] == content`` holds if it held of the
    passages given. A merged one has rank, score, ``chunk_id``, section and explanation of its best part, the page of
    its first, and in ``chunk_ids`` all its parts. Passages whose common characters differ (two versions of a document)
    stay apart, and so do those that would exceed ``max_length``: what stands best is joined first.

    Args:
        passages: In any order.
        gap_texts: The characters of the gaps that ``gaps_between`` names; one that is missing, or has another length
            than its gap, stays open. None: only passages that touch or overlap are joined.
        max_gap: The most characters between two passages that are joined, 0 or more. Chunks are trimmed, so between
            neighbours there is whitespace, and at times a rule or a stray mark.
        max_length: The most characters of a merged passage; a single one may be longer.

    Returns:
        Ordered by rank, which is not numbered anew.

    Raises:
        UsageError: ``max_gap`` is negative, or ``max_length`` is less than 1.
    """
    if max_length < 1:
        message = f"max_length must be at least 1, not {max_length!r}"
        raise UsageError(message)
    merged: list[RetrievedContext] = []
    for part in _parts(passages):
        merged.extend(_merge_part(part, _links(part, max_gap), gap_texts or {}, max_length))
    return sorted(merged, key=lambda passage: passage.rank)


def widen(passages: Iterable[RetrievedContext], stretches: Mapping[int, Stretch]) -> list[RetrievedContext]:
    """Show each passage with its neighbours.

    Those of neighbouring passages overlap then: ``merge_adjacent`` makes one of them.

    Args:
        passages: In any order, which is kept. Rank, score and ``chunk_id`` stay.
        stretches: By ``chunk_id``. A passage without one, or whose characters are not in it, stays as it is.
    """
    return [_widened(passage, stretches.get(passage.chunk_id)) for passage in passages]


def _widened(passage: RetrievedContext, stretch: Stretch | None) -> RetrievedContext:
    if stretch is None or len(stretch.content) != stretch.end_offset - stretch.start_offset:
        return passage
    start = passage.start_offset - stretch.start_offset
    if start < 0 or stretch.content[start : start + len(passage.content)] != passage.content:
        return passage
    return replace(
        passage,
        content=stretch.content,
        start_offset=stretch.start_offset,
        end_offset=stretch.end_offset,
        page=stretch.page,
    )


class _Link(NamedTuple):
    """Two passages that may become one, by their places in their part; ``gap`` is None where they touch."""

    first: int
    second: int
    gap: Gap | None


def _parts(passages: Sequence[RetrievedContext]) -> Iterator[list[RetrievedContext]]:
    """The passages of each version of a document, by offset."""
    parts: dict[tuple[int, int | None], list[RetrievedContext]] = {}
    for passage in passages:
        parts.setdefault((passage.document_id, passage.version_id), []).append(passage)
    for part in parts.values():
        yield sorted(part, key=lambda p: (p.start_offset, -p.end_offset, p.rank))


def _links(part: Sequence[RetrievedContext], max_gap: int) -> list[_Link]:
    """Each passage with the one before it that reaches furthest: if any touches it, that one does."""
    if max_gap < 0:
        message = f"max_gap must be 0 or more, not {max_gap!r}"
        raise UsageError(message)
    links: list[_Link] = []
    furthest = 0
    for place in range(1, len(part)):
        before, after = part[furthest], part[place]
        distance = after.start_offset - before.end_offset
        exact = _is_exact(before) and _is_exact(after)
        if exact and distance <= 0 and _agree(before, after):
            links.append(_Link(furthest, place, None))
        elif exact and 0 < distance <= max_gap:
            gap = Gap(after.document_id, after.version_id, before.end_offset, after.start_offset)
            links.append(_Link(furthest, place, gap))
        if after.end_offset > before.end_offset:
            furthest = place
    return links


def _is_exact(passage: RetrievedContext) -> bool:
    return len(passage.content) == passage.end_offset - passage.start_offset


def _agree(before: RetrievedContext, after: RetrievedContext) -> bool:
    known = before.content[after.start_offset - before.start_offset :]
    shared = min(len(known), len(after.content))
    return known[:shared] == after.content[:shared]


def _merge_part(
    part: Sequence[RetrievedContext], links: Sequence[_Link], gap_texts: Mapping[Gap, str], max_length: int
) -> Iterator[RetrievedContext]:
    group_of = list(range(len(part)))
    members = {place: [place] for place in range(len(part))}

    def length(places: Sequence[int]) -> int:
        return max(part[p].end_offset for p in places) - min(part[p].start_offset for p in places)

    def worse_and_better_rank(link: _Link) -> list[int]:
        return sorted((part[link.first].rank, part[link.second].rank), reverse=True)

    for link in sorted(links, key=worse_and_better_rank):
        one, other = group_of[link.first], group_of[link.second]
        together = sorted(members[one] + members[other])
        longest = max(length(members[one]), length(members[other]))
        closed = link.gap is None or len(gap_texts.get(link.gap, "")) == link.gap.end_offset - link.gap.start_offset
        # What lies within another makes nothing longer, however long that is.
        if not closed or max(max_length, longest) < length(together):
            continue
        members[one] = together
        for place in members.pop(other):
            group_of[place] = one
    for places in members.values():
        yield _joined([part[place] for place in places], gap_texts)


def _joined(parts: Sequence[RetrievedContext], gap_texts: Mapping[Gap, str]) -> RetrievedContext:
    """One passage of several that are linked, by offset."""
    first = parts[0]
    if len(parts) == 1:
        return first
    content, end = first.content, first.end_offset
    for passage in parts[1:]:
        if passage.start_offset > end:
            content += gap_texts[Gap(passage.document_id, passage.version_id, end, passage.start_offset)]
            end = passage.start_offset
        content += passage.content[end - passage.start_offset :]
        end = max(end, passage.end_offset)
    best = min(parts, key=lambda passage: passage.rank)
    chunk_ids = dict.fromkeys(chunk_id for p in parts for chunk_id in (p.chunk_ids or (p.chunk_id,)))
    duplicates = dict.fromkeys(
        chunk_id for p in sorted(parts, key=lambda p: p.rank) for chunk_id in p.duplicates if chunk_id not in chunk_ids
    )
    return replace(
        best,
        content=content,
        start_offset=first.start_offset,
        end_offset=end,
        page=first.page,
        relevance=max((p.relevance for p in parts if p.relevance is not None), default=None),
        chunk_ids=tuple(chunk_ids),
        duplicates=tuple(duplicates),
        also_in=tuple({also.document_id: also for p in reversed(parts) for also in p.also_in}.values()),
    )
