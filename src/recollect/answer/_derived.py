"""Numbers that follow from those of the evidence: sums, differences, multiples, spans of time. Pure."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING

from recollect.answer._number_words import CONVERSIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from recollect.answer._claims import Claim
    from recollect.answer._quantities import Quantity
    from recollect.answer.evidence import Piece

_SUM = re.compile(
    r"\b(?:totals?|together|in all|combined|altogether|overall|sum|insgesamt|zusammen|ensemble|en total|in totale)\b",
    re.IGNORECASE,
)
_DIFFERENCE = re.compile(
    r"\b(?:more|less|fewer|higher|lower|heavier|lighter|cheaper|dearer|longer|shorter|older|younger|bigger|smaller|"
    r"larger|greater|difference|by|um|mehr|weniger|höher|niedriger|Unterschied)\b",
    re.IGNORECASE,
)
_MULTIPLE = re.compile(r"\b(?:equals?|times|corresponds?|months['’]|twice|entspricht|\w*fache[nsr]?)", re.IGNORECASE)
_CENTS = re.compile(r"(?:\s*(?:to|and|or|-|–|bis|und)\s*\d+)?\s*(?:cents?|pence|ct)\b", re.IGNORECASE)
_MONEY = ("USD", "EUR", "GBP")


def follows(quantity: Quantity, claim: Claim, pieces: Sequence[Piece]) -> bool:
    """Whether a number of a claim, which stands in no evidence, follows from the numbers of one piece of it.

    A sum needs a word that says so ("in total"), and so do a difference ("heavier by") and a multiple.
    """
    if quantity.kind != "number":
        return False
    readings = [quantity, *_otherwise(quantity, claim)]
    held = [one for piece in pieces for one in piece.quantities]
    if any(reading.found_in(held) for reading in readings[1:]):
        return True
    return any(
        reading.found_in([made]) for piece in pieces for made in _made_of(piece, claim.text) for reading in readings
    )


def _otherwise(quantity: Quantity, claim: Claim) -> Iterator[Quantity]:
    """The number with the unit that stands elsewhere: "from 38 to 45 cents", "three years, the other five"."""
    if quantity.unit is not None:
        return
    if _CENTS.match(claim.text, quantity.end):
        for unit in _MONEY:
            yield replace(quantity, values=frozenset(value / 100 for value in quantity.values), unit=unit)
    for other in claim.quantities:
        if other.unit in CONVERSIONS and other.end <= quantity.start:
            yield replace(quantity, unit=other.unit)


def _made_of(piece: Piece, text: str) -> Iterator[Quantity]:
    numbers = [one for one in piece.quantities if one.kind == "number" and len(one.values) == 1]
    for one, other in combinations(numbers, 2):
        if one.unit != other.unit:
            continue
        (first,), (second,) = one.values, other.values
        if _SUM.search(text):
            yield replace(one, values=frozenset({first + second}))
        if _DIFFERENCE.search(text):
            yield replace(one, values=frozenset({abs(first - second)}))
        if _MULTIPLE.search(text) and first and second:
            yield replace(one, values=frozenset({max(first, second) / min(first, second)}), unit=None)
    days = [day for one in piece.quantities if one.kind == "date" for day in one.days if None not in day]
    for before, after in combinations(sorted(days), 2):
        months = (after[0] - before[0]) * 12 + after[1] - before[1] + Fraction(after[2] - before[2], 30)  # type: ignore[operator]
        if abs(months - round(months)) < Fraction(1, 10):
            yield replace(piece.quantities[0], kind="number", values=frozenset({Fraction(round(months))}), unit="month")
