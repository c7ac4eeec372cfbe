"""What a question is about by name: companies, places, products, codes. And whether a text is about it too."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise

from recollect.answer._kinds import is_english

_TOKEN = re.compile(r"[^\W_](?:[\w&+#]|[-./'’](?=\w))*")
_WHOLE = re.compile(r"\w+(?:[-./&'+#]\w+)*")
_HYPHENED = re.compile(r"[^\W_]+(?:-[^\W_]+)+")
_PLAIN = re.compile(r"[^\W_]+")
_SENTENCE_START = re.compile(r"(?:\A|[.!?:]\s|[\"“”«»(]\s*)\W*\Z")
_CODE = re.compile(r"(?=.*[A-Za-z])(?=.*\d)(?!\d+[a-z]+\Z)[\w./&+#-]{2,}|[^\W\d]+_\w+", re.ASCII)
_VERSION = re.compile(
    r"(?i:v?\d+(?:[.,]\d+)*|[qh][1-4]|fy ?'?\d{2,4}|covid-19)|\d+(?:[.,]\d+)*(?:st|nd|rd|th|s|k|m|bn)"
)
# Capitalised in English without being anybody's name.
_COMMON_WORDS = """
    i i'm i've i'll i'd monday tuesday wednesday thursday friday saturday sunday january february march april may june
    july august september october november december english french german portuguese spanish british european american
"""
_TITLE_WORDS = """
    mr mrs ms dr president senator congressman professor king queen emperor pope prince princess sir lord lady minister
    chancellor secretary governor general captain judge justice bishop saint
"""
_TITLES = frozenset(_TITLE_WORDS.split())
_TITLED = re.compile(rf"\b(?i:{'|'.join(_TITLE_WORDS.split())})\.? [A-Z]\w+(?:['’]s)?")
_INITIALS = re.compile(r"([a-z])n([a-z])")
# "General Mills" is not known by its amounts in millions.
_AMOUNTS = frozenset({"million", "millions"})
_COMMON = frozenset(_COMMON_WORDS.split()) | _TITLES


def names_in(question: str) -> tuple[frozenset[str], ...]:
    """The names in a question, each as its words, casefolded; codes (``RW-400``) are names of one word.

    Names in words are recognised in English questions alone: where every noun has a capital, or no word, capitals
    tell nothing. Abbreviations (``SMS``) are none: texts spell them out.
    """
    english = is_english(question)
    names: list[frozenset[str]] = []
    words: list[str] = []
    last_end = 0
    for match in _TOKEN.finditer(question):
        token = re.sub(r"['’]s?\Z", "", match.group())
        is_name = english and _is_name(token, question[max(0, match.start() - 8) : match.start()])
        joins = is_name and not is_code(token) and question[last_end : match.start()] in {" ", " & "}
        if words and not joins:
            names.append(frozenset(words))
            words = []
        if is_code(token):
            names.append(frozenset([token.casefold()]))
        elif is_name:
            words.append(token.casefold())
        last_end = match.end()
    names.extend([frozenset(words)] if words else [])
    return tuple(dict.fromkeys(names))


def titled_words(question: str) -> frozenset[str]:
    """The words that stand behind a title ("President Biden"): people whom a text of their own may not name."""
    tokens = [token.casefold() for token in re.findall(r"\w+", question)]
    return frozenset(name for title, name in pairwise(tokens) if title in _TITLES)


def without_titled(question: str) -> str:
    """A question without its people by their title."""
    return _TITLED.sub(" ", question)


def is_code(token: str) -> bool:
    """Whether a token is an identifier (``ERR-4012``, ``max_sessions``, ``3M``), not a number, a version or a year."""
    return bool(_CODE.fullmatch(token)) and not _VERSION.fullmatch(token)


def _is_name(token: str, before: str) -> bool:
    if not token[:1].isupper() or len(token) < 2 or token.isupper() or token.casefold() in _COMMON:
        return False
    return not _SENTENCE_START.search(before)


def missing_names(names: Iterable[frozenset[str]], text: str, *, source: str = "") -> list[frozenset[str]]:
    """The names that a text does not hold: less than half of a name's words.

    Args:
        names: From `names_in`.
        text: The quote with its section and title.
        source: Of its document; names stand in it run together ("acmegroup_2022_report.pdf").
    """
    known, joined = words_of(text), words_of(source)

    def holds(word: str) -> bool:
        return _is_known(word, known) or _is_part(word, joined) or _has_initials(word, text, source)

    return [name for name in names if 2 * sum(map(holds, name)) < len(name)]


@lru_cache(maxsize=512)
def words_of(text: str) -> frozenset[str]:
    """The casefolded words of a text, whole and by their parts: ``hr/rw-400_guide.pdf`` holds both of the last."""
    words = set(_WHOLE.findall(text.casefold().replace("’", "'")))
    joined = [word for word in words if not word.isalnum()]
    return frozenset(words.union(*(_HYPHENED.findall(word) + _PLAIN.findall(word) for word in joined)))


def _has_initials(word: str, text: str, source: str) -> bool:
    """Whether a name such as "JnJ" stands in a text as "Johnson & Johnson", or in a source as "JOHNSON_JOHNSON"."""
    match = _INITIALS.fullmatch(word)
    if match is None:
        return False
    first, last = match.groups()
    in_text = rf"\b{first.upper()}\w+ (?:&|and) {last.upper()}\w+"
    in_source = rf"(?<![^\W_]){first}[^\W\d_]+[-_ ]{last}[^\W\d_]+"
    return bool(re.search(in_text, text) or re.search(in_source, source.casefold()))


def _is_part(word: str, joined: frozenset[str]) -> bool:
    return len(word) >= 3 and any(one.startswith(word) or one.endswith(word) for one in joined)


def _is_known(word: str, known: frozenset[str]) -> bool:
    if word in known or f"{word}s" in known or f"{word}'s" in known or word.removesuffix("s") in known:
        return True
    return len(word) >= 5 and word.isalpha() and any(one.startswith(word[:-1]) for one in known - _AMOUNTS)
