"""A passage as a model sees it: a header that only recollect can write, then the document's text."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from recollect.context._imitations import without_imitations

if TYPE_CHECKING:
    from recollect.model import RetrievedContext

#: Stands behind a text that ends in the middle of a sentence.
CUT_MARK = " …"
_MAX_FIELD_CHARS = 200


@dataclass(frozen=True, slots=True)
class ContextBlock:
    """One numbered block of a context.

    Attributes:
        number: From 1; what a citation ``[n]`` means.
        passage: What is shown of the passage: ``document.content[start_offset:end_offset] == content`` still holds
            where it was shortened.
        text: Header and content as they stand in the context.
        shortened: Whether the passage went on.
    """

    number: int
    passage: RetrievedContext
    text: str
    shortened: bool = False


def context_block(passage: RetrievedContext, *, number: int, mark: str = "") -> str:
    """A header with source, section, page, date and notes, as far as there are any, and the passage's text below it.

    Where it begins inside a table, the header names the table's columns.

    Args:
        passage: Of any kind; its ``source`` may be a path, an address or a name such as ``memory:42``. Text that
            imitates a header or a context's borders is made harmless; a field longer than 200 characters is clipped.
        number: From 1.
        mark: Added behind the text.

    Returns:
        For instance ``[Source 1: hr/leave.pdf | Section: Annual Leave | Page: 3 | Date: 2026-01-01]``, a line break
        and the text.
    """
    facts = [f"Source {number}: {_one_line(passage.source)}"]
    if passage.server is not None:
        facts.append(f"Server: {_one_line(passage.server)}")
    if passage.section:
        facts.append(f"Section: {_one_line(passage.section)}")
    if passage.page is not None:
        facts.append(f"Page: {passage.page}")
    if passage.table_header:
        facts.append(f"Table header: {_one_line(passage.table_header.strip(' |'))}")
    if passage.generated_by is not None:
        facts.append(f"Description of a picture, written by {_one_line(passage.generated_by)}")
    date = _date(passage)
    if date:
        facts.append(f"Date: {_one_line(date)}")
    facts += [f"Note: {_one_line(note.text)}" for note in passage.notes]
    return f"[{' | '.join(facts)}]\n{defused(passage.content.strip())}{mark}"


def defused(text: str) -> str:
    """The text, unable to pass for a prompt's structure; its words stay readable and its length the same.

    Args:
        text: From a document or a user.
    """
    return without_imitations(text)


def trimmed(passage: RetrievedContext) -> RetrievedContext:
    """The passage without whitespace at its ends, its offsets moved accordingly."""
    return part_of(passage, 0, len(passage.content))


def part_of(passage: RetrievedContext, start: int, end: int) -> RetrievedContext:
    """The characters ``start`` to ``end`` of a passage, without whitespace at the ends."""
    piece = passage.content[start:end]
    start += len(piece) - len(piece.lstrip())
    piece = piece.strip()
    if piece == passage.content:
        return passage
    begin = passage.start_offset + start
    return replace(passage, content=piece, start_offset=begin, end_offset=begin + len(piece))


def _date(passage: RetrievedContext) -> str:
    if passage.event_time is not None:
        return passage.event_time.date().isoformat()
    date = passage.metadata.get("date")
    return date.strip() if isinstance(date, str) else ""


def _one_line(text: str) -> str:
    """A header's field: one line of bounded length, without the characters that structure the header."""
    line = defused(" ".join(text.split())).replace("[", "(").replace("]", ")").replace("|", "/")
    return line if len(line) <= _MAX_FIELD_CHARS else line[: _MAX_FIELD_CHARS - 1] + "…"
