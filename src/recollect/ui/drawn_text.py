"""A part of a document's text with the chunks that were cut from it: pieces, each in the chunks that hold it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from recollect.errors import UsageError

if TYPE_CHECKING:
    from recollect.model.contents import DocumentChunk
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
