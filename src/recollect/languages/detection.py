"""Which language a text is written in: by its script, its most frequent words and the letters that few languages have.

Every text gets a language, because every text is analysed in one: where nothing speaks for another, it is the expected
one, and of the languages of a script of which nothing is known, the one that most of its texts are in. Pure and
deterministic: what was indexed can be counted again, on another machine and years later, to the same terms.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cache, lru_cache

from recollect.languages._marker_words import LETTERS, WORDS
from recollect.languages.stopwords import stopwords

#: The language of a collection whose documents are each analysed in their own.
AUTO = "auto"
#: What a text is taken for that says nothing of its language.
DEFAULT_LANGUAGE = "en"

# So much is read of a text: of a long one, the beginning, and as much from its middle.
_SAMPLE_CHARACTERS = 3_000
# Letters of a script, as a share of the sample's, that make it the script's: names and terms stand in other ones.
_MOSTLY = 0.4
# What a letter says, in letters of an alphabet: "NASUWT是什么？" is Chinese.
_SAYS = {"han": 2.5, "hangul": 2.0, "kana": 2.0}
# Fewer letters in other scripts than this share of them are none of the text's own, whatever a letter says.
_SELDOM = 0.2
# A part of a document is in another language than the whole where so many points, and so many times those of the
# whole's language, speak for it.
_PART_POINTS = 3.0
_PART_RATIO = 3.0
# A word counts as often as this at most, however often it stands there.
_MOST_TIMES = 2.0
# So many more points than the expected language's decide for another one.
_LEAD = 0.5
# Two languages that this much or less divides are as likely as each other.
_SAME = 0.1

_WORD = re.compile(r"[^\W\d_]+(?:['\u2019\u0900-\u097f][^\W\d_]*)*")
_LETTER = re.compile(r"[^\W\d_]")
_OTHER_THAN_LATIN = re.compile("[\u0370-\u1dff\u1f00-\u1fff\u3041-\uffdc\U00010000-\U0003ffff]")
# What a word counts for a language that alone has one of its letters.
_LETTER_POINTS = 0.5
_VIETNAMESE = re.compile("[\u01a0\u01a1\u01af\u01b0\u1ea0-\u1ef9]")

_SCRIPTS = {
    "arabic": "\u0620-\u064a\u066e-\u06d3\u06fa-\u06fc",
    "armenian": "\u0531-\u0587",
    "bengali": "\u0985-\u09b9",
    "burmese": "\u1000-\u102a",
    "cyrillic": "\u0400-\u052f",
    "devanagari": "\u0904-\u0939\u0958-\u0961",
    "ethiopic": "\u1200-\u135a",
    "georgian": "\u10a0-\u10ff",
    "greek": "\u0370-\u03ff\u1f00-\u1fff",
    "gujarati": "\u0a85-\u0ab9",
    "gurmukhi": "\u0a05-\u0a39",
    "han": "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff",
    "hangul": "\u1100-\u11ff\uac00-\ud7af",
    "hebrew": "\u05d0-\u05ea",
    "kana": "\u3041-\u30ff\u31f0-\u31ff",
    "kannada": "\u0c85-\u0cb9",
    "khmer": "\u1780-\u17b3",
    "lao": "\u0e81-\u0eb0",
    "malayalam": "\u0d05-\u0d39",
    "sinhala": "\u0d85-\u0dc6",
    "tamil": "\u0b85-\u0bb9",
    "telugu": "\u0c05-\u0c39",
    "thai": "\u0e01-\u0e30",
}
_ONE_LANGUAGE = {
    "armenian": "hy", "bengali": "bn", "burmese": "my", "ethiopic": "am", "georgian": "ka", "greek": "el",
    "gujarati": "gu", "gurmukhi": "pa", "hangul": "ko", "hebrew": "he", "kana": "ja", "kannada": "kn", "khmer": "km",
    "lao": "lo", "malayalam": "ml", "sinhala": "si", "tamil": "ta", "telugu": "te", "thai": "th", "han": "zh",
}  # fmt: skip
_SHARED = {
    "latin": (
        "en", "de", "fr", "es", "it", "pt", "nl", "sv", "da", "no", "fi", "ca", "cs", "et", "eu", "ga", "hr", "hu",
        "id", "lt", "lv", "pl", "ro", "sk", "sl", "tr", "vi",
    ),
    "cyrillic": ("ru", "uk", "bg", "sr"),
    "devanagari": ("hi", "mr", "ne"),
    "arabic": ("ar", "fa", "ur"),
}  # fmt: skip
_SCRIPT_OF_LANGUAGE = {code: script for script, codes in _SHARED.items() for code in codes} | {
    code: script for script, code in _ONE_LANGUAGE.items()
}
# Letters of Persian and Urdu that Arabic lacks, and those that Persian lacks too.
_PERSIAN = re.compile("[\u067e\u0686\u0698\u06a9\u06af\u06cc]")
_URDU = re.compile("[\u0679\u0688\u0691\u06ba\u06be\u06c1\u06d2]")
_ARABIC = re.compile("[\u0629\u0643\u064a\u0649]")


def language_of_text(text: str, *, expected: str | None = None) -> str:
    """The language of a text.

    Args:
        text: Of any length; of a long one, a part is read.
        expected: ISO 639-1 code, of what the text stands in: it is its language unless something speaks for another
            one; None: nothing is known.

    Returns:
        An ISO 639-1 code, whatever the text: ``en`` where it holds no letters and nothing is expected.
    """
    return _found(_sample(text), expected)


def certain_language(text: str) -> str | None:
    """The language of a text for which more speaks than for any other; None: nothing does, or as much for another one.

    Args:
        text: A question or a sentence.
    """
    sample = _sample(text)
    script, share = _script(sample)
    if not share or script not in _SHARED or script == "arabic":
        return _of_script(script, sample, None) if share else None
    ranked = sorted(_points(sample, script).items(), key=lambda item: item[1], reverse=True)[:2]
    alike = [code for code, points in ranked if points > ranked[0][1] - _SAME]
    if len(alike) == 1:
        return alike[0]
    # German alone writes nouns with a capital within a sentence.
    return "de" if "de" in alike and re.search(r"[^.!?…:]\s[A-Z]\w+[a-z]", sample) else None


def shares_script(language: str, other: str = DEFAULT_LANGUAGE) -> bool:
    """Whether two languages are written in one script; of a language that is not known, that it is Latin is assumed."""
    return _SCRIPT_OF_LANGUAGE.get(language, "latin") == _SCRIPT_OF_LANGUAGE.get(other, "latin")


def language_of_part(text: str, whole: str) -> str:
    """The language of a part of a document: the whole's, unless the part is clearly in another one.

    Args:
        text: Of the part.
        whole: ISO 639-1 code, of the document.
    """
    sample = _sample(text)
    script, share = _script(sample)
    if script != _SCRIPT_OF_LANGUAGE.get(whole, "latin"):
        # Names, formulas and codes in Latin letters stand in every language.
        mostly = 1 - _MOSTLY if script == "latin" else _MOSTLY
        return _found(sample, None) if share > mostly and _clear(sample, script) else whole
    if script not in _SHARED or script == "arabic":
        return _of_script(script, sample, whole)
    points = _points(sample, script)
    best = max(points, key=lambda code: (points[code], code), default=whole)
    return best if points[best] >= max(_PART_POINTS, _PART_RATIO * points[whole]) else whole


def _clear(sample: str, script: str) -> bool:
    if script not in _SHARED or script == "arabic":
        return True
    return max(_points(sample, script).values(), default=0.0) >= _PART_POINTS


@lru_cache(maxsize=4_096)
def _found(sample: str, expected: str | None) -> str:
    script, share = _script(sample)
    if not share:
        return expected or DEFAULT_LANGUAGE
    return _of_script(script, sample, expected)


def _sample(text: str) -> str:
    if len(text) > 2 * _SAMPLE_CHARACTERS:
        middle = len(text) // 2
        text = f"{text[:_SAMPLE_CHARACTERS]}\n{text[middle : middle + _SAMPLE_CHARACTERS]}"
    # Words would end at marks that stand apart from their letters.
    return text if unicodedata.is_normalized("NFC", text) else unicodedata.normalize("NFC", text)


def _script(sample: str) -> tuple[str, float]:
    """The script that a text is in, and the share of its letters."""
    if sample.isascii():
        return "latin", float(any(map(str.isalpha, sample)))
    letters = len(_LETTER.findall(sample))
    if not letters:
        return "latin", 0.0
    if len(_OTHER_THAN_LATIN.findall(sample)) <= _SELDOM * letters:
        return "latin", 1.0
    counts: dict[str, float] = defaultdict(float)
    for match in _script_pattern().finditer(sample):
        counts[match.lastgroup or ""] += len(match.group())
    # Japanese is written in both: where every tenth such letter is a syllable, all of them are Japanese.
    if 10 * counts["kana"] >= counts["han"]:
        counts["kana"] += counts.pop("han", 0.0)
    others = letters - sum(counts.values())
    for kind, says in _SAYS.items():
        counts[kind] *= says
    script = max(counts, key=lambda kind: (counts[kind], kind))
    share = min(counts[script] / max(others + sum(counts.values()), 1.0), 1.0)
    return (script, share) if share > _MOSTLY else ("latin", 1.0 - share)


@cache
def _script_pattern() -> re.Pattern[str]:
    return re.compile("|".join(f"(?P<{name}>[{letters}]+)" for name, letters in _SCRIPTS.items()))


def _of_script(script: str, sample: str, expected: str | None) -> str:
    if script in _ONE_LANGUAGE:
        return _ONE_LANGUAGE[script]
    languages = _SHARED[script]
    known = expected if expected in languages else None
    if script == "arabic":
        return _of_arabic(sample)
    points = _points(sample, script)
    assumed = known or languages[0]
    best = max(points, key=lambda code: (points[code], code == assumed, code), default=assumed)
    return best if points[best] > points[assumed] + _LEAD else assumed


def _of_arabic(sample: str) -> str:
    urdu, persian, arabic = (len(letters.findall(sample)) for letters in (_URDU, _PERSIAN, _ARABIC))
    if urdu > max(1, (persian + arabic) // 10):
        return "ur"
    return "fa" if persian > arabic else "ar"


def _points(sample: str, script: str) -> dict[str, float]:
    """What speaks for each language of a script: words that few of them have count most."""
    words, letters = _evidence(script)
    points: dict[str, float] = defaultdict(float)
    ascii_only = sample.isascii()
    for word, occurrences in Counter(_WORD.findall(sample.lower())).items():
        # A name that is written ten times is no ten words of its language: "Los Angeles".
        times = min(math.sqrt(occurrences), _MOST_TIMES)
        # "l'hôtel" tells by its article.
        for code, weight in (*words.get(word, ()), *words.get(_elided(word), ())):
            points[code] += times * weight
        if not ascii_only and not word.isascii():
            for code, weight in _of_letters(word, letters).items():
                points[code] += times * weight
    return points


def _elided(word: str) -> str:
    head, apostrophe, _ = word.replace("\u2019", "'").partition("'")
    return head + apostrophe if apostrophe else ""


def _of_letters(word: str, letters: dict[str, Sequence[tuple[str, float]]]) -> dict[str, float]:
    if _VIETNAMESE.search(word):
        return {"vi": 1.0}
    found: dict[str, float] = {}
    for letter in set(word):
        for code, weight in letters.get(letter, ()):
            found[code] = max(found.get(code, 0.0), weight)
    return found


@cache
def _evidence(script: str) -> tuple[dict[str, Sequence[tuple[str, float]]], dict[str, Sequence[tuple[str, float]]]]:
    """Which languages of a script have a word, and which a letter, each with what it counts for them."""
    languages = _SHARED[script]
    # Single Latin letters are initials, units and variables too.
    words = {
        code: {word for word in (*stopwords(code), *WORDS.get(code, "").split()) if not re.match("[a-z]$", word)}
        for code in languages
    }
    letters = {code: set(LETTERS.get(code, "")) for code in languages}
    return _shared_out(words, 1.0), _shared_out(letters, _LETTER_POINTS)


def _shared_out(held: dict[str, set[str]], points: float) -> dict[str, Sequence[tuple[str, float]]]:
    holders: dict[str, list[str]] = {}
    for code, items in held.items():
        for item in items:
            holders.setdefault(item, []).append(code)
    return {item: [(code, points / len(codes)) for code in codes] for item, codes in holders.items()}
