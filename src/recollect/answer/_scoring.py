"""Every quotable piece of the passages, and how well it fits a question.

Few features, because more of them did not carry over to documents that they were not chosen on: names, kinds of
answers, amounts and years, measured one by one, found 2 of 160 answers more (``benchmarks/families.py``).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache

from recollect.answer._regions import Region, join_passages
from recollect.answer._units import Unit, following, quotable_units
from recollect.answer.reader import Reader, Reading
from recollect.chunking.blocks import CODE_MARK
from recollect.embedding.base import EmbeddingProvider
from recollect.languages import language_of_part
from recollect.model import RetrievedContext
from recollect.retrieval.analysis import Analyzer

# Of more pieces, those that fit least so far are not embedded, which is what takes time: by their words alone, or by
# what the reader says of the passages too. Those that are left it reads once more, each alone, so much of each.
_MOST_EMBEDDED, _MOST_EMBEDDED_OF_READ = 32, 12
_READ_ALONE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """How well a piece fits a question, by what can be known of it; or the weights of that.

    Attributes:
        similarity: Cosine similarity of question and piece; 0 where the model does not know the language.
        context: The weighted share of the question's terms that stand in it, in its section or in its document's title.
        passage: How well the search found its passage, 0 to 1.
        label: 1 where it introduces a command, list or table.
        begins: The logarithm of the probability that the answer begins in it.
        alone: The log-odds that it answers, read alone.
    """

    similarity: float = 0.0
    context: float = 0.0
    passage: float = 0.0
    label: float = 0.0
    begins: float = 0.0
    alone: float = 0.0


FEATURES = tuple(one.name for one in fields(Fit))
#: The weights where the reader is asked (fitted by ``benchmarks/answer_rule.py``), where it is not, and where words
#: decide alone. A piece that is better than another by 1 weighs e times as much.
READ = Fit(similarity=1.85, context=0.6, passage=2.1, label=1.35, begins=0.8, alone=0.35)
UNREAD = Fit(similarity=4.0, context=2.0, passage=1.8, label=1.0)
_BY_WORDS = Fit(context=4.0, passage=1.8, label=1.0)
# What a passage gains by how well the search found it, beside the log-odds that it answers.
_FOUND = 2.5
#: How much better than others a piece or a passage must be where a newer document or version is known.
OLD = 2.8
# A longer line before a list, or head of a table, counts for the choice and is not shown.
_LONGEST_LEAD = 240
# The logarithm counts as this at least, and as this for a piece that the reader did not come to; log-odds count as
# so much at most, either way.
_LEAST_READ, _UNREAD, _MOST_ODDS = -10.0, -2.0, 6.0


@dataclass(frozen=True, slots=True)
class Evidence:
    """A quotable piece of a region and how well it fits the question.

    Attributes:
        text: What it is judged by: the piece with its heading and the line that introduces it.
        terms: The terms of that.
        context: Its terms with those of its section and of its document's title and path.
        by_meaning: Whether the model knows its language, so that similarity counts.
        fit: How well it fits the question.
        weights: Of that.
        old: Whether a newer document or version is known: then those nearly as good come before it.
    """

    region: Region
    unit: Unit
    text: str
    terms: frozenset[str]
    context: frozenset[str]
    by_meaning: bool
    fit: Fit = Fit()
    weights: Fit = UNREAD
    old: bool = False

    @property
    def score(self) -> float:
        """How well it fits, together."""
        return float(sum(getattr(self.fit, name) * getattr(self.weights, name) for name in FEATURES))

    @property
    def order(self) -> float:
        """What pieces are ordered by."""
        return self.score - OLD * self.old

    @property
    def told(self) -> str:
        """Itself with what it labels."""
        return self.region.text[self.unit.quote_start : following(self.region.text, self.unit)]

    @property
    def statement(self) -> str:
        """What is read of it alone: that, behind the line that introduces it."""
        return f"{self.unit.lead} {self.told}".strip()

    @property
    def headings(self) -> str:
        """The title of its document and the headings that it stands under."""
        title = self.region.passage_at(self.start_offset).title
        section = self.region.part_at(self.start_offset).section or ""
        return section if title in section else f"{title} > {section}" if section else title

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
        if not CODE_MARK.sub("", self.region.text[unit.lead_end : unit.quote_start]).strip():
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
    scaled: Callable[[float], float],
    reader: Reader | None,
) -> tuple[list[Evidence], list[RetrievedContext]]:
    """The quotable pieces of the passages, best first by how well each fits the question, and the passages.

    Of many pieces, those that were not looked at closely come last. Passages that most likely answer come first. The
    similarity to the question is 0 in a language that is not judged ``by_meaning``, because the model does not know
    it, and is ``scaled`` in others to where the weights expect it. The ``reader`` knows English only.
    """
    asked = frozenset(analyzer.query_terms(question))
    # Headings and the heads of tables stand before many pieces.
    terms = cache(lambda text: frozenset(analyzer.terms(text)))
    strengths = _strengths(passages)
    pieces = [piece for region in join_passages(passages) for piece in _pieces(region, terms, language, by_meaning)]
    # What says nothing that the question does not, answers nothing.
    pieces = [piece for piece in pieces if not piece.terms <= asked] or pieces
    wanted = weighted_terms(asked, [piece.terms for piece in pieces])
    headings = [passage.parts[0].section or "" for passage in passages]
    readings = reader.read(question, [passage.content for passage in passages], headings) if reader else []
    read = {id(passage): reading for passage, reading in zip(passages, readings, strict=False)}
    found = sorted((_judged(piece, wanted, strengths, read) for piece in pieces), key=_rank)
    most = _MOST_EMBEDDED if reader is None else _MOST_EMBEDDED_OF_READ
    chosen = [one for one in found[:most] if one.by_meaning]
    if chosen:
        similarities = embedder.embed_documents([one.text for one in chosen]) @ embedder.embed_query(question)
        alone = [0.0] * len(chosen)
        if reader:
            # Without what stands around them: that tells pieces of one passage apart.
            texts = [one.statement[:_READ_ALONE] for one in chosen]
            alone = list(map(_log_odds, reader.read(question, texts, [one.headings for one in chosen])))
        closely = [
            replace(one, fit=replace(one.fit, similarity=scaled(similarity), alone=odds))
            for one, similarity, odds in zip(chosen, similarities, alone, strict=True)
        ]
        others = (one for one in found[:most] if not one.by_meaning)
        found = [*sorted([*closely, *others], key=_rank), *found[most:]]

    def promise(passage: RetrievedContext) -> float:
        reading = read.get(id(passage))
        known = 0.0 if reading is None else _FOUND * strengths[id(passage)] + _log_odds(reading)
        return known - OLD * _is_old(passage)

    return found, sorted(passages, key=promise, reverse=True)


def _log_odds(reading: Reading) -> float:
    return max(-_MOST_ODDS, min(_MOST_ODDS, reading.log_odds))


def _begins(piece: Evidence, read: Mapping[int, Reading]) -> float:
    """How likely the answer begins in a piece, as a logarithm."""
    start, end = piece.start_offset, piece.end_offset
    within = max(
        read[id(one)].begins_within(start - one.start_offset, end - one.start_offset)
        for one in piece.region.covering(start, end)
    )
    return _UNREAD if within == -math.inf else max(_LEAST_READ, within)


def _rank(evidence: Evidence) -> tuple[float, int, int]:
    return -evidence.order, evidence.region.document_id, evidence.start_offset


def _pieces(
    region: Region, terms: Callable[[str], frozenset[str]], language: str, by_meaning: Callable[[str], bool]
) -> Iterator[Evidence]:
    language = language_of_part(region.text, language)
    own_parts = [part for passage in region.passages for part in passage.parts]
    titles = {title for part in own_parts for title in (part.section or "").split(" > ")}
    for unit in quotable_units(region.text, language=language, headings=titles):
        at = region.start_offset + unit.start
        passage, section = region.passage_at(at), region.part_at(at).section
        heading = unit.heading or (section or "").rpartition(" > ")[2]
        parts = [part for part in (heading, unit.lead, region.text[unit.quote_start : unit.end]) if part]
        own = frozenset[str]().union(*map(terms, parts))
        around = terms(f"{section or ''}\n{passage.title}\n{passage.source}")
        yield Evidence(region, unit, " ".join(parts), own, own | around, by_meaning(language))


def _judged(
    piece: Evidence, wanted: dict[str, float], strengths: dict[int, float], read: Mapping[int, Reading]
) -> Evidence:
    """All that is known of a piece before it is looked at closely."""
    passages = piece.region.covering(piece.start_offset, piece.end_offset)
    fit = Fit(
        context=coverage(wanted, piece.context),
        passage=max(strengths[id(passage)] for passage in passages),
        label=following(piece.region.text, piece.unit) > piece.unit.end,
    )
    weights = UNREAD if piece.by_meaning else _BY_WORDS
    if read and piece.by_meaning:
        fit, weights = replace(fit, begins=_begins(piece, read), alone=-_MOST_ODDS), READ
    return replace(piece, fit=fit, weights=weights, old=any(map(_is_old, passages)))


def _is_old(passage: RetrievedContext) -> bool:
    return any(note.kind in {"newer_document", "superseded"} for note in passage.notes)


def weighted_terms(question_terms: frozenset[str], piece_terms: Sequence[frozenset[str]]) -> dict[str, float]:
    """The question's terms by rarity among the pieces; a term that no piece holds weighs as the rarest."""
    holders = Counter(term for held in piece_terms for term in held & question_terms)
    return {term: math.log(1 + (len(piece_terms) + 1) / (holders[term] + 0.5)) for term in sorted(question_terms)}


def coverage(wanted: dict[str, float], held: frozenset[str]) -> float:
    """The weighted share of terms that are held."""
    total = sum(wanted.values())
    return sum(weight for term, weight in wanted.items() if term in held) / total if total else 0.0


def _strengths(passages: Sequence[RetrievedContext]) -> dict[int, float]:
    """Retrieval scores scaled to 0..1 within this search, since they are comparable only there."""
    scores = [passage.score for passage in passages] or [0.0]
    low, width = min(scores), max(scores) - min(scores)
    return {id(passage): (passage.score - low) / width if width > 0 else 1.0 for passage in passages}
