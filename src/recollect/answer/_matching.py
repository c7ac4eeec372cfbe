"""Matches a claim with pieces of sources: by terms, their forms, and what an embedding model takes for the same."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recollect.answer._checks import Case, fault_in
from recollect.answer._quantities import Quantity
from recollect.answer.evidence import Piece, Sources, covered
from recollect.model.answer import UnsupportedReason

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from recollect.answer._claims import Claim
    from recollect.embedding.base import EmbeddingProvider

_MOST_PIECES = 4
_LEAST_GAIN = 0.08
_QUANTITY_WEIGHT = 3.0
# What only a heading says is shared with all that stands below it.
_HEADING_SHARE = 0.8
# Share of a claim's terms that evidence must hold: with checked facts; without any, explained; and unexplained.
_WITH_FACTS, _WITHOUT_FACTS, _CERTAIN = 0.35, 0.6, 0.75
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
        if share >= (_WITH_FACTS if facts else _CERTAIN):
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
