"""What a question asks for, read once: its terms, the kind of answer, names, amounts, whether of the past."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recollect.answer._kinds import Kind, attribute, expected_kind, is_english
from recollect.answer._question_names import names_in, titled_words

if TYPE_CHECKING:
    from recollect.retrieval.analysis import Analyzer

_CURRENCY = r"(?:EUR|USD|GBP|CHF|JPY|[$€£¥])"
_NUMBER = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
_AMOUNT = re.compile(
    rf"{_CURRENCY} ?(?P<before>{_NUMBER})|(?P<behind>{_NUMBER}) ?(?:euros?|dollars?|pounds?|{_CURRENCY})"
)
_RANGE = re.compile(
    rf"{_CURRENCY} ?(?P<low>{_NUMBER}) ?(?:to|and|-|–) ?{_CURRENCY}? ?(?P<high>{_NUMBER})", re.IGNORECASE
)
_UP_TO = re.compile(rf"\b(?:up to|at most|below|under|less than) {_CURRENCY} ?(?P<high>{_NUMBER})", re.IGNORECASE)
_FROM = re.compile(rf"\b(?:above|over|more than|from|at least) {_CURRENCY} ?(?P<low>{_NUMBER})", re.IGNORECASE)
_ASKS_FOR_PAST = re.compile(
    r"\b(?:old|older|former(?:ly)?|previous(?:ly)?|before|earlier|used to|changed?|history|superseded|replaced?|"
    r"originally|at that time|back then|under (?:the )?version|version \d|(?:was|were|did|had)\b.*\b(?:19|20)\d\d)\b",
    re.IGNORECASE,
)
_ASKS_WHAT_WAS_SAID = re.compile(
    r"\b(?:according to|mention\w*|discuss\w*|describ\w*|sa(?:y|ys|id)|claim(?:s|ed)?|promis\w*|urg(?:es?|ed)|"
    r"emphasi[sz]\w*|propos(?:es?|ed)|announc\w*|speech|statement|address(?:ed|es)?|argu(?:es?|ed)|believ\w*|"
    r"explain\w*|suggest\w*|views?|thinks?|opinion|reasons? did)\b",
    re.IGNORECASE,
)
_TELLS_PAST = re.compile(
    r"\b(?:replaces|replacing|former(?:ly)?|previous(?:ly)?|superseded|used to be|no longer in force|"
    r"in which .{0,80}\b(?:was|were|had)\b)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, understood as far as its words tell.

    Attributes:
        text: As asked.
        terms: To be searched for.
        kind: Of the expected answer.
        attribute: The terms for what it wants to know of something: "annual premium"; none where that is not plain.
        names: Each as its words (`recollect.answer._question_names`).
        unnamed: Words of names that the texts need not hold: those of people by their title, or of whoever said
            something.
        amount: The sum of money that it names, where it names one.
        past: Whether it asks for what held before.
    """

    text: str
    terms: frozenset[str]
    kind: Kind
    attribute: frozenset[str]
    names: tuple[frozenset[str], ...]
    unnamed: frozenset[str]
    amount: float | None
    past: bool


def understand(question: str, analyzer: Analyzer) -> Asked:
    """Read a question."""
    names = names_in(question)
    said = is_english(question) and _ASKS_WHAT_WAS_SAID.search(question)
    amounts = [_value(match["before"] or match["behind"]) for match in _AMOUNT.finditer(question)]
    return Asked(
        text=question,
        terms=frozenset(analyzer.query_terms(question)),
        kind=expected_kind(question),
        attribute=frozenset(analyzer.query_terms(attribute(question) or "")),
        names=names,
        unnamed=frozenset(word for name in names for word in name) if said else titled_words(question),
        amount=amounts[0] if len(amounts) == 1 else None,
        past=is_english(question) and bool(_ASKS_FOR_PAST.search(question)),
    )


def in_range(amount: float | None, row: str) -> int:
    """1 where a row's range of money holds an amount, -1 where it does not, 0 where there is no range."""
    if amount is None:
        return 0
    if match := _RANGE.search(row):
        return 1 if _value(match["low"]) <= amount <= _value(match["high"]) else -1
    if match := _UP_TO.search(row):
        return 1 if amount <= _value(match["high"]) else -1
    if match := _FROM.search(row):
        return 1 if amount > _value(match["low"]) else -1
    return 0


def tells_of_past(text: str) -> bool:
    """Whether a text says what held before: what a new version replaces."""
    return bool(_TELLS_PAST.search(text))


def _value(number: str) -> float:
    return float(number.replace(",", ""))
