"""What a claim says and its evidence does not: identifiers, numbers and names out of place, and opposites. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING, TypeAlias

from recollect.answer._names import Name, abbreviates, fold, holds, is_weekday, names
from recollect.answer._number_words import CONVERSIONS, MONTHS
from recollect.answer._polarity import contradiction, turned_around
from recollect.answer._quantities import Quantity, without_year, year_of
from recollect.answer.evidence import Clause, Piece, Sources, content_terms, covered
from recollect.model.answer import UnsupportedReason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recollect.answer._claims import Claim


# Who does what: whether a claim gives one what its evidence says of another, or turns a direction round. Pure.


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


# Numbers that follow from those of the evidence: sums, differences, multiples, spans of time. Pure.


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


#: What is wrong, and the same in words.
Fault: TypeAlias = tuple[UnsupportedReason, str]
#: A term or a number, and how much it says.
Context: TypeAlias = "dict[str | Quantity, float]"

_QUANTITY_WEIGHT = 3.0
# What names and identifiers say of which thing a number is.
_NAME_WEIGHT = 4.0
_CUT_OFF = 0.25
# By how much other evidence must fit better for a number, or a name, to belong there.
_MARGIN = 0.15
# What a rival must hold of what is said around a number to be one.
_LEAST_RIVAL = 0.4
_SAME_CLAUSE = 0.55
_NEARLY_ALL = 0.75
_DOES = re.compile(
    r"(?:['’]s?\s|\s+(?:\w+ly\s+)?(?:\w+[^s\W]s|\w+ed|is|was|has|will|can|may|must|ist|hat|wird|kann|est|a|peut|es|tiene)\b)"
)
_YEAR = re.compile(r"(?:1[5-9]|20|21)\d\d")
_ORDINAL = re.compile(r"\d(?:st|nd|rd|th)\.?\Z|(?:first|second|third|fth|xth|enth|hth|nth|eth)\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Case:
    """A claim beside the evidence that it is checked with.

    Attributes:
        claim: What is said.
        pool: The pieces that may support it.
        chosen: Those that hold most of it together, the best first.
        sources: What was shown.
        alike: Whether a word means nearly the same as one of others.
    """

    claim: Claim
    pool: Sequence[Piece]
    chosen: Sequence[Piece]
    sources: Sources
    alike: Callable[[str, Sequence[str]], bool]

    @property
    def foreign(self) -> bool:
        """Whether the evidence is in another language than the claim: words do not match then."""
        return bool(self.chosen) and self.chosen[0].language != self.claim.language

    def context(self, start: int, end: int, *, but: object = None) -> Context:
        """What the claim says around a place, by how much that tells what is spoken of."""
        telling = {name.folded for name in self.claim.names} | {one.folded for one in self.claim.identifiers}
        found: Context = {}
        for term, share in self.claim.near(start, end).items():
            tells = term in telling or term.replace("-", "") in telling
            # A name says what is spoken of from farther away than a word does.
            weight = _NAME_WEIGHT * max(share, 0.75) if tells and share > _CUT_OFF else share
            found[term] = self.sources.weight(term) * weight
        return found | {other: _QUANTITY_WEIGHT for other in self.claim.quantities if other is not but}


def fault_in(case: Case) -> Fault | None:
    """The first thing that is wrong with a claim; None where nothing is found."""
    if any(case.claim.folded in piece.folded for piece in case.chosen):
        # Word for word; it may still be the part of a sentence that denies it.
        return _opposites(case)
    for check in (_identifiers, _quantities, _names, _opposites, _roles):
        fault = check(case)
        if fault is not None:
            return fault
    return None


def share_of(context: Context, terms: frozenset[str], held: Sequence[Quantity]) -> float:
    """How much of a context evidence holds, 0 to 1."""
    total = sum(context.values())
    if not total:
        return 0.0
    return (
        sum(
            weight * (float(one.found_in(held)) if isinstance(one, Quantity) else covered(one, terms))
            for one, weight in context.items()
        )
        / total
    )


def _whole(context: Context) -> Callable[[Piece], float]:
    return lambda piece: share_of(context, piece.all_terms, (*piece.quantities, *piece.around_quantities))


def _identifiers(case: Case) -> Fault | None:
    for code in case.claim.identifiers:
        said = code.text.casefold()
        if not any(code.folded in piece.codes or said in piece.text.casefold() for piece in case.pool):
            return "identifier", f"{code.text!r} stands in no evidence"
    return None


def _quantities(case: Case) -> Fault | None:
    for quantity in case.claim.quantities:
        kind: UnsupportedReason = "number" if quantity.kind == "number" else "date"
        holders = _holders(quantity, case.pool)
        if not holders:
            if any(quantity.found_in(piece.around_quantities) for piece in case.chosen or case.pool):
                continue
            if follows(quantity, case.claim, case.chosen):
                continue
            return kind, f"{quantity.text.strip()!r} stands in no evidence"
        if case.foreign:
            continue
        other = _belongs_elsewhere(case, quantity, holders)
        if other is not None:
            return kind, f"{quantity.text.strip()!r} is said of something else; of this the evidence says {other!r}"
    return None


def _holders(quantity: Quantity, pool: Sequence[Piece]) -> list[Piece]:
    holders = [piece for piece in pool if quantity.found_in(piece.quantities)]
    year = year_of(quantity) if quantity.kind == "date" else None
    if holders or year is None:
        return holders
    day = without_year(quantity)
    everywhere = [one for piece in pool for one in (*piece.quantities, *piece.around_quantities)]
    years = {value for one in everywhere for value in one.values} | {said[0] for one in everywhere for said in one.days}
    if year not in years or all(part is None for said in day.days for part in said):
        return []
    # A day that the evidence gives another year is another day.
    return [piece for piece in pool if any(day.found_in([one]) and year_of(one) is None for one in piece.quantities)]


def _belongs_elsewhere(case: Case, quantity: Quantity, holders: Sequence[Piece]) -> str | None:
    """The number that the evidence has where it speaks of what the claim says this one of."""
    context = case.context(quantity.start, quantity.end, but=quantity)
    if not context:
        return None
    whole = _whole(context)
    unit = _unit_of(quantity, holders)
    own = max(whole(piece) for piece in holders)
    for piece in case.pool:
        if not any(piece is holder for holder in holders):
            rival = _rival(case, quantity, unit, piece.quantities)
            if rival is None:
                continue
            compared = _whole(_without(context, rival))
            least = max(compared(holder) for holder in holders) + _MARGIN
            if compared(piece) > max(least, _LEAST_RIVAL):
                return rival.text.strip()
    return _elsewhere_within(case, quantity, [piece for piece in holders if whole(piece) >= own - _MARGIN], context)


def _elsewhere_within(case: Case, quantity: Quantity, holders: Sequence[Piece], context: Context) -> str | None:
    """As `_belongs_elsewhere`, among the parts of the pieces that hold the number: in all of them it is so."""
    found: str | None = None
    unit = _unit_of(quantity, holders)
    for piece in holders:
        parts = [(share_of(context, part.terms, part.quantities), part) for part in piece.parts]
        own = [(share, part) for share, part in parts if quantity.found_in(part.quantities)]
        if not own:
            return None
        best_part = max(own, key=lambda one: one[0])[1]
        better = [
            rival.text.strip()
            for _, part in parts
            if not quantity.found_in(part.quantities)
            and (rival := _rival(case, quantity, unit, part.quantities))
            and _fits_better(_without(context, rival), part, best_part)
        ]
        stolen = _stolen_from(case, piece, best_part)
        if not better and stolen is None:
            return None
        found = better[0] if better else stolen
    return found


def _fits_better(context: Context, part: Clause, other: Clause) -> bool:
    share = share_of(context, part.terms, part.quantities)
    return share > max(share_of(context, other.terms, other.quantities) + _MARGIN, _LEAST_RIVAL)


def _without(context: Context, rival: Quantity) -> Context:
    """The context without the rival itself, which the claim may say elsewhere."""
    return {one: weight for one, weight in context.items() if not (isinstance(one, Quantity) and one.found_in([rival]))}


def _stolen_from(case: Case, piece: Piece, part: Clause) -> str | None:
    """The name that a sentence of several parts has where the claim has the name of another part."""
    if len(piece.parts) < 2:
        return None
    said = frozenset(name.folded for name in case.claim.names)
    strangers = [name for name in said if not holds(part.names | part.terms | piece.around_words, name)]
    elsewhere = [name for name in strangers if any(holds(other.names, name) for other in piece.parts)]
    rivals = [name for name in part.names & piece.names if not holds(said, name)]
    return rivals[0] if elsewhere and rivals else None


def _shape(quantity: Quantity) -> str:
    """Whether a number without a unit is a year, a place in an order, or an amount."""
    if quantity.kind != "number":
        return quantity.kind
    if _YEAR.fullmatch(quantity.text.strip()):
        return "year"
    return "ordinal" if _ORDINAL.search(quantity.text.strip()) else "amount"


def _unit_of(quantity: Quantity, holders: Sequence[Piece]) -> str | None:
    """Of a number without a unit the one that its evidence gives it."""
    found = (one.unit for piece in holders for one in piece.quantities if quantity.found_in([one]))
    return quantity.unit or next(found, None)


def _rival(case: Case, quantity: Quantity, unit: str | None, others: Iterable[Quantity]) -> Quantity | None:
    """A number that could stand in the place of another, and is not said by the claim in the same breath."""
    for other in others:
        if other.kind != quantity.kind or quantity.found_in([other]):
            continue
        said = (one for one in case.claim.quantities if one.found_in([other]))
        if (
            other.unit == (quantity.unit or unit)
            and (other.unit or _shape(other) == _shape(quantity))
            and not any(case.claim.together(one, quantity) for one in said)
        ):
            return other
    return None


def _names(case: Case) -> Fault | None:
    near = [*case.chosen, *(one for piece in case.chosen for one in case.sources.before(piece, 2))]
    chosen_words = frozenset[str]().union(*(piece.words for piece in case.chosen))
    near_words = frozenset[str]().union(*(piece.words for piece in near))
    for name in case.claim.names:
        if _is_month_of(name, near) or any(abbreviates(name.text, f"{piece.text} {piece.around}") for piece in near):
            continue
        rivals = _rival_names(case, case.chosen)
        held = holds(chosen_words, name.folded) or _is_word_of(case, name)
        if held:
            if _taken_from_elsewhere(case, name):
                return "name", f"{name.text!r} is said of something else"
            continue
        if holds(near_words, name.folded) and not rivals:
            continue
        if _is_name(case, name, rivals):
            return "name", f"{name.text!r} does not stand in the evidence"
    return None


def _is_month_of(name: Name, pieces: Sequence[Piece]) -> bool:
    month = MONTHS.get(name.folded)
    dates = (one for piece in pieces for one in (*piece.quantities, *piece.around_quantities))
    return month is not None and any(day[1] == month for one in dates for day in one.days)


def _is_word_of(case: Case, name: Name) -> bool:
    """Whether a capital word is a form of a word of the evidence, as at the beginning of a sentence."""
    if name.inside:
        return False
    terms = case.claim.split(name.text)
    return bool(terms) and all(any(covered(term, piece.all_terms) for piece in case.chosen) for term in terms)


def _rival_names(case: Case, pieces: Sequence[Piece]) -> set[str]:
    said = frozenset(name.folded for name in case.claim.names)
    return {name for piece in pieces for name in case.sources.names_of(piece) if not holds(said, name)}


def _taken_from_elsewhere(case: Case, name: Name) -> bool:
    """Whether the evidence that speaks of the rest of the claim has another name in this one's place."""
    if case.foreign or not name.inside:
        return False
    context = case.context(name.start, name.start + len(name.text))
    for term in case.claim.split(name.text):
        context.pop(term, None)
    whole = _whole(context)
    holders = [piece for piece in case.pool if holds(piece.words, name.folded)]
    own = max((whole(piece) for piece in holders), default=0.0)
    others = [piece for piece in case.chosen if not any(piece is holder for holder in holders)]
    best = max(others, key=whole, default=None)
    return best is not None and whole(best) > max(own + _MARGIN, _NEARLY_ALL) and bool(_rival_names(case, [best]))


def _is_name(case: Case, name: Name, rivals: set[str]) -> bool:
    """Whether a capital word that the evidence lacks is a proper name, and not the beginning of a sentence."""
    if name.folded in MONTHS or is_weekday(name.folded):
        return not case.foreign
    if name.folded in case.sources.plain_words:
        words = [word for piece in case.chosen for word in piece.text.split()]
        return name.inside and not case.foreign and bool(words) and not case.alike(name.text, words)
    if name.folded in case.sources.inner_names:
        return True
    if case.foreign:
        return False
    if name.inside:
        return True
    # At the beginning of a sentence any word is written so: a name, where it does something without an article, in the
    # place of another.
    if not _DOES.match(case.claim.text, name.start + len(name.text)):
        return False
    said = frozenset(one.folded for one in case.claim.names)
    initial = [word for piece in case.chosen[:1] for word in piece.initial & case.sources.capital_words]
    replaced = {
        *(one for one in rivals if one in case.sources.inner_names),
        *(one for one in initial if not holds(said, one)),
    }
    return bool(replaced) and not case.alike(name.text, [word for piece in case.chosen for word in piece.text.split()])


def _roles(case: Case) -> Fault | None:
    """What the claim says of one, or one way, and the evidence of another, or the other way round."""
    if not case.chosen or case.foreign:
        return None
    way = turned_direction(case.claim.text, [piece.text for piece in case.pool])
    if way is not None:
        return "contradiction", f"the evidence says it the other way round ({way})"
    other = given_to_another(case.claim, case.pool, case.sources)
    return None if other is None else ("name", f"the evidence says it of {other!r}")


def _opposites(case: Case) -> Fault | None:
    """What the claim says the other way round than the evidence that speaks of the same."""
    if not case.chosen or case.foreign:
        return None
    parts = [part for piece in case.chosen for part in piece.clauses]
    for text, terms in case.claim.clauses:
        turned = turned_around(text, [part.text for part in parts])
        if turned is not None:
            return "contradiction", f"the evidence says the opposite ({turned})"
        weights = {term: case.sources.weight(term) for term in terms}
        total = sum(weights.values())
        if not total:
            continue
        spoken = [
            (sum(weight * covered(term, part.terms) for term, weight in weights.items()) / total, part)
            for part in parts
            if len(terms) > 1 or len(part.terms) <= 2
        ]
        best = max((share for share, _ in spoken), default=0.0)
        if best < _SAME_CLAUSE:
            continue
        faults = [contradiction(text, part.text) for share, part in spoken if share >= best - 0.1]
        if faults and all(faults):
            return "contradiction", f"the evidence says the opposite ({faults[0]})"
    return None
