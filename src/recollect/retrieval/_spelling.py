"""One spelling for what people write in several ways, before words are stemmed. Pure.

Arabic after the normalisation of Apache Lucene's analysers (``ArabicNormalizer`` and the prefixes of its light
stemmer; Larkey, Ballesteros and Connell 2007, "Light Stemming for Arabic Information Retrieval"), Hindi after its
``HindiNormalizer``. Words are handed over in lower case and in compatibility form (NFKC).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping

# Thai and Lao vowels typed as two signs, or in another order: the tone belongs before the ring of "am".
_TWO_E = re.compile("\u0e40\u0e40")
_RING_AND_TONE = re.compile("([\u0e4d\u0ecd])([\u0e48-\u0e4b\u0ec8-\u0ecb])")

# Letters of one word in two scripts: those that look alike, Latin and Cyrillic, Latin and Greek.
_MIXED = re.compile("[A-Za-z][\u0370-\u03ff\u0400-\u052f]|[\u0370-\u03ff\u0400-\u052f][A-Za-z]")
_LETTERS = re.compile("[A-Za-z\u0370-\u03ff\u0400-\u052f]+")
_LATIN = re.compile("[A-Za-z]")
_GREEK = re.compile("[\u0370-\u03ff]")


def _both_ways(latin: str, other: str) -> tuple[dict[int, int], dict[int, int]]:
    return str.maketrans(latin, other), str.maketrans(other, latin)


_CYRILLIC_TWINS = _both_ways("ABCEHIJKMOPSTXYaceijopsxy", "АВСЕНІЈКМОРЅТХУасеіјорѕху")
_GREEK_TWINS = _both_ways("ABEHIKMNOPTXYZov", "ΑΒΕΗΙΚΜΝΟΡΤΧΥΖον")

_ARABIC_LETTERS = str.maketrans({
    "\u0622": "\u0627", "\u0623": "\u0627", "\u0625": "\u0627", "\u0671": "\u0627",
    "\u06a9": "\u0643", "\u06cc": "\u064a", "\u0649": "\u064a",
})  # fmt: skip
_VOWEL_SIGNS = re.compile("[\u064b-\u0652\u0670]")
# With an article in front, a last "h" is no pronoun but the feminine ending without its dots.
_FEMININE = re.compile("(?<=^\u0627\u0644)(\\w\\w+)\u0647$")
# "And", "with", "like", "so" before an article, which the stemmer takes off only where nothing stands before it.
_BEFORE_ARTICLE = re.compile("^(?:[\u0648\u0641][\u0628\u0643]?|[\u0628\u0643])(?=\u0627\u0644\\w\\w)")
_FOR_THE = re.compile("^[\u0648\u0641]?\u0644\u0644(?=\\w\\w)")

_NASAL = re.compile("[\u0919\u091e\u0923\u0928\u092e]\u094d(?=[\u0915-\u0939])")
_NUKTA = str.maketrans({"\u0901": "\u0902", "\u093c": None})
_LAST_VIRAMA = re.compile("\u094d$")

_LAST_TONE = re.compile("((?<!q)u(?=y)|o(?=[ae]))([aey])([\u0300\u0301\u0303\u0309\u0323])$")
_ONLY_Y = re.compile("^([hklmst])y([\u0300\u0301\u0303\u0309\u0323]?)$")

_MARKS = re.compile("[\u0300-\u036f]")


def typed_alike(text: str) -> str:
    """A text with vowels of Thai and Lao in one form, however they were typed.

    Args:
        text: In compatibility form, which takes the vowel "am" apart.
    """
    return _TWO_E.sub("\u0e41", _RING_AND_TONE.sub(r"\2\1", text))


def in_one_script(text: str) -> str:
    """A text whose words are each in one script, where letters of another one only look like its own; as long.

    Somebody typed "с" for "c", or wants a word not to be found. What holds letters of its own in both scripts ("μm")
    stays.

    Args:
        text: In compatibility form.

    Example:
        >>> in_one_script("\u0410m\u0430zon")
        'Amazon'
    """
    return _LETTERS.sub(_one_script, text) if _MIXED.search(text) else text


def _one_script(match: re.Match[str]) -> str:
    word = match.group()
    latin, greek = len(_LATIN.findall(word)), len(_GREEK.findall(word))
    other = len(word) - latin
    if not latin or not other or 0 < greek < other:
        return word
    to_other, to_latin = _GREEK_TWINS if greek else _CYRILLIC_TWINS
    as_latin, as_other = word.translate(to_latin), word.translate(to_other)
    if as_latin.isascii() and (latin >= other or _LATIN.search(as_other)):
        return as_latin
    return word if _LATIN.search(as_other) else as_other


def spelt_alike(word: str, language: str) -> str:
    """A word in the spelling that its language's stemmer is given.

    Args:
        word: Lower case, in compatibility form.
        language: ISO 639-1 code.
    """
    rule = _RULES.get(language)
    return word if rule is None or (word.isascii() and language != "vi") else rule(word)


def _arabic(word: str) -> str:
    word = _VOWEL_SIGNS.sub("", word).translate(_ARABIC_LETTERS)
    word = _FOR_THE.sub("\u0627\u0644", _BEFORE_ARTICLE.sub("", word))
    return _FEMININE.sub("\\1\u0629", word)


def _hindi(word: str) -> str:
    return _LAST_VIRAMA.sub("", _NASAL.sub("\u0902", word.translate(_NUKTA)))


def _greek(word: str) -> str:
    return unicodedata.normalize("NFC", _MARKS.sub("", unicodedata.normalize("NFD", word)))


def _vietnamese(word: str) -> str:
    """The tone over the first of two vowels at the end ("hòa" for "hoà"), and "i" for a "y" that is the only vowel."""
    apart = _LAST_TONE.sub(r"\1\3\2", unicodedata.normalize("NFD", word))
    return unicodedata.normalize("NFC", _ONLY_Y.sub(r"\1i\2", apart))


_RULES: Mapping[str, Callable[[str], str]] = {
    "ar": _arabic, "el": _greek, "hi": _hindi, "mr": _hindi, "ne": _hindi, "vi": _vietnamese,
}  # fmt: skip
