"""Numbers, months and units of measure as languages write them, read from ``numbers.toml``."""

from __future__ import annotations

import tomllib
from fractions import Fraction
from importlib.resources import files

_DATA = tomllib.loads(files("recollect.answer").joinpath("numbers.toml").read_text("utf-8"))


def listed(words: str) -> frozenset[str]:
    """Words that are easier to read in a row than one below the other."""
    return frozenset(words.split())


def _numbered(words: str, start: int = 0, step: int = 1) -> dict[str, int]:
    """``a|b c``: each next place is ``step`` more; ``|`` parts spellings of one number."""
    return {
        word: start + step * place for place, spellings in enumerate(words.split()) for word in spellings.split("|")
    }


#: By what a number word multiplies what stands before it.
MULTIPLIERS: dict[str, dict[str, int]] = _DATA["multipliers"]
#: Number words by language: cardinals, ordinals, multipliers and other counts ("half").
NUMBERS: dict[str, dict[str, Fraction]] = {
    language: {
        word: Fraction(value)
        for known in (
            _numbered(_DATA["ordinals"][language], 1),
            _numbered(words["ones"]),
            _numbered(words.get("tens", ""), 20, 10),
            words.get("others", {}),
            MULTIPLIERS[language],
            _DATA["counts"].get(language, {}),
        )
        for word, value in known.items()
    }
    for language, words in _DATA["cardinals"].items()
}
#: Words that join the parts of one number.
JOINERS = listed(_DATA["words"]["joiners"])
#: Words of numbers that are other words too: they offer their number, and ask for none.
AMBIGUOUS = listed(_DATA["words"]["ambiguous"])
MONTHS: dict[str, int] = _numbered(_DATA["words"]["months"], 1)
#: Units of measure by the words and signs that stand behind a number.
UNITS: dict[str, str] = {word: unit for unit, words in _DATA["units"].items() for word in words.split()}
#: Units that are one another's multiples: the base (empty: none), and how many of it.
CONVERSIONS: dict[str, tuple[str, Fraction]] = {
    unit: (base, Fraction(count)) for unit, (base, count) in _DATA["conversions"].items()
}
#: Endings of compounds that end in a unit.
COMPOUND_UNITS: dict[str, str] = _DATA["compounds"]
#: What multiplies the number before it.
SCALES: dict[str, int] = {word: 10 ** int(power) for power, words in _DATA["scales"].items() for word in words.split()}
