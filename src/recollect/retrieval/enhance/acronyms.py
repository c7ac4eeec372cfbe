"""Acronyms that documents explain themselves: ``Annual Percentage Rate (APR)``, ``APR (annual percentage rate)``.

After Schwartz and Hearst, "A Simple Algorithm for Identifying Abbreviation Definitions in Biomedical Text" (2003),
held to its strict case: each letter of the acronym begins a word of the long form, little words in between allowed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from recollect.retrieval.enhance.synonyms import SynonymRule, SynonymRules

#: A match of the other form is nearly as good: both are names of one thing.
ACRONYM_WEIGHT = 0.8

_SHORT = r"(?P<short>[A-Z][A-Z0-9&]{1,7})s?"
_QUOTE = '["“”‘’]?'
_AFTER = re.compile(rf"(?P<long>(?:[^\W_][\w'’&/\-]*\s+){{2,12}})\((?:the\s+)?{_QUOTE}{_SHORT}{_QUOTE}\)")
_BEFORE = re.compile(rf"(?<!\w){_SHORT}\s+\((?P<long>(?:[^\W_][\w'’&/\-]*\s*){{2,12}})\)")
_WORD = re.compile(r"[^\W_]+")
_LITTLE = frozenset({"a", "and", "at", "by", "for", "from", "in", "of", "on", "or", "per", "the", "to", "with"})


def find_acronyms(texts: Iterable[str]) -> SynonymRules:
    """The acronyms that texts explain, as rules that lead both ways.

    Args:
        texts: Contents of documents, any number; read once. Of several explanations of one acronym, the most frequent
            counts (of equal ones, the first), since one word for two things would mix them up.
    """
    counts: dict[str, Counter[str]] = {}
    for text in texts:
        for short, long in _definitions(text):
            counts.setdefault(short, Counter())[long] += 1
    rules = []
    for short, longs in sorted(counts.items()):
        phrases = (short, longs.most_common(1)[0][0])
        rules.append(SynonymRule(phrases, phrases, ACRONYM_WEIGHT))
    return SynonymRules(tuple(rules))


def _definitions(text: str) -> Iterable[tuple[str, str]]:
    for found in _AFTER.finditer(text):
        long = _long_form(found["short"], found["long"].split())
        if long:
            yield found["short"], long
    for found in _BEFORE.finditer(text):
        words = found["long"].split()
        long = _long_form(found["short"], words)
        if long and len(long.split()) == len(words):
            yield found["short"], long


def _long_form(short: str, words: list[str]) -> str | None:
    """The last words of ``words`` whose initials are the acronym's letters; None where there are none such."""
    letters = [letter for letter in short.casefold() if letter.isalpha()]
    if len(letters) != len(short.replace("&", "")) or len(letters) < 2:
        return None
    place = len(words)
    while letters and place:
        place -= 1
        initials = [part[0].casefold() for part in _WORD.findall(words[place])]
        if initials and initials == letters[-len(initials) :]:
            del letters[-len(initials) :]
        elif words[place].casefold() not in _LITTLE:
            return None
    # A long form begins with a word of weight, and is more than one.
    chosen = words[place:]
    return " ".join(chosen).lower() if not letters and len(chosen) > 1 else None
