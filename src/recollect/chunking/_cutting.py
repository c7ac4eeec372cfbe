"""Pieces of limited size: how long spans are, where they are cut, how short ones are merged, and their chunks."""

from __future__ import annotations

import re
import unicodedata
from array import array
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

from recollect.chunking.base import count_tokens
from recollect.chunking.base import tokenize as default_tokenize
from recollect.chunking.sentences import sentence_spans
from recollect.model import Chunk, Document, Heading
from recollect.model.document import SECTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from recollect.chunking.base import Span, Tokenize, Unit


# Where a document may be cut: the starts of its headings, given or found, paragraphs, lines and sentences.

_BREAK = re.compile(r"[\n\r\x0b\x0c\x85\u2028\u2029]\s*")
_LINE_END = re.compile(r"\r\n?|[\n\x0b\x0c\x85\u2028\u2029]")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Boundaries:
    """Ascending positions at which a piece of text begins, by the strength of the break before it."""

    headings: Sequence[int]
    paragraphs: Sequence[int]
    lines: Sequence[int]
    sentences: Sequence[int]
    tables: Tables | None = None

    def between_rows(self, start: int, limit: int) -> int | None:
        """Where a piece that would end inside a table ends instead: behind a row. None: there is no such place."""
        return self.tables.between_rows(start, limit) if self.tables else None

    def by_strength(self) -> tuple[Sequence[int], ...]:
        """The levels below headings, the strongest break first."""
        return self.paragraphs, self.lines, self.sentences


@dataclass(frozen=True, slots=True)
class SeparatorBoundaries:
    """Ascending positions behind each of the separators that a caller gives, the strongest first."""

    levels: tuple[Sequence[int], ...]
    headings: Sequence[int] = ()
    paragraphs: Sequence[int] = ()

    def between_rows(self, _start: int, _limit: int) -> int | None:
        """None: the caller has said where to cut."""
        return None

    def by_strength(self) -> tuple[Sequence[int], ...]:
        """The levels, the strongest break first."""
        return self.levels


def find_separators(content: str, separators: Sequence[str]) -> SeparatorBoundaries:
    """Where pieces of a text begin that are separated by given strings; a separator stays with the text before it."""
    return SeparatorBoundaries(
        tuple(
            sorted({skip_space(content, found.end()) for found in re.finditer(re.escape(separator), content)})
            for separator in separators
            if separator
        )
    )


def find_boundaries(content: str, headings: Sequence[Heading], language: str | None) -> Boundaries:
    """The boundaries of a text.

    A heading stays with what follows it: no boundary lies between the two, nor between a heading and its
    subheading. Fenced code holds no boundaries but its lines, a table none but its rows, the first of which stays with
    the header.
    """
    fences = fence_spans(content)
    tables = Tables(content)
    glued = _starts_below_headings(content, headings) | tables.glued
    paragraphs: list[int] = []
    lines: list[int] = []
    for gap in _BREAK.finditer(content):
        blank = len(_LINE_END.findall(gap.group())) > 1
        (paragraphs if blank else lines).append(gap.end())
    outside = _Outside(fences)
    kept = [position for position in paragraphs if position not in glued]
    return Boundaries(
        headings=sorted({h.start_offset for h in headings if h.start_offset not in glued}),
        paragraphs=sorted({*outside.of(kept), *(edge for fence in fences for edge in fence if edge not in glued)}),
        lines=sorted({position for position in (*lines, *kept) if position not in glued}),
        sentences=[
            start
            for start in outside.of(s for s, _ in sentence_spans(content, language or "en"))
            if start not in glued and not tables.containing(start)
        ],
        tables=tables,
    )


def last_between(positions: Sequence[int], above: int, up_to: int) -> int | None:
    """The last of the ascending positions in ``above + 1 … up_to``, or None."""
    index = bisect_right(positions, up_to) - 1
    return positions[index] if index >= 0 and positions[index] > above else None


def first_between(positions: Sequence[int], from_: int, below: int) -> int | None:
    """The first of the ascending positions in ``from_ … below - 1``, or None."""
    index = bisect_left(positions, from_)
    return positions[index] if index < len(positions) and positions[index] < below else None


def fence_spans(content: str) -> list[Span]:
    """Spans of the fenced code blocks of a Markdown text (CommonMark 0.31, section 4.5).

    A fence that is never closed is no block here: half a document is rarely code.
    """
    spans: list[Span] = []
    opened: tuple[str, int] | None = None
    for match in _FENCE.finditer(content):
        marker, info = match.groups()
        if opened is None:
            if marker[0] == "~" or "`" not in info:
                opened = marker, match.start()
        elif marker.startswith(opened[0]) and not info.strip():
            spans.append((opened[1], skip_space(content, match.end())))
            opened = None
    return spans


class _Outside:
    """Leaves out positions inside spans; positions must come in ascending order."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self._starts = [start for start, _ in spans]
        self._spans = spans

    def of(self, positions: Iterable[int]) -> list[int]:
        return [position for position in positions if not self._holds(position)]

    def _holds(self, position: int) -> bool:
        index = bisect_left(self._starts, position) - 1
        return index >= 0 and position < self._spans[index][1]


def _starts_below_headings(content: str, headings: Sequence[Heading]) -> set[int]:
    return {skip_space(content, heading.end_offset) for heading in headings}


# A document's headings, found in its text where nobody found them before.

_ATX = re.compile(r"^ {0,3}(#{1,6})(?:[ \t]+([^\r\n]*))?(?=\r?$)", re.MULTILINE)

# What a Markdown text says of itself at its top, and the space behind it.
_FRONT_MATTER = re.compile(r"---[ \t]*\r?\n(?:.*\n)*?(?:---|\.\.\.)[ \t]*(?:\r?\n\s*|\Z)")
_CLOSING = re.compile(r"(?:^|[ \t])#+[ \t]*$")


def headings_of(document: Document, *, expect_markdown: bool) -> Sequence[Heading]:
    """The document's own headings, or else those of its Markdown.

    Args:
        document: Any document.
        expect_markdown: Look for ``#`` lines whatever the MIME type says: a strategy that cuts by structure
            serves documents made by hand, too.
    """
    if document.headings or not (expect_markdown or document.mime_type == "text/markdown"):
        return document.headings
    return markdown_headings(document.content)


def section_starts(
    content: str, headings: Sequence[Heading], boundaries: Boundaries | SeparatorBoundaries
) -> list[int]:
    """Where the document's sections begin: its headings of the first two levels that it has.

    Headings without text between them stay together, so a section can begin with a deeper one. Front matter is no
    section: it belongs to the one below it.
    """
    matter = _FRONT_MATTER.match(content)
    top = matter.end() if matter else 0
    levels = sorted({heading.level for heading in headings})[:2]
    free = set(boundaries.headings)
    starts: set[int] = set()
    first = 0
    for heading in headings:
        first = heading.start_offset if heading.start_offset in free else first
        if heading.level in levels:
            starts.add(first)
    return sorted(start for start in starts if start > top)


def markdown_headings(content: str) -> tuple[Heading, ...]:
    """The ATX headings outside fenced code (CommonMark 0.31, section 4.2)."""
    fences = iter(fence_spans(content))
    fence = next(fences, None)
    found: list[Heading] = []
    for match in _ATX.finditer(content):
        while fence and fence[1] <= match.start():
            fence = next(fences, None)
        if fence and fence[0] <= match.start():
            continue
        title = _CLOSING.sub("", match.group(2) or "").strip()
        start = match.start(1)
        found.append(Heading(len(match.group(1)), title, start, match.end()))
    return tuple(found)


# How full a piece must be, as a share of what its limit allows, before it may end at a break of that kind.
# Low for paragraphs: whole paragraphs are found better than full pieces (see docs/how-to/chunking.md).
_FILLED_FOR_HEADING = 0.25
_FILLED_FOR_PARAGRAPH = 0.3
_FILLED = 0.5


@dataclass(frozen=True, slots=True)
class Cutter:
    """Cuts spans of one text.

    Attributes:
        content: The text.
        ruler: Measures it.
        boundaries: Where it may be cut without tearing words.
        size: The most units in a piece.
        overlap: The most units that a piece repeats of the one before it; whole lines, sentences or words.
        shortest: The fewest units in a piece, where the text allows.
    """

    content: str
    ruler: Ruler
    boundaries: Boundaries | SeparatorBoundaries
    size: int
    overlap: int = 0
    shortest: int = 0

    def spans(self, start: int, end: int) -> Iterator[Span]:
        """Cut ``content[start:end]``; the pieces still have whitespace at their ends."""
        position, end = trim(self.content, start, end)
        while position < end:
            cut = self._cut_after(position, end)
            yield position, cut
            if cut >= end:
                return
            position = self._next_start(position, cut)

    def _cut_after(self, start: int, end: int) -> int:
        limit = min(skip_space(self.content, self.ruler.furthest_end(start, self.size)), end)
        if limit >= end:
            return end
        least = start + 1
        if self.shortest:
            limit = max(min(limit, self._latest_cut(end)), start + 1)
            least = self._least_cut(start)
        reach = limit - start
        heading = first_between(
            self.boundaries.headings, max(start + int(reach * _FILLED_FOR_HEADING), least), limit + 1
        )
        if heading is not None:
            return heading
        for positions in self.boundaries.by_strength():
            filled = _FILLED_FOR_PARAGRAPH if positions is self.boundaries.paragraphs else _FILLED
            cut = last_between(positions, max(start + int(reach * filled), least - 1), limit)
            if cut is not None:
                return cut
            row = self.boundaries.between_rows(max(start, least - 1), limit)
            if row is not None:
                return row
        floor = max(start + int(reach * _FILLED), least - 1)
        word = last_word(self.content, floor, limit) if floor < limit else None
        return whole_character_cut(self.content, limit, start) if word is None else word

    def _latest_cut(self, end: int) -> int:
        """Where the last piece begins at the latest: it must not reach its least size by space that is then trimmed."""
        latest = self.ruler.earliest_start(end, self.shortest)
        while latest > 0 and self.content[latest : latest + 1].isspace():
            latest -= 1
        return latest

    def _least_cut(self, start: int) -> int:
        least = self.ruler.furthest_end(start, self.shortest)
        return skip_space(self.content, least) + 1 if self.content[least - 1].isspace() else least

    def _next_start(self, start: int, cut: int) -> int:
        if not self.overlap:
            return cut
        earliest = self.ruler.earliest_start(trim(self.content, start, cut)[1], self.overlap)
        earliest = max(earliest, start + 1)
        for positions in self.boundaries.by_strength():
            begin = first_between(positions, earliest, cut)
            if begin is not None:
                return begin
        word = first_word(self.content, earliest, cut)
        if word < cut or not self._is_torn(cut):
            return word
        # Where there was no break to cut at, there is none to begin at either.
        return whole_character_cut(self.content, earliest, start)

    def _is_torn(self, cut: int) -> bool:
        """Whether a cut lies inside a word, and not at a break of any kind."""
        if self.content[cut - 1].isspace() or self.content[cut].isspace():
            return False
        levels = (self.boundaries.headings, *self.boundaries.by_strength())
        return all(first_between(positions, cut, cut + 1) is None for positions in levels)


# Merging what is too short to stand alone.


def units_between(content: str, starts: Sequence[int]) -> Iterator[Span]:
    """The trimmed spans between ascending cut positions, without those of whitespace alone."""
    first = skip_space(content, 0)
    cuts = [first, *(start for start in starts if first < start < len(content)), len(content)]
    for start, end in pairwise(cuts):
        left, right = trim(content, start, end)
        if left < right:
            yield left, right


class Grouper:
    """Takes spans in order and merges those below ``min_size`` with a neighbour.

    A merged span may exceed ``max_size`` only where the last piece of it would otherwise be too short; whoever
    calls cuts it again.
    """

    def __init__(self, content: str, ruler: Ruler, boundaries: Boundaries, *, min_size: int, max_size: int) -> None:
        self._content = content
        self._ruler = ruler
        self._headings = boundaries.headings
        self._min_size = min_size
        self._max_size = max_size
        self._groups: list[Span] = []
        self._open: Span | None = None

    def add(self, start: int, end: int) -> None:
        """Take the next span."""
        if self._open is not None and self._new_section(self._open[0], start) and self._merge_back():
            self._open = None
        self._open = (start, end) if self._open is None else (self._open[0], end)
        self.close_if_long()

    def close_if_long(self) -> None:
        """End the open group where it is long enough to stand alone."""
        if self._open is not None and self._ruler.length(*self._open) >= self._min_size:
            self._groups.append(self._open)
            self._open = None

    def finish(self) -> list[Span]:
        """The groups; the last one merged with the one before it where it is too short."""
        if self._open is not None and not self._merge_back():
            if self._groups:
                self._groups[-1] = (self._groups[-1][0], self._open[1])
            else:
                self._groups.append(self._open)
        self._open = None
        return self._groups

    def _new_section(self, after: int, up_to: int) -> bool:
        return first_between(self._headings, after + 1, up_to + 1) is not None

    def _merge_back(self) -> bool:
        """Merge the open, short group with the one before it where the two fit together and share a section."""
        if self._open is None or not self._groups:
            return False
        start, end = self._groups[-1][0], self._open[1]
        if self._new_section(start, self._open[0]) or self._ruler.length(start, end) > self._max_size:
            return False
        self._groups[-1] = (start, end)
        return True


# Tables with pipes, as Markdown writes them: where they stand, and what a piece of one must say to be understood.

# No repeated group holds what follows it, so that the time grows with the text alone.
_HEAD = re.compile(r"^(\|[^\n]*)\n\|[ \t]*:?-[-:| \t]*$", re.MULTILINE)
_LONGEST_CAPTION = 150
_LONGEST_HEADER = 600


@dataclass(frozen=True, slots=True)
class TableSpan:
    """A table's place in a text.

    Attributes:
        start: Of its header.
        body: Of its first row.
        end: Behind its last row.
        header: The line that names its columns.
        caption: The line above it, where that is short; empty: none.
    """

    start: int
    body: int
    end: int
    header: str
    caption: str


class Tables:
    """The tables of a text.

    Args:
        content: The text.
    """

    def __init__(self, content: str) -> None:
        self._spans = _spans(content)
        self._bodies = [table.body for table in self._spans]
        self.rows = [row for table in self._spans for row in _rows(content, table)]
        self.glued = frozenset(
            position for table in self._spans for position in (_second_line(content, table), table.body)
        )

    def __bool__(self) -> bool:
        return bool(self._spans)

    def containing(self, start: int) -> TableSpan | None:
        """The table that a piece beginning at ``start`` goes on with, without its header."""
        at = bisect_right(self._bodies, start) - 1
        return self._spans[at] if at >= 0 and start < self._spans[at].end else None

    def between_rows(self, start: int, limit: int) -> int | None:
        """Where to end a piece that would end at ``limit``, inside a table: at its last row that fits, or None."""
        if self.containing(limit) is None or limit == self._bodies[bisect_right(self._bodies, limit) - 1]:
            return None
        at = bisect_right(self.rows, limit) - 1
        return self.rows[at] if at >= 0 and self.rows[at] > start else None


def _spans(content: str) -> Sequence[TableSpan]:
    spans: list[TableSpan] = []
    if "\n|" not in content:
        return spans
    for match in _HEAD.finditer(content):
        if spans and match.start() < spans[-1].end:
            continue
        end = body = min(match.end() + 1, len(content))
        while content.startswith("|", end):
            line_end = content.find("\n", end)
            end = len(content) if line_end < 0 else line_end + 1
        if end > body:
            header = match[1][:_LONGEST_HEADER]
            spans.append(TableSpan(match.start(), body, end, header, _caption(content, match.start())))
    return spans


def _caption(content: str, start: int) -> str:
    above = content[max(0, start - 2 * _LONGEST_CAPTION) : start].rstrip()
    line = above[above.rfind("\n") + 1 :].strip()
    return line if 0 < len(line) <= _LONGEST_CAPTION and not line.startswith("|") else ""


def _second_line(content: str, table: TableSpan) -> int:
    return content.index("\n", table.start) + 1


def _rows(content: str, table: TableSpan) -> list[int]:
    """Where the rows begin, but the first, which stays with its header; and where the text behind the table does."""
    rows: list[int] = []
    position = content.find("\n", table.body, table.end)
    while position >= 0 and position + 1 < len(content):
        rows.append(position + 1)
        position = content.find("\n", position + 1, table.end)
    return rows


# Lengths in characters or tokens, how far a limit reaches, and where neither words nor characters are torn.


# Whitespace, words, and cuts that do not tear a character apart.

_SPACE = re.compile(r"\s*")
_GAP = re.compile(r"\s+")
_JOINER = "\u200d"
_LONGEST_CLUSTER = 16


def skip_space(text: str, position: int) -> int:
    """The first position from ``position`` on that holds no whitespace, or the text's length."""
    match = _SPACE.match(text, position)
    return match.end() if match else position


def trim(text: str, start: int, end: int) -> Span:
    """The span without whitespace at its ends; an empty span where it holds nothing else."""
    start = min(skip_space(text, start), end)
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


def whole_character_cut(text: str, position: int, floor: int) -> int:
    """The last position in ``floor + 1 … position`` that separates no mark from its base.

    Where there is none nearby, ``position`` itself: a limit is kept in any case.
    """
    for cut in range(position, max(floor, position - _LONGEST_CLUSTER), -1):
        if cut >= len(text) or not _joins(text, cut):
            return cut
    return position


def last_word(text: str, floor: int, limit: int) -> int | None:
    """The last position in ``floor + 1 … limit`` that begins a word, or None.

    ``text[limit]`` must not be whitespace.
    """
    if limit > floor and text[limit - 1].isspace():
        return limit
    head = text[floor:limit].rsplit(None, 1)
    begin = limit - len(head[-1]) if head else floor
    return begin if begin > floor else None


def first_word(text: str, start: int, end: int) -> int:
    """The first position in ``start … end`` that begins a word; ``end`` where there is none."""
    if start == 0 or text[start - 1].isspace():
        return min(skip_space(text, start), end)
    gap = _GAP.search(text, start, end)
    return min(skip_space(text, gap.start()), end) if gap else end


def _joins(text: str, cut: int) -> bool:
    after, before = text[cut], text[cut - 1]
    return (
        unicodedata.category(after).startswith("M")
        or after == _JOINER
        or before == _JOINER
        or "\U0001f3fb" <= after <= "\U0001f3ff"
        or (before, after) == ("\r", "\n")
    )


class Ruler(Protocol):
    """Measures spans of one text in one unit."""

    def length(self, start: int, end: int) -> int:
        """The span's length."""
        ...

    def furthest_end(self, start: int, limit: int) -> int:
        """The largest end of a span from ``start`` of at most ``limit`` units, at least one character away."""
        ...

    def earliest_start(self, end: int, limit: int) -> int:
        """The smallest start of a span up to ``end`` of at most ``limit`` units."""
        ...

    def token_count(self, start: int, end: int) -> int:
        """The span's length in tokens, whatever the unit."""
        ...


class CharacterRuler:
    """Measures in code points."""

    def __init__(self, text: str, tokenize: Tokenize | None) -> None:
        self._text = text
        self._tokenize = tokenize

    def length(self, start: int, end: int) -> int:
        return end - start

    def furthest_end(self, start: int, limit: int) -> int:
        return min(start + limit, len(self._text))

    def earliest_start(self, end: int, limit: int) -> int:
        return max(end - limit, 0)

    def token_count(self, start: int, end: int) -> int:
        piece = self._text[start:end]
        return count_tokens(piece) if self._tokenize is None else len(self._tokenize(piece))


class TokenRuler:
    """Measures in the tokens of the whole text that a span touches."""

    def __init__(self, text: str, tokenize: Tokenize | None) -> None:
        self._end_of_text = len(text)
        self._starts = array("q")
        self._ends = array("q")
        # Tokenisers may report empty spans and several tokens for one character; ascending arrays allow bisection.
        for start, end in (tokenize or default_tokenize)(text):
            if start < end:
                self._starts.append(max(start, self._starts[-1] if self._starts else 0))
                self._ends.append(max(end, self._ends[-1] if self._ends else 0))

    def length(self, start: int, end: int) -> int:
        return max(bisect_left(self._starts, end) - bisect_right(self._ends, start), 0)

    def furthest_end(self, start: int, limit: int) -> int:
        beyond = bisect_right(self._ends, start) + limit
        if beyond >= len(self._starts):
            return self._end_of_text
        return max(self._starts[beyond], start + 1)

    def earliest_start(self, end: int, limit: int) -> int:
        before = bisect_left(self._starts, end) - limit
        return min(self._ends[before - 1], end) if before > 0 else 0

    def token_count(self, start: int, end: int) -> int:
        return self.length(start, end)


def ruler_for(text: str, *, unit: Unit, tokenize: Tokenize | None) -> Ruler:
    """The ruler of a text in a unit; ``tokenize`` None means the default tokeniser."""
    return CharacterRuler(text, tokenize) if unit == "characters" else TokenRuler(text, tokenize)


# From spans to chunks: trimming, sections, pages, token counts.


@dataclass(frozen=True, slots=True)
class Piece:
    """A span that is to become a chunk."""

    start: int
    end: int
    parent: Span | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


def build_chunks(
    document: Document, pieces: Iterable[Piece], ruler: Ruler, *, headings: Sequence[Heading] | None = None
) -> list[Chunk]:
    """Make chunks of spans in ascending order of their starts.

    Spans are trimmed; one that holds only whitespace, or lies inside the one before it, gives no chunk.

    Args:
        document: What the spans are spans of.
        pieces: The spans.
        ruler: Counts the tokens.
        headings: Where the sections come from; None: the document's own headings.
    """
    content = document.content
    sections = Sections(content, document.headings if headings is None else headings)
    tables = Tables(content)
    chunks: list[Chunk] = []
    for piece in pieces:
        start, end = trim(content, piece.start, piece.end)
        if start >= end or (chunks and end <= chunks[-1].end_offset):
            continue
        index = sections.index_of_span(start, end)
        chunks.append(
            Chunk(
                text=content[start:end],
                position=len(chunks),
                start_offset=start,
                end_offset=end,
                section=sections.path(index),
                page=document.page_at(start),
                token_count=ruler.token_count(start, end),
                parent=piece.parent,
                metadata={**piece.metadata, **_of_table(tables.containing(start)), **sections.behind(index, end)},
            )
        )
    return chunks


def _of_table(table: TableSpan | None) -> dict[str, str]:
    """What a piece of a table does not say itself: what names its columns, and the line above the table."""
    if table is None:
        return {}
    caption = {"table_caption": table.caption} if table.caption else {}
    return {"table_header": table.header, **caption}


class Sections:
    """Section paths as ``Document.section_path`` gives them, in time that does not grow with the headings."""

    def __init__(self, content: str, headings: Sequence[Heading]) -> None:
        self._content = content
        self._headings = headings
        self._starts = [heading.start_offset for heading in headings]
        self._above: list[int] = []
        for index, heading in enumerate(headings):
            above = index - 1
            while above >= 0 and headings[above].level >= heading.level:
                above = self._above[above]
            self._above.append(-1 if heading.level <= 1 else above)

    def index_at(self, offset: int) -> int:
        """The index of the heading that the character at ``offset`` stands under, or -1."""
        return bisect_right(self._starts, offset) - 1

    def index_of_span(self, start: int, end: int) -> int:
        """The index of the heading of a span's first character that is no heading's, or of its last heading."""
        index = self.index_at(start)
        while index >= 0 and start < self._headings[index].end_offset:
            start = skip_space(self._content, self._headings[index].end_offset)
            if start >= end:
                break
            index = self.index_at(start)
        return index

    def behind(self, index: int, end: int) -> dict[str, list[list[object]]]:
        """Where a span that ends at ``end`` goes on under another heading, and what is above it there."""
        begun = range(index + 1, bisect_left(self._starts, end))
        found: list[list[object]] = [[self._starts[one], " > ".join(self.path(one))] for one in begun]
        return {SECTIONS: found} if found else {}

    def path(self, index: int) -> tuple[str, ...]:
        """Titles from the outermost heading to the one with that index; empty for -1."""
        titles: list[str] = []
        while index >= 0:
            titles.append(self._headings[index].title)
            index = self._above[index]
        return tuple(reversed(titles))


# Windows of equal length that move over a text in equal steps.


def windows(content: str, ruler: Ruler, *, size: int, stride: int) -> Iterator[Piece]:
    """Windows of at most ``size`` units, each starting at most ``stride`` units behind the one before.

    Both ends give way by a few characters where they would tear a character from its combining marks.
    """
    start = 0
    while start < len(content):
        end = whole_character_cut(content, ruler.furthest_end(start, size), start)
        yield Piece(start, end)
        if end >= len(content):
            return
        start = min(whole_character_cut(content, ruler.furthest_end(start, stride), start), end)
