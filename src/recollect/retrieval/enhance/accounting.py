"""Financial measures: the lines of statements that a question about one is answered from.

A question for the quick ratio of a company is answered by its balance sheet, which says "quick ratio" nowhere, as its
cash flow statement does not say "capex". ``accounting.txt`` has the measures; ``docs/how-to/query-enhancement.md`` what
was measured.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

from recollect.model.wording import Wording
from recollect.retrieval.enhance.plan import EnhancementNote, Expansion, QueryPlan

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
        same: Lines that are the measure in other words; none: it is computed.
    """

    name: str
    lines: tuple[str, ...]
    statements: tuple[str, ...]
    same: tuple[str, ...]


def find_measures(question: str) -> list[Measure]:
    """The measures that a question names, in its order, each once.

    Args:
        question: Of any length. Of names within one another, the longest counts.
    """
    pattern, rules = _glossary()
    found: dict[str, Measure] = {}
    for match in pattern.finditer(question.replace("’", "'")):
        rule = rules[match[0]] if match[0] in rules else rules[match[0].lower()]
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
            wordings=(*plan.wordings, *_wordings(measures, years)),
            hypothetical_answers=(*plan.hypothetical_answers, *([answer] if answer else [])),
            notes=(*plan.notes, EnhancementNote(name=self.name, outcome="applied", detail="; ".join(told))),
        )


def _years(question: str) -> Iterator[Expansion]:
    for match in _FISCAL_YEAR.finditer(question):
        year = match[2] if len(match[2]) > len(_RECENT) else f"{_RECENT}{match[2]}"
        yield Expansion(match[1], year, 1.0)


def _wordings(measures: Sequence[Measure], years: Sequence[Expansion]) -> Iterator[Wording]:
    # The name of a statement says where to look, and nothing that an answer must hold.
    yield from (Wording(one.name, one.same, needed=True) for one in measures if one.lines or one.same)
    yield from (Wording(year.original, (year.text,), needed=True) for year in years)


@cache
def _glossary() -> tuple[re.Pattern[str], dict[str, Measure]]:
    """What finds names in a question, and measures by name: as it is written, or in small letters."""
    rules: dict[str, Measure] = {}
    text = files("recollect.retrieval.enhance").joinpath("accounting.txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        told, _, found_in = line.partition("=>")
        names, _, same = told.partition(" = ")
        lines, _, statements = found_in.partition("@")
        rule = Measure("", _listed(lines), tuple(map(_STATEMENTS.__getitem__, _listed(statements))), _listed(same))
        rules |= dict.fromkeys(_listed(names), rule)
    longest_first = sorted(rules, key=len, reverse=True)
    names = "|".join(re.escape(name) if name[0].isupper() else f"(?i:{re.escape(name)})" for name in longest_first)
    return re.compile(rf"(?<!\w)(?:{names})(?!\w)"), rules


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())
