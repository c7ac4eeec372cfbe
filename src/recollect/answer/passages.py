"""What is shown where no exact answer was found: the passages that may help, their relevant sentence marked. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from recollect.answer._regions import Region, join_passages
from recollect.answer._units import quotable_units
from recollect.model.answer import Highlight, ShownPassage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.answer._scoring import Evidence
    from recollect.model import RetrievedContext

#: So many passages at most, and so many characters of all of them: what people read before they search themselves.
MOST_PASSAGES = 3
MOST_CHARACTERS = 1_200
# With less room than this left, no further passage is begun.
_FEWEST_CHARACTERS = 80


def helpful_passages(
    evidence: Sequence[Evidence], passages: Sequence[RetrievedContext], *, language: str = "en"
) -> tuple[ShownPassage, ...]:
    """The best passages, whole, as far as the room goes: what follows a label stands in them.

    Args:
        evidence: The quotable pieces of the passages, best first; the best one of each is marked.
        passages: Best first, as a search found them.
        language: ISO 639-1 code, for sentence boundaries.

    Returns:
        At most ``MOST_PASSAGES`` of together at most ``MOST_CHARACTERS`` characters, best first; those that touch are
        one. Each is exact characters of its document, and none overlap. Empty without evidence.
    """
    if not evidence:
        return ()
    regions = join_passages(passages)
    stretches: list[_Stretch] = []
    room = MOST_CHARACTERS
    for passage in passages:
        region = next(one for one in regions if any(own is passage for own in one.passages))
        begin, end = _edges(passage.content)
        if begin == end:
            continue
        at = passage.start_offset - region.start_offset
        new = _Stretch(region, at + begin, at + end)
        touched = next((one for one in stretches if one.touches(new)), None)
        if touched is not None:
            joined = _Stretch(region, min(touched.start, new.start), max(touched.end, new.end))
            grown = len(joined) - len(touched)
            if grown <= room and not any(one.touches(joined) for one in stretches if one is not touched):
                stretches[stretches.index(touched)] = joined
                room -= grown
        elif len(stretches) < MOST_PASSAGES and room >= _FEWEST_CHARACTERS:
            if len(new) > room:
                new = _cut(new, _best_of(evidence, new), room, language)
            stretches.append(new)
            room -= len(new)
    return tuple(_shown(marker, one, _best_of(evidence, one)) for marker, one in enumerate(stretches, start=1))


def _edges(text: str) -> tuple[int, int]:
    """Where a text begins and ends without the blanks around it."""
    begin = len(text) - len(text.lstrip())
    return begin, max(begin, len(text.rstrip()))


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Characters of a region's text."""

    region: Region
    start: int
    end: int

    def __len__(self) -> int:
        return self.end - self.start

    def touches(self, other: _Stretch) -> bool:
        """Whether nothing but blanks stands between them."""
        if self.region is not other.region:
            return False
        first, second = sorted((self, other), key=lambda one: one.start)
        return not self.region.text[first.end : second.start].strip()


def _best_of(evidence: Sequence[Evidence], stretch: _Stretch) -> tuple[int, int] | None:
    """Of the pieces that begin in a stretch the one that fits best, in characters of the region's text."""
    begin = stretch.region.start_offset
    for piece in evidence:
        start, end = piece.start_offset - begin, piece.end_offset - begin
        same = piece.region.document_id == stretch.region.document_id
        if same and stretch.start <= start < stretch.end:
            return start, end
    return None


def _cut(stretch: _Stretch, best: tuple[int, int] | None, room: int, language: str) -> _Stretch:
    """The stretch from its beginning, or from its best piece on where that would be cut off; whole sentences."""
    region = stretch.region
    start = best[0] if best is not None and best[1] > stretch.start + room else stretch.start
    ends = [unit.end for unit in quotable_units(region.text, language=language)]
    end = max((end for end in ends if start < end <= min(start + room, stretch.end)), default=start + room)
    return _Stretch(region, start, min(end, stretch.end))


def _shown(marker: int, stretch: _Stretch, best: tuple[int, int] | None) -> ShownPassage:
    region, begin = stretch.region, stretch.region.start_offset
    lead = begin + (stretch.start if best is None else best[0])
    marked = () if best is None else (Highlight(start_offset=lead, end_offset=begin + min(best[1], stretch.end)),)
    passage, part = region.passage_at(lead), region.part_at(lead)
    return ShownPassage(
        marker=marker,
        document_id=region.document_id,
        source=passage.source,
        department=passage.department,
        section=part.section,
        page=part.page,
        start_offset=begin + stretch.start,
        end_offset=begin + stretch.end,
        text=region.text[stretch.start : stretch.end],
        highlights=marked,
        notes=passage.notes,
        collection=passage.collection,
        server=passage.server,
        id=passage.id,
    )
