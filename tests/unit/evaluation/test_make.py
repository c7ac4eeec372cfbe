from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from recollect.evaluation.case_files import dump_suite, parse_suite
from recollect.evaluation.make import DraftSource, draft_cases
from recollect.evaluation.rag_test import plain

LEAVE = """# Leave

Annual leave of full-time employees is 30 days in a calendar year. It must be requested in Harbor two weeks ahead.
Unused leave from the previous year expires on 30 June without any compensation. Short.

| Occasion | Days of special leave for full-time employees in a year |
|---|---|
| Wedding of the employee, paid in full by the company | 2 |

- Bring the certificate of marriage to the office of human resources in Bremen.
"""
PAY = """Salaries of all permanent employees are paid on the 25th of each month by bank transfer.
Does anybody read questions that stand in the middle of a policy document about salaries?
The annual bonus for grade G9 amounts to 12 percent of the fixed salary and is paid in April."""


def drafts(*contents, **options):
    return draft_cases([DraftSource(source=f"d{n}.md", content=text) for n, text in enumerate(contents)], **options)


def test_informative_sentences_become_lookups_of_their_source():
    made = drafts(LEAVE, PAY)
    by_text = {draft.text: draft for draft in made}
    assert "Annual leave of full-time employees is 30 days in a calendar year." in by_text
    assert all(draft.text in " ".join((LEAVE + PAY).split()) for draft in made)
    assert not any(
        word in draft.text for draft in made for word in ("Short", "It must", "Wedding", "Does anybody", "|")
    )
    assert {draft.sources for draft in made} == {("d0.md",), ("d1.md",)}
    assert len({draft.name for draft in made}) == len(made)


def test_queries_are_shorter_than_the_sentence_and_leave_a_detail_out():
    for draft in drafts(LEAVE, PAY):
        assert draft.query != draft.text
        assert len(draft.query) < len(draft.text) + 3
        words = set(plain(draft.text).replace(".", "").split())
        assert set(plain(draft.query).replace(".", "").split()) - {"…"} <= words
        assert "…" in draft.query or len(draft.query.split()) <= 7


def test_every_document_has_its_turn():
    contents = [PAY.replace("Salaries", f"Salaries{n}").replace("bonus", f"bonus{n}") for n in range(6)]
    assert {draft.sources[0] for draft in drafts(*contents, count=6)} == {f"d{n}.md" for n in range(6)}
    assert len(drafts(*contents, count=4)) == 4


def test_a_sentence_in_two_documents_may_be_found_in_either():
    made = drafts(PAY, PAY)
    assert all(draft.sources == ("d0.md", "d1.md") for draft in made)
    assert len({draft.text for draft in made}) == len(made)


def test_drafts_are_test_cases():
    made = drafts(LEAVE, PAY)
    suite = parse_suite(dump_suite([draft.as_case() for draft in made], comment="read them"))
    assert [case.query for case in suite.cases] == [draft.query for draft in made]


def test_other_scripts_and_nothing_at_all():
    arabic = "يحصل كل موظف بدوام كامل على ثلاثين يوما من الإجازة السنوية المدفوعة في كل سنة ميلادية."
    assert [draft.text for draft in drafts(arabic, language="ar")] == [arabic]
    assert drafts("", "x" * 10_000, "| a | b |\n" * 50) == []


@given(st.lists(st.text(max_size=400), max_size=4), st.integers(1, 5))
def test_any_text_gives_valid_cases_the_same_each_time(contents, count):
    made = drafts(*contents, count=count)
    assert made == drafts(*contents, count=count)
    assert len(made) <= count
    if made:
        parse_suite(dump_suite([draft.as_case() for draft in made]))
