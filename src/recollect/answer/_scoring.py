"""Every quotable piece of the passages, and how well it fits a question.

Few features, because more of them did not carry over to documents that they were not chosen on: names, kinds of
answers, amounts and years, measured one by one, found 2 of 160 answers more (``benchmarks/families.py``).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from recollect.answer._regions import Region, join_passages
from recollect.answer._units import Unit, following, quotable_units
from recollect.languages import language_of_part

if TYPE_CHECKING:
    from recollect.answer.reader import Reader
    from recollect.embedding.base import EmbeddingProvider
    from recollect.model import PassagePart, RetrievedContext
    from recollect.retrieval.analysis import Analyzer

# Of more pieces, those that fit least so far are not embedded, which is what takes time: by their words alone, or by
# what the reader says of them too.
_MOST_EMBEDDED, _MOST_EMBEDDED_OF_READ = 32, 12
# What a piece gains beside its similarity to the question: by holding all of the question's terms, in its text, its
# section or its document's title (twice as much where words decide alone); by standing in the best passage; by
# introducing a command, list or table: where the reader is asked, and where it is not.
_CONTEXT, _PASSAGE, _LABEL = 0.7, 0.6, 0.35
_CONTEXT_ALONE, _PASSAGE_ALONE, _LABEL_ALONE = 0.5, 0.45, 0.25
# How much better than others a piece must be where a newer document or version is known.
_OLD = 0.7
#: The weight of the logarithm of the probability that the answer begins in a piece.
READ = 0.17
# A longer line before a list, or head of a table, counts for the choice and is not shown.
_LONGEST_LEAD = 240
# The logarithm counts as this at least, and as this for a piece that the reader did not come to.
_LEAST_READ, _UNREAD = -10.0, -2.0


@dataclass(frozen=True, slots=True)
class Evidence:
    """A quotable piece of a region and how well it fits the question.

    Attributes:
        section: The titles of the headings that it stands under.
        text: What it is judged by: the piece with its heading and the line that introduces it.
        terms: The terms of that.
        context: Its terms with those of its section and of its document's title and path.
        similarity: Cosine similarity of question and piece; 0 where the model does not know the language.
        read: The logarithm of the probability that the answer begins in it; None where no reader was asked.
        by_meaning: Whether the similarity is known and counts.
        score: How well it fits, together.
        old: Whether a newer document or version is known: then those nearly as good come before it.
    """

    region: Region
    unit: Unit
    section: str | None
    text: str
    terms: frozenset[str]
    context: frozenset[str]
    similarity: float
    by_meaning: bool
    score: float
    read: float | None = None
    old: bool = False

    @property
    def order(self) -> float:
        """What pieces are ordered by."""
        return self.score - _OLD * self.old

    @property
    def start_offset(self) -> int:
        """Where the piece begins in its document."""
        return self.region.start_offset + self.unit.start

    @property
    def end_offset(self) -> int:
        """Just behind its last character."""
        return self.region.start_offset + self.unit.end

    @property
    def quotes(self) -> list[tuple[int, int]]:
        """What is quoted for it, in characters of its region: the line that introduces it, itself, what it labels."""
        unit = self.unit
        end = following(self.region.text, unit)
        lead = unit.lead_end - unit.lead_start
        if not 0 < lead <= _LONGEST_LEAD or unit.lead_end > unit.quote_start:
            return [(unit.quote_start, end)]
        if not self.region.text[unit.lead_end : unit.quote_start].strip():
            return [(unit.lead_start, end)]
        return [(unit.lead_start, unit.lead_end), (unit.quote_start, end)]


def gather(
    question: str,
    passages: Sequence[RetrievedContext],
    *,
    embedder: EmbeddingProvider,
    analyzer: Analyzer,
    language: str,
    by_meaning: Callable[[str], bool],
    scaled: Callable[[float], float] = float,
    reader: Reader | None = None,
) -> list[Evidence]:
    """The quotable pieces of the passages, best first; of many, those that the question's words speak for least, last.

    The similarity to the question is 0 in a language that is not judged ``by_meaning``, because the model does not know
    it, and is ``scaled`` in others to where the weights expect it. The ``reader`` knows English only.
    """
    asked = frozenset(analyzer.query_terms(question))
    terms = _Terms(analyzer)
    strengths = _strengths(passages)
    pieces = [
        piece
        for region in join_passages(passages)
        for own in [language_of_part(region.text, language)]
        for piece in _pieces(region, terms, own, judged=by_meaning(own))
    ]
    # What says nothing that the question does not, answers nothing.
    pieces = [piece for piece in pieces if not piece.terms <= asked] or pieces
    wanted = weighted_terms(asked, [piece.terms for piece in pieces])
    read = _readings(question, passages, reader)
    found = sorted((_scored(piece, wanted, strengths, read) for piece in pieces), key=_rank)
    most = _MOST_EMBEDDED if reader is None else _MOST_EMBEDDED_OF_READ
    chosen, others = [one for one in found[:most] if one.by_meaning], found[most:]
    if not chosen:
        return found
    similarities = map(scaled, embedder.embed_documents([one.text for one in chosen]) @ embedder.embed_query(question))
    judged = (
        replace(one, similarity=similarity, score=one.score + similarity)
        for one, similarity in zip(chosen, similarities, strict=True)
    )
    unjudged = (one for one in found[:most] if not one.by_meaning)
    return [*sorted((*judged, *unjudged), key=_rank), *others]


def _readings(
    question: str, passages: Sequence[RetrievedContext], reader: Reader | None
) -> Callable[[Evidence], float | None]:
    """Read the passages; how likely it is that the answer begins in a piece, as a logarithm."""
    if reader is None:
        return lambda _piece: None
    headings = [passage.parts[0].section or "" for passage in passages]
    found = reader.read(question, [passage.content for passage in passages], headings)
    by_passage = {id(passage): reading for passage, reading in zip(passages, found, strict=True)}

    def read(piece: Evidence) -> float:
        start, end = piece.start_offset, piece.end_offset
        covering = piece.region.covering(start, end)
        within = max(
            by_passage[id(one)].begins_within(start - one.start_offset, end - one.start_offset) for one in covering
        )
        return _UNREAD if within == -math.inf else max(_LEAST_READ, within)

    return read


def _rank(evidence: Evidence) -> tuple[float, int, int]:
    return -evidence.order, evidence.region.document_id, evidence.start_offset


def _pieces(region: Region, terms: _Terms, language: str, *, judged: bool) -> list[Evidence]:
    sections = {id(passage): passage.parts for passage in region.passages}
    titles = {title for parts in sections.values() for part in parts for title in (part.section or "").split(" > ")}
    found = []
    for unit in quotable_units(region.text, language=language, headings=titles):
        at = region.start_offset + unit.start
        passage = region.passage_at(at)
        section = _section(sections[id(passage)], at)
        heading = unit.heading or (section or "").rpartition(" > ")[2]
        parts = [part for part in (heading, unit.lead, region.text[unit.quote_start : unit.end]) if part]
        own = frozenset[str]().union(*map(terms.of, parts))
        around = terms.of(f"{section or ''}\n{passage.title}\n{passage.source}")
        found.append(Evidence(region, unit, section, " ".join(parts), own, own | around, 0.0, judged, 0.0))
    return found


def _section(parts: Sequence[PassagePart], offset: int) -> str | None:
    return next((part for part in parts if offset < part.end_offset), parts[-1]).section


def _scored(
    piece: Evidence, wanted: dict[str, float], strengths: dict[int, float], read: Callable[[Evidence], float | None]
) -> Evidence:
    """All that is known of a piece before it is embedded."""
    passages = piece.region.covering(piece.start_offset, piece.end_offset)
    begins = read(piece) if piece.by_meaning else None
    held = coverage(wanted, piece.context) * (1 if piece.by_meaning else 2)
    strength = max(strengths[id(passage)] for passage in passages)
    label = following(piece.region.text, piece.unit) > piece.unit.end
    if begins is None:
        score = _CONTEXT_ALONE * held + _PASSAGE_ALONE * strength + _LABEL_ALONE * label
    else:
        score = _CONTEXT * held + _PASSAGE * strength + _LABEL * label + READ * begins
    old = any(note.kind in {"newer_document", "superseded"} for one in passages for note in one.notes)
    return replace(piece, score=score, read=begins, old=old)


class _Terms:
    """The terms of texts; headings and the heads of tables stand before many pieces."""

    def __init__(self, analyzer: Analyzer) -> None:
        self._analyzer = analyzer
        self._known: dict[str, frozenset[str]] = {}

    def of(self, text: str) -> frozenset[str]:
        known = self._known.get(text)
        if known is None:
            known = self._known[text] = frozenset(self._analyzer.terms(text))
        return known


def weighted_terms(question_terms: frozenset[str], piece_terms: Sequence[frozenset[str]]) -> dict[str, float]:
    """The question's terms by rarity among the pieces; a term that no piece holds weighs as the rarest."""
    holders = Counter(term for held in piece_terms for term in held & question_terms)
    total = len(piece_terms)
    return {term: math.log(1 + (total + 1) / (holders[term] + 0.5)) for term in sorted(question_terms)}


def coverage(wanted: dict[str, float], held: frozenset[str]) -> float:
    """The weighted share of terms that are held."""
    total = sum(wanted.values())
    return sum(weight for term, weight in wanted.items() if term in held) / total if total else 0.0


def _strengths(passages: Sequence[RetrievedContext]) -> dict[int, float]:
    """Retrieval scores scaled to 0..1 within this search, since they are comparable only there."""
    low = min((p.score for p in passages), default=0.0)
    high = max((p.score for p in passages), default=0.0)
    width = high - low
    return {id(p): (p.score - low) / width if width > 0 else 1.0 for p in passages}
