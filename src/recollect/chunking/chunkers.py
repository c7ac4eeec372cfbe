"""Chunkers that cut by the structure of a text, by size, and by meaning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from recollect.chunking._cutting import (
    Boundaries,
    Cutter,
    Grouper,
    Piece,
    Ruler,
    Sections,
    build_chunks,
    find_boundaries,
    find_separators,
    first_between,
    headings_of,
    ruler_for,
    section_starts,
    skip_space,
    trim,
    units_between,
    windows,
)
from recollect.chunking.base import (
    NeighbourSimilarity,
    Span,
    Tokenize,
    Unit,
    require_number,
    require_smaller,
    require_strings,
    require_unit,
    require_whole_number,
)
from recollect.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recollect.model import Chunk, Document, Heading


# A fragment below this is no chunk of its own where the text beside it has room.
_SHORTEST: dict[str, int] = {"characters": 40, "tokens": 10}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecursiveChunker:
    r"""Chunks up to ``size``, each ended at the strongest break within reach.

    In this order: before a heading, between paragraphs, lines, sentences, words; anywhere only in a word longer
    than half a chunk. A heading stays with the text below it, and fenced code stays whole where it fits. Small
    paragraphs are merged up to ``size``, but never across a heading of the first two levels that the document has.

    Args:
        size: The most units in a chunk.
        overlap: The most units that a chunk repeats of the one before it, in whole paragraphs, lines, sentences or
            words; smaller than ``size``.
        unit: What both count: ``"characters"`` or ``"tokens"``.
        separators: Where to cut in place of headings, paragraphs, lines and sentences, the strongest first; a separator
            stays with the text before it. Without one within reach, a chunk ends behind a word, or anywhere. None: as
            above.
        tokenize: Finds the tokens; None: words, punctuation marks and single CJK characters.

    Raises:
        UsageError: A parameter is out of range.

    Example:
        >>> from recollect.model import Document
        >>> text = "Leave is thirty days. Ask early.\n\nSick leave needs a note."
        >>> [chunk.text for chunk in RecursiveChunker(size=34).chunk(Document(content=text))]
        ['Leave is thirty days. Ask early.', 'Sick leave needs a note.']
    """

    size: int = 500
    overlap: int = 0
    unit: Unit = "characters"
    separators: Sequence[str] | None = None
    tokenize: Tokenize | None = None

    def __post_init__(self) -> None:
        require_whole_number("size", self.size, at_least=1)
        require_whole_number("overlap", self.overlap, at_least=0)
        require_smaller("overlap", self.overlap, "size", self.size)
        require_unit(self.unit)
        if self.separators is not None:
            require_strings("separators", self.separators)
            object.__setattr__(self, "separators", tuple(self.separators))

    def chunk(self, document: Document) -> list[Chunk]:
        """The document's chunks, in order."""
        content = document.content
        headings = headings_of(document, expect_markdown=False)
        ruler = ruler_for(content, unit=self.unit, tokenize=self.tokenize)
        given = self.separators
        boundaries = (
            find_boundaries(content, headings, document.language) if given is None else find_separators(content, given)
        )
        shortest = min(self.size // 10, _SHORTEST[self.unit]) if given is None else 0
        cutter = Cutter(content, ruler, boundaries, size=self.size, overlap=self.overlap, shortest=shortest)
        sections = units_between(content, section_starts(content, headings, boundaries) if given is None else ())
        pieces = (Piece(*span) for section in sections for span in cutter.spans(*section))
        return build_chunks(document, pieces, ruler, headings=headings)


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedSizeChunker:
    """Cuts every ``size`` units, through sentences and words.

    Args:
        size: The most units in a chunk.
        overlap: How many units of a chunk the next one repeats; smaller than ``size``.
        unit: What ``size`` and ``overlap`` count: ``"characters"`` or ``"tokens"``.
        tokenize: Finds the tokens; None: words, punctuation marks and single CJK characters.

    Raises:
        UsageError: A parameter is out of range.

    Example:
        >>> from recollect.model import Document
        >>> [chunk.text for chunk in FixedSizeChunker(size=4, overlap=1).chunk(Document(content="abcdefg"))]
        ['abcd', 'defg']
    """

    size: int = 500
    overlap: int = 0
    unit: Unit = "characters"
    tokenize: Tokenize | None = None

    def __post_init__(self) -> None:
        require_whole_number("size", self.size, at_least=1)
        require_whole_number("overlap", self.overlap, at_least=0)
        require_smaller("overlap", self.overlap, "size", self.size)
        require_unit(self.unit)

    def chunk(self, document: Document) -> list[Chunk]:
        """The document's chunks, in order."""
        ruler = ruler_for(document.content, unit=self.unit, tokenize=self.tokenize)
        pieces = windows(document.content, ruler, size=self.size, stride=self.size - self.overlap)
        return build_chunks(document, pieces, ruler)


@dataclass(frozen=True, slots=True, kw_only=True)
class HierarchicalChunker:
    r"""Document, section, paragraph: paragraphs are searched, ``Chunk.parent`` is the section that is returned.

    A parent is the text from one heading to the next, cut into several where it is longer than
    ``parent_max_size``; without headings, paragraphs up to that size. Searching small and returning large is known
    as small-to-big or parent-document retrieval.

    Args:
        size: The most units in a chunk.
        parent_max_size: The most units in a parent; at least ``size``.
        unit: What both count: ``"characters"`` or ``"tokens"``.
        tokenize: Finds the tokens; None: words, punctuation marks and single CJK characters.

    Raises:
        UsageError: A parameter is out of range.

    Example:
        >>> from recollect.model import Document
        >>> chunker = HierarchicalChunker(size=12, parent_max_size=40)
        >>> [(chunk.text, chunk.parent) for chunk in chunker.chunk(Document(content="One is one.\n\nTwo is two."))]
        [('One is one.', (0, 24)), ('Two is two.', (0, 24))]
    """

    size: int = 300
    parent_max_size: int = 1200
    unit: Unit = "characters"
    tokenize: Tokenize | None = None

    def __post_init__(self) -> None:
        require_whole_number("size", self.size, at_least=1)
        require_whole_number("parent_max_size", self.parent_max_size, at_least=1)
        if self.parent_max_size < self.size:
            raise UsageError(f"parent_max_size ({self.parent_max_size}) must be at least size ({self.size})")
        require_unit(self.unit)

    def chunk(self, document: Document) -> list[Chunk]:
        """The document's chunks, in order."""
        content = document.content
        headings = headings_of(document, expect_markdown=True)
        ruler = ruler_for(content, unit=self.unit, tokenize=self.tokenize)
        boundaries = find_boundaries(content, headings, document.language)
        outer = Cutter(content, ruler, boundaries, size=self.parent_max_size)
        inner = Cutter(content, ruler, boundaries, size=self.size)

        def pieces() -> Iterator[Piece]:
            for section in units_between(content, boundaries.headings):
                for span in outer.spans(*section):
                    parent = trim(content, *span)
                    yield from (Piece(start, end, parent) for start, end in inner.spans(*parent))

        return build_chunks(document, pieces(), ruler, headings=headings)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParagraphChunker:
    r"""One chunk a paragraph; a heading belongs to the paragraph below it.

    A paragraph shorter than ``min_size`` is merged with the next one of its section, else with the one before it,
    else with its neighbour across the heading. A chunk is shorter only where the whole document is, or where
    merging would exceed ``max_size``. Longer paragraphs are cut at lines, sentences, words.

    Args:
        min_size: The fewest units in a chunk.
        max_size: The most units in a chunk; at least twice ``min_size``.
        unit: What both count: ``"characters"`` or ``"tokens"``.
        tokenize: Finds the tokens; None: words, punctuation marks and single CJK characters.

    Raises:
        UsageError: A parameter is out of range.

    Example:
        >>> from recollect.model import Document
        >>> text = "Leave is thirty days a year, for everyone.\n\nSick leave needs a note from the third day on."
        >>> [chunk.end_offset for chunk in ParagraphChunker().chunk(Document(content=text))]
        [42, 90]
    """

    min_size: int = 40
    max_size: int = 1000
    unit: Unit = "characters"
    tokenize: Tokenize | None = None

    def __post_init__(self) -> None:
        require_whole_number("min_size", self.min_size, at_least=1)
        require_whole_number("max_size", self.max_size, at_least=1)
        if self.max_size < 2 * self.min_size:
            raise UsageError(
                f"max_size ({self.max_size}) must be at least twice min_size ({self.min_size}), "
                "or a paragraph that is too long could not be cut in two"
            )
        require_unit(self.unit)

    def chunk(self, document: Document) -> list[Chunk]:
        """The document's chunks, in order."""
        content = document.content
        headings = headings_of(document, expect_markdown=True)
        ruler = ruler_for(content, unit=self.unit, tokenize=self.tokenize)
        boundaries = find_boundaries(content, headings, document.language)
        cutter = Cutter(content, ruler, boundaries, size=self.max_size, shortest=self.min_size)
        starts = sorted({*boundaries.paragraphs, *boundaries.headings})
        grouper = Grouper(content, ruler, boundaries, min_size=self.min_size, max_size=self.max_size)
        for start, end in units_between(content, starts):
            grouper.add(start, end)
        pieces = (Piece(*span) for start, end in grouper.finish() for span in cutter.spans(start, end))
        return build_chunks(document, pieces, ruler, headings=headings)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlidingWindowChunker:
    """Windows of ``window_size`` units, a new one every ``stride`` units.

    Args:
        window_size: The most units in a chunk.
        stride: How far the window moves; at most ``window_size``, or text between two windows would be lost.
        unit: What both count: ``"characters"`` or ``"tokens"``.
        tokenize: Finds the tokens; None: words, punctuation marks and single CJK characters.

    Raises:
        UsageError: A parameter is out of range.

    Example:
        >>> from recollect.model import Document
        >>> windows = SlidingWindowChunker(window_size=4, stride=2).chunk(Document(content="abcdefg"))
        >>> [window.text for window in windows]
        ['abcd', 'cdef', 'efg']
    """

    window_size: int = 500
    stride: int = 250
    unit: Unit = "characters"
    tokenize: Tokenize | None = None

    def __post_init__(self) -> None:
        require_whole_number("window_size", self.window_size, at_least=1)
        require_whole_number("stride", self.stride, at_least=1)
        if self.stride > self.window_size:
            raise UsageError(
                f"stride ({self.stride}) must not be larger than window_size ({self.window_size}): "
                "the text between two windows would be lost"
            )
        require_unit(self.unit)

    def chunk(self, document: Document) -> list[Chunk]:
        """The document's chunks, in order."""
        ruler = ruler_for(document.content, unit=self.unit, tokenize=self.tokenize)
        return build_chunks(
            document, windows(document.content, ruler, size=self.window_size, stride=self.stride), ruler
        )


_SECTION_LEVEL = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkdownChunker:
    r"""Cuts at ``##`` headings, always where the document has them, without overlap.

    A section longer than ``max_tokens`` is cut at its ``###`` headings, what is still too long at deeper ones, then
    at paragraphs, lines, sentences, words. A document without ``##`` is one chunk where it fits. A heading with no
    text of its own, such as a title, stays with its first subsection where the two fit together.

    Levels come from ``document.headings``, so a Word file or a web page is cut like Markdown; a document without
    them is searched for ``#`` lines outside fenced code.

    Each chunk's ``metadata`` holds ``header`` (the heading's title or None), ``level`` (or None), ``position`` and
    ``token_count``.

    Args:
        max_tokens: The most tokens in a chunk.
        tokenize: Finds the tokens; None: words, punctuation marks and single CJK characters.

    Raises:
        UsageError: ``max_tokens`` is out of range.

    Example:
        >>> from recollect.model import Document
        >>> text = "# Leave\n\n## Annual\n\nThirty days.\n\n## Sick\n\nWith a note."
        >>> [chunk.metadata["header"] for chunk in MarkdownChunker().chunk(Document(content=text))]
        ['Annual', 'Sick']
    """

    max_tokens: int = 256
    tokenize: Tokenize | None = None

    def __post_init__(self) -> None:
        require_whole_number("max_tokens", self.max_tokens, at_least=1)

    def chunk(self, document: Document) -> list[Chunk]:
        """The document's chunks, in order."""
        content = document.content
        headings = headings_of(document, expect_markdown=True)
        ruler = ruler_for(content, unit="tokens", tokenize=self.tokenize)
        cutter = Cutter(content, ruler, find_boundaries(content, headings, document.language), size=self.max_tokens)
        splitter = _SectionSplitter(content, headings, ruler, self.max_tokens)
        pieces = (Piece(*span) for section in splitter.sections() for span in cutter.spans(*section))
        sections = Sections(content, headings)
        return [
            replace(chunk, metadata={**chunk.metadata, **_facts(chunk, headings, sections)})
            for chunk in build_chunks(document, pieces, ruler, headings=headings)
        ]


def _facts(chunk: Chunk, headings: Sequence[Heading], sections: Sections) -> dict[str, str | int | None]:
    index = sections.index_of_span(chunk.start_offset, chunk.end_offset)
    return {
        "header": headings[index].title if index >= 0 else None,
        "level": headings[index].level if index >= 0 else None,
        "position": chunk.position,
        "token_count": chunk.token_count,
    }


class _SectionSplitter:
    """Cuts at headings only; what is too long without headings is left too long."""

    def __init__(self, content: str, headings: Sequence[Heading], ruler: Ruler, max_tokens: int) -> None:
        self._content = content
        self._ruler = ruler
        self._max_tokens = max_tokens
        self._levels = sorted({heading.level for heading in headings})
        self._all_starts = sorted(heading.start_offset for heading in headings)
        self._starts: dict[int, list[int]] = {level: [] for level in self._levels}
        self._headings = {heading.start_offset: heading for heading in headings}
        for heading in headings:
            self._starts[heading.level].append(heading.start_offset)

    def sections(self) -> Iterator[Span]:
        """The sections, in order."""
        start, end = trim(self._content, 0, len(self._content))
        if start == end:
            return
        if _SECTION_LEVEL in self._starts:
            upper = [s for level in self._levels if level <= _SECTION_LEVEL for s in self._starts[level]]
            deeper = [level for level in self._levels if level > _SECTION_LEVEL]
            for section in self._cut((start, end), sorted(upper)):
                yield from self._shorten(section, deeper)
        else:
            yield from self._shorten((start, end), self._levels)

    def _shorten(self, span: Span, levels: Sequence[int]) -> Iterator[Span]:
        if self._ruler.length(*span) <= self._max_tokens or not levels:
            yield span
            return
        for part in self._cut(span, self._starts[levels[0]]):
            yield from self._shorten(part, levels[1:])

    def _cut(self, span: Span, starts: Sequence[int]) -> Iterator[Span]:
        begin, end = span
        cut = first_between(starts, begin + 1, end)
        while cut is not None:
            if not self._stays_together(begin, cut, first_between(self._all_starts, cut + 1, end) or end):
                yield trim(self._content, begin, cut)
                begin = cut
            cut = first_between(starts, cut + 1, end)
        yield trim(self._content, begin, end)

    def _stays_together(self, begin: int, cut: int, end: int) -> bool:
        """Whether only headings stand between ``begin`` and the subsection at ``cut``, and both fit up to ``end``."""
        position = begin
        while position < cut and position in self._headings:
            position = skip_space(self._content, max(self._headings[position].end_offset, position + 1))
        return (
            position == cut
            and self._headings[begin].level < self._headings[cut].level
            and self._ruler.length(begin, end) <= self._max_tokens
        )


# Sentences, grouped by what they are about.


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
