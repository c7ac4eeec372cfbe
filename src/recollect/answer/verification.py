"""Checks what a language model writes against the sources that it was shown, statement by statement. No I/O, no chance.

A statement is matched with the pieces of the sources that it cites (of all of them, where it cites none): by its terms,
by their forms, and, where these leave doubt, by the embedding model. Then everything in it that can be checked is:
numbers, dates and times must stand in the evidence *where it speaks of the same*, names and identifiers must stand
there, and the evidence must not say the opposite. ``docs/how-to/answers.md`` holds what this finds and what it misses.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recollect.answer import absence
from recollect.answer._claims import Claim, read_claim, without_connectives
from recollect.answer._matching import Match, Matcher
from recollect.answer._number_words import listed
from recollect.answer.evidence import Sources, read_sources
from recollect.model.answer import UnsupportedReason
from recollect.retrieval.model_languages import tells_meaning

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from recollect.answer.evidence import Piece
    from recollect.answer.statements import Segment, Statement
    from recollect.embedding.base import EmbeddingProvider
    from recollect.model import RetrievedContext

_AFFIRMATIONS = listed(
    "yes no yeah correct right true indeed certainly sure sorry summary answer here ja nein oui non sí si no sì "
    "não sim kurz zusammenfassung voici résumé respuesta resumen overview detail follow list key point"
)
# A source cited beside others must at least speak of the same.
_LEAST_PART = 0.12
# Where the cited source leaves doubt, another that is as much better than this is the right one.
_CERTAIN, _MUCH_BETTER = 0.75, 0.3


@dataclass(frozen=True, slots=True)
class Support:
    """What a source gives to a statement.

    Attributes:
        source: Its number, from 1.
        start: Offset in the passage of the first character that supports it.
        end: Just behind the last one.
        score: How well it does, 0 to 1.
    """

    source: int
    start: int
    end: int
    score: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a statement.

    Attributes:
        kind: ``claim``; ``absence``: it says that the sources hold no answer; ``neutral``: it claims nothing.
        cited: The numbers of its markers that name a source, in order.
        supports: Where the cited sources support it (of one without markers, where any does), best first.
        score: How well it is supported, 0 to 1; 1 where it claims nothing.
        reason: Why it counts as unsupported; None where it does not.
        detail: What is wrong, for people.
    """

    kind: str
    cited: tuple[int, ...]
    supports: tuple[Support, ...] = ()
    score: float = 1.0
    reason: UnsupportedReason | None = None
    detail: str = ""


class Verifier:
    """Checks statements against the same sources.

    Args:
        passages: What the model was shown; ``[n]`` is ``passages[n - 1]``.
        terms: Splits a text into its terms.
        language: ISO 639-1 code of the passages.
        question: As it was asked; a statement that only repeats it claims nothing.
        embedder: Tells whether other words mean the same; None, or one that does not know the passages' script: words
            alone count.
    """

    def __init__(
        self,
        passages: Sequence[RetrievedContext],
        *,
        terms: Callable[[str], Sequence[str]],
        language: str = "en",
        question: str = "",
        embedder: EmbeddingProvider | None = None,
    ) -> None:
        self._terms = terms
        self.sources: Sources = read_sources(passages, terms=terms, language=language)
        # A statement is mostly written in the language of what it tells, whatever the collection's is.
        languages = Counter(piece.language for piece in self.sources.pieces)
        self._language = languages.most_common(1)[0][0] if languages else language
        meaning = embedder is not None and tells_meaning(embedder.model_name, self._language)
        self._matcher = Matcher(self.sources, embedder if meaning else None)
        self._asked = read_claim(question, terms=terms, language=self._language)

    def check(self, statement: Statement) -> Verdict:
        """The verdict on one statement."""
        cited = tuple(number for number in statement.cited if self._names_a_source(number))
        invented = [number for number in statement.cited if number not in cited]
        said = without_connectives(statement.text)
        if not invented and absence.says_nothing_is_known(said) and self._claims_no_fact(statement):
            return Verdict("absence", cited)
        if not invented and self._is_neutral(statement):
            return Verdict("neutral", cited)
        parts = [self._check_segment(segment) for segment in _substantial(statement.segments)]
        failed = next((part for part in parts if part.reason), None)
        supports = tuple(support for part in parts for support in part.supports)
        score = min((part.score for part in parts), default=0.0)
        if invented:
            named = ", ".join(f"[{number}]" for number in invented)
            return Verdict("claim", cited, supports, 0.0, "no_source", f"{named} names no source that was given")
        if failed is not None:
            return Verdict("claim", cited, supports, score, failed.reason, failed.detail)
        return Verdict("claim", cited, supports, score)

    def _names_a_source(self, number: int) -> bool:
        passages = self.sources.passages
        return 1 <= number <= len(passages) and bool(passages[number - 1].content.strip())

    def _claims_no_fact(self, statement: Statement) -> bool:
        claim = self._read(statement.text)
        return not statement.cited or not claim.checkable

    def _is_neutral(self, statement: Statement) -> bool:
        if statement.kind == "rule":
            return True
        claim = self._read(statement.text)
        new = [fact for fact in claim.checkable if fact not in self._asked.facts]
        if new or statement.cited:
            return False
        if statement.kind == "heading" or statement.text.rstrip("*_ ").endswith((":", "：", "?", "？")):
            return True
        said = claim.terms - self._asked.terms
        return all(term in _AFFIRMATIONS for term in said) or absence.is_pleasantry(without_connectives(statement.text))

    def _read(self, text: str) -> Claim:
        return read_claim(text, terms=self._terms, language=self._language)

    def _check_segment(self, segment: Segment) -> Verdict:
        claim = self._read(segment.text)
        cited = [number for number in segment.cited if self._names_a_source(number)]
        if not claim.terms and not claim.facts:
            return Verdict("neutral", tuple(cited))
        everything = self.sources.pieces
        found = self._matcher.match(claim, self.sources.of(cited) if cited else everything)
        if found.reason is None and cited and found.score < _CERTAIN:
            right = self._matcher.match(claim, everything)
            if right.reason is None and right.score > found.score + _MUCH_BETTER:
                others = {piece.source for piece in right.pieces} - set(cited)
                named = " ".join(f"[{number}]" for number in sorted(others))
                return Verdict("claim", tuple(cited), _supports(found), found.score, "wrong_source", f"{named} says it")
        if found.reason is None:
            idle = [number for number in cited if len(cited) > 1 and self._matcher.part(claim, number) < _LEAST_PART]
            reason: UnsupportedReason | None = "wrong_source" if idle else None
            detail = f"[{idle[0]}] does not speak of it" if idle else ""
            return Verdict("claim", tuple(cited), _supports(found), found.score, reason, detail)
        if cited:
            elsewhere = self._matcher.match(claim, everything)
            if elsewhere.reason is None:
                better = sorted({piece.source for piece in elsewhere.pieces} - set(cited))
                named = " ".join(f"[{number}]" for number in better)
                detail = f"{found.detail}; source {named} says it" if named else found.detail
                return Verdict("claim", tuple(cited), _supports(found), found.score, "wrong_source", detail)
        return Verdict("claim", tuple(cited), _supports(found), found.score, found.reason, found.detail)


def _supports(found: Match) -> tuple[Support, ...]:
    return tuple(Support(piece.source, piece.start, piece.end, found.score) for piece in found.pieces)


def _substantial(segments: Sequence[Segment]) -> list[Segment]:
    """Segments; one of too few words to be checked alone is read with the one before it."""
    from recollect.answer.statements import Segment

    kept: list[Segment] = []
    for segment in segments:
        short = len(segment.text.split()) < 3
        if kept and short:
            before = kept.pop()
            cited = tuple(dict.fromkeys((*before.cited, *segment.cited)))
            kept.append(Segment(f"{before.text} {segment.text}", cited))
        else:
            kept.append(segment)
    return kept


__all__ = ["Piece", "Support", "Verdict", "Verifier"]
