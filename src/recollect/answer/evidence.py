"""What a model was shown, cut into pieces that a sentence can be matched against. Pure."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from recollect.answer._language import language_of
from recollect.answer._names import fold, identifiers, names, words_of
from recollect.answer._number_words import MONTHS
from recollect.answer._polarity import clauses, normalised
from recollect.answer._quantities import Quantity, quantities, unit_of
from recollect.answer._units import Unit, quotable_units

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from recollect.model import RetrievedContext

_WORD = re.compile(r"[^\W_]+")
_STEM_CHARACTERS = 5
_SHORT_STEM = 4
# Words that two paths share, where what they do not share tells two of a kind apart.
_ALIKE = 3
# The number of a heading is no figure of the text.
_NUMBERING = re.compile(r"^\s*(?:§\s*)?(?:\d+(?:\.\d+)*|[A-Z]|[IVX]+)[.)]?\s+(?=\S)")
# Where a sentence can turn to the next thing that it says a number of.
_END = re.compile(r"(?<=[;.!?])\s+")
_OF_WHICH = re.compile(
    r"\W*(?:of which|of whom|of them|thereof|dont|davon|wovon|de los cuales|di cui|dos quais)\b", re.IGNORECASE
)
_TURN = re.compile(r",\s|\s(?:and|or|und|oder|et|ou|y|o|e|but|while|whereas|aber|mais|pero)\s")
_PATH_PARTS = re.compile(r"[/\\_.\-]+")
_SCALE_NOTE = re.compile(
    r"\bin (?P<unit>thousands|millions|billions)\b|\b(?:in|en) (?P<other>Mio|Tsd|millions|milliers)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Clause:
    """A part of a piece that says one thing, for what must stand together.

    Attributes:
        text: Its set phrases normalised.
        terms: Its terms, those of a table's column with them.
        quantities: Its numbers, dates and times.
        names: Its proper names, folded.
    """

    text: str
    terms: frozenset[str]
    quantities: tuple[Quantity, ...]
    names: frozenset[str]


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """A sentence, list item or table row of a source.

    Attributes:
        source: The number of the source, from 1.
        start: Offset of its first character in the passage.
        end: Just behind its last one.
        text: Its characters.
        around: What it needs to be understood: heading, a list's opening line, a table's header, section, title, path.
        terms: Of its own.
        around_terms: Of what is around it.
        quantities: Its numbers, dates and times.
        around_quantities: Those around it.
        words: Its words and those around it, folded.
        names: Its own proper names, folded.
        initial: Capital words that its sentences begin with, folded: names perhaps.
        around_words: The words around it, folded.
        codes: Its identifiers and those around it, folded.
        parts: Its parts by the numbers in them.
        clauses: Its parts by what they assert or deny.
        language: ISO 639-1 code of what it says.
        order: Its place among the pieces of its source.
    """

    source: int
    start: int
    end: int
    text: str
    around: str
    terms: frozenset[str]
    around_terms: frozenset[str]
    quantities: tuple[Quantity, ...]
    around_quantities: tuple[Quantity, ...]
    words: frozenset[str]
    names: frozenset[str]
    initial: frozenset[str]
    around_words: frozenset[str]
    codes: frozenset[str]
    parts: tuple[Clause, ...]
    clauses: tuple[Clause, ...]
    language: str
    order: int

    @property
    def folded(self) -> str:
        """Its words in a row, folded."""
        return row_of_words(self.text)

    @property
    def all_terms(self) -> frozenset[str]:
        """Its own terms and those around it."""
        return self.terms | self.around_terms


@dataclass(eq=False)
class Sources:
    """Everything that a model was shown.

    Attributes:
        passages: ``passages[n - 1]`` is source n.
        pieces: Of all sources, in order.
        frequencies: In how many pieces a term stands.
        inner_names: Words that are written as names within a sentence anywhere, and never otherwise.
        plain_words: Words that are written without a capital anywhere.
        capital_words: Words that are written with a capital wherever they stand, names or beginnings of sentences.
        heading_names: Words of titles and headings that tell one source from the others.
    """

    passages: Sequence[RetrievedContext]
    pieces: list[Piece]
    frequencies: Counter[str]
    inner_names: frozenset[str]
    plain_words: frozenset[str]
    heading_names: frozenset[str] = frozenset()
    capital_words: frozenset[str] = frozenset()
    by_source: dict[int, list[Piece]] = field(default_factory=dict)

    def weight(self, term: str) -> float:
        """How much a term says: rare ones more."""
        return math.log(1 + (len(self.pieces) + 1) / (max(self.frequencies[term], 1) + 0.5))

    def of(self, numbers: Iterable[int]) -> list[Piece]:
        """The pieces of some sources."""
        return [piece for number in numbers for piece in self.by_source.get(number, ())]

    def names_of(self, piece: Piece) -> set[str]:
        """The proper names that a piece speaks of: its own, and those of its heading and its path."""
        outer = {word for word in piece.around_words if word in self.inner_names or self._seems_a_name(word)}
        return set(piece.names) | {word for word in piece.initial if word in self.inner_names} | outer

    def _seems_a_name(self, word: str) -> bool:
        """Whether a heading's word is of no sentence, so that it can only be a name."""
        return len(word) > 3 and word.isalpha() and word not in self.plain_words and word in self.heading_names

    def before(self, piece: Piece, count: int) -> list[Piece]:
        """The pieces before one in its source, nearest first."""
        own = self.by_source[piece.source]
        return own[max(0, piece.order - count) : piece.order][::-1]


def read_sources(
    passages: Sequence[RetrievedContext], *, terms: Callable[[str], Sequence[str]], language: str = "en"
) -> Sources:
    """Cut passages into pieces, and find out what each holds.

    Args:
        passages: As they were shown; source n is ``passages[n - 1]``.
        terms: Splits a text into its terms.
        language: ISO 639-1 code of the passages.
    """
    sources = Sources(passages, [], Counter(), frozenset(), frozenset())
    inner: set[str] = set()
    plain: set[str] = set()
    for number, passage in enumerate(passages, start=1):
        own = _pieces(number, passage, terms=terms, language=language)
        sources.by_source[number] = own
        sources.pieces.extend(own)
        inner.update(name.folded for name in names(passage.content, language=language) if name.inside)
        plain.update(fold(word) for word in re.findall(r"[^\W\d_]+", passage.content) if word[:1].islower())
    for piece in sources.pieces:
        sources.frequencies.update(piece.terms)
    sources.plain_words = frozenset(plain)
    sources.inner_names = frozenset(inner - plain)
    sources.capital_words = frozenset(word for piece in sources.pieces for word in piece.names | piece.initial) - plain
    sources.heading_names = _telling_apart(passages)
    return sources


def _telling_apart(passages: Sequence[RetrievedContext]) -> frozenset[str]:
    """Words of titles and paths that a part of the sources has: of "guide_lyon" and "guide_bremen" the towns."""
    of_each = {passage.source: words_of(_PATH_PARTS.sub(" ", passage.source)) for passage in passages}
    if len(of_each) < 2:
        return frozenset()
    pairs = [(one, other) for one in of_each.values() for other in of_each.values() if len(one & other) >= _ALIKE]
    return frozenset(word for one, other in pairs for word in one - other)


def row_of_words(text: str) -> str:
    """A text's words in a row, folded, a blank at each end: for finding one text word for word in another."""
    words = " ".join(fold(word) for word in _WORD.findall(text))
    return f" {words} "


def content_terms(text: str, terms: Callable[[str], Sequence[str]]) -> frozenset[str]:
    """A text's terms without those that are numbers alone."""
    return frozenset(term for term in terms(text) if not term.replace(".", "").replace(",", "").isdigit())


def _pieces(
    number: int, passage: RetrievedContext, *, terms: Callable[[str], Sequence[str]], language: str
) -> list[Piece]:
    titles = {title for part in passage.parts for title in (part.section or "").split(" > ")}
    units = quotable_units(passage.content, language=language, headings=titles) or _whole(passage.content)
    told = "; ".join(note.text for note in passage.notes)
    date = passage.event_time.date().isoformat() if passage.event_time else str(passage.metadata.get("date") or "")
    path = f"{passage.title} {_PATH_PARTS.sub(' ', passage.source)} {passage.source} {date} {told}"
    pieces: list[Piece] = []
    usual = language_of(passage.content[:2_000], language)
    scale = _scale_of(passage.content)
    for order, unit in enumerate(units):
        text = passage.content[unit.start : unit.end]
        section = " > ".join(
            _NUMBERING.sub("", title)
            for title in (passage.part_at(passage.start_offset + unit.start).section or "").split(" > ")
        )
        around = "\n".join(part for part in (_NUMBERING.sub("", unit.heading), unit.lead, section, path) if part)
        own_language = language_of(text, usual)
        parts = tuple(_parts(text, unit, terms=terms, language=own_language, scale=scale))
        rows = "|" in text and bool(parts)
        own = tuple(_scaled(quantities(text, language=own_language), scale))
        if rows:
            # With the units that a table's header says.
            own = tuple(
                dict.fromkeys(
                    (
                        *quantities(text.strip("|").split("|")[0], language=own_language),
                        *(q for part in parts for q in part.quantities),
                    )
                )
            )
        pieces.append(
            Piece(
                source=number,
                start=unit.start,
                end=unit.end,
                text=text,
                around=around,
                terms=content_terms(text, terms) | content_terms(normalised(text), terms),
                around_terms=content_terms(around, terms),
                quantities=own,
                around_quantities=tuple(quantities(around, language=language)),
                words=words_of(text) | words_of(around),
                names=frozenset(name.folded for name in names(text, language=own_language) if name.inside),
                initial=frozenset(name.folded for name in names(text, language=own_language) if not name.inside),
                around_words=words_of(around),
                codes=frozenset(found.folded for found in (*identifiers(text), *identifiers(around))),
                parts=parts,
                clauses=parts
                if rows
                else tuple(
                    _clause(one.text, one.text, terms=terms, language=own_language, scale=1) for one in clauses(text)
                ),
                language=own_language,
                order=order,
            )
        )
    return pieces


def _whole(content: str) -> list[Unit]:
    start = len(content) - len(content.lstrip())
    end = len(content.rstrip())
    return [Unit(start, end, start)] if end > start else []


def _parts(text: str, unit: Unit, *, terms: Callable[[str], Sequence[str]], language: str, scale: int) -> list[Clause]:
    """The parts of a sentence; of a table's row each cell with the row's first and the column's header."""
    cells = [cell.strip() for cell in text.strip("|").split("|")]
    if len(cells) == 1:
        return [_clause(part, part, terms=terms, language=language, scale=scale) for part in parts_of(text, language)]
    headers = [cell.strip() for cell in unit.lead.strip().strip("|").split("|")]
    found = []
    for at, cell in enumerate(cells[1:], start=1):
        header = headers[at] if len(headers) == len(cells) else ""
        clause = _clause(
            f"{cells[0]}: {cell}", f"{cells[0]} {header} {cell}", terms=terms, language=language, scale=scale
        )
        unit_said = next((known for word in reversed(header.split()) if (known := unit_of(word.strip("()")))), None)
        given = tuple(
            replace(one, unit=unit_said) if one.unit is None and one.kind == "number" else one
            for one in clause.quantities
        )
        found.append(replace(clause, quantities=given))
    return found


def _clause(text: str, said: str, *, terms: Callable[[str], Sequence[str]], language: str, scale: int) -> Clause:
    return Clause(
        normalised(text),
        content_terms(said, terms),
        tuple(_scaled(quantities(text, language=language), scale)),
        frozenset(name.folded for name in names(text, language=language)),
    )


def parts_of(text: str, language: str) -> list[str]:
    """A sentence cut where it turns to the next thing, each part with a number of its own.

    The first part's words before its number, which say what all of them are of, stand before each.
    """
    if not any(letter.isdigit() for letter in text) and len(text) < 40:
        return [text]
    found: list[str] = []
    for sentence in _END.split(text):
        cuts = [
            0,
            *(match.end() - len(match.group().lstrip(", ")) for match in _TURN.finditer(sentence)),
            len(sentence),
        ]
        parts: list[str] = []
        for start, end in pairwise(cuts):
            piece = sentence[start:end]
            if parts and not (_has_number(piece, language) and _has_number(parts[-1], language)):
                parts[-1] += piece
            else:
                parts.append(piece)
        first = next((one.start for one in quantities(parts[0], language=language)), 0)
        found.append(parts[0])
        for before, part in pairwise(parts):
            # "11 days, of which 4 are fixed": the second number is of what the first one is.
            kept = re.sub(r"\d+", "", before) if _OF_WHICH.match(part) else _shared(parts[0][:first], part, language)
            found.append(kept + part)
        found[-1:] = _by_dates(found[-1], language)
    return found


def _by_dates(part: str, language: str) -> list[str]:
    """A part cut behind each date that another one follows: what stands before a date says what it is of."""
    dates = [one.end for one in quantities(part, language=language) if one.kind == "date"]
    return [part[start:end] for start, end in pairwise([0, *dates[:-1], len(part)])]


def _shared(beginning: str, part: str, language: str) -> str:
    """What a sentence's beginning says of a later part: without its names, where that has names of its own."""
    if any(name.inside and name.folded not in MONTHS for name in names(f"x {part}", language=language)):
        for name in names(beginning, language=language):
            beginning = beginning.replace(name.text, "")
    return beginning


def _has_number(text: str, language: str) -> bool:
    return any(one.firm for one in quantities(text, language=language))


def _scale_of(content: str) -> int:
    """What a table's figures are multiplied by, where its source says "in millions"."""
    match = _SCALE_NOTE.search(content)
    if match is None:
        return 1
    word = (match.group("unit") or match.group("other") or "").casefold()
    return {"t": 10**3, "b": 10**9}.get(word[:1], 10**3 if word == "milliers" else 10**6)


def _scaled(found: Sequence[Quantity], scale: int) -> Iterable[Quantity]:
    if scale == 1:
        return found
    return [
        Quantity(
            one.start,
            one.end,
            one.text,
            one.kind,
            values=one.values | {value * scale for value in one.values},
            days=one.days,
            unit=one.unit,
            firm=one.firm,
        )
        if one.kind == "number" and one.unit != "%"
        else one
        for one in found
    ]


def covered(term: str, held: frozenset[str]) -> float:
    """How far a term is among others: itself, or one that begins or ends alike (another form, a compound)."""
    if term in held:
        return 1.0
    if len(term) < _STEM_CHARACTERS:
        return 0.0
    stem = term[: max(_STEM_CHARACTERS, round(len(term) * 0.75))]
    for other in held:
        if len(other) >= _STEM_CHARACTERS and (
            other.startswith(stem) or term.startswith(other[: max(_STEM_CHARACTERS, round(len(other) * 0.75))])
        ):
            return 0.9
        if len(other) >= _SHORT_STEM and term.startswith(other) and len(term) - len(other) <= _SHORT_STEM:
            return 0.85
        # A compound of another language's kind: "Jahresurlaub" holds "Urlaub".
        if min(len(term), len(other)) >= _STEM_CHARACTERS and (term.endswith(other) or other.endswith(term)):
            return 0.8
    return 0.0
