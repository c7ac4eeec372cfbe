"""Answers out of financial statements: measures by their lines, fiscal years by their columns, or a refusal."""

from __future__ import annotations

import pytest

from answer.samples import WordEmbedder, passage
from recollect.answer import extract_answer, verify
from recollect.answer._question import understand
from recollect.model.passage import Wording
from recollect.retrieval.analysis import Analyzer
from recollect.retrieval.enhance.plan import QueryPlan
from recollect.retrieval.enhance.synonyms import AccountingEnhancer

HEAD = "| Years ended December 31 (Millions) | 2018 | 2017 | 2016 |"
ROWS = """| Investing Activities › Purchases of property, plant and equipment (PP&E) | (1,577) | (1,373) | (1,420) |
| Investing Activities › Proceeds from sale of PP&E and other assets | 262 | 49 | 58 |
| Financing Activities › Dividends paid to shareholders | (3,193) | (2,803) | (2,678) |
| Accrued payroll | 749 | 870 | 678 |
| Other expense (income), net | 207 | 144 | (26) |
"""
STATEMENT = f"{HEAD}\n|---|---|---|---|\n{ROWS}"
ACME = {"source": "acme_10k.pdf", "title": "10-K - Acme", "section": "Statement of Cash Flows", "relevance": 0.3}


def asked(question, *passages):
    wordings = AccountingEnhancer(lambda: True).enhance(QueryPlan(query=question)).wordings
    found = passages or (passage(STATEMENT, **ACME),)
    return extract_answer(question, found, embedder=WordEmbedder(), wordings=wordings)


CAPEX = "Investing Activities › Purchases of property, plant and equipment (PP&E)"
DIVIDENDS = "Financing Activities › Dividends paid to shareholders"


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("How much was the capex of Acme in FY2018?", f"2018 - {CAPEX}: (1,577)"),
        ("How much was the capex of Acme in FY'17?", f"2017 - {CAPEX}: (1,373)"),
        ("What were the cash dividends of Acme in FY2016?", f"2016 - {DIVIDENDS}: (2,678)"),
        ("What was the accrued payroll of Acme in FY2017? Answer in USD millions.", "2017 - Accrued payroll: 870"),
    ],
)
def test_a_measure_is_told_by_its_line_and_its_year(question, told):
    reply = asked(question)
    assert reply.text.startswith(f"Years ended December 31 (Millions), {told} [1]")
    assert verify(reply.text, reply.citations, {1: STATEMENT}) == ()


def test_what_a_measure_changed_by_is_not_how_large_it_is():
    begun = f"{HEAD}\n|---|---|---|---|\n"
    flows = f"{begun}| Changes in assets and liabilities › Accounts receivable | (305) | (245) | (313) |"
    end = "What were the accounts receivable of Acme at the end of FY2018?"
    assert asked(end, passage(flows, **ACME)).refused
    change = "By how much did the accounts receivable of Acme change in FY2018?"
    assert "(305)" in asked(change, passage(flows, **ACME)).text
    sheet = f"{begun}| Current assets › Accounts receivable | 5,020 | 4,911 | 4,392 |"
    both = passage(flows, **ACME), passage(sheet, **ACME, document_id=2)
    assert "5,020 [1]" in asked(end, *both).text


def test_the_head_of_a_table_that_is_cut_off_names_its_columns():
    cut = len(STATEMENT) - len(ROWS)
    reply = asked(
        "How much was the capex of Acme in FY2016?",
        passage(STATEMENT, start=cut, **ACME | {"metadata": {"table_header": HEAD}}),
    )
    assert "2016 - Investing" in reply.text
    assert "(1,420)" in reply.text
    assert STATEMENT[reply.citations[0].start_offset : reply.citations[0].end_offset] == reply.citations[0].quote


@pytest.mark.parametrize(
    "question",
    [
        "How much was the capex of Acme in FY2013?",
        "How much was the capex of Apple in FY2018?",
        "What was the net profit of Acme in FY2018?",
        "What was the quick ratio of Acme in FY2018?",
        "What was the average capex of Acme from FY2016 to FY2018?",
        "What was the goodwill of Acme in FY2018?",
    ],
)
def test_another_year_company_or_measure_is_refused(question):
    reply = asked(question)
    assert reply.refused
    assert reply.nearest is not None
    assert reply.nearest.missing_identifier


def test_the_year_counts_where_its_column_is_and_not_elsewhere_in_the_passages():
    notes = passage("In 2013 the plant was closed.", document_id=2, **ACME)
    assert asked("How much was the capex of Acme in FY2013?", passage(STATEMENT, **ACME), notes).refused


def test_sentences_on_what_became_of_a_measure_do_not_tell_it():
    told = "Capital expenditures of Acme increased by $29 million in 2018."
    assert asked("How much was the capex of Acme in FY2018?", passage(told, **ACME)).refused
    told = "Capital expenditures of Acme were $1,577 million in 2018."
    assert "$1,577 million" in asked("How much was the capex of Acme in FY2018?", passage(told, **ACME)).text


def test_a_column_that_several_share_is_quoted_with_its_row():
    table = "| | 2018 › Cost | 2018 › Value |\n|---|---|---|\n| Capital expenditures | 10 | 20 |\n"
    reply = asked("How much was the capex of Acme in FY2018?", passage(table, **ACME))
    assert "Capital expenditures | 10 | 20" in reply.text


def test_a_synonym_of_the_search_counts_as_the_word_asked_for():
    text = "The sabbatical is three months long. Parking is free."
    question = "How long is a career break?"
    plain = extract_answer(question, [passage(text)], embedder=WordEmbedder())
    known = extract_answer(
        question,
        [passage(text)],
        embedder=WordEmbedder(),
        wordings=(Wording("career break", ("sabbatical",)),),
    )
    assert plain.refused
    assert known.text.startswith("The sabbatical is three months long. [1]")


@pytest.mark.parametrize("others", [(), ("",), ("the",), ("\\",)])
def test_wordings_that_say_nothing_change_nothing(others):
    text = "A sabbatical takes up to three months."
    wordings = (Wording("(sabbatical", others), Wording("", ("x",)))
    reply = extract_answer("How long is a sabbatical?", [passage(text)], embedder=WordEmbedder(), wordings=wordings)
    assert reply == extract_answer("How long is a sabbatical?", [passage(text)], embedder=WordEmbedder())


@pytest.mark.parametrize(
    ("question", "core"),
    [
        ("How long is annual leave? Answer in days.", "How long is annual leave?"),
        ("Assume you are new. How long is annual leave?", "How long is annual leave?"),
        ("Answer the following question from the policy: how long is annual leave?", "how long is annual leave?"),
        ("I am new here today. Give me the number of days of annual leave.", None),
        ("Give me the number of days of annual leave.", None),
        ("Use of the gym?", None),
    ],
)
def test_sentences_on_how_to_answer_are_not_asked_for(question, core):
    assert understand(question, Analyzer("en")).core == (core or question)
