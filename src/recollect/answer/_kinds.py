"""What kind of answer a question expects, and whether a text holds one.

English is here; other languages have files of patterns (the folder ``kinds``), and questions in languages without one
expect nothing.
"""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import dataclass
from enum import Enum
from functools import cache, lru_cache
from importlib.resources import files

from recollect.languages import language_of_text
from recollect.languages.detection import plain_digits, simplified
from recollect.languages.stopwords import stopwords

# What questions ask with, and what answers look like, in languages other than English: a file of patterns each.
#
# A file ``kinds/LANGUAGE.json`` has ``asks``, patterns of questions by the kind of answer that they expect, and
# ``holds``, what a text has that may be such an answer: ``number`` (words for numbers), ``duration``, ``date`` and
# ``money``; ``dated`` are days, which are no counts of anything. Where ``capitals`` tell names, a person's answer has
# one, or a word of ``roles``. All patterns ignore case.


class Kind(Enum):
    """What a question asks for."""

    MONEY = "money"
    NUMBER = "number"
    DURATION = "duration"
    DATE = "date"
    PERSON = "person"
    PLACE = "place"
    YES_NO = "yes or no"
    DEFINITION = "definition"
    OTHER = "other"


#: Languages that there is a file for.
KIND_LANGUAGES = (
    "ar", "de", "el", "es", "fr", "hi", "it", "ja", "nl", "pt", "ro", "ru", "th", "tr", "vi", "zh",
)  # fmt: skip

#: Of kinds that a question asks for at the same place, the first counts.
_ORDER = (Kind.DURATION, Kind.MONEY, Kind.DATE, Kind.NUMBER, Kind.PERSON, Kind.PLACE, Kind.DEFINITION, Kind.YES_NO)
# A word within a sentence: its first letter.
_INNER_WORD = re.compile(r"(?<=\w[ ,;:|«\"“(])\W{0,2}([^\W\d_])\w")

# Whose questions are often typed without their marks, and the letters that are then typed for others.
_OFTEN_BARE = frozenset({"el", "es", "fr", "pt", "ro", "tr", "vi"})
_MARKS = re.compile("[\u0300-\u036f]")
_TYPED = str.maketrans("đĐıİß", "dDiIs")


@dataclass(frozen=True, slots=True)
class KindForms:
    """The patterns of a language.

    Attributes:
        asks: Of questions, by what they expect.
        bare: The same for questions that are typed without marks; none where nobody leaves them out.
        number: Digits and words for numbers.
        duration: Stretches of time, and how often.
        date: Moments.
        money: Currencies.
        dated: Days of the calendar.
        roles: Words for people; None: whether a text names somebody is not told.
    """

    asks: tuple[tuple[Kind, re.Pattern[str]], ...]
    bare: tuple[tuple[Kind, re.Pattern[str]], ...]
    number: re.Pattern[str]
    duration: re.Pattern[str]
    date: re.Pattern[str]
    money: re.Pattern[str]
    dated: re.Pattern[str]
    roles: re.Pattern[str] | None

    def expected(self, question: str) -> Kind:
        """What a question asks for; `Kind.OTHER` where that is not plain."""
        asks = self.bare if self.bare and bare(question) == question else self.asks
        found = [
            (match.start(), order, kind) for order, (kind, form) in enumerate(asks) if (match := form.search(question))
        ]
        return min(found, key=lambda one: one[:2])[2] if found else Kind.OTHER

    def names_somebody(self, text: str) -> bool:
        """Whether a text may name people; where that cannot be told, it may."""
        if self.roles is None:
            return True
        return bool(self.roles.search(text)) or any(match.group(1).isupper() for match in _INNER_WORD.finditer(text))


def bare(text: str) -> str:
    """A text in letters without marks, as it is typed in a hurry."""
    return _MARKS.sub("", unicodedata.normalize("NFD", text)).translate(_TYPED)


@cache
def forms_of(language: str) -> KindForms | None:
    """The patterns of a language; None where there are none.

    Args:
        language: ISO 639-1 code.
    """
    if language not in KIND_LANGUAGES:
        return None
    stored = json.loads(files("recollect.answer").joinpath("kinds", f"{language}.json").read_text("utf-8"))

    def form(pattern: str) -> re.Pattern[str]:
        return re.compile(pattern, re.IGNORECASE)

    asks, holds = stored["asks"], stored["holds"]
    asked = [(kind, asks[kind.value]) for kind in _ORDER if kind.value in asks]
    return KindForms(
        asks=tuple((kind, form(pattern)) for kind, pattern in asked),
        bare=tuple((kind, form(bare(pattern))) for kind, pattern in asked) if language in _OFTEN_BARE else (),
        number=form(rf"\d|{holds['number']}"),
        duration=form(holds["duration"]),
        date=form(holds["date"]),
        money=form(holds["money"]),
        dated=form(rf"{holds['dated']}|(?<![\d.,])(?:19|20)\d\d(?:-\d\d(?:-\d\d)?)?(?![\d%]|[.,]\d)"),
        roles=form(stored["roles"]) if stored["capitals"] else None,
    )


_I = re.IGNORECASE
_FORMS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    (
        Kind.DURATION,
        re.compile(
            r"\bhow (?:long|often|soon|quick(?:ly)?|fast|frequently)\b|"
            r"\bhow (?:far|long) (?:ahead|in advance|before)\b|"
            r"\bhow (?:many|much) (?:\w+ ){0,3}?(?:minutes?|hours?|days?|weeks?|months?|years?|time|leave|vacation)\b",
            _I,
        ),
    ),
    (
        Kind.MONEY,
        re.compile(
            r"\bhow (?:much|high|expensive)\b.*\b(?:cost|costs|pay|paid|pays|money|spend|spent|price|fee|charge[sd]?|"
            r"refund(?:ed)?|claim|allowance|bonus|salary|deductible|limit|rate|earn|contribut\w+|fine|worth|award)\b|"
            r"\bwhat\b.*\b(?:cost|costs|prices?|fees?|deductible|revenues?|profits?|salary|premium|allowance|dividends?|"
            r"net sales|charges?|(?:net|operating|gross) (?:income|earnings|loss))\b(?! tax)|"
            r"\b(?:amount|how much money)\b",
            _I,
        ),
    ),
    (
        Kind.DATE,
        re.compile(
            r"(?:^|[.,;:!?] |\band )\W*(?:until |since |by |from )?when\b|"
            r"\b(?:which|what) (?:\w+ )?(?:date|day|weekday|month|months|year|years|time|century)\b",
            _I,
        ),
    ),
    (
        Kind.NUMBER,
        re.compile(
            r"\bhow (?:many|much|high|large|big|heavy|tall|wide|deep|old|far)\b|"
            r"\b(?:what|which) (?:share|percentage|percent|proportion|rate|ratio|age|size|limit|value)\b|"
            r"\bwhat (?:is|was|are|were) (?:[\w’'-]+ ){1,5}?(?:number|percentage|share|rate|limit|maximum|minimum|"
            r"default|population|height|weight|size|length|speed|temperature|total|average)\b",
            _I,
        ),
    ),
    (Kind.PERSON, re.compile(r"(?:^|[.,;:!?] |\band )\W*(?:from |to |by |for |with )?(?:who|whom|whose)\b", _I)),
    (
        Kind.PLACE,
        re.compile(r"\bwhere\b|\b(?:in|at|to|from) (?:which|what) (?:city|country|place|town|room|office)\b", _I),
    ),
    (
        Kind.DEFINITION,
        re.compile(
            r"^\W*what (?:does|do|did) .{1,60} (?:mean|stand for)\b|"
            r"^\W*what (?:is|are|was|were) (?:an? |the )?[\w'’-]+\W*$",
            _I,
        ),
    ),
    (
        Kind.YES_NO,
        re.compile(
            r"^\W*(?:is|are|was|were|am|do|does|did|can|could|may|might|must|should|shall|will|would|has|have|had)\b",
            _I,
        ),
    ),
)

_ATTRIBUTE = re.compile(
    r"\b(?:what|who) (?:is|was) (?:the|our|my) (?P<of>[\w’' -]{3,60}?)"
    r"(?= (?:of|for|in|on|at|to|by|from|between|when|if|while|that|I|we)\b|\W*$)|"
    r"\bwhat (?:are|were) (?:the|our|my) (?P<these>[\w’' -]{0,40}?"
    r"(?:hours|times|costs|fees|prices|revenues|dimensions|limits))\b|"
    r"\bhow many (?:(?:days|hours|weeks|months|years) of )?(?P<many>[\w’' -]{3,40}?)(?= (?:does|do|did|are|is|was|were|"
    r"has|have|had|can|may|must|should|of|for|in|on|at|to|took|take|work|will)\b|\W*$)",
    _I,
)
# Nouns that a text may answer without.
_GENERAL_WORDS = """
    people persons person name names number numbers amount date day days time times year years share percentage
    difference reason way kind type sort cause result word term total value level place outcome composition
    status effect role purpose impact relationship view idea importance significance definition meaning method
    approach feature benefit goal aim main problem issue story event answer process
"""
_GENERAL = frozenset(_GENERAL_WORDS.split())
_EDITION = re.compile(r"\b(?:version|edition|v)\.? ?\d[\d.]*\b", _I)
_IDENTIFIER = re.compile(r"\b(?=\w*[^\W\d_])[\w./-]*\d[\w./-]*\b")
_ASCII_IDENTIFIER = re.compile(_IDENTIFIER.pattern, re.ASCII)
# Soft hyphens, marks of direction and other characters without a width, which stand within words that were copied.
_INVISIBLE = re.compile("[\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
_FIGURE = re.compile(r"\d[\d.,]*\d|\d")
_WORDS = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion dozen "
    "half quarter third twice once double single both none no nobody never not nothing unlimited daily weekly monthly "
    "yearly annually quarterly every each first second immediately always free"
)
_COUNT = re.compile(r"\d|\b(?:" + "|".join(_WORDS.split()) + r")\b", _I)
_TIME = re.compile(
    r"\b(?:seconds?|minutes?|mins?|hours?|days?|nights?|weeks?|months?|years?|decades?|centur(?:y|ies)|quarters?|daily|"
    r"weekly|monthly|yearly|annual(?:ly)?|once|twice|immediately|always|never|permanently|indefinitely|until|end|"
    r"january|february|march|april|may|june|july|august|september|october|november|december|same day|at once)\b|"
    r"\d\s?(?:s|h|min|ms)\b",
    _I,
)
_MONTH = (
    r"(?:january|february|march|april|may|june|july|august|september|october|november|december|"
    r"jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)"
)
# Days and years are no counts of anything.
_DATED = re.compile(
    rf"\b{_MONTH}\.? \d{{1,2}}(?:st|nd|rd|th)?\b|\b\d{{1,2}}(?:st|nd|rd|th)? {_MONTH}\b|"
    r"(?<![\d.,])(?:19|20)\d\d(?:-\d\d(?:-\d\d)?)?(?![\d%]|[.,]\d)",
    _I,
)
_DAY = re.compile(r"\b(?:19|20)\d\d(?:-\d\d(?:-\d\d)?)?\b")
_WHEN = re.compile(
    r"\b(?:january|february|march|april|may|june|july|august|september|october|november|december|"
    r"jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|today|tomorrow|"
    r"yesterday|year|month|week|day|days|weeks|months|years|hours?|quarter|century|spring|summer|autumn|winter|"
    r"before|after|during|until|since|when|once|noon|midnight|immediately|always|never)\b|\d",
    _I,
)
_MONEY = re.compile(r"[$€£¥₹₺]|\b(?:EUR|USD|GBP|CHF|JPY|euros?|dollars?|pounds?|cents?|francs?|yen|free)\b", _I)
_PERCENT = re.compile(r"\d ?(?:%|percent\b|per cent\b)", _I)
_PRICE = re.compile(r"\b(?:costs?|prices?|fees?|premium|deductible)\b", _I)
_ASKS_PRICE = re.compile(r"\bhow (?:much|expensive)\b.*\b(?:costs?|price)\b", _I)
_ASKS_WEIGHT = re.compile(r"\bhow heavy\b|\bhow much (?:do|does|did)\b.*\bweigh\b", _I)
_WEIGHT = re.compile(
    r"\b(?:weigh(?:s|ed|t|ts)?|mass|heavy|heavier|grams?|kilograms?|kilos?|tonnes?|tons?|pounds?|ounces?)\b|"
    r"\d\s?(?:[kmµ]?g|t|lbs?|oz)\b",
    _I,
)
_NAME = re.compile(r"(?<=\w[ ,;:|])\W{0,2}[^\W\d_a-z]\w+|\b[A-Z]{2,}\b")
_ROLES = re.compile(
    r"\b(?:\w*(?:manager|officer|director|head|owner|lead|leader|chief|president|minister|board|team|department|desk|"
    r"council|committee|employees?|staff|colleagues?|persons?|people|members?|partners?|technicians?|administrators?|"
    r"doctors?|founders?|king|queen|emperor|author|company|everybody|anybody|nobody|parents?|students?|workers?|"
    r"customers?|suppliers?|requesters?|heads?|group|we|you|he|she|they))\b",
    _I,
)
#: Characters that tell what a question asks for. Longer ones are documents, and patterns that look ahead are quadratic.
READ_CHARACTERS = 2_000

# Of an English question's words at least so many are articles, pronouns and the like.
_FUNCTION_WORDS = 0.12


def expected_kind(question: str, language: str | None = None) -> Kind:
    """What a question asks for; `Kind.OTHER` where that is not plain, or nothing is known of its language.

    Args:
        question: As asked.
        language: ISO 639-1 code of the texts, which the question is taken to be in unless it says otherwise.
    """
    question = _INVISIBLE.sub("", question[:READ_CHARACTERS])
    found_language = language_of_text(question, expected=language)
    # "Wie oft reist Doctor Who?" has as many function words of either language: that of the texts decides.
    if not is_english(question) or (found_language == language and forms_of(found_language) is not None):
        forms = forms_of(found_language)
        return Kind.OTHER if forms is None else forms.expected(_readable(question, found_language))
    found = [
        (match.start(), order, kind) for order, (kind, form) in enumerate(_FORMS) if (match := form.search(question))
    ]
    return min(found, key=lambda one: one[:2])[2] if found else Kind.OTHER


def attribute(question: str) -> str | None:
    """What a question wants to know of something, its noun: "annual premium" of "What is the annual premium of …?"."""
    match = _ATTRIBUTE.search(question[:READ_CHARACTERS]) if is_english(question) else None
    if match is None:
        return None
    phrase = re.split(r" an? (?=\w+$)", match["of"] or match["these"] or match["many"])[0]
    noun = phrase.split()[-1].casefold()
    return None if noun in _GENERAL or len(noun) < 3 else phrase


@lru_cache(maxsize=64)
def is_english(question: str) -> bool:
    """Whether a question looks English: its function words are, more of them than of any other language."""
    # Single letters are left out: the ends of names in other languages ("Kim'i") are cut off like "I".
    words = [word for word in re.findall(r"[^\W\d_]+", question.casefold()) if len(word) > 1]
    known = sum(map(stopwords("en").__contains__, words))
    others = max(sum(map(stopwords(code).__contains__, words)) for code in ("de", "fr", "es", "it", "pt", "nl", "ro"))
    return known > 0 and known >= others and known >= _FUNCTION_WORDS * len(words)


def holds_kind(kind: Kind, text: str, question: str, *, in_table: bool = False, language: str = "en") -> bool:
    """Whether a text may hold such an answer. Numbers that the question names, and those of names, are none.

    Args:
        kind: From `expected_kind`.
        text: The sentence or row, with the line that introduces it.
        question: As asked.
        in_table: Whether it is a row or an item, whose currency may stand elsewhere.
        language: ISO 639-1 code of the text.
    """
    forms = forms_of(language)
    if forms is not None:
        told, asked = (plain_digits(_readable(one, language)) for one in (text, question))
        return _holds_foreign(kind, told, asked, forms, in_table=in_table)
    match kind:
        case Kind.MONEY:
            return _holds_money(_without_names(text, question), question, in_table=in_table)
        case Kind.NUMBER:
            if _ASKS_WEIGHT.search(question[:READ_CHARACTERS]) and not _WEIGHT.search(text):
                return False
            return bool(_COUNT.search(_DATED.sub(" ", _without_names(text, question))))
        case Kind.DURATION:
            bare = _DAY.sub(" ", _without_names(text, question))
            return bool(_COUNT.search(bare) or _TIME.search(text))
        case Kind.DATE:
            return bool(_WHEN.search(_without_names(text, question)))
        case Kind.PERSON:
            return bool(_NAME.search(text) or _ROLES.search(text))
        case _:
            return True


def _readable(text: str, language: str) -> str:
    """A text in the characters that the patterns of its language are written in."""
    return simplified(text) if language == "zh" else text


def _holds_foreign(kind: Kind, text: str, question: str, forms: KindForms, *, in_table: bool) -> bool:
    if kind is Kind.PERSON:
        return forms.names_somebody(text)
    if kind not in {Kind.MONEY, Kind.NUMBER, Kind.DURATION, Kind.DATE}:
        return True
    # Words are not told from numbers by spaces in every script: "2015年" is no identifier.
    bare = _without_known(_ASCII_IDENTIFIER.sub(" ", text), question)
    match kind:
        case Kind.MONEY:
            share = bool(_PERCENT.search(bare))
            return bool(forms.number.search(bare)) and (bool(forms.money.search(text)) or share or in_table)
        case Kind.NUMBER:
            return bool(forms.number.search(forms.dated.sub(" ", bare)))
        case Kind.DURATION:
            return bool(forms.number.search(forms.dated.sub(" ", bare)) or forms.duration.search(text))
        case _:
            return bool(forms.date.search(bare))


def lacks_price(question: str, text: str) -> bool:
    """Whether a question asks what something costs, and a text names neither money nor a price."""
    asks = _ASKS_PRICE.search(question[:READ_CHARACTERS]) is not None
    return asks and not _MONEY.search(text) and not _PRICE.search(text)


def _holds_money(text: str, question: str, *, in_table: bool) -> bool:
    if not _COUNT.search(text):
        return False
    share = bool(_PERCENT.search(text))
    return bool(_MONEY.search(text)) or (in_table and not share) or (share and not _PRICE.search(question))


def _without_names(text: str, question: str) -> str:
    return _without_known(_IDENTIFIER.sub(" ", _EDITION.sub(" ", text)), question)


def _without_known(text: str, question: str) -> str:
    """A text without the numbers that the question names."""
    known = set(_FIGURE.findall(question))
    return _FIGURE.sub(lambda match: " " if match.group() in known else match.group(), text)
