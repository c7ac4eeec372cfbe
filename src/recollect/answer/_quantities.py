"""Numbers, dates and times of day in a text, whatever their notation. Pure.

Both a sentence and its evidence are read by the same rules, so that "1.234,5", "1,234.5" and "1 234.5" are one number,
"3 March 2024" and "2024-03-03" one day, and "twelve" is 12. Where a notation has two readings ("1.234", "03/04/2024")
both are kept: one in common is enough.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from importlib.resources import files
from itertools import chain, product
from typing import Literal

_DATA = tomllib.loads(files("recollect.answer").joinpath("numbers.toml").read_text("utf-8"))


def listed(words: str) -> frozenset[str]:
    """Words that are easier to read in a row than one below the other."""
    return frozenset(words.split())


def _by_word(table: dict[str, str]) -> dict[str, str]:
    return {word: value for value, words in table.items() for word in words.split()}


def _number_words(table: dict[str, str]) -> dict[str, Fraction]:
    """The words of a table, and those composed of tens and ones: "twenty-five", "vingt-et-un", "fünfundzwanzig"."""
    known = {word: Fraction(value) for word, value in _by_word(table).items()}
    tens = [word for word, value in known.items() if value in range(20, 100, 10)]
    ones = [word for word, value in known.items() if value in range(1, 10)]
    for ten, one in product(tens, ones):
        known |= dict.fromkeys((f"{ten}-{one}", f"{ten}-et-{one}", f"{one}und{ten}"), known[ten] + known[one])
    return known


#: Number words by language: cardinals, ordinals and other counts ("half").
NUMBERS = {language: _number_words(table) for language, table in _DATA["numbers"].items()}
#: Words that join the parts of one number.
JOINERS = listed(_DATA["words"]["joiners"])
#: Words of numbers that are other words too: they offer their number, and ask for none.
AMBIGUOUS = listed(_DATA["words"]["ambiguous"])
MONTHS = {word: int(month) for word, month in _by_word(_DATA["months"]).items()}
#: Hours that have a name.
HOURS = {word: int(hour) for word, hour in _by_word(_DATA["hours"]).items()}
#: Names that a capital letter makes certain at the beginning of a sentence too.
WEEKDAYS = listed(_DATA["words"]["weekdays"])
#: Units of measure by the words and signs that stand behind a number.
UNITS = _by_word(_DATA["units"])
#: Units that are one another's multiples: the base (empty: none), and how many of it.
CONVERSIONS: dict[str, tuple[str, Fraction]] = {
    unit: (base, Fraction(count)) for unit, (base, count) in _DATA["conversions"].items()
}
#: Endings of compounds that end in a unit.
COMPOUND_UNITS: dict[str, str] = _DATA["compounds"]
#: What multiplies the number before it.
SCALES = {word: 10 ** int(power) for word, power in _by_word(_DATA["scales"]).items()}

#: Year, month and day; 0 for what is not given.
Day = tuple[int, int, int]

_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_YEAR = r"(?:1[5-9]|20|21)\d\d"
_DATES = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?<!\d)(?P<y>{_YEAR})[-/.](?P<m>\d\d?)[-/.](?P<d>\d\d?)(?!\d)",
        rf"(?:(?P<y>{_YEAR})\s?[年년]\s?)?(?<!\d)(?P<m>\d\d?)\s?[月월](?:\s?(?P<d>\d\d?)\s?[日일])?",
        rf"(?:(?<!\d)(?P<d>\d\d?)(?:st|nd|rd|th|\.|er|º|°)?\s*(?:of\s+|de\s+|di\s+)?)?\b(?P<n>{_MONTH})\b\.?"
        rf"(?:\s+(?P<e>\d\d?)(?:st|nd|rd|th)?\b(?!\s*(?:%|:\d)))?(?:,?\s*(?:(?:de|of|del)\s+)?(?P<y>{_YEAR})\b)?",
        rf"(?<![\d.])(?P<d>\d\d?)(?P<mark>[./-])(?P<m>\d\d?)(?P=mark)(?P<y>{_YEAR}|\d\d)?(?!\d)",
    )
]
_TIME = re.compile(
    r"(?<![\d:.,])(?P<h>[01]?\d|2[0-4])(?:(?:[:h.](?P<m>[0-5]\d))?\s*(?:(?P<half>[ap])\.?\s?m\b\.?|uhr\b|o'clock)"
    rf"|[:h](?P<n>[0-5]\d)(?::[0-5]\d)?(?![\d:]))|\b(?:{'|'.join(HOURS)})\b",
    re.IGNORECASE,
)
#: Letters of scripts that separate words by spaces: digits after them are part of a code, not a number.
LETTERS = "A-Za-z\u00aa-\u024f\u0370-\u052f"
_PLAIN = r"\d+(?:[.,]\d+)?"
_GROUPED = r"\d{1,3}(?:[ '’]\d{3})+(?:[.,]\d+)?|\d{1,3}(?:,\d{2,3})*,\d{3}(?:\.\d+)?|\d{1,3}(?:\.\d{3})+(?:,\d+)?"
# Not after a letter, nor after a letter and a hyphen: that is an identifier.
_NUMBER = re.compile(
    rf"(?<![\d])(?<!\d[.,])(?<![{LETTERS}])(?<![{LETTERS}][-_/.])(?:{_GROUPED}|{_PLAIN})(?!\d)(?![.,]\d)"
)
_CURRENCY_BEFORE = re.compile(r"(us\$|[$€£¥]|\b(?:eur|usd|gbp|chf|jpy|euro))\s?$", re.IGNORECASE)
_FOLLOWING = re.compile(r"[\s-]{0,2}([%€$£¥°万萬亿億]|[^\W\d_]+(?:-[^\W\d_]+)*)")
_ORDINAL_ENDING = re.compile(r"(?:st|nd|rd|th|er|ère|e|º|ª|de|ste)\b")
# "3 to 5 days": the second number's unit is the first one's too.
_RANGE = re.compile(r"\s*(?:-|\b(?:to|or|and|bis|oder|und)\b)\s*\d[\d.,]*", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]+(?:[-'][^\W\d_]+)*")
# Numerals of Chinese and Japanese, before what they count.
_IDEOGRAPHS = re.compile(
    "(?<![〇一二两三四五六七八九十百千])[〇一二两三四五六七八九十百千]{1,12}(?=\\s?[个個]?[天日周週年月小时時分元人名次倍歳％%])"
)
_DIGIT = re.compile(r"\d")
# Unusual spaces, dashes, decimal signs and percent signs.
_SIGNS = str.maketrans(
    "\u00a0\u2007\u2009\u202f\u2002\u2003\u3000\u2010\u2011\u2012\u2013\u2212\u066b\u066c\uff05\u066a",
    "       -----.,%%",
)
_LONGEST_IN_WORDS = 6


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number, a day or a time of day.

    Attributes:
        start: Offset of its first character in the text.
        end: Offset after its last character, without its unit.
        text: Its characters.
        kind: Number, date or time.
        values: The readings of a number; the minutes since midnight of a time.
        days: The readings of a date.
        unit: The unit of a number; None if it has none.
        firm: False for a word such as "one", which can be evidence and needs none.
    """

    start: int
    end: int
    text: str
    kind: Literal["number", "date", "time"]
    values: frozenset[Fraction] = frozenset()
    days: frozenset[Day] = frozenset()
    unit: str | None = None
    firm: bool = True

    def found_in(self, evidence: Iterable[Quantity]) -> bool:
        """Return whether the evidence holds the same quantity."""
        return any(self._same(other) for other in evidence)

    def _same(self, other: Quantity) -> bool:
        if self.kind == other.kind == "date":
            # The evidence may say more of the day.
            pairs = [zip(mine, theirs, strict=True) for mine in self.days for theirs in other.days]
            return any(all(not given or given == known for given, known in pair) for pair in pairs)
        if self.kind != "number":
            return self.kind == other.kind and bool(self.values & other.values)
        if other.kind == "date":
            # "in 2025" and "on the 27th" refer to a date.
            return self.unit is None and any(part in self.values for day in other.days for part in day if part)
        if other.kind == "time":
            # "before nine" and "9 a.m."
            return self.unit in {None, "hour"} and any(value * 60 in other.values for value in self.values)
        alike = self.unit is None or other.unit is None or self.unit == other.unit
        return (alike and bool(self.values & other.values)) or bool(self._converted() & other._converted())

    def _converted(self) -> set[tuple[str, Fraction]]:
        base, factor = CONVERSIONS.get(self.unit or "", (self.unit or "", Fraction(1)))
        return {(base, value * factor) for value in self.values}


@lru_cache(maxsize=8_192)
def quantities(text: str, *, language: str = "en") -> tuple[Quantity, ...]:
    """Return the numbers, dates and times of a text, in order, without numbers inside identifiers.

    Args:
        text: A sentence or a passage.
        language: ISO 639-1 code, for numbers in words.
    """
    # Digits of other scripts and full-width digits become ASCII digits; the length stays the same.
    plain = _DIGIT.sub(lambda match: str(int(match.group())), text.translate(_SIGNS))
    found: list[Quantity] = []
    for quantity in chain(_dates(plain), _times(plain), _numbers(plain), _ideographs(plain), _words(plain, language)):
        if all(quantity.end <= other.start or other.end <= quantity.start for other in found):
            found.append(quantity)
    return tuple(sorted(found, key=lambda quantity: quantity.start))


def _dates(text: str) -> Iterator[Quantity]:
    for pattern in _DATES:
        for match in pattern.finditer(text):
            part = match.groupdict()
            year, day = int(part["y"] or 0), int(part["d"] or part.get("e") or 0)
            month = MONTHS[part["n"].casefold()] if part.get("n") else int(part["m"])
            year += 2000 if 0 < year < 100 else 0
            days = {(year, month, day)}
            if part.get("mark", ".") != ".":
                days.add((year, day, month))
            days = {one for one in days if 1 <= one[1] <= 12 and one[2] <= 31}
            # A month alone is a name, or another word: "May".
            if days and (year or day):
                yield Quantity(match.start(), match.end(), match.group(), "date", days=frozenset(days))


def _times(text: str) -> Iterator[Quantity]:
    for match in _TIME.finditer(text):
        part = match.groupdict()
        hour = int(part["h"] or HOURS[match.group().casefold()])
        if part["half"] and hour <= 12:
            hour = hour % 12 + 12 * (part["half"] in "Pp")
        value = Fraction(hour % 24 * 60 + int(part["m"] or part["n"] or 0))
        yield Quantity(match.start(), match.end(), match.group(), "time", values=frozenset({value}))


def _numbers(text: str) -> Iterator[Quantity]:
    for match in _NUMBER.finditer(text):
        currency = _CURRENCY_BEFORE.search(text, max(0, match.start() - 6), match.start())
        scale, unit, end = _following(text, match.end(), money=currency is not None)
        if currency:
            unit = UNITS.get(currency.group(1).casefold(), unit)
        values = frozenset(value * scale for value in readings(match.group()))
        yield Quantity(match.start(), end, text[match.start() : end], "number", values=values, unit=unit)


def readings(number: str) -> set[Fraction]:
    """Return the possible values of digits with separators.

    Args:
        number: For instance ``1.234``, which is either 1234 or 1.234.
    """
    digits = re.sub("[ '’]", "", number)
    marks = _DIGIT.sub("", digits)
    whole = Fraction(re.sub("[.,]", "", digits))
    if not marks or (len(marks) > 1 and len(set(marks)) == 1):
        return {whole}
    before, _, after = digits.rpartition(marks[-1])
    decimal = Fraction(f"{re.sub('[.,]', '', before)}.{after}")
    grouped = len(marks) == 1 and len(after) == 3 and len(before) <= 3 and before.lstrip("0")
    return {whole, decimal} if grouped else {decimal}


def _following(text: str, at: int, *, money: bool = False) -> tuple[int, str | None, int]:
    """Return the scale and the unit that follow a number, and where the number with its scale ends."""
    if match := _ORDINAL_ENDING.match(text, at):
        at = match.end()
    scale, end = 1, at
    if shared := _RANGE.match(text, at):
        at = shared.end()
    for place in range(3):
        match = _FOLLOWING.match(text, at)
        if match is None:
            break
        word = match.group(1).casefold()
        # "5 m" is a length, "$5m" and "5 million" are amounts.
        is_scale = word in SCALES and (len(word) > 1 or money or (word != "m" and match.start(1) == at))
        if place == 0 and is_scale:
            scale, end = SCALES[word], end if shared else match.end()
        elif unit := unit_of(word):
            return scale, unit, end
        elif text[match.end() : match.end() + 1] in {",", ";", "."} or word in NUMBERS["en"]:
            break
        at = match.end()
    return scale, None, end


def unit_of(word: str) -> str | None:
    """Return the unit of measure that a word in lower case means in any of the languages; None for other words."""
    unit = UNITS.get(word) or UNITS.get(word.rpartition("-")[2])
    return unit or next((unit for ending, unit in COMPOUND_UNITS.items() if word.endswith(ending)), None)


def _ideographs(text: str) -> Iterator[Quantity]:
    """Yield numbers in Chinese numerals: "二十" is 20, "一九四九" is 1949."""
    for match in _IDEOGRAPHS.finditer(text):
        total = digits = Fraction(0)
        for value in map(NUMBERS["zh"].__getitem__, match.group()):
            if value < 10:
                digits = 10 * digits + value
            else:
                total, digits = total + (digits or 1) * value, Fraction(0)
        _, unit, _ = _following(text, match.end())
        values, firm = frozenset({total + digits}), total + digits > 1
        yield Quantity(*match.span(), match.group(), "number", values=values, unit=unit, firm=firm)


def _words(text: str, language: str) -> Iterator[Quantity]:
    """Yield numbers in words: "twenty-five thousand", "fünfundzwanzig", "treinta y cinco", "vierten", "half"."""
    known = NUMBERS.get(language, {})
    words = list(_WORD.finditer(text))
    at = 0
    while at < len(words):
        said = [word.group().casefold() for word in words[at : at + _LONGEST_IN_WORDS]]
        length, value = _in_words(said, known)
        if length:
            start, last = words[at].start(), words[at + length - 1].end()
            scale, unit, end = _following(text, last)
            firm, values = length > 1 or said[0] not in AMBIGUOUS, frozenset({value * scale})
            yield Quantity(start, end, text[start:last], "number", values=values, unit=unit, firm=firm)
        at += max(1, length)


def _in_words(words: Sequence[str], known: Mapping[str, Fraction]) -> tuple[int, Fraction]:
    """Return how many of the words, from the first on, are one number, and its value."""
    total, part, last, length = Fraction(0), Fraction(0), Fraction(0), 0
    for place, word in enumerate(words):
        value = known.get(word)
        if value is None:
            if length and word in JOINERS:
                continue
            break
        # From a hundred on, number words multiply those before them.
        if length and value >= 100:
            part = max(part, Fraction(1)) * value
            if value >= 1000:
                total, part = total + part, Fraction(0)
        elif not length or _continues(last, value) or (value < 1 and place > length):
            # The last of these is "two and a half", with words between.
            part += value
        else:
            break
        last, length = value, place + 1
    return length, total + part


def _continues(before: Fraction, value: Fraction) -> bool:
    """Return whether a number can follow a greater one within one number: twenty (and) five, hundred (and) twenty."""
    return (before >= 100 and value < 100) or (20 <= before < 100 and before % 10 == 0 and value < 10)
