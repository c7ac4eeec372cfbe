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
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.errors import NotFoundError, UsageError
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
        self._beginnings = {terms[0] for terms in self._by_terms}

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
        for start, term in enumerate(terms):
            if term not in self._beginnings:
                continue
            for length in range(min(self._longest, len(terms) - start), 0, -1):
                yield from self._by_terms.get(tuple(terms[start : start + length]), ())


def _extended(plan: QueryPlan, added: tuple[Expansion, ...], note: EnhancementNote) -> QueryPlan:
    return replace(plan, expansions=plan.expansions + added, notes=(*plan.notes, note))


# Acronyms that documents explain themselves: `Annual Percentage Rate (APR)`, `APR (annual percentage rate)`.
#
# After Schwartz and Hearst, "A Simple Algorithm for Identifying Abbreviation Definitions in Biomedical Text" (2003),
# held to its strict case: each letter of the acronym begins a word of the long form, little words in between allowed.


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


# Financial measures: the lines of statements that a question about one is answered from.
#
# A question for the quick ratio of a company is answered by its balance sheet, which says "quick ratio" nowhere, as
# its cash flow statement does not say "capex". `accounting.txt` has the measures; `docs/how-to/query-enhancement.md`
# what was measured.


#: What a line's words are worth beside the measure's own: another name of one thing, as an acronym's long form is.
LINE_WEIGHT = 0.8

#: A query takes up the lines of so many measures, the first ones.
MAX_MEASURES = 8

#: Texts with all of these words may hold financial statements.
STATEMENT_WORDS = ("consolidated", "statements", "assets", "liabilities", "equity", "cash", "flows")

_STATEMENTS = {
    "income": "consolidated statements of income operations earnings",
    "balance": "consolidated balance sheets",
    "cash": "consolidated statements of cash flows",
}

_FISCAL_YEAR = re.compile(r"(?<!\w)(FY\s?['’]?(\d{4}|\d{2}))(?!\w)")

_RECENT = "20"


@dataclass(frozen=True, slots=True)
class Measure:
    """A name of a measure as it stands in a question, and where its figures are.

    Attributes:
        name: As the question has it.
        lines: Of the statements, to be searched; none where the name is a statement's.
        statements: Their names.
    """

    name: str
    lines: tuple[str, ...]
    statements: tuple[str, ...]


def find_measures(question: str) -> list[Measure]:
    """The measures that a question names, in its order, each once.

    Args:
        question: Of any length. Of names within one another, the longest counts.
    """
    pattern, rules, beginnings = _glossary()
    # Most questions name none, and this tells for less.
    if question.isascii() and beginnings.isdisjoint(_WORD.findall(question.lower())):
        return []
    found: dict[str, Measure] = {}
    for match in pattern.finditer(question.replace("’", "'")):
        # To the pattern "ſ" is an "s", and "İ" an "i".
        rule = rules.get(match[0]) or rules.get(match[0].casefold())
        if rule is not None:
            found.setdefault(match[0].lower(), replace(rule, name=match[0]))
    return list(found.values())


class AccountingEnhancer:
    """Adds the lines of statements to a query that names a financial measure. Safe to share between threads.

    Both retrievers get them: the lexical one as words, the dense one as a text whose embedding joins the query's. A
    fiscal year (``FY2018``, ``FY18``) is searched as its year, too. What answers must hold the
    measure, by its name or by a line that is the same, and the year.

    A query that names no measure, or one of a collection without statements, is left as it is, without a note.

    Args:
        holds_statements: Whether the collection may hold financial statements; asked for queries with measures only.
    """

    name = "accounting"

    def __init__(self, holds_statements: Callable[[], bool]) -> None:
        self._holds_statements = holds_statements

    def enhance(self, plan: QueryPlan) -> QueryPlan:
        """See `recollect.retrieval.enhance.plan.QueryEnhancer`."""
        measures = find_measures(plan.query)[:MAX_MEASURES]
        years = tuple(_years(plan.query))
        if not (measures or years) or not self._holds_statements():
            return plan
        lines = (Expansion(one.name, text, LINE_WEIGHT) for one in measures for text in (*one.lines, *one.statements))
        told = [f"{one.name} → {', '.join((*one.lines, *one.statements))}" for one in measures]
        told += [f"{year.original} → {year.text}" for year in years]
        answer = "; ".join(dict.fromkeys(text for one in measures for text in (*one.statements, *one.lines)))
        return replace(
            plan,
            expansions=tuple(dict.fromkeys((*plan.expansions, *lines, *years))),
            hypothetical_answers=(*plan.hypothetical_answers, *([answer] if answer else [])),
            notes=(*plan.notes, EnhancementNote(name=self.name, outcome="applied", detail="; ".join(told))),
        )


def _years(question: str) -> Iterator[Expansion]:
    for match in _FISCAL_YEAR.finditer(question):
        year = match[2] if len(match[2]) > len(_RECENT) else f"{_RECENT}{match[2]}"
        yield Expansion(match[1], year, 1.0)


@cache
def _glossary() -> tuple[re.Pattern[str], dict[str, Measure], frozenset[str]]:
    """A pattern of names in questions, measures by name (as written, or in small letters), and first words of names."""
    rules: dict[str, Measure] = {}
    text = files("recollect.retrieval.enhance").joinpath("accounting.txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        names, _, found_in = line.partition("=>")
        lines, _, statements = found_in.partition("@")
        rule = Measure("", _listed(lines), tuple(map(_STATEMENTS.__getitem__, _listed(statements))))
        rules |= dict.fromkeys(_listed(names), rule)
    longest_first = sorted(rules, key=len, reverse=True)
    names = "|".join(re.escape(name) if name[0].isupper() else f"(?i:{re.escape(name)})" for name in longest_first)
    beginnings = frozenset(_WORD.findall(name.lower())[0] for name in rules)
    return re.compile(rf"(?<!\w)(?:{names})(?!\w)"), rules, beginnings


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())
