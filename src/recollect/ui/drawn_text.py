"""A part of a document's text as its page draws it: with the chunks that were cut from it, or around a quote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from recollect.errors import UsageError
from recollect.model.outline import Outline, PageSpan, section_path

if TYPE_CHECKING:
    from recollect.model.contents import DocumentChunk, DocumentOutline, DocumentPart
    from recollect.pipeline import View


#: Characters of a part; a little more or fewer, so that none ends within a word.
PART = 12_000
_WORD = 200
#: Of one part so many chunks are drawn at most: a text of chunks of three characters is drawn without the others.
_MOST_CHUNKS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Text that stands in the same chunks.

    Attributes:
        text: It.
        chunks: The positions of the chunks that hold it, in order; empty: it stands in none.
        begins: The chunks that begin with it.
        is_quoted: Whether it is what the visitor came for.
    """

    text: str
    chunks: tuple[int, ...]
    begins: tuple[DocumentChunk, ...]
    is_quoted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnText:
    """A part of a document's text.

    Attributes:
        start: Its first character.
        end: Just behind its last one.
        characters: How long the whole text is.
        pieces: In order.
    """

    start: int
    end: int
    characters: int
    pieces: tuple[Piece, ...]

    @property
    def following(self) -> int | None:
        """Where the next part begins; None: there is none."""
        return self.end if self.end < self.characters else None

    @property
    def preceding(self) -> int | None:
        """Where the part before begins; None: there is none."""
        return max(0, self.start - PART) if self.start else None


def draw(
    view: View, document_id: int, *, start: int, until: int | None = None, quoted: tuple[int, int] | None = None
) -> DrawnText:
    """A part of a document's text with its chunks.

    Args:
        view: Reads the version that is drawn.
        document_id: Of the document.
        start: The first character; a part that begins within a word begins with that word.
        until: Where it ends at the latest; None: where it is long enough.
        quoted: The characters that the visitor came for.

    Raises:
        UsageError: The text ends before ``start``.
        NotFoundError: There is no such document where the view looks.
    """
    length = PART + _WORD if until is None else max(1, min(PART, until - start))
    part = view.contents.read(document_id, start=start, length=length)
    text = part.text
    if until is None and part.end_offset < part.characters:
        text = text[: _cut(text)]
    end = start + len(text)
    if end <= start and part.characters:
        raise UsageError(f"Nothing stands at character {start:,}.")
    chunks = view.contents.chunks(document_id, start=start, end=end, limit=_MOST_CHUNKS)
    return DrawnText(
        start=start, end=end, characters=part.characters, pieces=tuple(pieces(text, start, chunks, quoted=quoted))
    )


def pieces(
    text: str, start: int, chunks: Sequence[DocumentChunk], *, quoted: tuple[int, int] | None = None
) -> list[Piece]:
    """A text cut wherever a chunk, or what is quoted, begins or ends; together they are the text.

    Args:
        text: It.
        start: Where it begins in its document.
        chunks: Those that hold some of it.
        quoted: What the visitor came for.
    """
    end = start + len(text)
    edges = {start, end}
    for first, last in [*((one.start_offset, one.end_offset) for one in chunks), *([quoted] if quoted else [])]:
        edges |= {min(max(first, start), end), min(max(last, start), end)}
    cuts = sorted(edges)
    # Each edge is met once, in order: a text of many chunks takes time in proportion to them.
    beginning = sorted(chunks, key=lambda one: (one.start_offset, one.position))
    open_chunks: list[DocumentChunk] = []
    found, met = [], 0
    for first, last in pairwise(cuts):
        open_chunks = [one for one in open_chunks if one.end_offset > first]
        while met < len(beginning) and beginning[met].start_offset <= first:
            if beginning[met].end_offset > first:
                open_chunks.append(beginning[met])
            met += 1
        found.append(
            Piece(
                text=text[first - start : last - start],
                chunks=tuple(sorted(one.position for one in open_chunks)),
                begins=tuple(one for one in open_chunks if one.start_offset == first),
                is_quoted=quoted is not None and quoted[0] <= first < quoted[1],
            )
        )
    return found


def _cut(text: str) -> int:
    """Where a part ends: behind the last line, or the last word, of what it may hold."""
    for separator in ("\n", " "):
        at = text.rfind(separator, PART - PART // 4)
        if at >= 0:
            return at + 1
    return min(len(text), PART)


# A quote in its document: the text around it, and the pages that it stands on.


#: Characters shown before and behind a quote, and of a quote at most.
AROUND = 2_500
MOST_QUOTED = 20_000
#: Characters beside a part of a quote, which tell it from others that say the same.
_BESIDE = 80
#: Of pages that one quote stands on, so many are drawn.
_MOST_PAGES = 3
#: Of lines on one page, so many are marked.
_MOST_BOXES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class PageQuote:
    """The part of a quote that stands on one page.

    Attributes:
        page: From 1.
        text: The part.
        before: What stands before it on the page, at its end.
        after: What stands behind it.
        at: How far down the page's text it begins, 0 to 1.
        boxes: Where its lines stand: left, upper, right and lower edge as shares of the page's width and height.
    """

    page: int
    text: str
    before: str
    after: str
    at: float
    boxes: tuple[tuple[float, float, float, float], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """A quote and where it stands.

    Attributes:
        part: The text around it, with what is known of the document.
        start: Of the quote in the document's text.
        end: Just behind it.
        section: Titles of the headings that it stands under, outermost first.
        pages: Its parts page by page; empty where the format has no pages.
        is_cut: Whether more is quoted than is marked.
    """

    part: DocumentPart
    start: int
    end: int
    section: tuple[str, ...]
    pages: tuple[PageQuote, ...]
    is_cut: bool

    @property
    def before(self) -> str:
        """The text before the quote."""
        return self.part.text[: self.start - self.part.start_offset]

    @property
    def text(self) -> str:
        """The quote."""
        return self.part.text[self.start - self.part.start_offset : self.end - self.part.start_offset]

    @property
    def after(self) -> str:
        """The text behind the quote."""
        return self.part.text[self.end - self.part.start_offset :]


def quote_of(view: View, document_id: int, *, start: int, end: int) -> Quote:
    """The quote between two characters of a document.

    Args:
        view: Reads the version that is quoted.
        document_id: Of the document.
        start: The first character, from 0.
        end: Just behind the last one.

    Raises:
        UsageError: There is nothing between them.
        NotFoundError: There is no such document where the view looks.
    """
    if not 0 <= start < end:
        raise UsageError(f"A quote begins before it ends: start must be less than end, not {start:,} and {end:,}.")
    outline = view.contents.outline(document_id)
    if start >= outline.characters:
        raise UsageError(f"The document {document_id} has {outline.characters:,} characters: nothing is at {start:,}.")
    marked = min(end, outline.characters, start + MOST_QUOTED)
    begin = max(0, start - AROUND)
    part = view.contents.read(document_id, start=begin, length=marked + AROUND - begin)
    return Quote(
        part=part,
        start=start,
        end=marked,
        section=section_path(outline.headings, start),
        pages=_pages(outline, part, start, marked),
        is_cut=marked < min(end, outline.characters),
    )


def _pages(outline: DocumentOutline, part: DocumentPart, start: int, end: int) -> tuple[PageQuote, ...]:
    return tuple(_on_page(page, part, start, end) for page in _touched(outline.pages, start, end)[:_MOST_PAGES])


def _touched(pages: Sequence[PageSpan], start: int, end: int) -> list[PageSpan]:
    return [page for page in pages if page.start_offset < end and page.end_offset > start]


def _on_page(page: PageSpan, part: DocumentPart, start: int, end: int) -> PageQuote:
    first, last = max(start, page.start_offset), min(end, page.end_offset)

    def text(begin: int, stop: int) -> str:
        return part.text[max(0, begin - part.start_offset) : max(0, stop - part.start_offset)]

    return PageQuote(
        page=page.number,
        text=text(first, last),
        before=text(max(page.start_offset, first - _BESIDE), first),
        after=text(last, min(page.end_offset, last + _BESIDE)),
        at=(first - page.start_offset) / max(1, page.end_offset - page.start_offset),
        boxes=_boxes(page, first, last),
    )


def _boxes(page: PageSpan, start: int, end: int) -> tuple[tuple[float, float, float, float], ...]:
    found = Outline(pages=(page,)).boxes(start, end)[:_MOST_BOXES]
    return tuple((one.left, one.top, one.right, one.bottom) for one in found)
