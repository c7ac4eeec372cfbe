"""Who does what: whether a claim gives one what its evidence says of another, or turns a direction round. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from recollect.answer._names import fold, holds, names
from recollect.answer.evidence import content_terms, covered

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from recollect.answer._claims import Claim
    from recollect.answer.evidence import Piece, Sources

_FROM_TO = re.compile(r"\b(?:from|von|aus|de|da) (?P<one>[A-ZÀ-Þ]\w+) (?:to|nach|à|a) (?P<other>[A-ZÀ-Þ]\w+)")
_NEXT = re.compile(
    r";\s|[.!?]\s|,\s(?:and|but|while|whereas|und|aber|während)?\s?"
    r"(?=(?:[A-Z][a-z]*\.? )?(?:the |der |die |das )?[A-Z])"
)
_TITLES = frozenset(["ms", "mr", "mrs", "dr", "prof", "professor", "frau", "herr", "sir", "madame", "monsieur"])
_SAME = 0.75
_NEARLY = 0.15
_FEWEST_TERMS = 2


def turned_direction(text: str, evidence: Sequence[str]) -> str | None:
    """The way that the evidence goes, where a claim goes it the other way round."""
    for match in _FROM_TO.finditer(text):
        for other in evidence:
            for way in _FROM_TO.finditer(other):
                if (way["one"], way["other"]) == (match["other"], match["one"]):
                    return way.group()
    return None


def given_to_another(claim: Claim, pool: Sequence[Piece], sources: Sources) -> str | None:
    """The name of which the evidence says what a part of the claim says of another name of the evidence."""
    inner = sources.inner_names
    parts = [(part, piece) for piece in pool for part in _parts(piece.text, piece.language, inner)]
    known = frozenset[str]().union(*(piece.words for piece in pool))
    for said, own in _parts(claim.text, claim.language, inner):
        wanted = content_terms(said, claim.split)
        wanted = frozenset(term for term in wanted if term in claim.terms)
        wanted -= frozenset(term for name in own for term in content_terms(name, claim.split))
        if not own or len(wanted) < _FEWEST_TERMS or not all(holds(known, name) for name in own):
            continue
        weights = {term: sources.weight(term) for term in wanted}
        shares = [
            (
                sum(weight * covered(term, content_terms(part[0], claim.split)) for term, weight in weights.items())
                / sum(weights.values()),
                part[1],
                piece,
            )
            for part, piece in parts
        ]
        best = max((share for share, _, _ in shares), default=0.0)
        if best < _SAME:
            continue
        near = [(there, piece) for share, there, piece in shares if share >= best - _NEARLY]
        if any(not there or any(holds(there | piece.around_words, name) for name in own) for there, piece in near):
            continue
        return min(near[0][0])
    return None


def _parts(text: str, language: str, inner: frozenset[str]) -> Iterator[tuple[str, frozenset[str]]]:
    """The parts of a sentence that speak of one after the other, each with its names."""
    start = 0
    for match in [*_NEXT.finditer(text), None]:
        part = text[start : match.start() if match else len(text)]
        start = match.end() if match else len(text)
        found = frozenset(name.folded for name in names(part, language=language) if name.inside or name.folded in inner)
        codes = frozenset(fold(code) for code in re.findall(r"\b[A-Z]+\d+\b", part))
        yield part, (found | codes) - _TITLES
