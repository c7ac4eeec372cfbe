"""What is shown where no exact answer was found: the passages that may help, their relevant sentence marked. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from recollect.answer._units import quotable_units
from recollect.model.answer import Highlight, ShownPassage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.answer._scoring import Evidence, Region
    from recollect.model import RetrievedContext

#: So many passages at most, and so many characters of all of them: what people read before they search themselves.
MOST_PASSAGES = 3
MOST_CHARACTERS = 1_200
# What of a passage's room is given to what stands before its best sentence: a label's command, list or rows follow it.
_BEFORE = 0.3


def helpful_passages(
    evidence: Sequence[Evidence], passages: Sequence[RetrievedContext], *, language: str = "en"
) -> tuple[ShownPassage, ...]:
    """The best passages, each cut to the sentences around the one that fits the question best.

    Args:
        evidence: The quotable pieces of the passages, best first.
        passages: Best first, as a search found them.
        language: ISO 639-1 code, for sentence boundaries.

    Returns:
        At most ``MOST_PASSAGES`` of together at most ``MOST_CHARACTERS`` characters, best first, none twice; each is
        exact characters of its document. Empty without evidence.
    """
    best = _best_pieces(evidence, passages)
    shown: list[ShownPassage] = []
    taken: list[tuple[Region, int, int]] = []
    left = MOST_CHARACTERS
    for piece in best:
        if len(shown) == MOST_PASSAGES or left <= 0:
            break
        start, end = _window(piece, left // (MOST_PASSAGES - len(shown)), language)
        if any(region is piece.region and start < stop and begin < end for region, begin, stop in taken):
            continue
        taken.append((piece.region, start, end))
        left -= end - start
        shown.append(_shown(len(shown) + 1, piece, start, end))
    return tuple(shown)


def _best_pieces(evidence: Sequence[Evidence], passages: Sequence[RetrievedContext]) -> list[Evidence]:
    """Of each passage the piece that fits best, in the order of the search; the best of all comes first."""
    order = {(one.document_id, one.start_offset): rank for rank, one in enumerate(passages)}
    own: dict[tuple[int, int], Evidence] = {}
    for piece in evidence:
        passage = piece.region.passage_at(piece.start_offset)
        own.setdefault((passage.document_id, passage.start_offset), piece)
    ranked = sorted(own, key=lambda place: order.get(place, len(order)))
    return [*evidence[:1], *(own[place] for place in ranked if own[place] is not evidence[0])]


def _window(piece: Evidence, room: int, language: str) -> tuple[int, int]:
    """The piece with whole sentences, items and rows around it, as far as the room goes."""
    text, unit = piece.region.text, piece.unit
    if unit.end - unit.quote_start >= room:
        return unit.quote_start, unit.quote_start + room
    units = quotable_units(text, language=language)
    starts, ends = [one.quote_start for one in units], sorted(one.end for one in units)
    first = unit.quote_start - round((room - unit.end + unit.quote_start) * _BEFORE)
    start = next(iter(starts[bisect_left(starts, first) :]), unit.quote_start)
    start = min(start, unit.quote_start)
    fitting = ends[: bisect_right(ends, start + room)]
    return start, max(fitting[-1] if fitting else unit.end, unit.end)


def _shown(marker: int, piece: Evidence, start: int, end: int) -> ShownPassage:
    region, begin = piece.region, piece.region.start_offset
    passage, part = region.passage_at(piece.start_offset), region.part_at(piece.start_offset)
    last = min(piece.unit.end, end)
    return ShownPassage(
        marker=marker,
        document_id=region.document_id,
        source=passage.source,
        department=passage.department,
        section=part.section,
        page=part.page,
        start_offset=begin + start,
        end_offset=begin + end,
        text=region.text[start:end],
        highlights=(Highlight(start_offset=begin + piece.unit.quote_start, end_offset=begin + last),),
        notes=passage.notes,
        collection=passage.collection,
        server=passage.server,
        id=passage.id,
    )
