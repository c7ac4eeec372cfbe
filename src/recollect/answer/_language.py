"""Which language a sentence is written in, by its function words and its script. Pure."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from recollect.languages import AUTO, language_of_text
from recollect.languages.stopwords import stopwords

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.model import RetrievedContext

_KNOWN = ("en", "de", "fr", "es", "it", "pt", "nl")
_WORD = re.compile(r"[^\W\d_]+")
_SCRIPTS = (
    ("ja", re.compile("[\u3041-\u30ff]")), ("zh", re.compile("[\u4e00-\u9fff]")), ("ko", re.compile("[\uac00-\ud7af]")),
    ("ru", re.compile("[\u0400-\u04ff]")), ("ar", re.compile("[\u0600-\u06ff]")), ("hi", re.compile("[\u0900-\u097f]")),
    ("el", re.compile("[\u0370-\u03ff]")), ("he", re.compile("[\u0590-\u05ff]")), ("th", re.compile("[\u0e00-\u0e7f]")),
)  # fmt: skip
# Letters of a script, as a share of a text, that make it the script's.
_MOSTLY = 0.3
# So much is read to know the language of passages.
_READ_PASSAGES = 6
_READ_OF_PASSAGE = 800


@cache
def _function_words() -> dict[str, frozenset[str]]:
    return {code: frozenset(stopwords(code)) for code in _KNOWN}


def function_words(language: str) -> frozenset[str]:
    """Articles, pronouns and the like of a language."""
    return _function_words().get(language) or frozenset()


def language_of_passages(language: str, passages: Sequence[RetrievedContext], question: str = "") -> str:
    """The language that a question and passages are read in: a collection's.

    Args:
        language: ISO 639-1 code. ``auto``: the question's, where a passage is in it, or else the one that most are in.
        passages: Best first.
        question: That they were found by; empty: that says nothing.
    """
    if language != AUTO:
        return language
    if question.strip():
        asked = language_of_text(question)
        read = (one.content[:_READ_OF_PASSAGE] for one in passages[:_READ_PASSAGES])
        if any(language_of_text(text, expected=asked) == asked for text in read):
            return asked
    return language_of_text("\n\n".join(passage.content[:_READ_OF_PASSAGE] for passage in passages[:_READ_PASSAGES]))


@lru_cache(maxsize=4_096)
def language_of(text: str, default: str = "en") -> str:
    """ISO 639-1 code of a text; ``default`` where too little says another.

    Args:
        text: A sentence or more.
        default: The language that is expected.
    """
    letters = sum(letter.isalpha() for letter in text)
    for code, script in _SCRIPTS:
        if letters and len(script.findall(text)) > _MOSTLY * letters:
            return default if default in {"uk", "bg", "sr", "fa", "ur"} and code in {"ru", "ar"} else code
    words = [word.casefold() for word in _WORD.findall(text)]
    counts = {code: sum(word in functional for word in words) for code, functional in _function_words().items()}
    best = max(counts, key=lambda code: (counts[code], code == default))
    expected = counts.get(default, 0)
    # A short sentence has one function word, and it is not the expected language's.
    alone = not expected and list(counts.values()).count(counts[best]) == 1 and counts[best]
    return best if counts[best] >= expected + 2 or alone else default
