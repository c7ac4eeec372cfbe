"""What a statement claims: its terms, and the numbers, dates, names and identifiers that need evidence. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files

from recollect.answer._names import Name, identifiers, names
from recollect.answer._quantities import Quantity, listed, quantities
from recollect.answer.evidence import content_terms, row_of_words
from recollect.languages import language_of_text
from recollect.languages.stopwords import stopwords

# Verbs and particles that any sentence may have, as terms of each language.
_LIGHT = listed(
    "get got give given come go goe take taken make made use need receiv appli offer provid out per accord say "
    "said state mean also well up back onli current alreadi exact addit total one thing way peopl person someon "
    "everyon everybodi erhalt bekomm gibt geb steht betragt lieg befind pro laut gemass obtien recoit selon donn "
    "obten recib segun requir must muss soll doit deb"
)


@dataclass(frozen=True)
class Claim:
    """A statement, or the part of one that stands before a marker, taken apart.

    Attributes:
        text: Without markers and markup.
        language: ISO 639-1 code of the statement itself.
        terms: Its terms, numbers left out.
        quantities: Its numbers, dates and times that ask for evidence.
        identifiers: Its codes, addresses and files.
        names: Its proper names, where their capital letters mean something.
    """

    text: str
    language: str
    terms: frozenset[str]
    quantities: tuple[Quantity, ...]
    identifiers: tuple[Name, ...]
    names: tuple[Name, ...]

    @cached_property
    def folded(self) -> str:
        """Its words in a row, folded."""
        return row_of_words(self.text)

    @cached_property
    def facts(self) -> frozenset[str]:
        """Everything checkable, as written, folded."""
        return frozenset(
            [quantity.text.casefold().strip() for quantity in self.quantities]
            + [one.folded for one in self.identifiers]
            + [name.folded for name in self.names]
        )


def without_connectives(text: str) -> str:
    """A statement without the words before it that only join it to others: "First, …", "Außerdem …"."""
    joined = _connectives().match(text)
    if joined is None or joined.end() == len(text):
        return text
    # Behind them, a capital letter is that of a name, not of a sentence's beginning.
    return ("," if text[joined.end()].isupper() else "") + text[joined.end() :]


@cache
def _connectives() -> re.Pattern[str]:
    lines = files("recollect.answer").joinpath("connectives.txt").read_text("utf-8").replace("'", "['’]").splitlines()
    parts = [part.strip() for line in lines if not line.startswith("#") for part in line.partition(":")[2].split("|")]
    parts.sort(key=len, reverse=True)
    loose = "|".join(part for part in parts if not part.endswith(","))
    bound = "|".join(part[:-1] for part in parts if part.endswith(","))
    return re.compile(rf"\W*(?:(?:(?:{loose})(?:\s*[,:]|(?=\s))|(?:{bound})\s*[,:])\s*){{1,3}}", re.IGNORECASE)


def read_claim(text: str, *, terms: Callable[[str], Sequence[str]], language: str = "en") -> Claim:
    """Take a statement apart.

    Args:
        text: Without markers and markup.
        terms: Splits a text into its terms.
        language: ISO 639-1 code of the passages; the statement's own is found out.
    """
    text = without_connectives(text)
    own = language_of_text(text, expected=language)
    codes = identifiers(text)
    asked = [
        quantity
        for quantity in quantities(text, language=own)
        if quantity.firm and not any(code.start < quantity.end and quantity.start < code.end for code in codes)
    ]
    # A date's month is compared with the date, whatever its notation.
    unmeasured = _masked(text, asked)
    said = content_terms(unmeasured, terms)
    telling = said - _LIGHT - stopwords(own)
    named = names(_masked(unmeasured, codes), language=own)
    return Claim(text, own, telling or said, tuple(asked), tuple(codes), tuple(named))


def _masked(text: str, found: Iterable[Quantity | Name]) -> str:
    """A text of the same length with zeros in place of what was found in it."""
    for one in found:
        text = text[: one.start] + "0" * (one.end - one.start) + text[one.end :]
    return text
