"""Numbers, dates and times of day in a text, whatever their notation. Pure.

Both a sentence and its evidence are read by the same rules, so that "1.234,5", "1,234.5" and "1 234.5" are one number,
"3 March 2024" and "2024-03-03" one day, and "twelve" is 12. Where a notation has two readings ("1.234", "03/04/2024")
both are kept: one in common is enough.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Literal

from recollect.answer._number_words import (
    AMBIGUOUS,
    CARDINALS,
    COMPOUND_UNITS,
    CONVERSIONS,
    COUNTS,
    JOINERS,
    MONTHS,
    MULTIPLIERS,
    ORDINALS,
    SCALES,
    UNITS,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

#: Year, month and day, as far as they are said.
Day = tuple[int | None, int | None, int | None]

_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_YEAR = r"(?:1[5-9]|20|21)\d\d"
_DATES = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?<!\d)(?P<y>{_YEAR})[-/.](?P<m>0?[1-9]|1[0-2])[-/.](?P<d>3[01]|[12]\d|0?[1-9])(?!\d)",
        rf"(?P<y>{_YEAR})\s?[年년]\s?(?P<m>1[0-2]|0?[1-9])\s?[月월](?:\s?(?P<d>3[01]|[12]\d|0?[1-9])\s?[日일])?",
        r"(?<![\d年])(?P<m>1[0-2]|0?[1-9])\s?[月월]\s?(?P<d>3[01]|[12]\d|0?[1-9])\s?[日일]",
        rf"(?<!\d)(?P<d>3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th|\.|er|º|°)?\s*(?:of\s+|de\s+|di\s+)?(?P<n>{_MONTH})\b\.?"
        rf"(?:\s*(?:,|de|of|del)?\s*(?P<y>{_YEAR})\b)?",
        rf"\b(?P<n>{_MONTH})\b\.?\s+(?P<d>3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th)?\b(?!\s*(?:%|:\d))(?:,?\s+(?P<y>{_YEAR})\b)?",
        r"(?<![\d.])(?P<d>3[01]|[12]\d|0?[1-9])\.(?P<m>1[0-2]|0?[1-9])\.(?!\d)",
        rf"\b(?P<n>{_MONTH})\b\.?,?\s+(?:de\s+|of\s+|del\s+)?(?P<y>{_YEAR})\b",
    )
]
_NUMERIC_DATE = re.compile(rf"(?<![\d.])(\d{{1,2}})([./-])(\d{{1,2}})\2({_YEAR}|\d\d)(?!\d)")
_TIMES = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?<![\d:.,])(?P<h>[01]?\d|2[0-4])[:h.](?P<m>[0-5]\d)\s*(?P<half>[ap]\.?\s?m\b\.?|(?P<clock>uhr|h\b|heures))",
        r"(?<![\d:.,])(?P<h>[01]?\d|2[0-4])[:h](?P<m>[0-5]\d)(?::[0-5]\d)?(?![\d:])",
        r"(?<![\d:.,])(?P<h>[01]?\d|2[0-4])\s*(?P<half>[ap]\.?\s?m\b\.?|(?P<clock>uhr\b|o'clock))",
    )
]
_NOON = {"noon": 720, "midday": 720, "midnight": 0, "mitternacht": 0, "minuit": 0, "midi": 720, "medianoche": 0}
#: Letters of scripts that part words by spaces: digits behind them are of a code, not a number.
LETTERS = "A-Za-z\u00aa-\u024f\u0370-\u052f"
_PLAIN = r"\d+(?:[.,]\d+)?"
_GROUPED = r"\d{1,3}(?:[ '’]\d{3})+(?:[.,]\d+)?|\d{1,3}(?:,\d{2,3})*,\d{3}(?:\.\d+)?|\d{1,3}(?:\.\d{3})+(?:,\d+)?"
# Not behind a letter, nor behind a letter and a hyphen: that is an identifier's.
_NUMBER = re.compile(
    rf"(?<![\d])(?<!\d[.,])(?<![{LETTERS}])(?<![{LETTERS}][-_/.])(?P<number>(?:{_GROUPED}|{_PLAIN}))(?!\d)(?![.,]\d)"
)
_CURRENCY_BEFORE = re.compile(r"(us\$|[$€£¥]|\b(?:eur|usd|gbp|chf|jpy|euro))\s?$", re.IGNORECASE)
_BEHIND = re.compile(r"[\s-]{0,2}([%€$£¥°]c?\b|[%€$£¥°]|[^\W\d_]+(?:-[^\W\d_]+)*)")
_SCALE_CJK = re.compile("[千万萬만百亿億억]+")
_ORDINAL_ENDING = re.compile(r"(?:st|nd|rd|th|er|ère|e|º|ª|de|ste)\b")
_CONNECTS = re.compile(r"\s*(?:[-–—]|to|and|or|bis|und|oder|à|et|ou|a|y|o|e|tot)\s*", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]+(?:[-'][^\W\d_]+)*")
_HALF_MORE = re.compile(
    r"\b(?P<word>[^\W\d_]+|\d+) and a half\b|\banderthalb\b|\beineinhalb\b|\bzweieinhalb\b", re.IGNORECASE
)
_HALVES = {"anderthalb": Fraction(3, 2), "eineinhalb": Fraction(3, 2), "zweieinhalb": Fraction(5, 2)}
_REPEATED = frozenset({"twice", "once", "zweimal", "dreimal", "einmal"})
_GERMAN_TENS = re.compile(r"(ein|zwei|drei|vier|fünf|sechs|sieben|acht|neun)und(\w+zig|dreißig|dreissig)")
_CJK_NUMBER = re.compile(
    "([〇一二两三四五六七八九十百千]+)(?=\\s?[个個]?(?:天|日|周|週|年|月|小时|时|時|分|元|人|名|次|％|%|歳|倍|ヶ))"
)
_CJK_DIGITS = {digit: value for value, digit in enumerate("〇一二三四五六七八九")} | {"两": 2}
_CJK_TENS = {"十": 10, "百": 100, "千": 1000}

_SIGNS = {ord(sign): " " for sign in "\u00a0\u2007\u2009\u202f\u2002\u2003\u3000"}
_SIGNS |= {ord(sign): "-" for sign in "\u2010\u2011\u2012\u2013\u2212"} | {
    0x066B: ".",
    0x066C: ",",
    0xFF05: "%",
    0x066A: "%",
}


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number, a day or a time of day.

    Attributes:
        start: Where it begins in its text.
        end: Just behind it, its unit not included.
        text: As it is written.
        kind: What it is.
        values: What a number can be read as; of a time, the minutes since midnight.
        days: What a date can be read as.
        unit: Of a number, where one is said.
        firm: Whether it certainly is one: a word such as "one" offers its number as evidence, and asks for none.
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
        """Whether one of the evidence's quantities says the same."""
        return any(self._same(other) for other in evidence)

    def _same(self, other: Quantity) -> bool:
        if self.kind == "date" and other.kind == "date":
            return any(_compatible(mine, theirs) for mine in self.days for theirs in other.days)
        if self.kind == "date" or self.kind == "time":
            return self.kind == other.kind and bool(self.values & other.values)
        if other.kind == "date":
            # "in 2025" and "on the 27th" are said of a date.
            return self.unit is None and any(
                Fraction(part) in self.values for day in other.days for part in day if part
            )
        if other.kind == "time":
            # "before nine" and "9 a.m."
            return self.unit in {None, "hour"} and any(value * 60 in other.values for value in self.values)
        return _same_number(self, other)


@lru_cache(maxsize=8_192)
def quantities(text: str, *, language: str = "en") -> tuple[Quantity, ...]:
    """The numbers, dates and times of a text, in order; numbers within identifiers are not among them.

    Args:
        text: A sentence or a passage.
        language: ISO 639-1 code, for numbers in words.
    """
    plain = _plain(text)
    found: list[Quantity] = []
    for reader in (_dates, _times, _numbers):
        for quantity in reader(plain):
            if not any(quantity.start < other.end and other.start < quantity.end for other in found):
                found.append(quantity)
    taken = [(quantity.start, quantity.end) for quantity in found]
    for quantity in (*_and_a_half(plain, language), *_words(plain, language), *_ideographs(plain)):
        if not any(quantity.start < end and start < quantity.end for start, end in taken):
            found.append(quantity)
            taken.append((quantity.start, quantity.end))
    return tuple(_with_shared_units(plain, sorted(found, key=lambda quantity: quantity.start)))


def _plain(text: str) -> str:
    """The text with every script's digits as ASCII, of the same length."""
    text = text.translate(_SIGNS)
    if text.isascii():
        return text
    # Digits of other scripts, full width among them; not "²", which is no decimal digit.
    return "".join(str(int(letter)) if letter.isdecimal() and not letter.isascii() else letter for letter in text)


def _dates(text: str) -> Iterator[Quantity]:
    for pattern in _DATES:
        for match in pattern.finditer(text):
            part = match.groupdict()
            month = MONTHS[part["n"].casefold()] if part.get("n") else int(part["m"])
            year, day = part.get("y"), part.get("d")
            said: Day = (int(year) if year else None, month, int(day) if day else None)
            yield Quantity(match.start(), match.end(), match.group(), "date", days=frozenset({said}))
    for match in _NUMERIC_DATE.finditer(text):
        first, second, year = int(match.group(1)), int(match.group(3)), int(match.group(4))
        year += 2000 if year < 100 else 0
        days = {(year, month, day) for day, month in ((first, second), (second, first)) if month <= 12 and day <= 31}
        if match.group(2) == ".":
            days = {(year, second, first)} & days
        if days:
            yield Quantity(match.start(), match.end(), match.group(), "date", days=frozenset(days))


def _times(text: str) -> Iterator[Quantity]:
    for pattern in _TIMES:
        for match in pattern.finditer(text):
            part = match.groupdict()
            half = (part.get("half") or "").casefold()[:1] if not part.get("clock") else ""
            hour = int(part["h"])
            if half in {"a", "p"} and hour <= 12:
                hour = hour % 12 + (12 if half == "p" else 0)
            value = Fraction(hour * 60 + int(part.get("m") or 0))
            yield Quantity(match.start(), match.end(), match.group(), "time", values=frozenset({value}))
    for match in _WORD.finditer(text):
        if (minutes := _NOON.get(match.group().casefold())) is not None:
            yield Quantity(match.start(), match.end(), match.group(), "time", values=frozenset({Fraction(minutes)}))


def _numbers(text: str) -> Iterator[Quantity]:
    for match in _NUMBER.finditer(text):
        scale, unit, end = _behind(text, match.end())
        before = _CURRENCY_BEFORE.search(text, max(0, match.start() - 6), match.start())
        if before:
            unit = UNITS.get(before.group(1).casefold(), unit)
        values = frozenset(value * scale for value in readings(match.group("number")))
        yield Quantity(match.start(), end, text[match.start() : end], "number", values=values, unit=unit)


def readings(number: str) -> set[Fraction]:
    """What digits with separators can mean.

    Args:
        number: For instance ``1.234``, which is either a thousand and something or one and something.
    """
    digits = re.sub("[ '’]", "", number)
    marks = [mark for mark in digits if mark in ".,"]
    if not marks:
        return {Fraction(digits)}
    if len(set(marks)) == 2:
        decimal = marks[-1]
        grouping = "," if decimal == "." else "."
        return {Fraction(digits.replace(grouping, "").replace(decimal, "."))}
    whole = Fraction(re.sub("[.,]", "", digits))
    if len(marks) > 1:
        return {whole}
    before, after = re.split("[.,]", digits)
    decimal_reading = Fraction(f"{before}.{after}")
    grouped = len(after) == 3 and len(before) <= 3 and before.lstrip("0")
    return {whole, decimal_reading} if grouped else {decimal_reading}


def _behind(text: str, at: int) -> tuple[int, str | None, int]:
    """The scale and the unit that stand behind a number, and where the number with its scale ends."""
    scale, end = 1, at
    if match := _SCALE_CJK.match(text, at):
        for sign in match.group():
            scale *= SCALES.get(sign, 100 if sign == "百" else 1)
        at = end = match.end()
    if match := _ORDINAL_ENDING.match(text, at):
        at = end = match.end()
    for word_number in range(3):
        match = _BEHIND.match(text, at)
        if match is None:
            break
        word = match.group(1).casefold().rstrip(".")
        # "5 m" is a length, "$5m" and "5 million" are amounts.
        is_scale = word in SCALES and (len(word) > 1 or (word != "m" and match.start(1) == at) or _is_money(text, at))
        if word_number == 0 and is_scale:
            scale *= SCALES[word]
            at = end = match.end()
            continue
        unit = unit_of(word)
        if unit is not None:
            return scale, unit, end
        if text[match.end() : match.end() + 1] in {",", ";", "."} or word in CARDINALS["en"] or word in _REPEATED:
            break
        at = match.end()
    return scale, None, end


def _is_money(text: str, at: int) -> bool:
    return bool(re.search(r"[$€£]\s?[\d.,]+$", text[max(0, at - 16) : at]))


def unit_of(word: str) -> str | None:
    """The unit of measure that a word means, in any of the languages known."""
    word = word.casefold()
    if word in UNITS:
        return UNITS[word]
    tail = word.rpartition("-")[2]
    if tail != word and tail in UNITS:
        return UNITS[tail]
    return next((unit for ending, unit in COMPOUND_UNITS.items() if word.endswith(ending)), None)


def _and_a_half(text: str, language: str) -> Iterator[Quantity]:
    """Numbers and a half: "one and a half hours", "2 and a half", "anderthalb Stunden"."""
    for match in _HALF_MORE.finditer(text):
        word = match.group("word") or ""
        count = _HALVES.get(match.group().casefold())
        if count is None:
            value = int(word) if word.isdigit() else word_value(word.casefold(), "en" if language == "en" else language)
            if value is None:
                continue
            count = value + Fraction(1, 2)
        _, unit, _ = _behind(text, match.end())
        yield Quantity(match.start(), match.end(), match.group(), "number", values=frozenset({count}), unit=unit)


def _words(text: str, language: str) -> Iterator[Quantity]:
    """Numbers in words: "twenty-five thousand", "fünfundzwanzig", "treinta y cinco", "vierten", "half"."""
    if language not in CARDINALS:
        return
    words = list(_WORD.finditer(text))
    position = 0
    while position < len(words):
        length, value, firm = _spelled_out(words, position, language)
        if not length:
            position += 1
            continue
        first, last = words[position], words[position + length - 1]
        scale, unit, end = _behind(text, last.end())
        if first.group().casefold() in _REPEATED:
            unit = "times"
        yield Quantity(
            first.start(),
            max(end, last.end()),
            text[first.start() : last.end()],
            "number",
            values=frozenset({value * scale}),
            unit=unit,
            firm=firm,
        )
        position += length


def _spelled_out(words: Sequence[re.Match[str]], at: int, language: str) -> tuple[int, Fraction, bool]:
    """How many words from a place on are one number, what it is, and whether it certainly is one."""
    total, part, length = 0, 0, 0
    taken: list[int] = []
    for offset, match in enumerate(words[at : at + 6]):
        word = match.group().casefold()
        value = word_value(word, language)
        if value is not None and value >= 100 and value in MULTIPLIERS[language].values() and taken:
            part = max(part, 1) * int(value)
            if value >= 1000:
                total, part = total + part, 0
        elif value is not None and (not taken or _continues(taken[-1], int(value))):
            part += int(value)
        elif taken and word in JOINERS and offset + 1 < len(words[at : at + 6]):
            following = word_value(words[at + offset + 1].group().casefold(), language)
            if following is None or not _continues(taken[-1], int(following)):
                break
            continue
        else:
            break
        taken.append(int(value))
        length = offset + 1
    if length:
        first = words[at].group().casefold()
        return length, Fraction(total + part), length > 1 or first not in AMBIGUOUS
    word = words[at].group().casefold()
    count = COUNTS.get(language, {}).get(word)
    ordinal = ORDINALS[language].get(word)
    if count is not None or ordinal is not None:
        return 1, count if count is not None else Fraction(ordinal or 0), word not in AMBIGUOUS
    return 0, Fraction(0), False


def _continues(before: int, value: int) -> bool:
    """Whether a smaller number can stand behind a greater one within one: twenty (and) five, hundred (and) twenty."""
    return (before >= 100 and value < 100) or (20 <= before < 100 and before % 10 == 0 and value < 10)


@cache
def word_value(word: str, language: str) -> int | None:
    """The value of a number word, compounds of tens and ones included; None for any other word."""
    cardinals = CARDINALS[language]
    found = cardinals.get(word, MULTIPLIERS[language].get(word))
    if found is not None:
        return found
    if language == "de" and (match := _GERMAN_TENS.fullmatch(word)):
        ones = 1 if match.group(1) == "ein" else cardinals[match.group(1)]
        return cardinals[match.group(2)] + ones if match.group(2) in cardinals else None
    parts = [part for part in word.split("-") if part not in JOINERS]
    values = [cardinals.get(part) for part in parts]
    if len(parts) > 1 and all(value is not None for value in values):
        total = sum(value or 0 for value in values)
        # "quatre-vingt-trois" is 83, and four times twenty at its beginning is not 24.
        return total + 56 if parts[:2] in (["quatre", "vingt"], ["quatre", "vingts"]) else total
    return None


def _ideographs(text: str) -> Iterator[Quantity]:
    for match in _CJK_NUMBER.finditer(text):
        total, current = 0, 0
        for sign in match.group(1):
            if sign in _CJK_TENS:
                total += max(current, 1) * _CJK_TENS[sign]
                current = 0
            else:
                current = _CJK_DIGITS[sign]
        value = frozenset({Fraction(total + current)})
        _, unit, _ = _behind(text, match.end())
        yield Quantity(
            match.start(), match.end(), match.group(), "number", values=value, unit=unit, firm=total + current > 1
        )


def _with_shared_units(text: str, found: Sequence[Quantity]) -> list[Quantity]:
    """The "3" of "3 to 5 days" has the unit of the "5"."""
    shared = list(found)
    for place in range(len(shared) - 2, -1, -1):
        one, following = shared[place], shared[place + 1]
        joined = one.kind == following.kind == "number" and _CONNECTS.fullmatch(text, one.end, following.start)
        if joined and one.unit is None and following.unit is not None:
            shared[place] = Quantity(
                one.start, one.end, one.text, "number", values=one.values, unit=following.unit, firm=one.firm
            )
    return shared


def _compatible(mine: Day, theirs: Day) -> bool:
    """Whether what the evidence says of the day includes all that is said."""
    return all(part is None or part == other for part, other in zip(mine, theirs, strict=True))


def _same_number(mine: Quantity, theirs: Quantity) -> bool:
    if (mine.unit == "times") != (theirs.unit == "times"):
        # "twice daily" is no evidence for two of anything.
        return False
    if mine.unit is None or theirs.unit is None or mine.unit == theirs.unit:
        # A half is 50 percent.
        shares = {value * 100 for value in theirs.values if value < 1} if mine.unit == "%" else set()
        if theirs.unit == "%":
            shares = {value / 100 for value in theirs.values} if any(value < 1 for value in mine.values) else set()
        return bool(mine.values & theirs.values) or bool(mine.values & shares)
    if mine.unit in CONVERSIONS and theirs.unit in CONVERSIONS:
        base, factor = CONVERSIONS[mine.unit]
        other_base, other_factor = CONVERSIONS[theirs.unit]
        converted = {value * other_factor for value in theirs.values}
        return base == other_base and any(value * factor in converted for value in mine.values)
    # Employees and characters are counted by many words; what is measured is not.
    loose = {"person", "character"}
    return (mine.unit in loose or theirs.unit in loose) and bool(mine.values & theirs.values)
