"""What a question asks for, read once: its terms, the kind of answer, names, amounts, whether of the past."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recollect.answer._kind_forms import Kind
from recollect.answer._kinds import READ_CHARACTERS, attribute, expected_kind, is_english
from recollect.answer._question_names import names_in, titled_words, without_titled
from recollect.answer._wordings import Wordings
from recollect.languages.characters import plain_digits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.model.wording import Wording
    from recollect.retrieval.analysis import Analyzer

_CURRENCY = r"(?:EUR|USD|GBP|CHF|JPY|[$€£¥])"
_NUMBER = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
_YEAR = re.compile(r"(?<![\d.,])(?:19|20)\d\d(?![\d%]|[.,]\d)")
_AMOUNT = re.compile(
    rf"{_CURRENCY} ?(?P<before>{_NUMBER})|(?P<behind>{_NUMBER}) ?(?:euros?|dollars?|pounds?|{_CURRENCY})"
)
_MORE_THAN = re.compile(r"\b(?:more than|above|over|exceed(?:s|ing)?|higher than) ?\Z", re.IGNORECASE)
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
_SAYING = re.compile(
    r"\b(?:mention\w*|discuss\w*|describ\w*|sa(?:y|ys|id)|claim(?:s|ed)?|promis\w*|urg(?:es?|ed)|emphasi[sz]\w*|"
    r"propos(?:es?|ed)|announc\w*|address(?:ed|es)?|argu(?:es?|ed)|believ\w*|explain\w*|suggest\w*|request\w*|"
    r"views?|thinks?|opinion|reasons? did|stated?)\b",
    re.IGNORECASE,
)
# Where something was said, or by whom, which the texts that hold it do not repeat.
_FRAME = re.compile(
    r",?\s+as (?:mentioned|described|stated|outlined|discussed|announced|explained|reported|given)\b[^,?.;]*|"
    r"(?:,?\s+|\A)(?:according to|in the (?:words|opinion|view) of) [^,?.;]*|"
    r"\s+(?:in|during|from) (?:his|her|their|its|the|this) (?:[\w'’]+ ){0,5}?"
    r"(?:address|speech|statement|talk|remarks|interview|presentation|lecture|letter)\b",
    re.IGNORECASE,
)
_SENTENCES = re.compile(r"(?<=[.?!:])\s+")
# "Answer in USD millions." "Assume that you are an analyst." "Use the balance sheet."
_HOW = re.compile(
    r"(?:please )?(?:answer|respond|reply|give|assume|use|utili[sz]e|round|calculate|compute|base|rely|express|state)\b"
    r"(?=[^?]*\Z)",
    re.IGNORECASE,
)
_FEWEST_WORDS = 4
_FRAME_WORDS = re.compile(r"\b(?:specific|significant|key|examples?|mentioned|discussed|described)\b", re.IGNORECASE)
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
        core: Without what tells only by whom or where something was said ("according to the minutes").
        terms: To be searched for.
        kind: Of the expected answer.
        attribute: The terms for what it wants to know of something, the noun last: "annual premium"; none where that is
            not plain.
        names: Each as its words (`recollect.answer._question_names`).
        unnamed: Words of names that the texts need not hold: those of people by their title.
        years: Those that it names.
        amount: The sum of money that it names, where it names one.
        past: Whether it asks for what held before.
        said: Whether it asks what somebody said.
        wordings: What texts may say in place of its words.
    """

    text: str
    core: str
    terms: frozenset[str]
    kind: Kind
    attribute: tuple[str, ...]
    names: tuple[frozenset[str], ...]
    unnamed: frozenset[str]
    years: frozenset[str]
    amount: float | None
    past: bool
    said: bool
    wordings: Wordings


def understand(
    question: str, analyzer: Analyzer, language: str | None = None, wordings: Sequence[Wording] = ()
) -> Asked:
    """Read a question that is asked of texts in a language; None: nothing is known of it."""
    known = Wordings(question, wordings, analyzer)
    english = is_english(question)
    plain = _without_instructions(question) if english else question
    core = _core(plain) if english else question
    titled = titled_words(question)
    said = english and (core != plain or bool(titled and _SAYING.search(question)))
    amounts = [_asked_amount(match) for match in _AMOUNT.finditer(question)]
    return Asked(
        text=question,
        core=core,
        terms=_terms(core, analyzer, said=said),
        kind=expected_kind(question, language),
        attribute=tuple(analyzer.query_terms(attribute(question) or "")),
        names=names_in(core),
        unnamed=titled,
        years=years_in(question) | known.years,
        amount=amounts[0] if len(amounts) == 1 else None,
        past=english and bool(_ASKS_FOR_PAST.search(question[:READ_CHARACTERS])),
        said=said,
        wordings=known,
    )


def _asked_amount(match: re.Match[str]) -> float:
    """A sum that a question names; "more than EUR 500" is not in the range that ends with it."""
    above = _MORE_THAN.search(match.string, max(0, match.start() - 30), match.start())
    return _value(match["before"] or match["behind"]) * (1.000001 if above else 1)


def _without_instructions(question: str) -> str:
    """A question without its sentences on how it is to be answered; as it is, where none of the others asks."""
    kept = " ".join(sentence for sentence in _SENTENCES.split(question) if not _HOW.match(sentence))
    return kept if "?" in kept and len(kept.split()) >= _FEWEST_WORDS else question


def _core(question: str) -> str:
    """A question for what was said, without where or by whom; the question itself, where hardly anything is left."""
    if not _FRAME.search(question):
        return question
    core = _FRAME.sub("", question).strip(" ,")
    return core if len(core.split()) >= _FEWEST_WORDS else question


def _terms(core: str, analyzer: Analyzer, *, said: bool) -> frozenset[str]:
    terms = frozenset(analyzer.query_terms(core))
    if not said:
        return terms
    return frozenset(analyzer.query_terms(without_titled(_FRAME_WORDS.sub(" ", core)))) or terms


def tells_of_another_year(asked: Asked, text: str, around: str) -> bool:
    """Whether a text names years, and neither it nor what stands around it names one that is asked for."""
    if not asked.years:
        return False
    told = years_in(text)
    return bool(told) and not asked.years & (told | years_in(around))


def years_in(text: str) -> frozenset[str]:
    """The years that a text names."""
    return frozenset(_YEAR.findall(plain_digits(text)))


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
