"""A passage as a model sees it: a header that only recollect can write, then the document's text."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

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


# Makes harmless what a text could hold to pass for the structure of a prompt. Pure.


# Characters that show nothing: they do not hide an imitation, and separate nothing.
_HIDDEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e007f]"
)
# A block's header.
_HEADER = re.compile(r"[\[【⟦〔](?=\s*sources?\s*[\d#:])", re.IGNORECASE)
# The lines around a context: alone on a line however written, or in capitals anywhere.
_EDGE = re.compile(
    r"^\W*(?:(?i:approved\s+context|end\s+of\s+context))\W*$|APPROVED\s+CONTEXT|END\s+OF\s+CONTEXT", re.MULTILINE
)
# The line between two blocks.
_GAP = re.compile(r"^[ \t>]*(?:[-–—−_*=][ \t]*){3,}$", re.MULTILINE)
# Signs by which servers part the messages of a conversation.
_ROLE = re.compile(
    r"<{2,}\s*context|context\s*>{2,}|<\|[\w ]*\|>|<\|(?=\w)|\[/?INST\]|<</?SYS>>|</?s>|<(?:start|end)_of_turn>",
    re.IGNORECASE,
)
_SIGNS = dict(zip("<>[]|【⟦〔=-–—−_*", "‹›()¦(((·······", strict=True))


def without_imitations(text: str) -> str:
    """The text, its imitations of a header, a border or a role changed by single characters; its length is kept."""
    plain, places = _as_read(text)
    changed: dict[int, str] = {}
    for pattern in (_HEADER, _GAP, _ROLE):
        for match in pattern.finditer(plain):
            for at in range(match.start(), match.end()):
                if plain[at] in _SIGNS:
                    changed[places[at]] = _SIGNS[plain[at]]
    for match in _EDGE.finditer(plain):
        for at in range(match.start(), match.end()):
            # "approved·context": to be read, and no line of the prompt.
            changed[places[at]] = "·" if plain[at].isspace() and plain[at] != "\n" else plain[at].lower()
    if not changed:
        return text
    return "".join(changed.get(at, letter) for at, letter in enumerate(text))


def _as_read(text: str) -> tuple[str, Sequence[int]]:
    """The text as a reader takes it, without hidden characters and in plain letters, and where each of them stands."""
    if text.isascii():
        return text, range(len(text))
    shown = [(at, _plain(letter)) for at, letter in enumerate(text) if not _HIDDEN.match(letter)]
    return "".join(letter for _, letter in shown), [at for at, _ in shown]


def _plain(letter: str) -> str:
    folded = unicodedata.normalize("NFKC", letter) if not letter.isascii() else letter
    return folded if len(folded) == 1 else letter
