from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from recollect.evaluation.case_files import dump_suite, parse_suite, plain
from recollect.evaluation.make import draft_cases

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
    """The cases, and of each what must be found."""
    made = draft_cases(((f"d{n}.md", text) for n, text in enumerate(contents)), **options)
    return [(case["name"], case["query"], *case["must_have"][0].values()) for case in made]


def test_informative_sentences_become_lookups_of_their_source():
    made = drafts(LEAVE, PAY)
    texts = [text for *_, text in made]
    assert "Annual leave of full-time employees is 30 days in a calendar year." in texts
    assert all(text in " ".join((LEAVE + PAY).split()) for text in texts)
    assert not any(word in text for text in texts for word in ("Short", "It must", "Wedding", "Does anybody", "|"))
    assert {source for _, _, source, _ in made} == {"d0.md", "d1.md"}
    assert len({name for name, *_ in made}) == len(made)
    # Queries are shorter than the sentence, and leave a detail out.
    for _, query, _, text in made:
        assert query != text and len(query) < len(text) + 3
        assert set(plain(query).replace(".", "").split()) - {"…"} <= set(plain(text).replace(".", "").split())
        assert "…" in query or len(query.split()) <= 7


def test_every_document_has_its_turn():
    contents = [PAY.replace("Salaries", f"Salaries{n}").replace("bonus", f"bonus{n}") for n in range(6)]
    assert {source for _, _, source, _ in drafts(*contents, count=6)} == {f"d{n}.md" for n in range(6)}
    assert len(drafts(*contents, count=4)) == 4


def test_a_sentence_in_two_documents_may_be_found_in_either():
    made = drafts(PAY, PAY)
    assert all(source == ["d0.md", "d1.md"] for _, _, source, _ in made)
    assert len({text for *_, text in made}) == len(made)


def test_other_scripts_and_nothing_at_all():
    arabic = "يحصل كل موظف بدوام كامل على ثلاثين يوما من الإجازة السنوية المدفوعة في كل سنة ميلادية."
    assert [text for *_, text in drafts(arabic, language="ar")] == [arabic]
    assert drafts("", "x" * 10_000, "| a | b |\n" * 50) == []


@given(st.lists(st.text(max_size=400), max_size=4), st.integers(1, 5))
def test_any_text_gives_valid_cases_the_same_each_time(contents, count):
    made, again = (draft_cases(((f"d{n}.md", text) for n, text in enumerate(contents)), count=count) for _ in range(2))
    assert made == again and len(made) <= count
    if made:
        suite = parse_suite(dump_suite(made, comment="read them"))
        assert [case.query for case in suite.cases] == [case["query"] for case in made]
