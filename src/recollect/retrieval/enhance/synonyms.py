"""Synonyms and acronyms: rules from a file, and the words that they add to a query.

A file is UTF-8 text, one rule a line::

    # a comment
    dies, dead, deceased                    any of these finds the others
    incapacitated => dies, unable to act    the left finds the right, not the other way round
    APR, annual percentage rate ^0.8        a match of the other is worth 0.8 of a match of the word itself

Rules are compared by the collection's analysis, so that ``incapacitation`` meets a rule for ``incapacitated``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.errors import NotFoundError, UsageError
from recollect.model.wording import Wording
from recollect.retrieval.enhance.plan import EnhancementNote, Expansion, QueryPlan

if TYPE_CHECKING:
    from recollect.retrieval.analysis import Analyzer

#: What a match of a synonym is worth where its rule does not say.
DEFAULT_WEIGHT = 0.5

MAX_FILE_BYTES = 5_000_000
MAX_PHRASE_CHARACTERS = 200
#: A query takes up at most this many expansions, the first in the order of its words.
MAX_EXPANSIONS = 32

_WEIGHT = re.compile(r"\s\^\s*(\S+)\s*$")


@dataclass(frozen=True, slots=True)
class SynonymRule:
    """One rule.

    Attributes:
        originals: Any of these words in a query...
        expansions: ...searches these too.
        weight: What a match of them is worth, above 0 to 1.
        where: File and line, for messages; empty for a rule that was not read from a file.
    """

    originals: tuple[str, ...]
    expansions: tuple[str, ...]
    weight: float = DEFAULT_WEIGHT
    where: str = ""


@dataclass(frozen=True, slots=True)
class SynonymRules:
    """The rules of one collection.

    Attributes:
        rules: In the file's order.
        fingerprint: Changes when they do: part of the key under which replies are kept.
    """

    rules: tuple[SynonymRule, ...]

    @property
    def fingerprint(self) -> str:
        """See above."""
        text = repr([(rule.originals, rule.expansions, rule.weight) for rule in self.rules])
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def load_synonyms(path: Path | str) -> SynonymRules:
    """Read a file of rules.

    Raises:
        NotFoundError: There is no such file.
        UsageError: It is too large or not UTF-8, or a line is not a rule; the message names file and line.
    """
    file = Path(path)
    try:
        with file.open("rb") as opened:
            content = opened.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError as exc:
        raise NotFoundError(f"There is no synonym file {str(file)!r}.") from exc
    except OSError as exc:
        raise UsageError(f"The synonym file {str(file)!r} cannot be read: {exc.strerror}.") from exc
    if len(content) > MAX_FILE_BYTES:
        raise UsageError(f"{file}: a synonym file holds at most {MAX_FILE_BYTES:,} bytes, and this one more.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        line = content.count(b"\n", 0, exc.start) + 1
        raise UsageError(f"{file}:{line}: not UTF-8; save the file in this encoding.") from exc
    return parse_synonyms(text, name=str(file))


def parse_synonyms(text: str, *, name: str = "synonyms") -> SynonymRules:
    """Read rules from a text.

    Args:
        text: One rule a line; see the module.
        name: What messages call it.

    Raises:
        UsageError: A line is not a rule.
    """
    rules = []
    for number, line in enumerate(text.splitlines(), start=1):
        content = line.partition("#")[0] if line.lstrip().startswith("#") else re.split(r"\s#\s", line)[0]
        if content.strip():
            rules.append(_rule(content.strip(), f"{name}:{number}"))
    return SynonymRules(tuple(rules))


def _rule(line: str, where: str) -> SynonymRule:
    weight = DEFAULT_WEIGHT
    given = _WEIGHT.search(line)
    if given:
        line = line[: given.start()]
        weight = _weight(given.group(1), where)
    left, arrow, right = line.partition("=>")
    if "=>" in right:
        raise UsageError(f"{where}: a rule has one '=>', as in 'incapacitated => dies, death'.")
    originals = _phrases(left, where)
    if arrow:
        return SynonymRule(originals, _phrases(right, where), weight, where)
    if len(originals) < 2:
        raise UsageError(
            f"{where}: {line!r} has one phrase: write 'a, b' for words that find each other, or 'a => b' for one "
            "that finds the other."
        )
    return SynonymRule(originals, originals, weight, where)


def _weight(text: str, where: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        weight = 0.0
    if not 0 < weight <= 1:
        raise UsageError(f"{where}: a weight is a number above 0 and at most 1, as in '^0.5', not {text!r}.")
    return weight


def _phrases(text: str, where: str) -> tuple[str, ...]:
    phrases = tuple(dict.fromkeys(" ".join(phrase.split()) for phrase in text.split(",")))
    if "" in phrases:
        raise UsageError(f"{where}: a phrase is missing: there is nothing before, after or between the commas.")
    for phrase in phrases:
        if len(phrase) > MAX_PHRASE_CHARACTERS or not phrase.isprintable():
            raise UsageError(
                f"{where}: a phrase has at most {MAX_PHRASE_CHARACTERS} printable characters, unlike {phrase[:50]!r}."
            )
    return phrases


class SynonymEnhancer:
    """Adds synonyms to a query's words. Safe to share between threads.

    Args:
        rules: What finds what.
        analyzer: Of the collection's language.
        name: For ``explain``: ``synonyms``, or ``acronyms``.

    Raises:
        UsageError: A phrase of the rules consists of function words alone, so that nothing could find it.
    """

    def __init__(self, rules: SynonymRules, analyzer: Analyzer, *, name: str = "synonyms") -> None:
        self.name = name
        self._analyzer = analyzer
        self._by_terms: dict[tuple[str, ...], list[Expansion]] = {}
        for rule in rules.rules:
            terms = {phrase: self._terms(phrase, rule) for phrase in (*rule.originals, *rule.expansions)}
            for original in rule.originals:
                own = self._by_terms.setdefault(terms[original], [])
                own += [
                    Expansion(original, phrase, rule.weight)
                    for phrase in rule.expansions
                    if terms[phrase] != terms[original]
                ]
        self._longest = max(map(len, self._by_terms), default=0)

    def enhance(self, plan: QueryPlan) -> QueryPlan:
        """See `recollect.retrieval.enhance.plan.QueryEnhancer`."""
        found = list(dict.fromkeys(self._matches(self._analyzer.query_terms(plan.query))))
        added = tuple(expansion for expansion in found if expansion not in plan.expansions)[:MAX_EXPANSIONS]
        if added:
            detail = "; ".join(f"{item.original} → {item.text} (×{item.weight:g})" for item in added)
            note = EnhancementNote(name=self.name, outcome="applied", detail=detail)
        else:
            note = EnhancementNote(name=self.name, outcome="nothing to add", detail="no rule meets the query")
        return _extended(plan, added, note)

    def _terms(self, phrase: str, rule: SynonymRule) -> tuple[str, ...]:
        terms = tuple(self._analyzer.query_terms(phrase))
        if not terms:
            place = f"{rule.where}: " if rule.where else ""
            raise UsageError(f"{place}{phrase!r} has no word that a search could find; leave it out.")
        return terms

    def _matches(self, terms: Sequence[str]) -> Iterable[Expansion]:
        """Every phrase of the rules that stands in the query, longer ones first where they begin together."""
        for start in range(len(terms)):
            for length in range(min(self._longest, len(terms) - start), 0, -1):
                yield from self._by_terms.get(tuple(terms[start : start + length]), ())


def _extended(plan: QueryPlan, added: tuple[Expansion, ...], note: EnhancementNote) -> QueryPlan:
    others: dict[str, list[str]] = {}
    for expansion in added:
        others.setdefault(expansion.original, []).append(expansion.text)
    wordings = tuple(Wording(original, tuple(texts)) for original, texts in others.items())
    return replace(
        plan, expansions=plan.expansions + added, wordings=plan.wordings + wordings, notes=(*plan.notes, note)
    )
