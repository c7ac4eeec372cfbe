"""Checks what a language model writes against the sources that it was shown, statement by statement. No chance.

A statement is matched with the pieces of the sources that it cites (of all of them, where it cites none) by its terms.
Few things tell how far they support it: the share of its terms that they hold; whether each of its numbers, names and
identifiers stands there; whether the piece that says the same
words denies it, or has another number in its place; and, in English, what a reader that was trained on statements
says (`recollect.answer.reader`). Their weights were fitted on statements that nobody trained on
(``benchmarks/citation_verifier.py``); ``docs/how-to/answers.md`` holds what this finds and what it misses.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from recollect.answer import absence
from recollect.answer._claims import Claim, read_claim, without_connectives
from recollect.answer._names import abbreviates, holds
from recollect.answer._number_words import listed
from recollect.answer._quantities import Quantity
from recollect.answer.evidence import Piece, Sources, covered, read_sources
from recollect.answer.reader import MOST_LOG_ODDS
from recollect.answer.statements import Segment, Statement
from recollect.model.answer import UnsupportedReason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from recollect.answer.reader import Reader
    from recollect.model import RetrievedContext

_MOST_PIECES = 4
_LEAST_GAIN = 0.08
_QUANTITY_WEIGHT = 3.0
# What only a heading says is shared with all that stands below it.
_HEADING_SHARE = 0.8
# Of pieces that hold so much of a claim's terms the best one speaks of the same, and may deny it.
_SAME = 0.8
# What is read of a source: all of it, or so many characters around each piece.
_READ_WHOLE, _READ_AROUND = 1000, 300
# A statement is unsupported where the doubt is greater.
_THRESHOLD = 0.5
# Where one side alone has one of these, it denies what the other says.
_NEGATORS = re.compile(
    r"\b(?:not|no|never|none|nobody|neither|nor|cannot|without|\w+n['’]t|nicht|kein\w*|nie|niemals|weder|ohne|ne|pas|jamais|aucune?|sans"
    r"|nunca|jamás|ningun\w*|ningún|tampoco|sin|non|mai|nessun\w*|senza|não|nem|nenhum\w*|sem|niet|geen|nooit|zonder"
    r"|не|нет|никогда|nigdy|değil|yok|inte|ej|ikke|aldrig|لا|ليس|لم|لن)\b|不|没|沒|無|ない|ません|نہیں|नहीं",
    re.IGNORECASE,
)

#: Terms and numbers, each with how much it says, or by how far it is held.
_Shares: TypeAlias = "dict[str | Quantity, float]"
#: What is wrong, and the same in words.
Fault: TypeAlias = tuple[UnsupportedReason, str]


class Signs(NamedTuple):
    """What tells whether pieces support a claim; each is 0 where nothing speaks against it.

    Attributes:
        unsaid: The share of its terms and numbers that they do not hold.
        numbers: How many of its numbers, dates and times stand in no piece, two at most.
        names: How many of its names do.
        identifiers: How many of its identifiers do.
        turned: Whether the piece that says the same words denies it, or has another number in the place of one.
        read: The logarithm of the odds that the reader gives it; None where it was not asked.
    """

    unsaid: float
    numbers: int
    names: int
    identifiers: int
    turned: bool
    read: float | None


class _Weights(NamedTuple):
    bias: float
    unsaid: float
    numbers: float
    names: float
    identifiers: float
    turned: float
    read: float = 0.0


# Where the reader is asked, and where it is not.
_READ = _Weights(-1.0, 0.0, 1.6, 1.5, 2.5, 1.0, -0.37)
_UNREAD = _Weights(-3.0, 4.0, 3.5, 3.5, 3.5, 3.3)


def doubt_of(signs: Signs) -> float:
    """How likely a claim is unsupported, 0 to 1."""
    weights, read = (_UNREAD, 0.0) if signs.read is None else (_READ, signs.read)
    found = weights.bias + sum(weight * float(sign) for weight, sign in zip(weights[1:6], signs[:5], strict=True))
    return 1 / (1 + math.exp(-(found + weights.read * read)))


@dataclass(frozen=True, slots=True)
class Match:
    """The evidence that was found for a claim.

    Attributes:
        pieces: Best first.
        score: How well they support it, 0 to 1.
        reason: What they do not support; None where they do.
        detail: The same for people.
        signs: What the score was made of.
    """

    pieces: tuple[Piece, ...]
    score: float
    reason: UnsupportedReason | None = None
    detail: str = ""
    signs: Signs | None = None


class Matcher:
    """Matches claims with the pieces of some sources.

    Args:
        sources: What was shown.
        reader: Says whether a passage supports a statement, in English; None: words alone count.
    """

    def __init__(self, sources: Sources, reader: Reader | None) -> None:
        self._sources = sources
        self._reader = reader

    def match(self, claim: Claim, pool: Sequence[Piece]) -> Match:
        """The pieces of the pool that support a claim best, and what of it they leave open."""
        wanted = self._wanted(claim)
        held = [_held(wanted, piece) for piece in pool]
        pieces, share = _cover(wanted, pool, held)
        if any(_repeats(claim, piece) for piece in pieces):
            return Match(pieces, 1.0)
        faults = list(_faults(claim, pool))
        kinds = Counter("number" if reason == "date" else reason for reason, _ in faults)
        turned = _turned(claim, wanted, pool, held)
        numbers, names, codes = kinds["number"], kinds["name"], kinds["identifier"]
        read = self._read(claim, pieces)
        # In another language only what is written alike can be compared.
        foreign = bool(claim.facts) and any(piece.language != claim.language for piece in pieces[:1])
        unsaid = 0.0 if foreign else 1 - share
        signs = Signs(unsaid, min(numbers, 2), min(names, 2), min(codes, 2), turned is not None, read)
        doubt = doubt_of(signs)
        if doubt <= _THRESHOLD:
            return Match(pieces, 1 - doubt, signs=signs)
        fault = faults[0] if faults else turned or ("no_evidence", "no source says it")
        return Match(pieces, 1 - doubt, *fault, signs)

    def part(self, claim: Claim, source: int) -> float:
        """How much of a claim one source holds."""
        wanted, pool = self._wanted(claim), self._sources.of([source])
        return _cover(wanted, pool, [_held(wanted, piece) for piece in pool])[1]

    def _wanted(self, claim: Claim) -> _Shares:
        """What evidence should hold of a claim, each with how much it says."""
        wanted: _Shares = {term: self._sources.weight(term) for term in claim.terms}
        return wanted | dict.fromkeys(claim.quantities, _QUANTITY_WEIGHT)

    def _read(self, claim: Claim, pieces: Sequence[Piece]) -> float | None:
        if self._reader is None or claim.language != "en" or any(piece.language != "en" for piece in pieces):
            return None
        texts = [self._around(own) for _, own in groupby(sorted(pieces, key=_place), lambda piece: piece.source)]
        if len(pieces) > 1:
            texts.append("\n".join(piece.text for piece in pieces))
        # It was trained on whole sentences, and it reads numbers as they are written.
        said = _as_written(claim, pieces).rstrip(" .") + "."
        return max((reading.log_odds for reading in self._reader.read(said, texts)), default=-MOST_LOG_ODDS)

    def _around(self, pieces: Iterable[Piece]) -> str:
        """The pieces of a source with what stands around them."""
        own = list(pieces)
        content = self._sources.passages[own[0].source - 1].content
        if len(content) <= _READ_WHOLE:
            return content
        spans: list[tuple[int, int]] = []
        for piece in own:
            start, end = max(0, piece.start - _READ_AROUND), piece.end + _READ_AROUND
            if spans and start <= spans[-1][1]:
                start, _ = spans.pop()
            spans.append((start, end))
        return "\n".join(content[start:end] for start, end in spans)


def _as_written(claim: Claim, pieces: Sequence[Piece]) -> str:
    """A claim with its numbers, dates and times in the notation of the pieces."""
    text = claim.text
    for one in sorted(claim.quantities, key=lambda quantity: -quantity.start):
        known = [other for piece in pieces for other in piece.quantities if one.found_in([other])]
        same = next((other.text for other in known if (other.kind, other.unit) == (one.kind, one.unit)), one.text)
        text = text[: one.start] + same + text[one.end :]
    return text


def _place(piece: Piece) -> tuple[int, int]:
    return piece.source, piece.start


def _repeats(claim: Claim, piece: Piece) -> bool:
    """Whether a piece says a claim word for word, with nothing else that could turn it round."""
    return claim.folded in piece.folded and _denies(claim.text) == _denies(piece.text)


def _denies(text: str) -> bool:
    return bool(_NEGATORS.search(text))


def _faults(claim: Claim, pool: Sequence[Piece]) -> Iterator[Fault]:
    """What of a claim can be looked up and stands in none of the pieces."""
    for code in claim.identifiers:
        said = code.text.casefold()
        if not any(code.folded in piece.codes or said in piece.text.casefold() for piece in pool):
            yield "identifier", f"{code.text!r} stands in no evidence"
    for quantity in claim.quantities:
        if not any(quantity.found_in(piece.quantities) for piece in pool):
            kind: UnsupportedReason = "number" if quantity.kind == "number" else "date"
            yield kind, f"{quantity.text.strip()!r} stands in no evidence"
    for name in claim.names:
        if not any(holds(piece.words, name.folded) or abbreviates(name.text, piece.text) for piece in pool):
            yield "name", f"{name.text!r} does not stand in the evidence"


def _held(wanted: Iterable[str | Quantity], piece: Piece) -> _Shares:
    """What a piece holds of it, each by how far."""
    found: _Shares = {}
    terms = piece.all_terms
    for feature in wanted:
        if isinstance(feature, Quantity):
            share = float(feature.found_in(piece.quantities))
        else:
            share = covered(feature, piece.terms) or _HEADING_SHARE * covered(feature, terms)
        if share:
            found[feature] = share
    return found


def _cover(wanted: _Shares, pool: Sequence[Piece], held: Sequence[_Shares]) -> tuple[tuple[Piece, ...], float]:
    """Up to four pieces that hold most of what is wanted together, and the share that they hold."""
    total = sum(wanted.values())
    so_far: _Shares = dict.fromkeys(wanted, 0.0)
    chosen: list[Piece] = []
    while pool and total and len(chosen) < _MOST_PIECES:
        gains = [sum(wanted[one] * max(0.0, share - so_far[one]) for one, share in own.items()) for own in held]
        best = gains.index(max(gains))
        if gains[best] < _LEAST_GAIN * total:
            break
        chosen.append(pool[best])
        so_far |= {one: max(so_far[one], share) for one, share in held[best].items()}
    return tuple(chosen), sum(wanted[one] * share for one, share in so_far.items()) / total if total else 0.0


def _turned(claim: Claim, wanted: _Shares, pool: Sequence[Piece], held: Sequence[_Shares]) -> Fault | None:
    """What the piece that says the same words says otherwise: it denies it, or has another number in its place."""
    # In some languages what denies is a term, or a part of one.
    words = {one: weight for one, weight in wanted.items() if isinstance(one, str) and not _denies(one)}
    said = [sum(weight * own.get(one, 0.0) for one, weight in words.items()) for own in held]
    total = sum(words.values())
    if not total or max(said, default=0.0) < _SAME * total:
        return None
    main = pool[said.index(max(said))]
    if _denies(claim.text) != _denies(main.text):
        return "contradiction", "the evidence says the opposite"
    for one in claim.quantities:
        if not one.found_in(main.quantities) and any(one.found_in(piece.quantities) for piece in pool):
            others = [other for other in main.quantities if (other.kind, other.unit) == (one.kind, one.unit)]
            if others:
                kind: UnsupportedReason = "number" if one.kind == "number" else "date"
                return kind, f"{one.text.strip()!r} is said of something else; of this, {others[0].text.strip()!r}"
    return None


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
        reader: Says whether a passage supports an English statement; None: words alone count.
    """

    def __init__(
        self,
        passages: Sequence[RetrievedContext],
        *,
        terms: Callable[[str], Sequence[str]],
        language: str = "en",
        question: str = "",
        reader: Reader | None = None,
    ) -> None:
        self._terms = terms
        self.sources: Sources = read_sources(passages, terms=terms, language=language)
        # A statement is mostly written in the language of what it tells, whatever the collection's is.
        languages = Counter(piece.language for piece in self.sources.pieces)
        self._language = languages.most_common(1)[0][0] if languages else language
        self._matcher = Matcher(self.sources, reader)
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
        return not statement.cited or not claim.facts

    def _is_neutral(self, statement: Statement) -> bool:
        if statement.kind == "rule":
            return True
        claim = self._read(statement.text)
        new = [fact for fact in claim.facts if fact not in self._asked.facts]
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
        cited = tuple(number for number in segment.cited if self._names_a_source(number))
        if not claim.terms and not claim.facts:
            return Verdict("neutral", cited)
        found = self._matcher.match(claim, self.sources.of(cited) if cited else self.sources.pieces)
        reason, detail = found.reason, found.detail
        idle = [number for number in cited if len(cited) > 1 and self._matcher.part(claim, number) < _LEAST_PART]
        better = self._better(claim, found, cited)
        if better:
            reason, detail = "wrong_source", f"{' '.join(f'[{number}]' for number in better)} says it"
        elif reason is None and idle:
            reason, detail = "wrong_source", f"[{idle[0]}] does not speak of it"
        supports = tuple(Support(piece.source, piece.start, piece.end, found.score) for piece in found.pieces)
        return Verdict("claim", cited, supports, found.score, reason, detail)

    def _better(self, claim: Claim, found: Match, cited: Sequence[int]) -> list[int]:
        """The sources that support a claim far better than those that it cites."""
        if not cited or (found.reason is None and found.score >= _CERTAIN):
            return []
        right = self._matcher.match(claim, self.sources.pieces)
        better = right.reason is None and (found.reason is not None or right.score > found.score + _MUCH_BETTER)
        return sorted({piece.source for piece in right.pieces} - set(cited)) if better else []


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
