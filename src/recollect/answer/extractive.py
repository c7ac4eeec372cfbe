"""Answers without a language model: the sentences that answer best, quoted."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from textwrap import dedent

from recollect.answer._scoring import READ, Evidence, gather
from recollect.answer.absence import without_answer
from recollect.answer.passages import helpful_passages
from recollect.answer.reader import Reader
from recollect.answer.refusal import RefusalRule, Support
from recollect.chunking.blocks import CODE_MARK, Block, code_in
from recollect.embedding.base import EmbeddingProvider
from recollect.errors import UsageError
from recollect.languages import AUTO, language_of_text
from recollect.languages.detection import plain_digits
from recollect.model import Answer, RetrievedContext
from recollect.model.answer import Citation, Nearest, ShownPassage
from recollect.retrieval.analysis import analyzer_of
from recollect.retrieval.relevance import as_the_default, tells_meaning

# A word with those that are tied to it. No part can be read in two ways, so that no question takes long.
_TIED = re.compile(r"\w+(?:[-./:]\w+)*")
_WORD = re.compile(r"\w+")
_DIGIT = re.compile(r"\d")
_THOUSANDS = re.compile(r"(?<=\d)[,.'’\u00a0\u202f](?=\d{3}(?!\d))")
# So much is read to know the language of passages.
_READ_PASSAGES = 6
_READ_OF_PASSAGE = 800
#: How much better right answers are than the next piece, on average: it counts for a piece that has no rival.
USUAL_MARGIN = 1.2
# English question words, and how a question begins that follows another one.
_ASKS = re.compile(r"\b(?:who|whom|whose|what|which|when|where|why|how)\b", re.IGNORECASE)
_ASKS_MORE = re.compile(
    rf"\W*(?:(?:\w+\W+){{0,2}}?{_ASKS.pattern}|(?:is|are|was|were|do|does|did|can|could|may|must|should|will|would|has|have)\b)",
    re.IGNORECASE,
)
# Each takes as long to read as the whole text.
_MOST_QUESTIONS = 3
_JOINT = re.compile(r"(\band\b|\bor\b|[?;])", re.IGNORECASE)
# How Markdown and mail mark the lines of a quotation.
_QUOTED_LINE = re.compile(r"\n[ \t]*(?:>[ \t]*)+")
_LOOKS_LIKE_MARKER = re.compile(r"\[(\d+)\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionOptions:
    """How sentences are chosen.

    Attributes:
        max_passages: Only so many of the best passages are read; each costs the embedding of its sentences.
        rule: When the evidence is too thin to answer.
        reader: Finds the span that answers, in English; None: words and similarity decide alone.
    """

    max_passages: int = 10
    rule: RefusalRule = field(default_factory=RefusalRule)
    reader: Reader | None = None

    def __post_init__(self) -> None:
        if self.max_passages < 1:
            raise UsageError(f"max_passages must be at least 1, not {self.max_passages!r}.")


@dataclass(frozen=True, slots=True)
class Reading:
    """All that was found out about a question and its passages, before the decision to answer.

    Attributes:
        evidence: Every quotable piece, best first.
        support: What the refusal rule judges; None where there is nothing to quote.
        passages: Those that most likely answer first.
        language: ISO 639-1 code of the passages.
        parts: The same of each question where it asks several.
    """

    evidence: Sequence[Evidence]
    support: Support | None
    passages: Sequence[RetrievedContext]
    language: str
    parts: Sequence[Reading] = ()

    def probability(self, rule: RefusalRule) -> float:
        """How likely the evidence answers the question, 0 to 1: of several the geometric mean."""
        if self.parts:
            return math.prod(one.probability(rule) for one in self.parts) ** (1 / len(self.parts))
        return rule.probability(self.support) if self.support else 0.0

    @property
    def best(self) -> list[Evidence]:
        """What answers: for each question the piece that fits best."""
        return [one.evidence[0] for one in self.parts or (self,)]

    def quotes(self) -> list[tuple[Citation, bool]]:
        """What is quoted, each with whether it is code; what lies within another quote is not repeated."""
        cited = [
            (piece.region.citation(0, *span), piece.unit.kind == "code" and span[0] == piece.unit.start)
            for piece in self.best
            for span in piece.quotes
        ]
        found = {_place(one): (one, is_code) for one, is_code in cited}
        kept = [one for at, one in found.items() if not any(at != other and _within(at, other) for other in found)]
        return [(replace(one, marker=marker), is_code) for marker, (one, is_code) in enumerate(kept, start=1)]


def extract_answer(
    question: str,
    passages: Sequence[RetrievedContext],
    *,
    embedder: EmbeddingProvider,
    language: str = "en",
    options: ExtractionOptions | None = None,
) -> Answer:
    """Answer a question with sentences of the passages, each with a citation, or show the passages that may help.

    Args:
        question: In plain words.
        passages: What a search found, best first.
        embedder: The model that the passages were found with; it also judges single sentences.
        language: ISO 639-1 code, for sentence boundaries.
        options: How sentences are chosen and when to refuse; None: the measured defaults.

    Returns:
        An answer whose quotes are exactly the documents' characters: the piece that fits best, with the line that
        introduces it, and what follows it where it is a label; of an English text that asks several questions one for
        each. Its text is Markdown, in which line breaks outside code become spaces. With it come what stands around
        the quotes, and passages that may help otherwise.
        Where no sentence supports an answer, the passages that may help, under a sentence in the question's language;
        none where nothing is relevant. It names what came nearest.

    Raises:
        UsageError: The question is empty.
        ProviderError: The embedder failed.
    """
    options = options or ExtractionOptions()
    reading = read(question, passages, embedder=embedder, language=language, options=options)
    if reading.support is None or reading.probability(options.rule) < options.rule.threshold:
        return without_answer(
            question,
            helpful(reading, options),
            language=language_of_passages(language, passages) if passages else AUTO,
            nearest=_nearest(reading, reading.support, options.rule) if reading.support else None,
        )
    quotes = reading.quotes()
    text = " ".join(f"{_readable(quote.quote, code=is_code)}[{quote.marker}]" for quote, is_code in quotes).lstrip("\n")
    citations = tuple(quote for quote, _ in quotes)
    places = list(map(_place, citations))
    shown = helpful(reading, options, quoted=reading.best)
    around = [one for one in shown if not any(_within(_place(one), quoted) for quoted in places)]
    return Answer(
        question=question,
        text=text,
        outcome="answer",
        citations=citations,
        passages=tuple(replace(one, marker=marker) for marker, one in enumerate(around, start=len(quotes) + 1)),
    )


def helpful(reading: Reading, options: ExtractionOptions, quoted: Sequence[Evidence] = ()) -> tuple[ShownPassage, ...]:
    """The passages that may help; none where nothing is relevant and the reader finds no piece that may answer."""
    relevance = reading.support.relevance if reading.support else None
    if relevance is not None and relevance < options.rule.min_relevance:
        read = [one.fit.alone for one in reading.evidence if one.weights is READ]
        if max(read, default=-math.inf) < options.rule.min_alone:
            return ()
    return helpful_passages(reading.evidence, reading.passages, quoted=quoted, language=reading.language)


def read(
    question: str,
    passages: Sequence[RetrievedContext],
    *,
    embedder: EmbeddingProvider,
    language: str = "en",
    options: ExtractionOptions,
    apart: bool = True,
) -> Reading:
    """Score every quotable piece of the passages and sum up the support; ``apart``: of several questions each too."""
    if not question.strip():
        raise UsageError("The question is empty; ask something, for instance 'How many days of leave do I have?'.")
    used = list(passages[: options.max_passages])
    language = language_of_passages(language, used, question)
    # A question in another language is less near to what answers it and shares no words: it is judged less strictly.
    crossing = language_of_text(question, expected=language) != language
    evidence, found = gather(
        question,
        used,
        embedder=embedder,
        analyzer=analyzer_of(language),
        language=language,
        by_meaning=partial(tells_meaning, embedder.model_name),
        scaled=float if crossing else as_the_default(embedder.model_name),
        reader=None if crossing or language != "en" else options.reader,
    )
    support = _support(question, used, evidence) if evidence else None
    asked = questions_in(question) if apart and not crossing and language == "en" else []
    again = partial(read, passages=used, embedder=embedder, language=language, options=options, apart=False)
    parts = list(map(again, asked)) if len(asked) > 1 else []
    return Reading(evidence, support, found, language, parts)


def questions_in(text: str) -> list[str]:
    """The questions of an English text that asks two or three ("Who signs it, and by when?"); otherwise the text."""
    found, asked = [""], False
    for part in _JOINT.split(text):
        if asked and _ASKS_MORE.match(part):
            found.append("")
        found[-1] += part
        asked = asked or bool(_ASKS.search(part))
    return found if len(found) <= _MOST_QUESTIONS else [text]


def language_of_passages(language: str, passages: Sequence[RetrievedContext], question: str = "") -> str:
    """The language that a question and passages are read in: a collection's.

    Args:
        language: ISO 639-1 code. ``auto``: the question's, where a passage is in it, or else the one that most are in.
        passages: Best first.
        question: That they were found by; empty: that says nothing.
    """
    if language != AUTO:
        return language
    if question.strip():
        asked = language_of_text(question)
        read = (one.content[:_READ_OF_PASSAGE] for one in passages[:_READ_PASSAGES])
        if any(language_of_text(text, expected=asked) == asked for text in read):
            return asked
    return language_of_text("\n\n".join(passage.content[:_READ_OF_PASSAGE] for passage in passages[:_READ_PASSAGES]))


def _support(question: str, passages: Sequence[RetrievedContext], evidence: Sequence[Evidence]) -> Support:
    best = evidence[0]
    return Support(
        score=best.score,
        margin=best.order - evidence[1].order if len(evidence) > 1 else USUAL_MARGIN,
        lead=-math.log(sum(math.exp(one.order - best.order) for one in evidence)),
        similarity=best.fit.similarity,
        alone=best.fit.alone if best.weights is READ else None,
        missing_number=_misses_number(question, passages),
        relevance=max((passage.relevance for passage in passages if passage.relevance is not None), default=None),
        by_meaning=best.by_meaning,
    )


def _misses_number(question: str, passages: Sequence[RetrievedContext]) -> bool:
    asked = set(_with_digits(_without_thousands(question)))
    told = (f"{one.title}\n{one.source}\n{one.content}\n" for one in passages)
    sections = {part.section or "" for one in passages for part in one.parts}
    everything = _without_thousands("\n".join([*told, *sections]))
    return any(not re.search(rf"(?<!\w){re.escape(number)}(?!\w)", everything) for number in asked)


def _with_digits(text: str) -> Iterator[str]:
    """Numbers, years, versions and identifiers, without the words that are tied to them behind ("5-day")."""
    for match in _TIED.finditer(text):
        tied = match.group()
        end = max((word.end() for word in _WORD.finditer(tied) if _DIGIT.search(word.group())), default=0)
        if end:
            yield tied[:end]


def _without_thousands(text: str) -> str:
    """The text in small letters, with plain digits, and "3,000" as "3000"."""
    return _THOUSANDS.sub("", plain_digits(text)).casefold()


def _place(one: Citation | ShownPassage) -> tuple[int, int, int]:
    return one.document_id, one.start_offset, one.end_offset


def _within(place: tuple[int, int, int], other: tuple[int, int, int]) -> bool:
    (document, start, end), (other_document, begin, stop) = place, other
    return document == other_document and begin <= start and end <= stop


def _nearest(reading: Reading, support: Support, rule: RefusalRule) -> Nearest:
    best = reading.evidence[0]
    return Nearest(
        evidence=best.region.citation(0, best.unit.quote_start, best.unit.end),
        probability=reading.probability(rule),
        threshold=rule.threshold,
        missing_identifier=support.missing_number,
    )


def _readable(quote: str, *, code: bool) -> str:
    """The quote as Markdown, up to where its marker stands: prose on one line, code as it is."""
    shown, done = list[str](), 0
    for block in [Block("code", 0, len(quote))] if code else code_in(quote):
        shown += [_on_one_line(quote[done : block.start]), _as_code(quote[block.start : block.end])]
        done = block.end
    text = " ".join(filter(None, [*shown, _on_one_line(quote[done:])]))
    return text if text.endswith("\n") else f"{text} "


def _on_one_line(prose: str) -> str:
    """Its lines unmarked; numbers in brackets, which would pass for markers, in parentheses."""
    return _LOOKS_LIKE_MARKER.sub(r"(\1)", " ".join(_QUOTED_LINE.sub("\n", CODE_MARK.sub("", prose)).split()))


def _as_code(text: str) -> str:
    code = dedent(text).strip("\n")
    return f"\n```\n{code}\n```\n" if "\n" in code or "`" in code else f"`{code}`"
