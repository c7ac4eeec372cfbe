"""What a statement claims: its terms, and the numbers, dates, names and identifiers that need evidence. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from recollect.answer._names import Name, identifiers, names
from recollect.answer._quantities import Quantity, quantities
from recollect.answer.evidence import content_terms
from recollect.languages import language_of_text
from recollect.languages.stopwords import stopwords


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

    @property
    def facts(self) -> frozenset[str]:
        """Everything checkable, as written, folded."""
        found: tuple[Quantity | Name, ...] = (*self.quantities, *self.identifiers, *self.names)
        return frozenset(one.text.casefold().strip() for one in found)


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
    ends = {True: r"\s*[,:]", False: r"(?:\s*[,:]|(?=\s))"}
    one = "|".join(part.rstrip(",") + ends[part.endswith(",")] for part in sorted(parts, key=len, reverse=True))
    return re.compile(rf"\W*(?:(?:{one})\s*){{1,3}}", re.IGNORECASE)


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
    telling = said - stopwords(own)
    named = names(_masked(unmeasured, codes), language=own)
    return Claim(text, own, telling or said, tuple(asked), tuple(codes), tuple(named))


def _masked(text: str, found: Iterable[Quantity | Name]) -> str:
    """A text of the same length with zeros in place of what was found in it."""
    for one in found:
        text = text[: one.start] + "0" * (one.end - one.start) + text[one.end :]
    return text
