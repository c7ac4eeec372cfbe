"""Acronyms that documents explain themselves: ``Annual Percentage Rate (APR)``, ``APR (annual percentage rate)``.

After Schwartz and Hearst, "A Simple Algorithm for Identifying Abbreviation Definitions in Biomedical Text" (2003),
held to its strict case: each letter of the acronym begins a word of the long form, little words in between allowed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from recollect.retrieval.enhance.synonyms import SynonymEnhancer, SynonymRule, SynonymRules

if TYPE_CHECKING:
    from recollect.retrieval.analysis import Analyzer

#: A match of the other form is nearly as good: both are names of one thing.
ACRONYM_WEIGHT = 0.8

_SHORT = r"(?P<short>[A-Z][A-Z0-9&]{1,7})s?"
_QUOTE = '["“”‘’]?'
# Brackets are found first, and looked at with what stands before them: searching for words that end in a bracket
# would try every word of the text.
_BRACKETS = re.compile(r"\(([^()]{2,200})\)")
_BRACKETED_SHORT = re.compile(rf"(?:the\s+)?{_QUOTE}{_SHORT}{_QUOTE}")
_SHORT_BEFORE = re.compile(rf"(?<!\w){_SHORT}\s+$")
_LONG_WORD = re.compile(r"[^\W_][\w'’&/\-]*")
_MAX_WORDS = 12
_MAX_LONG_CHARACTERS = 200
_WINDOW = _MAX_LONG_CHARACTERS + 100
_WORD = re.compile(r"[^\W_]+")
_LITTLE = frozenset({"a", "and", "at", "by", "for", "from", "in", "of", "on", "or", "per", "the", "to", "with"})


def find_acronyms(texts: Iterable[str]) -> SynonymRules:
    """The acronyms that texts explain, as rules that lead both ways.

    Args:
        texts: Contents of documents, any number; read once. Of several explanations of one acronym, the most frequent
            counts (of equal ones, the first), since one word for two things would mix them up.
    """
    return acronym_rules((*found, 1) for text in texts for found in definitions(text))


def acronym_rules(found: Iterable[tuple[str, str, int]]) -> SynonymRules:
    """Rules from (acronym, long form, how often it was explained so); see `find_acronyms`."""
    counts: dict[str, Counter[str]] = {}
    for short, long, occurrences in found:
        counts.setdefault(short, Counter())[long] += occurrences
    rules = []
    for short, longs in sorted(counts.items()):
        phrases = (short, longs.most_common(1)[0][0])
        rules.append(SynonymRule(phrases, phrases, ACRONYM_WEIGHT))
    return SynonymRules(tuple(rules))


def acronym_enhancer(found: Iterable[tuple[str, str, int]], analyzer: Analyzer) -> SynonymEnhancer:
    """Adds the other form to a query that has one of these, both ways.

    Args:
        found: See `acronym_rules`. An acronym that reads like a function word ("OR") is left out: nothing finds it.
        analyzer: Of the collection's language.
    """
    rules = acronym_rules(found).rules
    usable = tuple(rule for rule in rules if all(map(analyzer.query_terms, rule.originals)))
    return SynonymEnhancer(SynonymRules(usable), analyzer, name="acronyms")


def definitions(text: str) -> Iterator[tuple[str, str]]:
    """Every acronym that a text explains, with its long form in lower case; in their order, with repetitions."""
    for found in _BRACKETS.finditer(text):
        before = text[max(0, found.start() - _WINDOW) : found.start()]
        after = _BRACKETED_SHORT.fullmatch(found[1])
        if after:
            short, words = after["short"], _words_at_end(before)
            long = _long_form(short, words)
        else:
            ahead = _SHORT_BEFORE.search(before[-20:])
            words = found[1].split()
            if not ahead or len(words) > _MAX_WORDS or not all(map(_LONG_WORD.fullmatch, words)):
                continue
            short, long = ahead["short"], _long_form(ahead["short"], words)
            if long and len(long.split()) < len(words):
                continue
        if long and len(long) <= _MAX_LONG_CHARACTERS:
            yield short, long


def _words_at_end(text: str) -> list[str]:
    """The last words of a text that nothing but white space stands between, and at its end."""
    if not text[-1:].isspace():
        return []
    words: list[str] = []
    for word in reversed(text.split()[-_MAX_WORDS:]):
        if not _LONG_WORD.fullmatch(word):
            break
        words.insert(0, word)
    return words


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
