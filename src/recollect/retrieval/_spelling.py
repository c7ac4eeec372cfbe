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

_MARKS = re.compile("[\u0300-\u036f]")


def typed_alike(text: str) -> str:
    """A text with vowels of Thai and Lao in one form, however they were typed.

    Args:
        text: In compatibility form, which takes the vowel "am" apart.
    """
    return _TWO_E.sub("\u0e41", _RING_AND_TONE.sub(r"\2\1", text))


def spelt_alike(word: str, language: str) -> str:
    """A word in the spelling that its language's stemmer is given.

    Args:
        word: Lower case, in compatibility form.
        language: ISO 639-1 code.
    """
    rule = _RULES.get(language)
    return word if rule is None or word.isascii() else rule(word)


def _arabic(word: str) -> str:
    word = _VOWEL_SIGNS.sub("", word).translate(_ARABIC_LETTERS)
    word = _FOR_THE.sub("\u0627\u0644", _BEFORE_ARTICLE.sub("", word))
    return _FEMININE.sub("\\1\u0629", word)


def _hindi(word: str) -> str:
    return _LAST_VIRAMA.sub("", _NASAL.sub("\u0902", word.translate(_NUKTA)))


def _greek(word: str) -> str:
    return unicodedata.normalize("NFC", _MARKS.sub("", unicodedata.normalize("NFD", word)))


_RULES: Mapping[str, Callable[[str], str]] = {
    "ar": _arabic, "el": _greek, "hi": _hindi, "mr": _hindi, "ne": _hindi,
}  # fmt: skip
