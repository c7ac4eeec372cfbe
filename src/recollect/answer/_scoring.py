"""Every quotable piece of the passages, and how well it fits a question."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recollect.answer._kinds import holds_kind
from recollect.answer._question import Asked, in_range, tells_of_past
from recollect.answer._question_names import missing_names
from recollect.answer._regions import Region, join_passages
from recollect.answer._units import Unit, quotable_units

if TYPE_CHECKING:
    from recollect.embedding.base import EmbeddingProvider
    from recollect.model import RetrievedContext
    from recollect.retrieval.analysis import Analyzer


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
    """

    coverage: float = 0.25
    context: float = 0.3
    passage: float = 0.15
    kind: float = 0.2
    in_range: float = 0.2
    missing_name: float = 0.2
    past: float = 0.2


@dataclass(frozen=True, slots=True)
class Evidence:
    """A quotable piece of a region and how well it fits the question.

    Attributes:
        similarity: Cosine similarity of question and piece.
        terms: The piece's terms, with those of its heading and of the line that introduces it.
        coverage: Weighted share of the question's terms among them.
        context: Its terms with those of its section and of its document's title and path.
        missing_names: The names of the question that neither it nor its section holds.
        fits: Whether it may hold the kind of answer that the question expects.
        past: Whether it tells what held before.
        score: What pieces are ordered by.
    """

    region: Region
    unit: Unit
    similarity: float
    terms: frozenset[str]
    context: frozenset[str]
    coverage: float
    missing_names: frozenset[frozenset[str]]
    fits: bool
    past: bool
    score: float

    @property
    def start_offset(self) -> int:
        """Where the piece begins in its document."""
        return self.region.start_offset + self.unit.start

    @property
    def end_offset(self) -> int:
        """Just behind its last character."""
        return self.region.start_offset + self.unit.end

    @property
    def section(self) -> str | None:
        """The titles of the headings that it stands under."""
        return self.region.part_at(self.start_offset).section

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
) -> list[Evidence]:
    """The quotable pieces of the passages, best first."""
    pieces = [(region, unit) for region in join_passages(passages) for unit in _units(region, language)]
    if not pieces:
        return []
    texts = [_scoring_text(region, unit) for region, unit in pieces]
    terms = [frozenset(analyzer.terms(text)) for text in texts]
    wanted = weighted_terms(asked.terms, terms)
    similarities = (embedder.embed_documents(texts) @ embedder.embed_query(asked.text)).tolist()
    strengths = _strengths(passages)
    surroundings = _Surroundings(pieces, analyzer)
    found: list[Evidence] = []
    for (region, unit), text, held, similarity in zip(pieces, texts, terms, similarities, strict=True):
        around = surroundings.of(region, unit)
        covered, context = coverage(wanted, held), held | around.terms
        missing = frozenset(missing_names(asked.names, f"{text}\n{around.text}") if asked.names else ())
        fits = holds_kind(asked.kind, text, asked.text, in_table=unit.kind != "sentence")
        past = around.old or tells_of_past(text)
        score = (
            similarity
            + weights.coverage * covered
            + weights.context * coverage(wanted, context)
            + weights.passage * max(strengths[id(passage)] for passage in around.passages)
            + weights.kind * fits
            + weights.in_range * (in_range(asked.amount, text) if unit.kind != "sentence" else 0)
            - weights.missing_name * bool(missing)
            + weights.past * past * (1 if asked.past else -1)
        )
        found.append(Evidence(region, unit, similarity, held, context, covered, missing, fits, past, score))
    return sorted(found, key=lambda e: (-e.score, e.region.document_id, e.start_offset))


@dataclass(frozen=True, slots=True)
class _Around:
    """What a piece stands in: its passages, the words of its section and title, whether that is an older edition."""

    passages: Sequence[RetrievedContext]
    text: str
    terms: frozenset[str]
    old: bool


class _Surroundings:
    """Looks up what pieces stand in; pieces of one section share it."""

    def __init__(self, pieces: Sequence[tuple[Region, Unit]], analyzer: Analyzer) -> None:
        self._analyzer = analyzer
        self._sentences: dict[tuple[int, str | None], list[str]] = {}
        for region, unit in pieces:
            if unit.kind == "sentence":
                key = (id(region), region.part_at(region.start_offset + unit.start).section)
                self._sentences.setdefault(key, []).append(region.text[unit.start : unit.end])
        self._terms: dict[str, frozenset[str]] = {}

    def of(self, region: Region, unit: Unit) -> _Around:
        """For names, a sentence counts with those of its section; a row or an item stands beside others like it."""
        at = region.start_offset + unit.start
        passages = region.covering(at, region.start_offset + unit.end)
        section = region.part_at(at).section
        titles = f"{section or ''}\n{passages[0].title}\n{passages[0].source}"
        if titles not in self._terms:
            self._terms[titles] = frozenset(self._analyzer.terms(titles))
        beside = self._sentences.get((id(region), section), []) if unit.kind == "sentence" else []
        return _Around(
            passages,
            "\n".join([titles, *beside]),
            self._terms[titles],
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


def _units(region: Region, language: str) -> list[Unit]:
    titles = {title for p in region.passages for part in p.parts for title in (part.section or "").split(" > ")}
    return quotable_units(region.text, language=language, headings=titles)


def _scoring_text(region: Region, unit: Unit) -> str:
    """The piece with what it needs to be understood: the sentence before, a list's opening line, a table's header."""
    text = region.text[unit.quote_start : unit.end]
    section = region.part_at(region.start_offset + unit.start).section or ""
    heading = unit.heading or section.rpartition(" > ")[2]
    return " ".join(part for part in (heading, unit.lead, text) if part)


def _strengths(passages: Sequence[RetrievedContext]) -> dict[int, float]:
    """Retrieval scores scaled to 0..1 within this search, since they are comparable only there."""
    low = min(p.score for p in passages)
    high = max(p.score for p in passages)
    width = high - low
    return {id(p): (p.score - low) / width if width > 0 else 1.0 for p in passages}
