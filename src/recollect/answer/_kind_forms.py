"""What questions ask with, and what answers look like, in languages other than English: a file of patterns each.

A file ``kinds/LANGUAGE.json`` has ``asks``, patterns of questions by the kind of answer that they expect, and
``holds``, what a text has that may be such an answer: ``number`` (words for numbers), ``duration``, ``date`` and
``money``; ``dated`` are days, which are no counts of anything. Where ``capitals`` tell names, a person's answer has
one, or a word of ``roles``. All patterns ignore case.
"""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import dataclass
from enum import Enum
from functools import cache
from importlib.resources import files


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
