from __future__ import annotations

import itertools
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from answer.samples import LEAVE, WordEmbedder, passage
from recollect.answer import ExtractionOptions, RefusalRule, extract_answer, verify
from recollect.answer.extractive import read
from recollect.errors import UsageError
from recollect.model import PassageNote
from recollect.model.answer import REFUSAL

EMBEDDER = WordEmbedder()
ANSWER_ALWAYS = ExtractionOptions(rule=RefusalRule(threshold=0.0, require_identifiers=False))


class CountingEmbedder(WordEmbedder):
    def __init__(self):
        super().__init__()
        self.texts = 0

    def embed_documents(self, texts):
        self.texts += len(texts)
        return super().embed_documents(texts)


def read_support(question, text):
    reading = read(question, [passage(text)], embedder=WordEmbedder(), options=ExtractionOptions())
    assert reading.support is not None
    return reading.support


def ask(question, passages, options=None):
    return extract_answer(question, passages, embedder=EMBEDDER, options=options)


def test_answers_with_an_exact_quote_and_says_where_it_stands():
    reply = ask(
        "How many days of paid annual leave do employees receive?", [passage(LEAVE, section="Leave policy", page=3)]
    )
    assert not reply.refused
    first = reply.citations[0]
    assert first.quote.startswith("Full-time employees receive 28 days of paid annual leave")
    assert LEAVE[first.start_offset : first.end_offset] == first.quote
    assert (first.source, first.section, first.page, first.document_id) == (
        "hr/leave_policy.pdf",
        "Leave policy",
        3,
        1,
    )
    assert reply.text.startswith("Full-time employees receive 28 days")
    assert "[1]" in reply.text


@pytest.mark.parametrize("question", ["", "   ", "\n\t\u2003"])
def test_an_empty_question_is_an_error_that_says_so(question):
    with pytest.raises(UsageError, match="question is empty"):
        ask(question, [passage(LEAVE)])


@pytest.mark.parametrize("passages", [[], [passage("   \n ")], [passage("## Annual leave\n\n---\n")]])
def test_nothing_to_quote_is_refused(passages):
    reply = ask("How many days of annual leave?", passages, ANSWER_ALWAYS)
    assert (reply.refused, reply.text, reply.citations) == (True, REFUSAL, ())


def test_what_the_passages_do_not_hold_is_refused():
    assert ask("Which planets orbit Proxima Centauri?", [passage(LEAVE)]).refused


def test_an_identifier_that_no_passage_holds_is_refused():
    assert not ask("Since when is the leave policy POL-017 in force?", [passage(LEAVE)]).refused
    assert ask("Since when is the leave policy POL-018 in force?", [passage(LEAVE)]).refused


def test_a_refusal_names_what_came_nearest():
    reply = ask("Which planets orbit Proxima Centauri for days?", [passage(LEAVE, section="Leave policy", page=3)])
    nearest = reply.nearest
    assert reply.refused
    assert LEAVE[nearest.evidence.start_offset : nearest.evidence.end_offset] == nearest.evidence.quote
    assert (nearest.evidence.source, nearest.evidence.page, nearest.evidence.marker) == ("hr/leave_policy.pdf", 3, 0)
    assert nearest.probability < nearest.threshold == 0.5
    assert not nearest.missing_identifier
    assert ask("Since when is the leave policy POL-018 in force?", [passage(LEAVE)]).nearest.missing_identifier
    assert ask("What is POL-018?", []).nearest is None
    assert ask("Days of annual leave?", [passage(LEAVE)], ANSWER_ALWAYS).nearest is None


def test_a_sentence_that_points_back_brings_its_predecessor():
    reply = ask(
        "Must it be requested in Harbor two weeks ahead?",
        [passage(LEAVE)],
        ExtractionOptions(max_sentences=1, rule=ANSWER_ALWAYS.rule),
    )
    (citation,) = reply.citations
    assert citation.quote.startswith("Full-time employees")
    assert citation.quote.endswith("two weeks ahead.")
    assert "\n" in citation.quote
    assert "\n" not in reply.text


def test_list_items_and_table_rows_are_quoted_without_their_marks():
    one = ExtractionOptions(max_sentences=1, rule=ANSWER_ALWAYS.rule)
    assert ask("special leave for own wedding", [passage(LEAVE)], one).citations[0].quote == "Own wedding: 2 days"
    assert ask("death of a parent", [passage(LEAVE)], one).citations[0].quote == "Death of a parent | 4"


def test_the_marks_of_a_quotation_are_not_shown():
    told = ask("How long is parental leave?", [passage("> Parental leave is twelve\n> > weeks for every parent.")])
    assert told.text == "Parental leave is twelve weeks for every parent. [1]"
    assert told.citations[0].quote == "Parental leave is twelve\n> > weeks for every parent."


def test_a_heading_is_never_the_answer():
    reply = ask("Sick leave", [passage(LEAVE)], ANSWER_ALWAYS)
    assert all(citation.quote not in {"Sick leave", "## Sick leave", "Leave policy"} for citation in reply.citations)


def test_overlapping_passages_of_a_document_cite_a_sentence_once():
    middle = LEAVE.index("receive 28")
    passages = [
        passage(LEAVE, end=middle + 120),
        passage(LEAVE, start=middle - 40, rank=2, score=0.9),
        passage(LEAVE, rank=3, score=0.5),
    ]
    reply = ask("How many days of paid annual leave do employees receive?", passages, ANSWER_ALWAYS)
    spans = sorted((c.start_offset, c.end_offset) for c in reply.citations)
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(spans))
    assert sum("28 days" in citation.quote for citation in reply.citations) == 1
    assert verify(reply.text, reply.citations, {1: LEAVE}) == ()


def test_a_sentence_cut_by_two_passages_is_quoted_whole():
    cut = LEAVE.index("of paid annual")
    reply = ask(
        "How many days of paid annual leave do employees receive?",
        [passage(LEAVE, end=cut), passage(LEAVE, start=cut, rank=2, score=0.9)],
        ANSWER_ALWAYS,
    )
    assert any(
        c.quote.startswith("Full-time employees receive 28 days of paid annual leave per calendar year")
        for c in reply.citations
    )


def test_the_same_sentence_in_two_documents_is_cited_once():
    other = "Notes. " + LEAVE
    reply = ask(
        "How many days of paid annual leave do employees receive?",
        [passage(LEAVE), passage(other, document_id=2, source="copy.md", rank=2, score=0.9)],
        ANSWER_ALWAYS,
    )
    assert sum("28 days" in citation.quote for citation in reply.citations) == 1


def test_versions_that_disagree_about_an_overlap_are_not_mixed():
    newer = LEAVE.replace("28 days", "30 days")
    start = LEAVE.index("Full-time")
    passages = [passage(LEAVE, end=start + 60), passage(newer, start=start, rank=2, score=0.9)]
    reply = ask("How many days of paid annual leave do employees receive?", passages, ANSWER_ALWAYS)
    assert all(LEAVE.find(c.quote) >= 0 or newer.find(c.quote) >= 0 for c in reply.citations)


def test_right_to_left_text():
    text = "מדיניות החופשה. כל עובד זכאי לשלושים ימי חופשה בשנה. יש לבקש חופשה שבועיים מראש."
    reply = extract_answer(
        "כמה ימי חופשה בשנה מגיעים לכל עובד",
        [passage(text)],
        embedder=EMBEDDER,
        language="he",
        options=ANSWER_ALWAYS,
    )
    assert any("לשלושים" in citation.quote for citation in reply.citations)
    assert verify(reply.text, reply.citations, {1: text}) == ()


def test_text_without_sentence_boundaries_is_quoted_in_short_pieces():
    for text in ("x" * 5000, "word " * 2000, "数" * 3000):
        reply = ask("word x 数", [passage(text)], ANSWER_ALWAYS)
        assert reply.citations
        assert all(len(citation.quote) <= 600 * 3 for citation in reply.citations)
        assert verify(reply.text, reply.citations, {1: text}) == ()


def test_a_very_long_question():
    question = "How many days of paid annual leave do employees receive? " * 180
    assert len(question) > 10_000
    reply = ask(question, [passage(LEAVE)])
    assert any("28 days" in citation.quote for citation in reply.citations)


@pytest.mark.parametrize("options", [{"max_sentences": 0}, {"max_sentences": 11}, {"max_passages": 0}])
def test_options_out_of_range(options):
    with pytest.raises(UsageError, match=next(iter(options))):
        ExtractionOptions(**options)


texts = st.text(
    alphabet=st.one_of(st.sampled_from("ab cd. ! \n\n|-*#[1]:?٠שלוםit This "), st.characters(codec="utf-8")),
    min_size=1,
    max_size=300,
)


@settings(max_examples=60, deadline=None)
@given(contents=st.lists(texts, min_size=1, max_size=3), question=texts.filter(str.strip), data=st.data())
def test_every_quote_is_exact_whatever_the_text(contents, question, data):
    documents = dict(enumerate(contents, start=1))
    passages = []
    for rank in range(1, data.draw(st.integers(1, 6)) + 1):
        document_id = data.draw(st.sampled_from(sorted(documents)))
        content = documents[document_id]
        start = data.draw(st.integers(0, len(content) - 1))
        end = data.draw(st.integers(start + 1, len(content)))
        passages.append(passage(content, start=start, end=end, rank=rank, document_id=document_id, score=1 / rank))
    reply = ask(question, passages, ANSWER_ALWAYS)
    assert verify(reply.text, reply.citations, documents) == ()
    assert reply.refused == (not reply.citations)
    assert all(citation.quote == citation.quote.strip() for citation in reply.citations)
    spans = sorted((c.document_id, c.start_offset, c.end_offset) for c in reply.citations)
    assert all(a[0] != b[0] or a[2] <= b[1] for a, b in itertools.pairwise(spans))


HOTELS = """# Expense policy

## Hotels

| Country or city | Limit per night |
|---|---|
| France | EUR 150 |
| Paris | EUR 190 |
| Portugal | EUR 115 |

Not refunded are:

- Fines and parking tickets
- Minibar and pay TV in hotels
"""


def test_of_a_table_the_row_and_its_header_are_quoted():
    reply = ask("What is the limit per night in Paris?", [passage(HOTELS, section="Hotels")])
    assert [citation.quote for citation in reply.citations] == ["Country or city | Limit per night", "Paris | EUR 190"]
    assert verify(reply.text, reply.citations, {1: HOTELS}) == ()


def test_a_list_item_is_quoted_with_the_line_that_introduces_it():
    reply = ask("Is the minibar in hotels refunded?", [passage(HOTELS)], ANSWER_ALWAYS)
    assert [citation.quote for citation in reply.citations][:2] == ["Not refunded are:", "Minibar and pay TV in hotels"]


def test_what_introduces_a_row_takes_a_place_among_the_quotes():
    options = ExtractionOptions(max_sentences=1, rule=ANSWER_ALWAYS.rule)
    reply = ask("What is the limit per night in Paris?", [passage(HOTELS)], options)
    assert [citation.quote for citation in reply.citations] == ["Paris | EUR 190"]


BREMEN = "# Office guide Bremen\n\nLunch in the canteen is from 11:45. The company pays EUR 4.00 towards each lunch."
LYON = "# Office guide Lyon\n\nThere is no canteen. Each lunch voucher is worth EUR 11."


def offices():
    return [
        passage(BREMEN, title="Office guide Bremen", source="bremen.md", section="Office guide Bremen"),
        passage(
            LYON, document_id=2, title="Office guide Lyon", source="lyon.md", section="Office guide Lyon", score=0.9
        ),
    ]


def test_a_question_about_one_place_is_not_answered_from_another_ones_document():
    question = "How much does the company pay towards lunch in {}?"
    assert ask(question.format("Bremen"), offices()).citations[0].source == "bremen.md"
    assert ask(question.format("Porto"), offices()).refused
    lyon = ask(question.format("Lyon"), offices())
    assert lyon.refused or {citation.source for citation in lyon.citations} == {"lyon.md"}


def test_a_question_about_one_company_is_not_answered_from_another_ones_report():
    report = "At the end of 2021 we employed approximately 79,000 people worldwide. Revenues were USD 81.3 billion."
    passages = [passage(report, source="PFIZER_2021.pdf", title="Pfizer Inc. annual report")]
    question = "How many people did {} employ worldwide at the end of 2021?"
    assert "79,000" in ask(question.format("Pfizer"), passages).text
    assert ask(question.format("Siemens"), passages).refused


def test_what_a_question_wants_to_know_must_have_a_word_in_the_quote_or_its_section():
    text = "The cyber insurance is told of an incident within 48 hours. The cyber insurance's deductible is EUR 50,000."
    assert not ask("What is the deductible of the cyber insurance?", [passage(text)]).refused
    assert ask("What is the annual premium of the cyber insurance?", [passage(text)]).refused


def test_the_row_whose_range_holds_the_amount_is_chosen():
    table = (
        "| Cost of a course | Approval |\n|---|---|\n| up to EUR 500 | line manager |\n"
        "| EUR 500.01 to EUR 2,500 | department head |\n| above EUR 2,500 | Head of People |\n"
    )
    for amount, approver in (("300", "line manager"), ("1,800", "department head"), ("2,600", "Head of People")):
        reply = ask(f"Whose approval does a course at a cost of EUR {amount} need?", [passage(table)], ANSWER_ALWAYS)
        assert approver in reply.text


OLD = "Employees receive 28 days of paid annual leave per calendar year."
NEW = "Employees receive 30 days of paid annual leave per calendar year."
NOTE = PassageNote(kind="newer_document", text="a newer document covers this", document_id=2, source="leave.md")


def editions():
    return [
        passage(OLD, source="leave_2023.md", title="Leave 2023", notes=(NOTE,)),
        passage(NEW, document_id=2, source="leave.md", title="Leave", score=0.95),
    ]


def test_the_newest_edition_answers_and_the_older_one_does_not_repeat_it():
    reply = ask("How many days of paid annual leave do employees receive?", editions())
    assert [citation.source for citation in reply.citations] == ["leave.md"]


def test_a_question_about_the_past_is_answered_from_the_older_edition_with_its_note():
    reply = ask("How many days of paid annual leave did employees receive under the old policy?", editions())
    assert reply.citations[0].source == "leave_2023.md"
    assert reply.citations[0].notes == (NOTE,)


def test_the_same_question_gets_the_same_bytes_in_every_process():
    script = (
        "import sys; sys.path.insert(0, 'tests/unit')\n"
        "from answer.test_extractive import HOTELS, LEAVE, ask, editions, offices, passage\n"
        "many = [passage(HOTELS), *editions(), *offices(), passage(LEAVE, document_id=9)]\n"
        "for question in ('What is the limit per night in Paris?', 'How many days of leave?', 'Lunch in Porto?'):\n"
        "    print(ask(question, many))\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            cwd=Path(__file__).parents[3],
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
    assert b"EUR 190" in outputs.pop()


CODES = """# Troubleshooting

### ERR-2003 Gateway does not answer

*Cause:* many hotel and train networks block UDP port 4500.
*Fix:* in Lockgate choose TCP fallback.

### ERR-2007 Client too old

*Cause:* the client is older than 5.2.0.
"""


def test_what_only_repeats_the_question_is_no_answer():
    text = "Parking costs\n\nParking costs.\n\nA place in the garage is EUR 40 a month. Bicycles stand in the yard."
    answer = ask("What are the parking costs?", [passage(text)], ExtractionOptions(rule=RefusalRule(threshold=0)))
    assert [one.quote for one in answer.citations] == ["A place in the garage is EUR 40 a month."]


def test_a_question_about_a_year_is_not_answered_from_another_ones_figure():
    text = "Revenue in 2025 was EUR 58 million. The company has four offices."
    assert ask("What was the revenue in 2025?", [passage(text)]).refused is False
    rule = RefusalRule()
    told = read_support("What was the revenue in 2021?", text)
    assert told.another_year
    assert rule.probability(replace(told, another_year=False)) > rule.probability(told)


def test_only_so_many_pieces_are_embedded():
    rows = "\n".join(f"| Item {number} | EUR {number} |" for number in range(500))
    embedder = CountingEmbedder()
    extract_answer("What does Item 77 cost?", [passage(f"| What | Price |\n|---|---|\n{rows}")], embedder=embedder)
    assert embedder.texts == 32


def test_what_stands_under_the_identifier_asked_for_belongs_together():
    passages = [
        passage(CODES, end=CODES.index("### ERR-2007"), section="Troubleshooting > ERR-2003 Gateway does not answer"),
        passage(CODES, start=CODES.index("### ERR-2007"), section="Troubleshooting > ERR-2007 Client too old", rank=2),
    ]
    reply = ask("ERR-2003 keeps coming up in my hotel, what is the fix?", passages, ANSWER_ALWAYS)
    (citation,) = reply.citations
    assert citation.quote.startswith("*Cause:* many hotel")
    assert citation.quote.endswith("TCP fallback.")
