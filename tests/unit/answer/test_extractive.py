from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from answer.samples import LEAVE, WordEmbedder, passage
from recollect.answer import ExtractionOptions, RefusalRule, extract_answer, verify
from recollect.answer.extractive import questions_in, read
from recollect.errors import UsageError
from recollect.model import PassageNote
from recollect.model.answer import REFUSAL

EMBEDDER = WordEmbedder()
ANSWER_ALWAYS = ExtractionOptions(rule=RefusalRule(threshold=0.0))


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
        "How many days of paid annual leave do employees receive?",
        [passage(LEAVE, section="Leave policy", page=3)],
        ANSWER_ALWAYS,
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


BOTH = "Who signs the lease of a flat, and by when must the deposit be paid?"
DEPOSIT = "The manager signs the lease of a flat.\n\nFlats have a balcony. The deposit must be paid by 3 May."


def test_of_two_questions_both_are_answered_each_with_its_quote():
    reply = ask(BOTH, [passage(DEPOSIT)], ANSWER_ALWAYS)
    assert [one.quote for one in reply.citations] == [
        "The manager signs the lease of a flat.",
        "The deposit must be paid by 3 May.",
    ]
    assert [one.marker for one in reply.citations] == [1, 2]
    assert verify(reply.text, reply.citations, {1: DEPOSIT}) == ()


def test_what_answers_both_is_quoted_once():
    text = "Who wants a flat: the manager signs the lease of a flat, and the deposit must be paid by 3 May."
    (citation,) = ask(BOTH, [passage(text)], ANSWER_ALWAYS).citations
    assert citation.quote == text


def test_where_one_of_two_questions_has_no_answer_passages_are_shown():
    rule = RefusalRule(threshold=0.5)
    half = "The manager signs the lease of a flat.\n\nFlats have a balcony. Boats are blue."
    signed, reply = (ask(asked, [passage(half)], ExtractionOptions(rule=rule)) for asked in (BOTH.split(",")[0], BOTH))
    assert (signed.outcome, reply.outcome) == ("answer", "passages")
    assert ask(BOTH, [passage(DEPOSIT)], ExtractionOptions(rule=rule)).outcome == "answer"
    assert reply.nearest.probability < rule.threshold


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Where do the paid plans begin, and must I hand over a card to register?", 2),
        ("How long is a trial? And who may stretch it?", 2),
        ("How often is it done, how long does it take, or who leads it; and is it recorded?", 3),
        ("Who signs the lease and the contract?", 1),
        ("What do I do and say?", 1),
        ("Is the office closed on Monday and on Friday?", 1),
        ("leave and expenses", 1),
        ("", 1),
    ],
)
def test_texts_are_told_apart_into_the_questions_that_they_ask(text, count):
    found = questions_in(text)
    assert len(found) == count
    assert "".join(found) == text


@given(
    st.lists(
        st.sampled_from(["and ", "or ", "? ", "; ", "who ", "is ", "how ", "x ", "-", "'", "\n"]), max_size=60
    ).map("".join)
)
def test_no_character_of_a_question_is_lost(text):
    assert "".join(questions_in(text)) == text


@pytest.mark.parametrize(
    "text", ["who?" * 30_000, "and " * 50_000, "and is " * 30_000, "?" * 100_000, "a-" * 50_000, "who" + " \n" * 60_000]
)
def test_many_questions_are_read_as_one(text):
    # Each by itself would take thousands of times as long.
    assert questions_in(text) == [text]
    reading = read(text[:4_000], [passage(LEAVE)], embedder=EMBEDDER, options=ExtractionOptions())
    assert not reading.parts


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


def test_a_number_or_identifier_that_no_passage_holds_is_known_to_be_missing():
    for word, missing in (("POL-017", False), ("POL-018", True), ("1987", True), ("28", False), ("ERR_9", True)):
        assert read_support(f"Since when is the leave policy {word} in force?", LEAVE).missing_number is missing
    assert ask("Since when is the leave policy POL-018 in force?", [passage(LEAVE)]).refused


@pytest.mark.parametrize(
    ("asked", "told", "missing"),
    [
        ("What is the 5-day rule?", "Reports are due within 5 days.", False),
        ("Who may spend 3,000 euros?", "Heads of department may spend up to 3000 euros.", False),
        ("Who may spend 3000 euros?", "Heads of department may spend up to 3’000 euros.", False),
        ("Who may spend 3,500 euros?", "Heads of department may spend up to 3000 euros.", True),
        ("What does release 3.12.1 add?", "Release 3.12 adds a cache.", True),
        ("What does ERR-4012 mean?", "4012 errors were counted.", True),
        ("What does 4012 mean?", "ERR-4012 means that the disk is full.", False),
    ],
)
def test_numbers_are_the_same_however_they_are_written(asked, told, missing):
    assert read_support(asked, told).missing_number is missing


def test_a_refusal_names_what_came_nearest():
    reply = ask("Which planets orbit Proxima Centauri for days?", [passage(LEAVE, section="Leave policy", page=3)])
    nearest = reply.nearest
    assert reply.refused
    assert LEAVE[nearest.evidence.start_offset : nearest.evidence.end_offset] == nearest.evidence.quote
    assert (nearest.evidence.source, nearest.evidence.page, nearest.evidence.marker) == ("hr/leave_policy.pdf", 3, 0)
    assert nearest.probability < nearest.threshold == RefusalRule().threshold
    assert not nearest.missing_identifier
    assert ask("Since when is the leave policy POL-018 in force?", [passage(LEAVE)]).nearest.missing_identifier
    assert ask("What is POL-018?", []).nearest is None
    assert ask("Days of annual leave?", [passage(LEAVE)], ANSWER_ALWAYS).nearest is None


def test_a_sentence_that_points_back_brings_its_predecessor():
    reply = ask(
        "Must it be requested in Harbor two weeks ahead?",
        [passage(LEAVE)],
        ANSWER_ALWAYS,
    )
    (citation,) = reply.citations
    assert citation.quote.startswith("Full-time employees")
    assert citation.quote.endswith("two weeks ahead.")
    assert "\n" in citation.quote
    assert "\n" not in reply.text


def test_list_items_and_table_rows_are_quoted_without_their_marks():
    wedding = ask("special leave for own wedding", [passage(LEAVE)], ANSWER_ALWAYS)
    assert wedding.citations[-1].quote == "Own wedding: 2 days"
    parent = ask("death of a parent", [passage(LEAVE)], ANSWER_ALWAYS)
    assert parent.citations[-1].quote == "Death of a parent | 4"


def test_the_marks_of_a_quotation_are_not_shown():
    told = ask(
        "How long is parental leave?",
        [passage("> Parental leave is twelve\n> > weeks for every parent.")],
        ANSWER_ALWAYS,
    )
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
    reply = ask(question, [passage(LEAVE)], ANSWER_ALWAYS)
    assert any("28 days" in citation.quote for citation in reply.citations)


def test_options_out_of_range():
    with pytest.raises(UsageError, match="max_passages"):
        ExtractionOptions(max_passages=0)


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
    assert ask(question.format("Bremen"), offices(), ANSWER_ALWAYS).citations[0].source == "bremen.md"


OLD = "Employees receive 28 days of paid annual leave per calendar year."
NEW = "Employees receive 30 days of paid annual leave per calendar year."
NOTE = PassageNote(kind="newer_document", text="a newer document covers this", document_id=2, source="leave.md")


def editions():
    return [
        passage(OLD, source="leave_2023.md", title="Leave 2023", notes=(NOTE,)),
        passage(NEW, document_id=2, source="leave.md", title="Leave", score=0.95),
    ]


def test_the_newest_edition_answers_and_the_older_one_does_not_repeat_it():
    reply = ask("How many days of paid annual leave do employees receive?", editions(), ANSWER_ALWAYS)
    assert [citation.source for citation in reply.citations] == ["leave.md"]


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


def test_what_only_repeats_the_question_is_no_answer():
    text = "Parking costs\n\nParking costs.\n\nA place in the garage is EUR 40 a month. Bicycles stand in the yard."
    answer = ask("What are the parking costs?", [passage(text)], ExtractionOptions(rule=RefusalRule(threshold=0)))
    assert [one.quote for one in answer.citations] == ["A place in the garage is EUR 40 a month."]


def test_only_so_many_pieces_are_embedded():
    rows = "\n".join(f"| Item {number} | EUR {number} |" for number in range(500))
    embedder = CountingEmbedder()
    extract_answer("What does Item 77 cost?", [passage(f"| What | Price |\n|---|---|\n{rows}")], embedder=embedder)
    assert embedder.texts == 32


@pytest.mark.parametrize(
    "quote",
    [
        "To update the client, run:\n\n```\nharbor upgrade --all\n```",
        "To update the client:\n\n- harbor stop\n- harbor update",
        "**To update the client:**\n| step | command |\n|---|---|\n| 1 | harbor update |",
        "To update the client:\nharbor update",
    ],
)
def test_what_a_label_introduces_is_quoted_with_it(quote):
    text = f"# Harbor\n\nNothing here.\n\n{quote}\n\nBehind it stands another paragraph.\n"
    reply = ask("How do I update the client?", [passage(text)], ANSWER_ALWAYS)
    assert reply.citations[0].quote == quote


def test_a_label_with_more_than_can_be_quoted_stands_alone():
    rows = "\n".join(f"- step {number} of the long procedure" for number in range(60))
    reply = ask("How do I install it?", [passage(f"To install it:\n\n{rows}\n")], ANSWER_ALWAYS)
    assert all(len(citation.quote) <= 700 for citation in reply.citations)


@pytest.mark.parametrize("question", ["a" + "_a" * 400, "a" * 20_000, "a" + "-a" * 9_000, "a" + "_a-" * 6_000])
def test_no_question_keeps_the_reading_of_its_numbers_busy(question):
    assert not read_support(question, "The office in Lyon opened in 1994.").missing_number


@pytest.mark.parametrize(
    ("question", "missing"),
    [
        ("Is there a 5-day week?", False),
        ("What is err_4012?", False),
        ("What is ERR-4012-b?", False),
        ("What is ERR-4013?", True),
        ("How many of 3,000?", False),
        ("Since 2027?", True),
    ],
)
def test_numbers_and_identifiers_that_no_passage_holds(question, missing):
    text = "A week has 5 days. ERR-4012 and err_4012 are errors of 3000 machines."
    assert read_support(question, text).missing_number is missing


@pytest.mark.parametrize(
    ("told", "text"),
    [
        ("Keys are made like this.\n\n```bash\ngpg --full-generate-key\n```\n", "`gpg --full-generate-key` [1]"),
        ("To make a key, run:\n\n```bash\ngpg --full-generate-key\n```\n", "run: `gpg --full-generate-key` [1]"),
        ("To make a key, run:\n\n.. code:: sh\n\n   gpg --full-generate-key\n", "run: `gpg --full-generate-key` [1]"),
        ("```\ngpg \\\n  --full-generate-key\n```\n", "```\ngpg \\\n  --full-generate-key\n```\n[1]"),
        ("```\nread key[0]; gpg --full-generate-key\n```\n", "`read key[0]; gpg --full-generate-key` [1]"),
    ],
)
def test_code_is_told_as_it_is_written(told, text):
    reply = ask("gpg full-generate-key", [passage(told)], ANSWER_ALWAYS)
    assert reply.text.endswith(text)
    (one,) = reply.citations
    assert told[one.start_offset : one.end_offset] == one.quote
