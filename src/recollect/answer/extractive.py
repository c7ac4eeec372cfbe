"""Answers without a language model: the sentences that answer best, quoted."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from recollect.answer._regions import Region, join_passages
from recollect.answer._units import Unit, quotable_units
from recollect.answer.refusal import RefusalRule, Support
from recollect.errors import UsageError
from recollect.model import Answer, Citation
from recollect.model.answer import REFUSAL, Nearest
from recollect.retrieval.analysis import Analyzer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.embedding.base import EmbeddingProvider
    from recollect.model import RetrievedContext

_IDENTIFIER = re.compile(r"\b(?=\w*[A-Za-z])[A-Za-z]\w*(?:[-_./]\w+)*[-_./]?\d[\w.-]*\b")
_NUMBER = re.compile(r"\d[\d.]*")
_LOOKS_LIKE_MARKER = re.compile(r"\[(\d+)\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionOptions:
    """How sentences are chosen.

    Attributes:
        max_sentences: At most so many quotes, 1 to 10.
        max_passages: Only so many of the best passages are read; each costs the embedding of its sentences.
        coverage_weight: What a sentence gains by holding all of the question's terms.
        passage_weight: What a sentence gains by standing in the best passage.
        keep_within: A further sentence must score at least this share of the best one's score.
        rule: When to refuse.
    """

    max_sentences: int = 3
    max_passages: int = 10
    coverage_weight: float = 0.5
    passage_weight: float = 0.15
    keep_within: float = 0.8
    rule: RefusalRule = field(default_factory=RefusalRule)

    def __post_init__(self) -> None:
        if not 1 <= self.max_sentences <= 10:
            raise UsageError(f"max_sentences must be from 1 to 10, not {self.max_sentences!r}.")
        if self.max_passages < 1:
            raise UsageError(f"max_passages must be at least 1, not {self.max_passages!r}.")


@dataclass(frozen=True, slots=True)
class Evidence:
    """A quotable piece of a region and how well it fits the question.

    Attributes:
        similarity: Cosine similarity of question and piece.
        terms: The piece's terms.
        coverage: Weighted share of the question's terms in it.
        score: What pieces are ordered by.
    """

    region: Region
    unit: Unit
    similarity: float
    terms: frozenset[str]
    coverage: float
    score: float

    @property
    def start_offset(self) -> int:
        """Where the piece begins in its document."""
        return self.region.start_offset + self.unit.start

    @property
    def end_offset(self) -> int:
        """Just behind its last character."""
        return self.region.start_offset + self.unit.end


@dataclass(frozen=True, slots=True)
class Reading:
    """All that was found out about a question and its passages, before the decision to answer.

    Attributes:
        evidence: Every quotable piece, best first.
        chosen: The pieces to quote, in reading order.
        support: What the refusal rule judges; None where there is nothing to quote.
    """

    evidence: tuple[Evidence, ...]
    chosen: tuple[Evidence, ...]
    support: Support | None


def extract_answer(
    question: str,
    passages: Sequence[RetrievedContext],
    *,
    embedder: EmbeddingProvider,
    analyzer: Analyzer | None = None,
    language: str = "en",
    options: ExtractionOptions | None = None,
) -> Answer:
    """Answer a question with sentences of the passages, each with a citation, or refuse.

    Args:
        question: In plain words.
        passages: What a search found, best first.
        embedder: The model that the passages were found with; it also judges single sentences.
        analyzer: Splits texts into search terms; None: one for ``language``.
        language: ISO 639-1 code, for sentence boundaries.
        options: How sentences are chosen and when to refuse; None: the measured defaults.

    Returns:
        An answer whose quotes are exactly the documents' characters; in its text, line breaks become spaces.
        A refusal where no passage, or no passage's sentence, supports an answer; it names what came nearest.

    Raises:
        UsageError: The question is empty.
        ProviderError: The embedder failed.
    """
    options = options or ExtractionOptions()
    reading = read(question, passages, embedder=embedder, analyzer=analyzer, language=language, options=options)
    if reading.support is None or not reading.chosen or options.rule.refuses(reading.support):
        nearest = _nearest(reading, options.rule)
        return Answer(question=question, text=REFUSAL, refused=True, citations=(), nearest=nearest)
    quotes = _joined_quotes(reading.chosen)
    citations = tuple(_citation(marker, *quote) for marker, quote in enumerate(quotes, start=1))
    text = " ".join(f"{_readable(citation.quote)} [{citation.marker}]" for citation in citations)
    return Answer(question=question, text=text, refused=False, citations=citations)


def read(
    question: str,
    passages: Sequence[RetrievedContext],
    *,
    embedder: EmbeddingProvider,
    analyzer: Analyzer | None = None,
    language: str = "en",
    options: ExtractionOptions,
) -> Reading:
    """Score every quotable piece of the passages, choose among them and sum up the support."""
    if not question.strip():
        raise UsageError("The question is empty; ask something, for instance 'How many days of leave do I have?'.")
    used = list(passages[: options.max_passages])
    pieces = [(region, unit) for region in join_passages(used) for unit in _units(region, language)]
    if not pieces:
        return Reading((), (), None)
    piece_texts = [_scoring_text(region, unit) for region, unit in pieces]
    analyzer = analyzer or Analyzer(language)
    piece_terms = [frozenset(analyzer.terms(text)) for text in piece_texts]
    wanted = _weighted_terms(frozenset(analyzer.query_terms(question)), piece_terms)
    similarities = embedder.embed_documents(piece_texts) @ embedder.embed_query(question)
    strengths = _passage_strengths(used)
    evidence: list[Evidence] = []
    for (region, unit), held, similarity in zip(pieces, piece_terms, similarities.tolist(), strict=True):
        coverage = _coverage(wanted, held)
        start, end = region.start_offset + unit.start, region.start_offset + unit.end
        score = similarity + options.coverage_weight * coverage
        score += options.passage_weight * max(strengths[id(p)] for p in region.covering(start, end))
        evidence.append(Evidence(region, unit, similarity, held, coverage, score))
    evidence.sort(key=lambda e: (-e.score, e.region.document_id, e.start_offset))
    chosen = _choose(evidence, options)
    around = "\n".join(f"{passage.title}\n{part.section or ''}" for passage in used for part in passage.parts)
    everywhere = frozenset(analyzer.terms(around)).union(*piece_terms)
    support = Support(
        similarity=max(piece.similarity for piece in evidence),
        coverage=_coverage(wanted, frozenset[str]().union(*(piece.terms for piece in chosen))),
        missing_number=any(_NUMBER.fullmatch(term) and term not in everywhere for term in wanted),
        missing_identifier=_misses_identifier(question, around, used),
        relevance=max((passage.relevance for passage in used if passage.relevance is not None), default=None),
    )
    return Reading(tuple(evidence), tuple(chosen), support)


def _units(region: Region, language: str) -> list[Unit]:
    titles = {title for p in region.passages for part in p.parts for title in (part.section or "").split(" > ")}
    return quotable_units(region.text, language=language, headings=titles)


def _scoring_text(region: Region, unit: Unit) -> str:
    """The piece with what it needs to be understood: a list's opening line, a table's header."""
    text = region.text[unit.start : unit.end]
    section = region.part_at(region.start_offset + unit.start).section or ""
    heading = unit.heading or section.rpartition(" > ")[2]
    return " ".join(part for part in (heading, unit.lead, text) if part)


def _weighted_terms(question_terms: frozenset[str], piece_terms: Sequence[frozenset[str]]) -> dict[str, float]:
    """The question's terms by rarity among the pieces; a term that no piece holds weighs as the rarest."""
    holders = Counter(term for held in piece_terms for term in held & question_terms)
    total = len(piece_terms)
    return {term: math.log(1 + (total + 1) / (holders[term] + 0.5)) for term in sorted(question_terms)}


def _coverage(wanted: dict[str, float], held: frozenset[str]) -> float:
    total = sum(wanted.values())
    return sum(weight for term, weight in wanted.items() if term in held) / total if total else 0.0


def _passage_strengths(passages: Sequence[RetrievedContext]) -> dict[int, float]:
    """Retrieval scores scaled to 0..1 within this search, since they are comparable only there."""
    low = min(p.score for p in passages)
    high = max(p.score for p in passages)
    width = high - low
    return {id(p): (p.score - low) / width if width > 0 else 1.0 for p in passages}


def _choose(evidence: Sequence[Evidence], options: ExtractionOptions) -> list[Evidence]:
    """The best piece, and others nearly as good that add something, in the order in which they are read."""
    chosen: list[Evidence] = []
    floor = options.keep_within * evidence[0].score if evidence[0].score > 0 else math.inf
    for piece in evidence:
        if len(chosen) == options.max_sentences or (chosen and piece.score < floor):
            break
        if not any(_says_the_same(piece, other) for other in chosen):
            chosen.append(piece)
    first_seen = {id(piece.region): index for index, piece in reversed(list(enumerate(chosen)))}
    return sorted(chosen, key=lambda piece: (first_seen[id(piece.region)], piece.start_offset))


def _says_the_same(piece: Evidence, other: Evidence) -> bool:
    if piece.region.document_id == other.region.document_id and (
        piece.start_offset < other.end_offset and other.start_offset < piece.end_offset
    ):
        return True
    smaller = min(len(piece.terms), len(other.terms))
    return smaller > 0 and len(piece.terms & other.terms) / len(piece.terms | other.terms) >= 0.8


def _misses_identifier(question: str, around: str, passages: Sequence[RetrievedContext]) -> bool:
    identifiers = {match.group().casefold() for match in _IDENTIFIER.finditer(question)}
    if not identifiers:
        return False
    everything = "\n".join([around, *(passage.content for passage in passages)]).casefold()
    return any(identifier not in everything for identifier in identifiers)


def _joined_quotes(chosen: Sequence[Evidence]) -> list[tuple[Region, int, int]]:
    """Spans of the regions' texts to quote; sentences that follow on from one another become one quote."""
    quotes: list[tuple[Region, int, int]] = []
    for piece in chosen:
        start, end = piece.unit.quote_start, piece.unit.end
        if quotes and quotes[-1][0] is piece.region and not piece.region.text[quotes[-1][2] : start].strip():
            region, begin, so_far = quotes[-1]
            quotes[-1] = (region, begin, max(so_far, end))
        else:
            quotes.append((piece.region, start, end))
    return quotes


def _nearest(reading: Reading, rule: RefusalRule) -> Nearest | None:
    if reading.support is None or not reading.evidence:
        return None
    best = reading.evidence[0]
    return Nearest(
        evidence=_citation(0, best.region, best.unit.quote_start, best.unit.end),
        probability=rule.probability(reading.support),
        threshold=rule.threshold,
        missing_identifier=rule.require_identifiers and reading.support.missing_identifier,
    )


def _citation(marker: int, region: Region, start: int, end: int) -> Citation:
    begin, stop = region.start_offset + start, region.start_offset + end
    passage, part = region.passage_at(begin), region.part_at(begin)
    return Citation(
        marker=marker,
        document_id=region.document_id,
        source=passage.source,
        section=part.section,
        page=part.page,
        last_page=region.part_at(stop - 1).page,
        start_offset=begin,
        end_offset=stop,
        quote=region.text[start:end],
        department=passage.department,
        notes=passage.notes,
    )


def _readable(quote: str) -> str:
    """The quote on one line; numbers in brackets, which would pass for markers, in parentheses."""
    return _LOOKS_LIKE_MARKER.sub(r"(\1)", " ".join(quote.split()))
