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
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import NamedTuple, TypeAlias

from recollect.answer import absence
from recollect.answer._claims import Claim, read_claim, without_connectives
from recollect.answer._names import abbreviates
from recollect.answer._quantities import Quantity, listed
from recollect.answer.evidence import Piece, content_terms, covered, pieces_of, row_of_words
from recollect.answer.reader import MOST_LOG_ODDS, Reader
from recollect.answer.statements import Segment, Statement
from recollect.model import RetrievedContext
from recollect.model.answer import UnsupportedReason
from recollect.retrieval.analysis import analyzer_of

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
# A source cited beside others must at least speak of the same.
_LEAST_PART = 0.12
# Where the cited source leaves doubt, another that is as much better than this is the right one.
_CERTAIN, _MUCH_BETTER = 0.75, 0.3
# Where one side alone has one of these, it denies what the other says.
_NEGATORS = re.compile(
    r"\b(?:not|no|never|none|nobody|neither|nor|cannot|without|\w+n['’]t|nicht|kein\w*|nie|niemals|weder|ohne|ne|pas|jamais|aucune?|sans"
    r"|nunca|jamás|ningun\w*|ningún|tampoco|sin|non|mai|nessun\w*|senza|não|nem|nenhum\w*|sem|niet|geen|nooit|zonder"
    r"|не|нет|никогда|nigdy|değil|yok|inte|ej|ikke|aldrig|لا|ليس|لم|لن)\b|不|没|沒|無|ない|ません|نہیں|नहीं",
    re.IGNORECASE,
)

_AFFIRMATIONS = listed(
    "yes no yeah correct right true indeed certainly sure sorry summary answer here ja nein oui non sí si no sì "
    "não sim kurz zusammenfassung voici résumé respuesta resumen overview detail follow list key point"
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
        turned: 1 where the piece that says the same words denies it, or has another number in the place of one.
        read: The logarithm of the odds that the reader gives it; None where it was not asked.
    """

    unsaid: float
    numbers: float
    names: float
    identifiers: float
    turned: float
    read: float | None


# The bias and the weight of each sign: where the reader is asked, and where it is not.
_READ = (-1.0, (0.0, 1.6, 1.5, 2.5, 1.0, -0.37))
_UNREAD = (-3.0, (4.0, 3.5, 3.5, 3.5, 3.3, 0.0))


def doubt_of(signs: Signs) -> float:
    """How likely a claim is unsupported, 0 to 1."""
    bias, weights = _UNREAD if signs.read is None else _READ
    return 1 / (1 + math.exp(-bias - sum(weight * (sign or 0.0) for weight, sign in zip(weights, signs, strict=True))))


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of checking a statement, or one part of it.

    Attributes:
        claims: False where it claims nothing: a heading, an apology, a sentence that the sources hold no answer.
        cited: The numbers of its markers that name a source, in order.
        pieces: Where the cited sources support it (of one without markers, where any does), best first.
        score: How well they do, 0 to 1; 1 where it claims nothing.
        reason: Why it counts as unsupported; None where it does not.
        detail: The same for people.
        signs: What the score was made of.
    """

    claims: bool
    cited: tuple[int, ...] = ()
    pieces: tuple[Piece, ...] = ()
    score: float = 1.0
    reason: UnsupportedReason | None = None
    detail: str = ""
    signs: Signs | None = None


class Verifier:
    """Checks statements against the same sources.

    Args:
        passages: What the model was shown; ``[n]`` is ``passages[n - 1]``.
        language: ISO 639-1 code of the passages.
        question: As it was asked; a statement that only repeats it claims nothing.
        reader: Says whether a passage supports an English statement; None: words alone count.
    """

    def __init__(
        self,
        passages: Sequence[RetrievedContext],
        *,
        language: str = "en",
        question: str = "",
        reader: Reader | None = None,
    ) -> None:
        self.passages = passages
        self.language = language
        self._terms = analyzer_of(language).terms
        self._reader = reader
        self._by_source = {
            number: list(pieces_of(number, passage, terms=self._terms, language=language))
            for number, passage in enumerate(passages, start=1)
        }
        self._pieces = self.pieces_in(self._by_source)
        self._frequencies = Counter(term for piece in self._pieces for term in piece.terms)
        # A statement is mostly written in the language of what it tells, whatever the collection's is.
        languages = Counter(piece.language for piece in self._pieces)
        self._expected = languages.most_common(1)[0][0] if languages else language
        self._asked = self._read_claim(question)

    def pieces_in(self, numbers: Iterable[int]) -> list[Piece]:
        """The pieces of some sources; none of a number that names no source."""
        return [piece for number in numbers for piece in self._by_source.get(number, ())]

    def check(self, statement: Statement) -> Verdict:
        """The verdict on one statement."""
        cited = self._known(statement.cited)
        invented = [number for number in statement.cited if number not in cited]
        if not invented and self._claims_nothing(statement):
            return Verdict(False, cited)
        parts = [self._check_segment(segment) for segment in statement.segments]
        pieces = tuple(piece for part in parts for piece in part.pieces)
        if invented:
            named = ", ".join(f"[{number}]" for number in invented)
            return Verdict(True, cited, pieces, 0.0, "no_source", f"{named} names no source that was given")
        score = min((part.score for part in parts), default=0.0)
        failed = next((part for part in parts if part.reason), Verdict(True))
        return Verdict(True, cited, pieces, score, failed.reason, failed.detail)

    def match(self, claim: Claim, pool: Sequence[Piece]) -> Verdict:
        """The pieces of the pool that support a claim best, and what of it they leave open."""
        wanted = self._wanted(claim)
        held = [_held(wanted, piece) for piece in pool]
        pieces, share = _cover(wanted, pool, held)
        # Word for word, with nothing else that could turn it round.
        said, denied = row_of_words(claim.text), _denies(claim.text)
        if any(said in row_of_words(piece.text) and denied == _denies(piece.text) for piece in pieces):
            return Verdict(True, pieces=pieces)
        faults = list(_faults(claim, pool, self._terms))
        kinds = Counter("number" if reason == "date" else reason for reason, _ in faults)
        numbers, names, codes = (min(kinds[kind], 2) for kind in ("number", "name", "identifier"))
        turned = _turned(claim, wanted, pool, held)
        # In another language only what is written alike can be compared.
        foreign = bool(claim.facts) and any(piece.language != claim.language for piece in pieces[:1])
        unsaid, read = 0.0 if foreign else 1 - share, self._log_odds(claim, pieces)
        signs = Signs(unsaid, numbers, names, codes, turned is not None, read)
        doubt = doubt_of(signs)
        found = Verdict(True, pieces=pieces, score=1 - doubt, signs=signs)
        if doubt <= _THRESHOLD:
            return found
        reason, detail = faults[0] if faults else turned or ("no_evidence", "no source says it")
        return replace(found, reason=reason, detail=detail)

    def _known(self, numbers: Iterable[int]) -> tuple[int, ...]:
        return tuple(number for number in numbers if number in self._by_source)

    def _read_claim(self, text: str) -> Claim:
        return read_claim(text, terms=self._terms, language=self._expected)

    def _claims_nothing(self, statement: Statement) -> bool:
        claim, said = self._read_claim(statement.text), without_connectives(statement.text)
        absent = absence.says_nothing_is_known(said) and not (statement.cited and claim.facts)
        if absent or statement.kind == "rule":
            return True
        if statement.cited or claim.facts - self._asked.facts:
            return False
        if statement.kind == "heading" or statement.text.rstrip("*_ ").endswith((":", "：", "?", "？")):
            return True
        return claim.terms - self._asked.terms <= _AFFIRMATIONS or absence.is_pleasantry(said)

    def _check_segment(self, segment: Segment) -> Verdict:
        claim = self._read_claim(segment.text)
        if not claim.terms and not claim.facts:
            return Verdict(False)
        cited = self._known(segment.cited)
        found = self.match(claim, self.pieces_in(cited) if cited else self._pieces)
        if better := self._better(claim, found, cited):
            named = " ".join(f"[{number}]" for number in better)
            return replace(found, reason="wrong_source", detail=f"{named} says it")
        if found.reason is None and len(cited) > 1:
            for number in cited:
                if self._share(claim, number) < _LEAST_PART:
                    return replace(found, reason="wrong_source", detail=f"[{number}] does not speak of it")
        return found

    def _better(self, claim: Claim, found: Verdict, cited: Sequence[int]) -> list[int]:
        """The sources that support a claim far better than those that it cites."""
        if not cited or (found.reason is None and found.score >= _CERTAIN):
            return []
        right = self.match(claim, self._pieces)
        better = right.reason is None and (found.reason is not None or right.score > found.score + _MUCH_BETTER)
        return sorted({piece.source for piece in right.pieces} - set(cited)) if better else []

    def _share(self, claim: Claim, source: int) -> float:
        """How much of a claim one source holds."""
        wanted, pool = self._wanted(claim), self.pieces_in([source])
        return _cover(wanted, pool, [_held(wanted, piece) for piece in pool])[1]

    def _wanted(self, claim: Claim) -> _Shares:
        """What evidence should hold of a claim, each with how much it says."""
        wanted: _Shares = {term: self._weight(term) for term in claim.terms}
        return wanted | dict.fromkeys(claim.quantities, _QUANTITY_WEIGHT)

    def _weight(self, term: str) -> float:
        """How much a term says: rare ones more."""
        return math.log(1 + (len(self._pieces) + 1) / (max(self._frequencies[term], 1) + 0.5))

    def _log_odds(self, claim: Claim, pieces: Sequence[Piece]) -> float | None:
        """What the reader says of a claim; None where it is not asked."""
        if self._reader is None or claim.language != "en" or any(piece.language != "en" for piece in pieces):
            return None
        ordered = sorted(pieces, key=lambda piece: (piece.source, piece.start))
        texts = [self._around(list(own)) for _, own in groupby(ordered, lambda piece: piece.source)]
        if len(pieces) > 1:
            texts.append("\n".join(piece.text for piece in pieces))
        # It was trained on whole sentences, and it reads numbers as they are written.
        said = _as_written(claim, pieces).rstrip(" .") + "."
        return max((reading.log_odds for reading in self._reader.read(said, texts)), default=-MOST_LOG_ODDS)

    def _around(self, pieces: Sequence[Piece]) -> str:
        """The pieces of a source, in order, with what stands around them."""
        content = self.passages[pieces[0].source - 1].content
        if len(content) <= _READ_WHOLE:
            return content
        return content[max(0, pieces[0].start - _READ_AROUND) : pieces[-1].end + _READ_AROUND]


def _as_written(claim: Claim, pieces: Sequence[Piece]) -> str:
    """A claim with its numbers, dates and times in the notation of the pieces."""
    text = claim.text
    for one in sorted(claim.quantities, key=lambda quantity: -quantity.start):
        known = [other for piece in pieces for other in piece.quantities if one.found_in([other])]
        same = next((other.text for other in known if (other.kind, other.unit) == (one.kind, one.unit)), one.text)
        text = text[: one.start] + same + text[one.end :]
    return text


def _denies(text: str) -> bool:
    return bool(_NEGATORS.search(text))


def _faults(claim: Claim, pool: Sequence[Piece], terms: Callable[[str], Sequence[str]]) -> Iterator[Fault]:
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
        parts = content_terms(name.text, terms)
        if not any(parts <= piece.all_terms or abbreviates(name.text, piece.text) for piece in pool):
            yield "name", f"{name.text!r} does not stand in the evidence"


def _held(wanted: Iterable[str | Quantity], piece: Piece) -> _Shares:
    """What a piece holds of it, each by how far."""
    found: _Shares = {}
    for feature in wanted:
        if isinstance(feature, Quantity):
            share = float(feature.found_in(piece.quantities))
        else:
            share = covered(feature, piece.terms) or _HEADING_SHARE * covered(feature, piece.all_terms)
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
