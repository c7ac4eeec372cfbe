"""A quote in its document: the text around it, and the pages that it stands on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recollect.errors import UsageError
from recollect.model.outline import Outline, PageSpan, section_path

if TYPE_CHECKING:
    from recollect.model.contents import DocumentOutline, DocumentPart
    from recollect.pipeline import View

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
