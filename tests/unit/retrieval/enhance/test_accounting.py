"""Financial measures in questions, and the lines of statements that they stand for."""

from __future__ import annotations

import pytest

from recollect.retrieval.enhance.plan import QueryPlan, enhance
from recollect.retrieval.enhance.synonyms import AccountingEnhancer, find_measures

HOLDS = AccountingEnhancer(lambda: True)


def names(question: str) -> list[str]:
    return [one.name for one in find_measures(question)]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What is the capital expenditure in the cash flow statement?", ["capital expenditure", "cash flow statement"]),
        ("Fixed asset turnover ratio is revenue over average PP&E.", ["Fixed asset turnover ratio", "PP&E"]),
        ("Is it a capital-intensive business, by capex (or Capex)?", ["capital-intensive", "capex"]),
        ("The shareholders’ equity", ["shareholders' equity"]),
        ("What is the EBITDA margin, and what is EBITDA?", ["EBITDA margin", "EBITDA"]),
        ("Our roe deer, an ar-15 and the ppe of nurses", []),
        ("Who leads the company?", []),
        ("", []),
        ("What were ſhare repurchaſes?", ["ſhare repurchaſes"]),
        ("What were İnventorıes?", []),
    ],
)
def test_names_of_measures_are_found_the_longest_first(question, expected):
    assert names(question) == expected


def test_a_measure_brings_its_lines_to_words_and_to_meaning():
    plan = enhance("What is the quick ratio?", [HOLDS])
    assert plan.query == "What is the quick ratio?"
    added = {one.text: one for one in plan.expansions}
    assert {"total current assets", "inventories", "consolidated balance sheets"} <= added.keys()
    assert added["inventories"].original == "quick ratio"
    (answer,) = plan.hypothetical_answers
    assert answer.startswith("consolidated balance sheets; cash and cash equivalents; ")
    assert plan.notes[0].outcome == "applied"
    assert "quick ratio → cash and cash equivalents" in plan.notes[0].detail


def test_what_a_plan_has_already_stays():
    plan = HOLDS.enhance(QueryPlan(query="capex", hypothetical_answers=("Much was spent.",)))
    assert plan.hypothetical_answers[0] == "Much was spent."
    assert len(plan.hypothetical_answers) == 2


@pytest.mark.parametrize(
    ("question", "year"), [("FY2018 sales", "2018"), ("of FY18", "2018"), ("FY’21", "2021"), ("FY 22", "2022")]
)
def test_fiscal_years_are_years(question, year):
    assert [(one.text, one.weight) for one in HOLDS.enhance(QueryPlan(query=question)).expansions] == [(year, 1.0)]


@pytest.mark.parametrize("question", ["FY123 sales", "FYI 20", "Who leads the company?"])
def test_a_question_without_a_measure_is_left_alone_and_nothing_is_looked_up(question):
    def unexpected() -> bool:
        raise AssertionError("the collection is not asked")

    plan = QueryPlan(query=question)
    assert AccountingEnhancer(unexpected).enhance(plan) == plan


def test_a_collection_without_statements_is_left_alone():
    plan = QueryPlan(query="Who approves capital expenditure in FY2020?")
    assert AccountingEnhancer(lambda: False).enhance(plan) == plan


def test_a_question_of_very_many_measures_takes_up_the_first_ones():
    plan = HOLDS.enhance(QueryPlan(query="ROA ROE ROIC DSO DPO DIO COGS EPS capex EBITDA " * 200))
    assert {one.original for one in plan.expansions} == {"ROA", "ROE", "ROIC", "DSO", "DPO", "DIO", "COGS", "EPS"}
