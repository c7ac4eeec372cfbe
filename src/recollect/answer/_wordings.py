"""Words of a question that texts may put otherwise: whether a piece holds them, and the question in its words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recollect.model.wording import Wording
    from recollect.retrieval.analysis import Analyzer

Terms = frozenset[str]
#: Terms in their order.
Words = Sequence[str]

# A part of a row's label, above the row's own name, says what the row is of where so much of it is the name.
_NAMES_IT = 0.66
# Words that may stand between those of a name.
_BETWEEN = 2
# How well a sentence names a measure; a row that has nothing but its name does by 1.
_IN_A_SENTENCE = 0.25
_A_YEAR = re.compile(r"(?:19|20)\d\d")
# A sentence, or a row's label, with such a word tells what became of a measure and not how large it is.
_CHANGE = re.compile(
    r"\b(?:increas|decreas|declin|chang|grew|grow|impact|percent|compar|rose|fell|lower|higher)\w*|%", re.IGNORECASE
)
# What is asked with such a word is computed of several figures.
_COMPUTED = re.compile(r"\b(?:average|mean|median|ratio|margin|share of|percent)|%", re.IGNORECASE)
# Words that alone name no row.
_SUMMING = "total net other"


@dataclass(frozen=True, slots=True)
class _Known:
    """A wording and the terms of its names, the original's first."""

    wording: Wording
    names: tuple[tuple[str, ...], ...]

    @property
    def original(self) -> Terms:
        return frozenset(self.names[0])

    @property
    def is_year(self) -> bool:
        others = self.wording.others
        return self.wording.needed and len(others) == 1 and _A_YEAR.fullmatch(others[0]) is not None


@dataclass(frozen=True, slots=True)
class Held:
    """What a piece holds of a question's wordings.

    Attributes:
        replaced: Words of the question, and what stands for them in the piece.
        terms: Of the question's words that it holds by another name.
        named: How much of what it calls the measures asked for is their name, 0 to 1.
        missing: How many measures and fiscal years it does not tell of.
    """

    replaced: tuple[tuple[str, str], ...]
    terms: Terms
    named: float
    missing: int

    def reworded(self, question: str) -> str:
        """The question in the piece's words."""
        for original, other in self.replaced:
            at = re.search(rf"(?<!\w){re.escape(original)}(?!\w)", question, re.IGNORECASE)
            question = question if at is None else question[: at.start()] + other + question[at.end() :]
        return question


class Wordings:
    """What a question's words may be called.

    Args:
        question: As asked.
        wordings: From the search that found the texts.
        analyzer: Splits texts into terms.
    """

    def __init__(self, question: str, wordings: Sequence[Wording], analyzer: Analyzer) -> None:
        self._analyzer = analyzer
        found = [
            _Known(one, tuple(tuple(analyzer.query_terms(text)) for text in (one.original, *one.others)))
            for one in wordings
        ]
        found = [one for one in found if one.original]
        self._years = [one for one in found if one.is_year]
        self._measures = [one for one in found if one.wording.needed and not one.is_year]
        self._others = [one for one in found if not one.wording.needed]
        self._computes = _computing(question)
        self._of_change = bool(_CHANGE.search(question))
        # Of a year without a measure that is known, what is asked for is what a row is called.
        self._asked = frozenset(analyzer.query_terms(question))
        self._summing = frozenset(analyzer.query_terms(_SUMMING))

    @property
    def years(self) -> Terms:
        """The fiscal years that the question names, as years."""
        return frozenset(one.wording.others[0] for one in self._years)

    @property
    def needed(self) -> bool:
        """Whether nothing answers without some of them."""
        return bool(self._years or self._measures)

    def held(self, text: str, terms: Terms, path: Sequence[Words], years: Terms) -> Held:
        """What a piece holds.

        Args:
            text: Of the piece.
            terms: Its terms.
            path: Those of each part of a row's label, its own name last; empty for what is no row.
            years: That the piece tells of.
        """
        others = [(one, _first(one.names[1:], terms)) for one in self._others]
        measures = [(one, *self._named(one.names, text, path)) for one in self._measures]
        told = [one for one in self._years if one.wording.others[0] in years]
        met = [(one, at + 1) for one, at in others if at is not None]
        met += [(one, at) for one, at, _ in measures if at is not None]
        met += [(one, 1) for one in told]
        named = sum(share for *_, share in measures) / max(1, len(measures))
        missing = sum(at is None for _, at, _ in measures) + len(self._years) - len(told)
        if self.needed:
            missing += not self._computes <= _computing(text)
        if self._years and not measures:
            named = float(self._is_asked_for(path))
            missing += not named
        return Held(
            replaced=tuple((one.wording.original, (one.wording.original, *one.wording.others)[at]) for one, at in met),
            terms=frozenset[str]().union(*(one.original for one, _ in met)),
            named=named,
            missing=missing,
        )

    def _is_asked_for(self, path: Sequence[Words]) -> bool:
        """Whether all that a row is called stands in the question."""
        own = frozenset(path[-1]) - self._summing if path else frozenset()
        return bool(own) and own <= self._asked

    def _named(self, names: Sequence[Words], text: str, path: Sequence[Words]) -> tuple[int | None, float]:
        """Which name of a measure a piece has, and how much of what it is called there that is."""
        told = " ".join(word for part in path for word in part) if path else text
        if _CHANGE.search(told) and not self._of_change:
            return None, 0.0
        if not path:
            words = self._analyzer.terms(text)
            return next(((at, _IN_A_SENTENCE) for at, name in enumerate(names) if _stands_in(name, words)), (None, 0.0))
        best: tuple[int | None, float] = (None, 0.0)
        for at, name in enumerate(names):
            for level, part in enumerate(path, start=1):
                share = len(name) / len(part) if _stands_in(name, part) else 0.0
                if share > best[1] and (level == len(path) or (at and share >= _NAMES_IT)):
                    best = (at, min(1.0, share))
        return best


def _computing(text: str) -> frozenset[str]:
    """The words of a text that say how a figure is computed."""
    return frozenset("%" if word == "percent" else word for word in map(str.lower, _COMPUTED.findall(text)))


def _first(names: Iterable[Words], terms: Terms) -> int | None:
    return next((at for at, name in enumerate(names) if name and terms.issuperset(name)), None)


def _stands_in(name: Words, words: Words) -> bool:
    """Whether the words of a name stand in their order and close to one another."""
    for start in (at for at, word in enumerate(words) if name and word == name[0]):
        stretch = iter(words[start : start + len(name) + _BETWEEN])
        if all(word in stretch for word in name):
            return True
    return False
