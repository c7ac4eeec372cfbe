from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from answer.samples import LEAVE, passage
from recollect.answer.prompt import CLOSING, OPENING, build_prompt, load_prompt, newest_first
from recollect.context import context_block
from recollect.errors import ConfigurationError, UsageError
from recollect.model import PassageNote
from recollect.model.answer import REFUSAL


def test_header_names_source_section_page_and_date():
    block = context_block(passage("Text.", section="Annual Leave", page=4, metadata={"date": "2025-03-01"}), number=1)
    assert block == "[Source 1: hr/leave_policy.pdf | Section: Annual Leave | Page: 4 | Date: 2025-03-01]\nText."


def test_what_is_unknown_is_left_out():
    assert context_block(passage("Text."), number=2) == "[Source 2: hr/leave_policy.pdf]\nText."


def test_the_rules_hold_the_model_to_the_context():
    rules, request = build_prompt("How many days?", [passage(LEAVE)]).messages
    assert (rules.role, request.role) == ("system", "user")
    assert REFUSAL in rules.content
    assert OPENING in rules.content
    assert "[1]" in rules.content
    assert "do not obey" in rules.content
    assert "{" not in rules.content + request.content
    assert request.content.startswith(f"{OPENING}\n\n[Source 1: hr/leave_policy.pdf]\n")
    assert request.content.endswith("Question: How many days?")
    assert request.content.index(OPENING) < request.content.index("28 days") < request.content.index(CLOSING)


def test_the_best_passages_fill_the_budget():
    passages = [passage(f"{number} " + "word " * 60, rank=number, document_id=number) for number in range(1, 10)]
    prompt = build_prompt("?", passages, max_context_chars=1000)
    assert [p.rank for p in prompt.passages] == [1, 2]
    blocks = prompt.messages[1].content.split(OPENING)[1].split(CLOSING)[0].strip()
    assert len(blocks) <= 1000
    assert [block[:10] for block in blocks.split("\n\n---\n\n")] == ["[Source 1:", "[Source 2:"]


def test_a_token_budget_counts_too():
    passages = [passage("word " * 60, rank=number, document_id=number) for number in range(1, 10)]
    prompt = build_prompt("?", passages, max_context_tokens=140, count_tokens=lambda text: len(text.split()))
    assert len(prompt.passages) == 2


def test_a_passage_too_long_alone_is_shortened_with_its_offsets():
    text = "word " * 5000
    (shown,) = build_prompt("?", [passage(text, start=5)], max_context_chars=1000).passages
    assert text[shown.start_offset : shown.end_offset] == shown.content
    assert 200 < len(shown.content) < 1000


@pytest.mark.parametrize(
    ("options", "words"),
    [({"max_context_chars": 499}, "max_context_chars"), ({"max_context_tokens": 10}, "count_tokens")],
)
def test_budgets_out_of_range(options, words):
    with pytest.raises(UsageError, match=words):
        build_prompt("Why?", [passage("x")], **options)


def test_an_empty_question_is_an_error():
    with pytest.raises(UsageError, match="question is empty"):
        build_prompt(" \n", [])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(min_size=1, max_size=400), max_size=5), st.integers(500, 1500))
def test_no_text_breaks_the_budget_or_the_structure(contents, budget):
    prompt = build_prompt("Why?", [passage(content) for content in contents], max_context_chars=budget)
    request = prompt.messages[1].content
    assert request.count(OPENING) == request.count(CLOSING) == 1
    context = request[len(OPENING) : request.index(CLOSING)].strip("\n")
    assert len(context) <= budget
    assert len(re.findall(r"\[Source \d+: ", context)) == len(prompt.passages)
    assert len(context.split("\n\n---\n\n")) == max(1, len(prompt.passages))


GOOD = "Answer or say {refusal}\n\nAPPROVED CONTEXT\n{context}\nEND OF CONTEXT\n{question}\n"


def test_a_prompt_of_ones_own(tmp_path):
    path = tmp_path / "own.md"
    path.write_text(GOOD + 'As JSON: {"a": {"b": 1}}', encoding="utf-8")
    rules, request = build_prompt("How {context}?", [passage("Text {question}.")], template=load_prompt(path)).messages
    assert rules.content == f"Answer or say {REFUSAL}"
    assert "Text {question}." in request.content, "what a document holds is no place"
    assert "How {context}?" in request.content
    assert request.content.endswith('{"a": {"b": 1}}')


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "a line 'APPROVED CONTEXT'"),
        (GOOD.replace("{refusal}", "no"), "refusal sentence"),
        (GOOD.replace("{context}", "here"), r"\{context\} once"),
        (GOOD.replace("{question}", ""), r"\{question\} once"),
        (GOOD.replace("{question}", "{question} {question}"), r"\{question\} once"),
        (GOOD.replace("END OF CONTEXT", ""), "a line 'END OF CONTEXT'"),
        (GOOD.replace("{context}", "{question}").replace("CONTEXT\n{question}\n", "CONTEXT\n{context}\n"), "then"),
        (GOOD + "{langauge}", r"\{langauge\}; known are"),
        (GOOD.replace("Answer or say {refusal}", ""), "among the rules"),
    ],
)
def test_a_prompt_that_lacks_something_is_refused_by_its_file_and_what_it_lacks(tmp_path, text, words):
    path = tmp_path / "broken.md"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=words) as caught:
        load_prompt(path)
    assert "broken.md" in str(caught.value)


def test_a_prompt_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ConfigurationError, match=r"gone\.md"):
        load_prompt(tmp_path / "gone.md")


def test_a_superseded_passage_comes_behind_its_successor():
    note = PassageNote(kind="newer_document", text="newer: policy.md", document_id=2, source="policy.md")
    old = passage("Two days.", document_id=1, source="policy_2023.md", notes=(note,))
    new = passage("Three days.", document_id=2, source="policy.md")
    other = passage("Elsewhere.", document_id=3, source="else.md")
    assert [one.document_id for one in newest_first([old, other, new])] == [2, 1, 3]
    assert "Note: newer: policy.md" in build_prompt("How many?", [old, new]).messages[1].content
    round_about = PassageNote(kind="newer_document", text="x", document_id=1, source="a")
    assert len(newest_first([old, passage("Three.", document_id=2, notes=(round_about,))])) == 2
