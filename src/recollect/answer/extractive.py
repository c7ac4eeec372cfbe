"""Answers without a language model: the sentences that answer best, quoted."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from recollect.answer._kinds import lacks_price
from recollect.answer._language import language_of_passages
from recollect.answer._question import Asked, in_range, is_code, understand, words_of
from recollect.answer._scoring import Evidence, Region, Weights, coverage, gather, weighted_terms
from recollect.answer.absence import without_answer
from recollect.answer.passages import helpful_passages
from recollect.answer.refusal import RefusalRule, Support
from recollect.errors import UsageError
from recollect.languages import AUTO, language_of_text
from recollect.model import Answer, Citation, RetrievedContext
from recollect.model.answer import Nearest, ShownPassage
from recollect.retrieval.analysis import Analyzer, analyzer_of
from recollect.retrieval.relevance import as_the_default, tells_meaning

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from recollect.embedding.base import EmbeddingProvider
    from recollect.model.passage import Wording

_IDENTIFIER = re.compile(r"\b(?=\w*[A-Za-z])[A-Za-z]\w*(?:[-_./]\w+)*[-_./]?\d[\w.-]*\b")
_NUMBER = re.compile(r"\d[\d.]*")
# What a newer edition must reach of the older one's score, and share of its terms, to stand in its place.
_NEARLY = 0.65
_SAME_SUBJECT = 0.5
# A longer line before a list, or head of a table, counts for the choice and is not shown.
_LONGEST_LEAD = 240
# How Markdown and mail mark the lines of a quotation.
_QUOTED_LINE = re.compile(r"\n[ \t]*(?:>[ \t]*)+")
_LOOKS_LIKE_MARKER = re.compile(r"\[(\d+)\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionOptions:
    """How sentences are chosen.

    Attributes:
        max_sentences: At most so many quotes, 1 to 10; the line that introduces a list's item and the head of a
            table's row count.
        max_passages: Only so many of the best passages are read; each costs the embedding of its sentences.
        weights: What a sentence gains and loses beside its similarity.
        keep_within: A further sentence must score at least this share of the best one's score.
        section_within: And this share where both stand under a heading that names the identifier asked for.
        rule: When to refuse.
    """

    max_sentences: int = 3
    max_passages: int = 10
    weights: Weights = field(default_factory=Weights)
    keep_within: float = 0.9
    section_within: float = 0.75
    rule: RefusalRule = field(default_factory=RefusalRule)

    def __post_init__(self) -> None:
        if not 1 <= self.max_sentences <= 10:
            raise UsageError(f"max_sentences must be from 1 to 10, not {self.max_sentences!r}.")
        if self.max_passages < 1:
            raise UsageError(f"max_passages must be at least 1, not {self.max_passages!r}.")


@dataclass(frozen=True, slots=True)
class Reading:
    """All that was found out about a question and its passages, before the decision to answer.

    Attributes:
        evidence: Every quotable piece, best first.
        chosen: The pieces to quote, in reading order.
        support: What the refusal rule judges; None where there is nothing to quote.
        language: ISO 639-1 code of the passages.
        told: The figure asked for with its names, where the first of the chosen is a row with a column of the one year
            asked for.
    """

    evidence: tuple[Evidence, ...]
    chosen: tuple[Evidence, ...]
    support: Support | None
    language: str = "en"
    told: str | None = None


def extract_answer(
    question: str,
    passages: Sequence[RetrievedContext],
    *,
    embedder: EmbeddingProvider,
    analyzer: Analyzer | None = None,
    language: str = "en",
    options: ExtractionOptions | None = None,
    wordings: Sequence[Wording] = (),
) -> Answer:
    """Answer a question with sentences of the passages, each with a citation, or show the passages that may help.

    Args:
        question: In plain words.
        passages: What a search found, best first.
        embedder: The model that the passages were found with; it also judges single sentences.
        analyzer: Splits texts into search terms; None: one for ``language``.
        language: ISO 639-1 code, for sentence boundaries.
        options: How sentences are chosen and when to refuse; None: the measured defaults.
        wordings: What the search knows texts to say in place of words of the question (`SearchReply.wordings`).

    Returns:
        An answer whose quotes are exactly the documents' characters; in its text, line breaks become spaces, and of a
        table's row with a column of the year asked for, the figure stands there with the names of column and row.
        Where no sentence supports an answer, the passages that may help, under a sentence in the question's language;
        none where nothing is relevant. It names what came nearest.

    Raises:
        UsageError: The question is empty.
        ProviderError: The embedder failed.
    """
    options = options or ExtractionOptions()
    reading = read(
        question,
        passages,
        embedder=embedder,
        analyzer=analyzer,
        language=language,
        options=options,
        wordings=wordings,
    )
    if reading.support is None or not reading.chosen or options.rule.refuses(reading.support):
        return without_answer(
            question,
            helpful(reading, passages, options),
            language=language_of_passages(language, passages) if passages else AUTO,
            nearest=_nearest(reading, options.rule),
        )
    quotes = _quotes(reading.chosen, options.max_sentences)
    citations = tuple(_citation(marker, *quote) for marker, quote in enumerate(quotes, start=1))
    text = _text(reading, quotes, citations)
    return Answer(question=question, text=text, outcome="answer", citations=citations)


def helpful(
    reading: Reading, passages: Sequence[RetrievedContext], options: ExtractionOptions
) -> tuple[ShownPassage, ...]:
    """The passages that may help; none where even the most relevant one is not relevant."""
    relevance = reading.support.relevance if reading.support else None
    if relevance is not None and relevance < options.rule.min_relevance:
        return ()
    used = passages[: options.max_passages]
    return helpful_passages(reading.evidence, used, language=reading.language)


def read(
    question: str,
    passages: Sequence[RetrievedContext],
    *,
    embedder: EmbeddingProvider,
    analyzer: Analyzer | None = None,
    language: str = "en",
    options: ExtractionOptions,
    wordings: Sequence[Wording] = (),
) -> Reading:
    """Score every quotable piece of the passages, choose among them and sum up the support."""
    if not question.strip():
        raise UsageError("The question is empty; ask something, for instance 'How many days of leave do I have?'.")
    used = list(passages[: options.max_passages])
    language = language_of_passages(language, used, question)
    analyzer = analyzer or analyzer_of(language)
    asked = understand(question, analyzer, language, wordings)
    # A question in another language is less near to what answers it and shares no words: it is judged less strictly.
    crossing = language_of_text(question, expected=language) != language
    evidence = gather(
        asked,
        used,
        embedder=embedder,
        analyzer=analyzer,
        language=language,
        weights=options.weights,
        by_meaning=partial(tells_meaning, embedder.model_name),
        scaled=float if crossing else as_the_default(embedder.model_name),
    )
    if not evidence:
        return Reading((), (), None, language)
    wanted = weighted_terms(asked.terms, [piece.terms for piece in evidence])
    chosen = _choose(asked, evidence, options)
    support = _support(asked, used, evidence, chosen, wanted, analyzer)
    if not chosen[0].by_meaning:
        support = replace(support, words=chosen[0].score)
    return Reading(tuple(evidence), tuple(chosen), support, language, _told(asked, chosen[0]))


def _told(asked: Asked, best: Evidence) -> str | None:
    """The cell of the one year asked for: "Years ended December 31 (Millions), 2018 - Capital spending: (1,577)"."""
    if best.row is None or len(asked.years) != 1:
        return None
    at = best.row.column(*asked.years)
    if at is None:
        return None
    names = ", ".join(name for name in (best.row.header[0], best.row.header[at]) if name)
    return f"{names} - {best.row.cells[0]}: {best.row.cells[at]}"


def _text(reading: Reading, quotes: Sequence[tuple[Region, int, int]], citations: Sequence[Citation]) -> str:
    """The quotes, each with its marker; a cell that is told stands in place of its row and its table's head."""
    best = reading.chosen[0]
    row = (best.region, best.unit.quote_start, best.unit.end)
    head = (best.region, best.unit.lead_start, best.unit.lead_end)
    pieces, markers = [], ""
    for quote, citation in zip(quotes, citations, strict=True):
        if reading.told is not None and row in quotes and quote == head:
            markers = f"[{citation.marker}] "
        elif reading.told is not None and quote == row:
            pieces.append(f"{_readable(reading.told)} {markers}[{citation.marker}]")
        else:
            pieces.append(f"{_readable(citation.quote)} [{citation.marker}]")
    return " ".join(pieces)


def _support(
    asked: Asked,
    passages: Sequence[RetrievedContext],
    evidence: Sequence[Evidence],
    chosen: Sequence[Evidence],
    wanted: dict[str, float],
    analyzer: Analyzer,
) -> Support:
    best = chosen[0]
    unknown = best.missing_names.intersection(*(piece.missing_names for piece in evidence))
    around = "\n".join(f"{passage.title}\n{part.section or ''}" for passage in passages for part in passage.parts)
    everywhere = frozenset(analyzer.terms(around)).union(*(piece.terms for piece in evidence))
    needs = asked.wordings.needed
    # A row whose range holds the question's sum need not name it.
    in_a_range = asked.amount is not None and in_range(asked.amount, best.quote) > 0
    return Support(
        similarity=max(piece.similarity for piece in evidence),
        coverage=coverage(wanted, frozenset[str]().union(*(piece.terms for piece in chosen))),
        score=best.score,
        missing_number=not in_a_range and any(_NUMBER.fullmatch(term) and term not in everywhere for term in wanted),
        another_year=best.another_year,
        missing_identifier=_misses_identifier(best.held.reworded(asked.text), around, passages),
        missing_needed=needs and (best.held.missing > 0 or bool(best.missing_names)),
        missing_name=_share_of_names(asked, best.missing_names - unknown),
        unknown_name=_share_of_names(asked, [name for name in unknown if not name & asked.unnamed]),
        missing_attribute=_missing_attribute(asked, best),
        wrong_kind=not best.fits,
        asks_what_was_said=asked.said,
        relevance=max((passage.relevance for passage in passages if passage.relevance is not None), default=None),
    )


def _missing_attribute(asked: Asked, best: Evidence) -> float:
    """The share of the words for what is asked that are missing; the noun counts twice. Of a price: the money."""
    if not best.fits and lacks_price(asked.text, best.quote):
        return 1.0
    words = [*asked.attribute, *asked.attribute[-1:]]
    return sum(word not in best.context for word in words) / max(1, len(words))


def _share_of_names(asked: Asked, missing: Collection[frozenset[str]]) -> float:
    return len(missing) / len(asked.names) if asked.names else 0.0


def _choose(asked: Asked, evidence: Sequence[Evidence], options: ExtractionOptions) -> list[Evidence]:
    """The best piece first, and those that belong to it or add what the question asks for."""
    best = _newest(asked, evidence)
    chosen = [best]
    if best.score <= 0:
        return chosen
    for piece in evidence:
        if len(chosen) == options.max_sentences or piece.score < options.section_within * best.score:
            break
        near = piece.score >= options.keep_within * best.score or _stands_under_the_code(asked, piece, best)
        if not near or any(_says_the_same(piece, other) for other in chosen) or _is_out_of_place(asked, piece, best):
            continue
        chosen.append(piece)
    return chosen


def _stands_under_the_code(asked: Asked, piece: Evidence, best: Evidence) -> bool:
    """Whether both stand under one heading with an identifier of the question: "ERR-4012 Session limit reached"."""
    if piece.region is not best.region or piece.section != best.section:
        return False
    heading = words_of((best.section or "").rpartition(" > ")[2])
    return any(is_code(word) and name <= heading for name in asked.names for word in name)


def _newest(asked: Asked, evidence: Sequence[Evidence]) -> Evidence:
    """The best piece; or, where that tells what held before, one nearly as good on the same that does not."""
    best = evidence[0]
    if asked.past or not best.past:
        return best
    newer = (
        piece
        for piece in evidence
        if not piece.past and piece.score >= _NEARLY * best.score and _shared_terms(piece, best) >= _SAME_SUBJECT
    )
    return next(newer, best)


def _shared_terms(piece: Evidence, other: Evidence) -> float:
    smaller = min(len(piece.terms), len(other.terms))
    return len(piece.terms & other.terms) / smaller if smaller else 0.0


def _is_out_of_place(asked: Asked, piece: Evidence, best: Evidence) -> bool:
    """Whether a piece cannot stand beside the best one: not about what is asked, or of the past where it is not."""
    return (
        not piece.missing_names <= best.missing_names
        or (best.fits and not piece.fits)
        or (piece.past and not asked.past)
        or piece.held.missing > best.held.missing
    )


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


def _quotes(chosen: Sequence[Evidence], most: int) -> list[tuple[Region, int, int]]:
    """Spans of the regions' texts to quote, in reading order, the best piece's region first.

    What introduces a piece stands before it, where there is room for one quote more. Spans that follow on from one
    another become one.
    """
    spans = [(piece.region, piece.unit.quote_start, piece.unit.end) for piece in chosen]
    for piece in chosen:
        lead = (piece.region, piece.unit.lead_start, piece.unit.lead_end)
        if (
            len(spans) < most
            and 0 < lead[2] - lead[1] <= _LONGEST_LEAD
            and not any(_overlap(lead, one) for one in spans)
        ):
            spans.append(lead)
    order = {id(piece.region): index for index, piece in reversed(list(enumerate(chosen)))}
    spans.sort(key=lambda span: (order[id(span[0])], span[1]))
    quotes: list[tuple[Region, int, int]] = []
    for region, start, end in spans:
        if quotes and quotes[-1][0] is region and not region.text[quotes[-1][2] : start].strip():
            quotes[-1] = (region, quotes[-1][1], max(quotes[-1][2], end))
        else:
            quotes.append((region, start, end))
    return quotes


def _overlap(one: tuple[Region, int, int], other: tuple[Region, int, int]) -> bool:
    return one[0] is other[0] and one[1] < other[2] and other[1] < one[2]


def _nearest(reading: Reading, rule: RefusalRule) -> Nearest | None:
    if reading.support is None or not reading.evidence:
        return None
    best = reading.evidence[0]
    return Nearest(
        evidence=_citation(0, best.region, best.unit.quote_start, best.unit.end),
        probability=rule.probability(reading.support),
        threshold=rule.threshold,
        missing_identifier=rule.lacks_what_is_needed(reading.support),
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
        boxes=region.boxes(begin, stop),
        start_offset=begin,
        end_offset=stop,
        quote=region.text[start:end],
        department=passage.department,
        notes=passage.notes,
        collection=passage.collection,
        server=passage.server,
        id=passage.id,
    )


def _readable(quote: str) -> str:
    """The quote on one line, its lines unmarked; numbers in brackets, which would pass for markers, in parentheses."""
    return _LOOKS_LIKE_MARKER.sub(r"(\1)", " ".join(_QUOTED_LINE.sub("\n", quote).split()))
