"""Checks what a language model writes against the sources that it was shown, statement by statement. No I/O, no chance.

A statement is matched with the pieces of the sources that it cites (of all of them, where it cites none): by its terms,
by their forms, and, where these leave doubt, by the embedding model. Then everything in it that can be checked is:
numbers, dates and times must stand in the evidence *where it speaks of the same*, names and identifiers must stand
there, and the evidence must not say the opposite. ``docs/how-to/answers.md`` holds what this finds and what it misses.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recollect.answer import absence
from recollect.answer._checks import Case, fault_in
from recollect.answer._claims import Claim, read_claim, without_connectives
from recollect.answer._number_words import listed
from recollect.answer._quantities import Quantity
from recollect.answer.evidence import Piece, Sources, covered, read_sources
from recollect.answer.statements import Segment, Statement
from recollect.model.answer import UnsupportedReason
from recollect.retrieval.relevance import tells_meaning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from recollect.embedding.base import EmbeddingProvider
    from recollect.model import RetrievedContext


# Matches a claim with pieces of sources: by terms, their forms, and what an embedding model takes for the same.


_MOST_PIECES = 4
_LEAST_GAIN = 0.08
_QUANTITY_WEIGHT = 3.0
# What only a heading says is shared with all that stands below it.
_HEADING_SHARE = 0.8
# Share of a claim's terms that evidence must hold: with checked facts; without any, explained; and unexplained.
_WITH_FACTS, _WITHOUT_FACTS, _CERTAIN_SHARE = 0.35, 0.6, 0.75
_SIMILAR, _SOMEWHAT_SIMILAR = 0.62, 0.5
# A word of the claim that the evidence lacks is explained by one as similar as this.
_SAME_WORD = 0.5
_SUBJECT_WORDS = 4
_PREPOSITION = re.compile(
    r"\b(?:by|via|through|with|from|mit|per|durch|par|avec|por|con)\s+(?:(?:a|an|the|der|dem|einem|einer)\s+)?(\w+)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Match:
    """The evidence that was found for a claim.

    Attributes:
        pieces: Best first.
        score: How well they support it, 0 to 1.
        reason: What they do not support; None where they do.
        detail: The same for people.
    """

    pieces: tuple[Piece, ...]
    score: float
    reason: UnsupportedReason | None = None
    detail: str = ""


class Matcher:
    """Matches claims with the pieces of some sources.

    Args:
        sources: What was shown.
        embedder: None: words alone count.
    """

    def __init__(self, sources: Sources, embedder: EmbeddingProvider | None) -> None:
        self._sources = sources
        self._embedder = embedder

    def match(self, claim: Claim, pool: Sequence[Piece]) -> Match:
        """The pieces of the pool that support a claim best, and what of it they leave open."""
        chosen, share = self._cover(claim, pool)
        fault = fault_in(Case(claim, pool, chosen, self._sources, self._alike))
        if fault is not None:
            return Match(tuple(chosen), min(share, 0.3), *fault)
        return self._supported(claim, chosen, share)

    def part(self, claim: Claim, source: int) -> float:
        """How much of a claim one source holds."""
        return self._cover(claim, self._sources.of([source]))[1]

    def _cover(self, claim: Claim, pool: Sequence[Piece]) -> tuple[list[Piece], float]:
        """Up to four pieces that hold most of the claim's terms and numbers together, and the share that they hold."""
        wanted: dict[str | Quantity, float] = {term: self._sources.weight(term) for term in claim.terms}
        wanted |= dict.fromkeys(claim.quantities, _QUANTITY_WEIGHT)
        total = sum(wanted.values())
        if not total or not pool:
            return [], 0.0
        held = {id(piece): _held(wanted, piece) for piece in pool}
        so_far: dict[str | Quantity, float] = dict.fromkeys(wanted, 0.0)
        chosen: list[Piece] = []
        while len(chosen) < _MOST_PIECES:
            best = max(pool, key=lambda piece: _gain(wanted, so_far, held[id(piece)]))
            if _gain(wanted, so_far, held[id(best)]) < _LEAST_GAIN * total:
                break
            chosen.append(best)
            for feature, share in held[id(best)].items():
                so_far[feature] = max(so_far[feature], share)
        return chosen, sum(wanted[feature] * share for feature, share in so_far.items()) / total

    def _supported(self, claim: Claim, chosen: Sequence[Piece], share: float) -> Match:
        """Whether the words suffice, after everything that can be checked was found right."""
        pieces = tuple(chosen)
        facts = bool(claim.facts)
        if pieces and pieces[0].language != claim.language and claim.facts:
            # In another language only what is written alike can be compared.
            return Match(pieces, max(share, 0.6))
        if self._replaced(claim, chosen, share) or self._by_other_means(claim, chosen, share):
            return Match(pieces, min(share, 0.4), "no_evidence", "the evidence says it of something else")
        if share >= (_WITH_FACTS if facts else _CERTAIN_SHARE):
            return Match(pieces, share)
        similarity = self._similarity(claim, chosen)
        score = max(share, similarity)
        if similarity >= (_SOMEWHAT_SIMILAR if facts else _SIMILAR) and (facts or self._explained(claim, chosen)):
            return Match(pieces, score)
        if share >= _WITHOUT_FACTS and (self._embedder is None or self._explained(claim, chosen)):
            return Match(pieces, score)
        return Match(pieces, score, "no_evidence", "no source says it")

    def _replaced(self, claim: Claim, chosen: Sequence[Piece], share: float) -> bool:
        """Whether a sentence of the evidence is repeated with a word of other evidence in place of its own."""
        if not chosen or share < _WITHOUT_FACTS:
            return False
        main = chosen[0]
        around = [main, *(one for one in chosen[1:] if one.source == main.source)]
        missing = [term for term in claim.terms if not any(covered(term, piece.all_terms) for piece in around)]
        if len(missing) != 1 or len(claim.terms) < 3 or not self._sources.frequencies[missing[0]]:
            return False
        # What a sentence is about stands at its beginning.
        if not any(missing[0] in claim.split(word) for word in claim.text.split()[:_SUBJECT_WORDS]):
            return False
        # Evidence that adds more than the word is evidence of a sentence about two things.
        adds = [piece for piece in chosen[1:] if sum(bool(covered(term, piece.terms)) for term in claim.terms) > 2]
        return not adds and not self._explained(claim, [main])

    def _by_other_means(self, claim: Claim, chosen: Sequence[Piece], share: float) -> bool:
        """Whether all but one word is repeated, and that one stands behind a preposition: "by post" for "by e-mail"."""
        if self._embedder is None or share < _WITH_FACTS:
            return False
        held = frozenset[str]().union(*(piece.all_terms for piece in chosen))
        missing = [word for word in claim.words if any(not covered(term, held) for term in claim.split(word))]
        behind = {match.group(1) for match in _PREPOSITION.finditer(claim.text)}
        return (
            len(missing) == 1 and len(claim.words) > 2 and missing[0] in behind and not self._explained(claim, chosen)
        )

    def _explained(self, claim: Claim, chosen: Sequence[Piece]) -> bool:
        """Whether each word of the claim that the evidence lacks has one there that means nearly the same."""
        held = frozenset[str]().union(*(piece.all_terms for piece in chosen))
        missing = [word for word in claim.words if any(not covered(term, held) for term in claim.split(word))]
        if not missing:
            return True
        theirs = list(dict.fromkeys(word for piece in chosen for word in piece.text.split() if len(word) > 2))[:60]
        if self._embedder is None or not theirs:
            return False
        vectors = self._embedder.embed_documents([*missing, *theirs])
        best = (vectors[: len(missing)] @ vectors[len(missing) :].T).max(axis=1)
        return bool((best >= _SAME_WORD).all())

    def _alike(self, word: str, others: Sequence[str]) -> bool:
        if self._embedder is None:
            return True
        vectors = self._embedder.embed_documents([word, *others])
        return float((vectors[1:] @ vectors[0]).max()) >= _SAME_WORD

    def _similarity(self, claim: Claim, chosen: Sequence[Piece]) -> float:
        if self._embedder is None or not chosen:
            return 0.0
        texts = [piece.text for piece in chosen]
        if len(texts) > 1:
            texts.append(" ".join(texts))
        vectors = self._embedder.embed_documents([claim.text, *texts])
        return float((vectors[1:] @ vectors[0]).max())


def _held(wanted: Iterable[str | Quantity], piece: Piece) -> dict[str | Quantity, float]:
    found: dict[str | Quantity, float] = {}
    terms = piece.all_terms
    for feature in wanted:
        if isinstance(feature, Quantity):
            share = float(feature.found_in(piece.quantities))
        else:
            share = covered(feature, piece.terms) or _HEADING_SHARE * covered(feature, terms)
        if share:
            found[feature] = share
    return found


def _gain(
    wanted: dict[str | Quantity, float], so_far: dict[str | Quantity, float], held: dict[str | Quantity, float]
) -> float:
    return sum(wanted[feature] * max(0.0, share - so_far[feature]) for feature, share in held.items())


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
