"""Sentences, grouped by what they are about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recollect.chunking._assemble import Piece, build_chunks
from recollect.chunking._cutting import Boundaries, Cutter, find_boundaries, headings_of, units_between
from recollect.chunking._measure import Ruler, ruler_for, trim
from recollect.chunking.base import (
    NeighbourSimilarity,
    Span,
    Tokenize,
    Unit,
    require_number,
    require_unit,
    require_whole_number,
)
from recollect.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recollect.model import Chunk, Document


@dataclass(frozen=True, slots=True, kw_only=True)
class SemanticChunker:
    """Whole sentences, broken where the subject changes.

    With ``similarity``, a chunk of at least ``min_size`` ends before a sentence that is unlike the one before it,
    and a full one is broken where its sentences are least alike (as in G. Kamradt's "5 levels of text splitting",
    2024, with limits). Without, it ends at the end of a paragraph. A heading always begins a chunk where the one
    before it is long enough. A chunk is shorter than ``min_size`` only where merging would exceed ``max_size``, or
    at a document's end.

    Args:
        min_size: The fewest units in a chunk.
        max_size: The most units in a chunk; larger than ``min_size``.
        similarity: Compares neighbouring sentences, usually by their embeddings; None: paragraphs decide.
        breakpoint_percentile: Break at this share of the pairs, the least similar, in percent of the document's.
        similarity_threshold: Break below this similarity, -1 to 1, instead of by percentile.
        unit: What the sizes count: ``"characters"`` or ``"tokens"``.
        tokenize: Finds the tokens; None: words, punctuation marks and single CJK characters.

    Raises:
        UsageError: A parameter is out of range, or ``similarity`` returns the wrong number of values.

    Example:
        >>> from recollect.model import Document
        >>> alike = lambda texts: [0.9, 0.1]
        >>> chunker = SemanticChunker(min_size=1, max_size=40, similarity=alike, similarity_threshold=0.5)
        >>> [chunk.text for chunk in chunker.chunk(Document(content="Cats purr. Cats nap. Rates rose."))]
        ['Cats purr. Cats nap.', 'Rates rose.']
    """

    min_size: int = 200
    max_size: int = 600
    similarity: NeighbourSimilarity | None = None
    breakpoint_percentile: float = 20.0
    similarity_threshold: float | None = None
    unit: Unit = "characters"
    tokenize: Tokenize | None = None

    def __post_init__(self) -> None:
        require_whole_number("min_size", self.min_size, at_least=1)
        require_whole_number("max_size", self.max_size, at_least=1)
        if self.min_size >= self.max_size:
            raise UsageError(f"min_size ({self.min_size}) must be smaller than max_size ({self.max_size})")
        require_number("breakpoint_percentile", self.breakpoint_percentile, low=0, high=100)
        if self.similarity_threshold is not None:
            require_number("similarity_threshold", self.similarity_threshold, low=-1, high=1)
        require_unit(self.unit)

    def chunk(self, document: Document) -> list[Chunk]:
        """The document's chunks, in order."""
        content = document.content
        headings = headings_of(document, expect_markdown=False)
        ruler = ruler_for(content, unit=self.unit, tokenize=self.tokenize)
        boundaries = find_boundaries(content, headings, document.language)
        cutter = Cutter(content, ruler, boundaries, size=self.max_size)
        starts = sorted({*boundaries.sentences, *boundaries.paragraphs, *boundaries.headings})
        units = [
            trim(content, *span) for sentence in units_between(content, starts) for span in cutter.spans(*sentence)
        ]
        similarities = self._similarities(content, units)
        grouping = _Grouping(units, ruler, similarities, self._wanted(units, similarities, boundaries))
        pieces = (Piece(*span) for span in grouping.groups(min_size=self.min_size, max_size=self.max_size))
        return build_chunks(document, pieces, ruler, headings=headings)

    def _similarities(self, content: str, units: Sequence[Span]) -> Sequence[float]:
        if self.similarity is None or len(units) < 2:
            return ()
        similarities = self.similarity([content[start:end] for start, end in units])
        if len(similarities) != len(units) - 1:
            raise UsageError(
                f"similarity must return one value per pair of neighbours: {len(units) - 1} for {len(units)} texts, "
                f"not {len(similarities)}"
            )
        return similarities

    def _wanted(self, units: Sequence[Span], similarities: Sequence[float], boundaries: Boundaries) -> list[bool]:
        """For each unit whether a chunk should begin with it."""
        headings = set(boundaries.headings)
        if len(similarities):
            threshold = self.similarity_threshold
            if threshold is None:
                ranked = sorted(similarities)
                threshold = ranked[min(int(len(ranked) * self.breakpoint_percentile / 100), len(ranked) - 1)]
            apart = [False, *(value < threshold for value in similarities)]
        else:
            paragraphs = set(boundaries.paragraphs)
            apart = [start in paragraphs for start, _ in units]
        return [new or start in headings for new, (start, _) in zip(apart, units, strict=True)]


class _Grouping:
    def __init__(
        self, units: Sequence[Span], ruler: Ruler, similarities: Sequence[float], wanted: Sequence[bool]
    ) -> None:
        self._units = units
        self._ruler = ruler
        self._similarities = similarities
        self._wanted = wanted

    def groups(self, *, min_size: int, max_size: int) -> Iterator[Span]:
        """Spans of consecutive units, none longer than ``max_size`` where no unit is."""
        first, index = 0, 1
        while index < len(self._units):
            if self._length(first, index) > max_size:
                index = self._weakest(first, index, min_size)
            elif not (
                self._wanted[index]
                and self._length(first, index - 1) >= min_size
                and self._stands_alone(index, first, min_size, max_size)
            ):
                index += 1
                continue
            yield self._units[first][0], self._units[index - 1][1]
            first, index = index, index + 1
        if self._units:
            yield self._units[first][0], self._units[-1][1]

    def _stands_alone(self, index: int, first: int, min_size: int, max_size: int) -> bool:
        """Whether the rest of the document from a unit on is long enough, or too long for the group before it."""
        last = len(self._units) - 1
        return self._length(index, last) >= min_size or self._length(first, last) > max_size

    def _weakest(self, first: int, index: int, min_size: int) -> int:
        """Where to break a full group: the least similar pair behind its first ``min_size`` units."""
        if not len(self._similarities):
            return index
        long_enough = [i for i in range(first + 1, index + 1) if self._length(first, i - 1) >= min_size]
        return min(long_enough, key=lambda i: self._similarities[i - 1], default=index)

    def _length(self, first: int, last: int) -> int:
        return self._ruler.length(self._units[first][0], self._units[last][1])
