"""Every quotable piece of the passages, and how well it fits a question."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from recollect.answer._kinds import holds_kind
from recollect.answer._question import (
    Asked,
    Held,
    in_range,
    missing_names,
    tells_of_another_year,
    tells_of_past,
    years_in,
)
from recollect.answer._units import Unit, quotable_units
from recollect.languages import language_of_part

if TYPE_CHECKING:
    from collections.abc import Iterable

    from recollect.embedding.base import EmbeddingProvider, Vectors
    from recollect.model import PageBox, PassagePart, RetrievedContext
    from recollect.retrieval.analysis import Analyzer


# Joins passages that overlap, so that no sentence is cut at a passage's edge or read twice.


@dataclass(frozen=True, slots=True)
class Region:
    """A contiguous stretch of one document, covered by one or more passages.

    Attributes:
        start_offset: Where ``text`` begins in the document's content.
        text: The document's characters.
        passages: Those that cover it, in order of their start offsets.
    """

    start_offset: int
    text: str
    passages: tuple[RetrievedContext, ...]

    @property
    def document_id(self) -> int:
        """The document it belongs to."""
        return self.passages[0].document_id

    @property
    def end_offset(self) -> int:
        """Just behind the last character."""
        return self.start_offset + len(self.text)

    def covering(self, start: int, end: int) -> Sequence[RetrievedContext]:
        """The passages that share characters with a span of the document, never none for a span inside."""
        return [p for p in self.passages if p.start_offset < end and p.end_offset > start]

    def passage_at(self, offset: int) -> RetrievedContext:
        """Of the passages that hold a character, the one that starts last."""
        return max(self.covering(offset, offset + 1), key=lambda p: p.start_offset)

    def boxes(self, start: int, end: int) -> tuple[PageBox, ...]:
        """Where the document's characters from ``start`` to ``end`` stand on their pages, as far as that is known."""
        return tuple(dict.fromkeys(box for one in self.covering(start, end) for box in one.boxes(start, end)))

    def part_at(self, offset: int) -> PassagePart:
        """The section and page of a character of the document."""
        return self.passage_at(offset).part_at(offset)


def join_passages(passages: Iterable[RetrievedContext]) -> list[Region]:
    """Regions in order of document, then offset. Every character of every passage lies in one.

    Passages that overlap but disagree about the shared characters (two versions of a document) stay apart.
    """
    regions: list[Region] = []
    for passage in sorted(passages, key=lambda p: (p.document_id, p.start_offset, -p.end_offset)):
        joined = _extended(regions[-1], passage) if regions else None
        if joined is None:
            regions.append(Region(passage.start_offset, passage.content, (passage,)))
        else:
            regions[-1] = joined
    return regions


def _extended(region: Region, passage: RetrievedContext) -> Region | None:
    if passage.document_id != region.document_id or passage.start_offset > region.end_offset:
        return None
    known = region.text[passage.start_offset - region.start_offset :]
    shared = min(len(known), len(passage.content))
    if known[:shared] != passage.content[:shared]:
        return None
    return Region(region.start_offset, region.text + passage.content[shared:], (*region.passages, passage))


# The cells of a table's row, and the column of a year.


#: What parts the names that a row stands under, outermost first, its own last.
PATH_MARK = " › "
_EDGES = re.compile(r"^\s*\|?|\|?\s*$")
_BETWEEN = re.compile(r"(?<!\\)\|")
_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")


@dataclass(frozen=True, slots=True)
class Row:
    """A row and the names of its columns.

    Attributes:
        cells: The first is its label.
        header: As many cells, or none.
    """

    cells: tuple[str, ...]
    header: tuple[str, ...] = ()

    @property
    def path(self) -> tuple[str, ...]:
        """Its label, part by part."""
        return tuple(part.strip() for part in self.cells[0].split(PATH_MARK.strip()))

    @property
    def header_years(self) -> frozenset[str]:
        """The years that its columns are of."""
        return frozenset(year for cell in self.header for year in _YEAR.findall(cell))

    def column(self, year: str) -> int | None:
        """The one column with a figure that is of this year alone; None where none is, or several are."""
        of_year = [at for at, cell in enumerate(self.header) if at and set(_YEAR.findall(cell)) == {year}]
        return of_year[0] if len(of_year) == 1 and any(map(str.isdigit, self.cells[of_year[0]])) else None


def read_row(line: str, header: str) -> Row | None:
    """A row of a table; None where the line is none.

    Args:
        line: With its bars.
        header: The line that names the columns; it counts where it has as many cells.
    """
    cells = _cells(line)
    if len(cells) < 2:
        return None
    names = _cells(header)
    return Row(cells, names if len(names) == len(cells) else ())


def _cells(line: str) -> tuple[str, ...]:
    return tuple(cell.strip() for cell in _BETWEEN.split(_EDGES.sub("", line.strip())))


# Of more pieces, those with the fewest words of the question are not embedded, which is what takes time.
_MOST_EMBEDDED = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """What a piece gains beside its similarity to the question, chosen by ``benchmarks/answers_without_model.py``.

    Attributes:
        coverage: By holding all of the question's terms, in its text or its heading.
        context: By having all of them in its text, its section or its document's title.
        passage: By standing in the best passage.
        kind: By holding what may be the kind of answer that the question expects.
        in_range: By being the row whose range of money the question's sum lies in; the others of the table lose it.
        missing_name: What it loses where a name of the question is in neither its text nor its section.
        past: What it loses where it tells what held before; gains, where the question asks for that.
        named: By naming the financial measure that the question asks for, and nothing else.
        needed: What it loses for each measure and fiscal year of the question that it does not tell of.
        other_columns: What a row loses whose table's columns are of years, and none of the year asked for.
    """

    coverage: float = 0.25
    context: float = 0.3
    passage: float = 0.15
    kind: float = 0.2
    in_range: float = 0.2
    missing_name: float = 0.2
    past: float = 0.2
    named: float = 0.3
    needed: float = 0.5
    other_columns: float = 0.2


@dataclass(frozen=True, slots=True)
class Evidence:
    """A quotable piece of a region and how well it fits the question.

    Attributes:
        section: The titles of the headings that it stands under.
        text: What it is judged by: the piece with its heading and the line that introduces it.
        similarity: Cosine similarity of question and piece.
        terms: The piece's terms, with those of its heading and of the line that introduces it.
        coverage: Weighted share of the question's terms among them.
        context: Its terms with those of its section and of its document's title and path.
        missing_names: The names of the question that neither it nor its section holds.
        fits: Whether it may hold the kind of answer that the question expects.
        past: Whether it tells what held before.
        another_year: Whether it names years, and neither it nor its section one of those asked for; of a row whose
            columns are of years, whether none is of those.
        held: What it holds of the question in other words.
        row: Its cells, where it is a table's row.
        score: What pieces are ordered by.
        by_meaning: Whether its similarity is known and counts.
    """

    region: Region
    unit: Unit
    section: str | None
    text: str
    similarity: float
    terms: frozenset[str]
    context: frozenset[str]
    coverage: float
    missing_names: frozenset[frozenset[str]]
    fits: bool
    past: bool
    another_year: bool
    held: Held
    row: Row | None
    score: float
    by_meaning: bool

    @property
    def start_offset(self) -> int:
        """Where the piece begins in its document."""
        return self.region.start_offset + self.unit.start

    @property
    def end_offset(self) -> int:
        """Just behind its last character."""
        return self.region.start_offset + self.unit.end

    @property
    def quote(self) -> str:
        """The characters to quote."""
        return self.region.text[self.unit.quote_start : self.unit.end]


def gather(
    asked: Asked,
    passages: Sequence[RetrievedContext],
    *,
    embedder: EmbeddingProvider,
    analyzer: Analyzer,
    language: str,
    weights: Weights,
    by_meaning: Callable[[str], bool],
    scaled: Callable[[float], float] = float,
) -> list[Evidence]:
    """The quotable pieces of the passages, best first; of very many, those that the question's words speak for.

    The similarity to the question is 0 in a language that is not judged ``by_meaning``, because the model does not know
    it, and is ``scaled`` in others to where the weights expect it.
    """
    sections, terms = _Sections(), _Terms(analyzer)
    pieces = [
        _Piece.of(region, unit, sections, terms, own)
        for region in join_passages(passages)
        for own in [language_of_part(region.text, language)]
        for unit in _units(region, sections, own)
    ]
    if not pieces:
        return []
    wanted = weighted_terms(asked.terms, [piece.terms for piece in pieces])
    # What says nothing that the question does not, answers nothing.
    pieces = [piece for piece in pieces if not piece.terms <= asked.terms] or pieces
    surroundings = _Surroundings(pieces, terms)
    strengths = _strengths(passages)
    found = [
        _evidence(asked, piece, surroundings.of(piece), wanted, strengths, weights, judged=by_meaning(piece.language))
        for piece in pieces
    ]
    if len(found) > _MOST_EMBEDDED:
        found = sorted(found, key=_rank)[:_MOST_EMBEDDED]
    if not any(one.by_meaning for one in found):
        return sorted(found, key=_rank)
    vectors = embedder.embed_documents([one.text for one in found])
    similarities = _similarities(asked, found, vectors, embedder)
    scored = (
        replace(one, similarity=similarity, score=one.score + similarity) if one.by_meaning else one
        for one, similarity in zip(found, map(scaled, similarities), strict=True)
    )
    return sorted(scored, key=_rank)


def _similarities(
    asked: Asked, found: Sequence[Evidence], vectors: Vectors, embedder: EmbeddingProvider
) -> list[float]:
    """Of each piece and the question, as asked or in the piece's words, whichever is nearer."""
    wordings = [one.held.reworded(asked.core) for one in found]
    questions = {text: embedder.embed_query(text) for text in dict.fromkeys((asked.core, *wordings))}
    own = questions[asked.core]
    return [
        float(max(vector @ own, vector @ questions[wording])) for vector, wording in zip(vectors, wordings, strict=True)
    ]


def _rank(evidence: Evidence) -> tuple[float, int, int]:
    return -evidence.score, evidence.region.document_id, evidence.start_offset


def _evidence(
    asked: Asked,
    piece: _Piece,
    around: _Around,
    wanted: dict[str, float],
    strengths: dict[int, float],
    weights: Weights,
    *,
    judged: bool,
) -> Evidence:
    """All that is known of a piece before it is embedded."""
    unit, text = piece.unit, piece.text
    in_table = unit.kind != "sentence"
    told = f"{unit.lead} {piece.region.text[unit.quote_start : unit.end]}"
    row = piece.row
    years = _years_told(row, text, around)
    held = asked.wordings.held(text, piece.terms, piece.label, years)
    terms = piece.terms | held.terms
    covered, context = coverage(wanted, terms), terms | around.terms
    other_columns = bool(asked.years and row and row.header_years and not asked.years & years)
    missing = frozenset(missing_names(asked.names, f"{text}\n{around.text}", source=around.source))
    fits = not told.endswith(("?", "？")) and holds_kind(
        asked.kind, told, asked.text, in_table=in_table, language=piece.language
    )
    past = around.old or tells_of_past(text)
    score = (
        weights.coverage * covered
        + weights.context * coverage(wanted, context)
        + weights.passage * max(strengths[id(passage)] for passage in around.passages)
        + weights.kind * fits
        + weights.in_range * (in_range(asked.amount, text) if in_table else 0)
        - weights.missing_name * bool(missing)
        + weights.past * past * (1 if asked.past else -1)
        + weights.named * held.named
        - weights.needed * (held.missing + (asked.wordings.needed and bool(missing)))
        - weights.other_columns * other_columns
    )
    return Evidence(
        region=piece.region,
        unit=unit,
        section=piece.section,
        text=text,
        similarity=0.0,
        terms=terms,
        context=context,
        coverage=covered,
        missing_names=missing,
        fits=fits,
        past=past,
        another_year=other_columns or tells_of_another_year(asked, text, around.text),
        held=held,
        row=row,
        score=score,
        by_meaning=judged,
    )


def _years_told(row: Row | None, text: str, around: _Around) -> frozenset[str]:
    """The years that a piece is of: those of its table's columns, otherwise of its words and its section."""
    if row is not None and row.header_years:
        return row.header_years
    return years_in(f"{text}\n{around.section}")


class _Terms:
    """The terms of texts; headings and the heads of tables stand before many pieces."""

    def __init__(self, analyzer: Analyzer) -> None:
        self._analyzer = analyzer
        self._known: dict[str, frozenset[str]] = {}
        self._ordered: dict[str, tuple[str, ...]] = {}

    def of(self, text: str) -> frozenset[str]:
        known = self._known.get(text)
        if known is None:
            known = self._known[text] = frozenset(self._analyzer.terms(text))
        return known

    def in_order(self, text: str) -> tuple[str, ...]:
        known = self._ordered.get(text)
        if known is None:
            known = self._ordered[text] = tuple(self._analyzer.query_terms(text))
        return known


class _Sections:
    """Looks up the section that a character of a region stands in; a passage's parts are made once."""

    def __init__(self) -> None:
        self._parts: dict[int, tuple[PassagePart, ...]] = {}

    def parts(self, passage: RetrievedContext) -> tuple[PassagePart, ...]:
        known = self._parts.get(id(passage))
        if known is None:
            known = self._parts[id(passage)] = passage.parts
        return known

    def at(self, region: Region, offset: int) -> str | None:
        parts = self.parts(region.passage_at(offset))
        return next((part for part in parts if offset < part.end_offset), parts[-1]).section


@dataclass(frozen=True, slots=True)
class _Piece:
    """A quotable piece with its section, the text that it is judged by, that text's terms, and its language."""

    region: Region
    unit: Unit
    section: str | None
    text: str
    terms: frozenset[str]
    language: str
    row: Row | None
    label: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, region: Region, unit: Unit, sections: _Sections, terms: _Terms, language: str) -> _Piece:
        section = sections.at(region, region.start_offset + unit.start)
        heading = unit.heading or (section or "").rpartition(" > ")[2]
        quote = region.text[unit.quote_start : unit.end]
        parts = [part for part in (heading, unit.lead, quote) if part]
        row = read_row(*_lines(region.text, unit)) if unit.kind == "row" else None
        label = tuple(map(terms.in_order, row.path)) if row else ()
        return cls(
            region, unit, section, " ".join(parts), frozenset().union(*map(terms.of, parts)), language, row, label
        )


def _lines(text: str, unit: Unit) -> tuple[str, str]:
    """A row, and the head of its table, with the bars at their ends."""
    row = _line(text, unit.start, unit.end)
    return row, _line(text, unit.lead_start, unit.lead_end) if unit.lead_end > unit.lead_start else unit.lead


def _line(text: str, start: int, end: int) -> str:
    stop = text.find("\n", end)
    return text[text.rfind("\n", 0, start) + 1 : len(text) if stop < 0 else stop]


@dataclass(frozen=True, slots=True)
class _Around:
    """What a piece stands in: its passages, the words of its section and title, whether that is an older edition."""

    passages: Sequence[RetrievedContext]
    text: str
    section: str
    source: str
    terms: frozenset[str]
    old: bool


class _Surroundings:
    """Looks up what pieces stand in; pieces of one section share it."""

    def __init__(self, pieces: Sequence[_Piece], terms: _Terms) -> None:
        self._terms = terms
        sentences: dict[tuple[int, str | None], list[str]] = {}
        for piece in pieces:
            if piece.unit.kind == "sentence":
                own = piece.region.text[piece.unit.start : piece.unit.end]
                sentences.setdefault((id(piece.region), piece.section), []).append(own)
        self._beside = {key: "\n".join(own) for key, own in sentences.items()}

    def of(self, piece: _Piece) -> _Around:
        """For names, a sentence counts with those of its section; a row or an item stands beside others like it."""
        at = piece.region.start_offset
        passages = piece.region.covering(at + piece.unit.start, at + piece.unit.end)
        source = passages[0].source
        titles = f"{piece.section or ''}\n{passages[0].title}\n{source}"
        beside = self._beside.get((id(piece.region), piece.section), "") if piece.unit.kind == "sentence" else ""
        return _Around(
            passages,
            f"{titles}\n{beside}",
            piece.section or "",
            source,
            self._terms.of(titles),
            any(note.kind in {"newer_document", "superseded"} for one in passages for note in one.notes),
        )


def weighted_terms(question_terms: frozenset[str], piece_terms: Sequence[frozenset[str]]) -> dict[str, float]:
    """The question's terms by rarity among the pieces; a term that no piece holds weighs as the rarest."""
    holders = Counter(term for held in piece_terms for term in held & question_terms)
    total = len(piece_terms)
    return {term: math.log(1 + (total + 1) / (holders[term] + 0.5)) for term in sorted(question_terms)}


def coverage(wanted: dict[str, float], held: frozenset[str]) -> float:
    """The weighted share of terms that are held."""
    total = sum(wanted.values())
    return sum(weight for term, weight in wanted.items() if term in held) / total if total else 0.0


def _units(region: Region, sections: _Sections, language: str) -> list[Unit]:
    parts = (part for passage in region.passages for part in sections.parts(passage))
    titles = {title for part in parts for title in (part.section or "").split(" > ")}
    # A table's head that is cut off counts where it says which column is of which year.
    header = region.passages[0].table_header or ""
    return quotable_units(
        region.text, language=language, headings=titles, table_header=header if years_in(header) else ""
    )


def _strengths(passages: Sequence[RetrievedContext]) -> dict[int, float]:
    """Retrieval scores scaled to 0..1 within this search, since they are comparable only there."""
    low = min(p.score for p in passages)
    high = max(p.score for p in passages)
    width = high - low
    return {id(p): (p.score - low) / width if width > 0 else 1.0 for p in passages}
