"""What is shown where no exact answer was found: the passages that may help, their relevant sentence marked. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from recollect.answer._regions import Region
from recollect.answer._scoring import Evidence
from recollect.answer._units import Unit, following, is_label, quotable_units, trimmed
from recollect.chunking.blocks import FENCE, code_in
from recollect.model import RetrievedContext
from recollect.model.answer import Highlight, ShownPassage

#: So many places at most, and so many characters of all passages: what people read before they search themselves.
MOST_PLACES = 3
MOST_CHARACTERS = 1_200
# After the most promising passage, whole, come the best pieces, at most so many, with what stands within so many
# characters of them.
_MOST_PIECES, _NEAR = 12, 200
# What stands on a line before a quotable piece: what marks an item, a quotation or a row.
_MARKS = re.compile(r"[ \t]*(?:(?:[-*+•>|]|\d{1,3}[.)])[ \t]*)*")
# With less room than this left, no further passage is begun.
_FEWEST_CHARACTERS = 80


def helpful_passages(
    evidence: Sequence[Evidence],
    passages: Sequence[RetrievedContext],
    *,
    quoted: Sequence[Evidence] = (),
    language: str = "en",
) -> tuple[ShownPassage, ...]:
    """The most promising passage, whole, and then what stands around the best sentences, as far as the room goes.

    Args:
        evidence: The quotable pieces of the passages, best first; the best one of each is marked.
        passages: Those that most likely answer first; the evidence is theirs.
        quoted: What stands around these comes before all.
        language: ISO 639-1 code, for sentence boundaries.

    Returns:
        Passages of at most ``MOST_PLACES`` places, together at most ``MOST_CHARACTERS`` characters, best first. Those
        that touch are one passage; those that only a paragraph's end divides are two of one place. Each is exact
        characters of its document, and none overlap. Empty without evidence.
    """
    if not evidence:
        return ()
    stretches: list[_Stretch] = []
    room = MOST_CHARACTERS
    # Each of several questions was read by itself, and what only repeats them all is no evidence for all.
    places = {(one.region.document_id, one.start_offset) for one in quoted}
    first = [one for one in evidence if (one.region.document_id, one.start_offset) in places]
    for new in (*(_around(piece, evidence) for piece in first), *_offers(evidence, passages)):
        region = new.region
        touched = next((one for one in stretches if one.touches(new)), None)
        if touched is not None:
            joined = _Stretch(region, min(touched.start, new.start), max(touched.end, new.end))
            grown = len(joined) - len(touched)
            if grown <= room and not any(one.touches(joined) for one in stretches if one is not touched):
                stretches[stretches.index(touched)] = joined
                room -= grown
        elif room >= _FEWEST_CHARACTERS and _places([*stretches, new]) <= MOST_PLACES:
            new = new if len(new) <= room else _cut(new, _best_of(evidence, new), room, language)
            if len(new):
                stretches.append(new)
                room -= len(new)
    return tuple(_shown(marker, one, _best_of(evidence, one)) for marker, one in enumerate(stretches, start=1))


def _offers(evidence: Sequence[Evidence], passages: Sequence[RetrievedContext]) -> Iterator[_Stretch]:
    """The most promising passage, whole; then the best pieces, with the whole ones around them."""
    first = passages[0]
    regions = (one.region for one in evidence if any(own is first for own in one.region.passages))
    if region := next(regions, None):
        at = first.start_offset - region.start_offset
        yield _stretch(evidence, region, at, at + len(first.content))
    yield from (_around(one, evidence) for one in evidence[:_MOST_PIECES] if not _is_bare(one.region.text, one.unit))


def _around(piece: Evidence, evidence: Sequence[Evidence]) -> _Stretch:
    """A piece with what is quoted for it, and the whole pieces near it."""
    return _stretch(evidence, piece.region, piece.quotes[0][0], piece.quotes[-1][1], near=_NEAR)


def _stretch(evidence: Sequence[Evidence], region: Region, start: int, end: int, *, near: int = 0) -> _Stretch:
    """Whole pieces and lines, with what is near: no label without what it labels, and code with its fences."""
    text, units = region.text, [one.unit for one in evidence if one.region is region]
    first = min((unit.start for unit in units if unit.start >= start - near), default=start)
    stops = (following(text, unit) for unit in units if unit.end <= end + near)
    last = max((stop for stop in stops if stop <= end + 2 * _NEAR), default=end)
    start, end = trimmed(text, min(start, first), max(end, last))
    bare = next((unit.start for unit in units if start < unit.start < unit.end == end and _is_bare(text, unit)), end)
    start, end = trimmed(text, start, bare)
    for code in code_in(text):
        inner = trimmed(text, code.start, code.end)
        if start == inner[0]:
            start = text.rfind("\n", 0, max(0, code.start - 1)) + 1
        if end == inner[1] and (fence := FENCE.match(text, code.end)):
            end = fence.end()
    line = text.rfind("\n", 0, start) + 1
    if _MARKS.fullmatch(text, line, start):
        start = line
    if text[start:].startswith("|") and text[end : end + 2] == " |":
        end += 2
    return _Stretch(region, *trimmed(text, start, end))


def _is_bare(text: str, unit: Unit) -> bool:
    """Whether it says what comes, and that does not stand there."""
    return is_label(text, unit) and following(text, unit) == unit.end


def _places(stretches: Sequence[_Stretch]) -> int:
    """How many of them do not go on where another one ends.

    Chunks do not hold the line breaks between them, so that such passages cannot be joined exactly.
    """
    ends = {(one.region.document_id, one.region.start_offset + one.end) for one in stretches}
    starts = [(one.region.document_id, one.region.start_offset + one.start) for one in stretches]
    return sum(not any((document, start - gap) in ends for gap in (1, 2)) for document, start in starts)


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
    """The whole sentences that fit, from the beginning on, or from the best one where that would be cut off.

    Empty where not even one fits.
    """
    region = stretch.region
    start = best[0] if best is not None and best[1] > stretch.start + room else stretch.start
    units = quotable_units(region.text, language=language)
    ends = [unit.end for unit in units if not is_label(region.text, unit)]
    end = max((end for end in ends if start < end <= min(start + room, stretch.end)), default=start)
    return _Stretch(region, start, end)


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
