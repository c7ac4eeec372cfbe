"""What a model was shown, cut into pieces that a sentence can be matched against. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from recollect.answer._names import identifiers
from recollect.answer._quantities import Quantity, quantities
from recollect.answer._units import Unit, quotable_units
from recollect.languages import language_of_text
from recollect.model import RetrievedContext

_WORD = re.compile(r"[^\W_]+")
# Another form of a term, or a compound of it, has so many of its characters at least, and counts as so much of it.
_LEAST_COMMON, _ALIKE = 5, 0.9
# The number of a heading is no figure of the text.
_NUMBERING = re.compile(r"^\s*(?:§\s*)?(?:\d+(?:\.\d+)*|[A-Z]|[IVX]+)[.)]?\s+(?=\S)")
_PATH_PARTS = re.compile(r"[/\\_.\-]+")


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """A sentence, list item or table row of a source.

    Attributes:
        source: The number of the source, from 1.
        start: Offset of its first character in the passage.
        end: Just behind its last one.
        text: Its characters.
        terms: Of its own.
        all_terms: These, and those around it: of heading, a list's opening line, table's header, section and path.
        quantities: Its numbers, dates and times, and those around it.
        codes: Its identifiers and those around it, folded.
        language: ISO 639-1 code of what it says.
    """

    source: int
    start: int
    end: int
    text: str
    terms: frozenset[str]
    all_terms: frozenset[str]
    quantities: tuple[Quantity, ...]
    codes: frozenset[str]
    language: str


def row_of_words(text: str) -> str:
    """A text's words in a row, folded, a blank at each end: for finding one text word for word in another."""
    return f" {' '.join(word.casefold() for word in _WORD.findall(text))} "


def content_terms(text: str, terms: Callable[[str], Sequence[str]]) -> frozenset[str]:
    """A text's terms without those that are numbers alone."""
    return frozenset(term for term in terms(text) if not term.replace(".", "").replace(",", "").isdigit())


def pieces_of(
    number: int, passage: RetrievedContext, *, terms: Callable[[str], Sequence[str]], language: str
) -> Iterator[Piece]:
    """The pieces of the source with this number.

    Args:
        number: From 1.
        passage: As it was shown.
        terms: Splits a text into its terms.
        language: ISO 639-1 code of the passages.
    """
    titles = {title for part in passage.parts for title in (part.section or "").split(" > ")}
    units = quotable_units(passage.content, language=language, headings=titles) or [Unit(0, len(passage.content), 0)]
    told = "; ".join(note.text for note in passage.notes)
    date = passage.event_time.date().isoformat() if passage.event_time else str(passage.metadata.get("date") or "")
    path = f"{passage.title} {_PATH_PARTS.sub(' ', passage.source)} {passage.source} {date} {told}"
    usual = language_of_text(passage.content[:2_000], expected=language)
    for unit in units:
        text = passage.content[unit.start : unit.end]
        section = (passage.part_at(passage.start_offset + unit.start).section or "").split(" > ")
        headings = (_NUMBERING.sub("", title) for title in (unit.heading, *section))
        around = "\n".join((*headings, unit.lead, path))
        own, own_terms = language_of_text(text, expected=usual), content_terms(text, terms)
        yield Piece(
            source=number,
            start=unit.start,
            end=unit.end,
            text=text,
            terms=own_terms,
            all_terms=own_terms | content_terms(around, terms),
            quantities=(*quantities(text, language=own), *quantities(around, language=language)),
            codes=frozenset(found.folded for found in (*identifiers(text), *identifiers(around))),
            language=own,
        )


def covered(term: str, held: frozenset[str]) -> float:
    """How far a term is among others: 1 for itself, less for one that begins or ends alike."""
    if term in held:
        return 1.0
    return _ALIKE if any(_alike(*sorted((term, other), key=len)) for other in held) else 0.0


def _alike(shorter: str, longer: str) -> bool:
    """Whether two terms are forms of one word, or the longer one is a compound: "Jahresurlaub" holds "Urlaub"."""
    stem = shorter[: max(_LEAST_COMMON, round(len(shorter) * 0.75))]
    return len(shorter) >= _LEAST_COMMON and (longer.startswith(stem) or longer.endswith(shorter))
