from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from answer.samples import passage

from recollect.context import assemble, counter_of, estimate_tokens

SICK = "Call before nine. A note is needed from day three. Dr. Wu signs it. Send it to the office."


def words(text):
    return len(text.split())


def test_numbered_blocks_with_what_is_known_of_them():
    context = assemble(
        [
            passage("28 days.", section="Annual Leave", page=3, event_time=datetime(2026, 1, 1, 9, tzinfo=UTC)),
            passage("Said before.", source="memory:42", metadata={"date": "2025-12-24"}),
        ],
        token_budget=100,
    )
    assert context.text == (
        "[Source 1: hr/leave_policy.pdf | Section: Annual Leave | Page: 3 | Date: 2026-01-01]\n28 days.\n\n"
        "[Source 2: memory:42 | Date: 2025-12-24]\nSaid before."
    )
    assert [block.number for block in context.blocks] == [1, 2]
    assert "\n\n".join(block.text for block in context.blocks) == context.text
    assert context.token_count == estimate_tokens(context.text)
    assert context.omitted == 0


def test_empty_passages_take_no_number():
    context = assemble([passage("one"), passage(" "), passage("two")], token_budget=100)
    assert [(block.number, block.passage.content) for block in context.blocks] == [(1, "one"), (2, "two")]


def test_offsets_point_at_what_is_shown():
    text = "\n\n  Some text. \n"
    (shown,) = assemble([passage(text, start=1)], token_budget=100).passages
    assert (shown.content, shown.start_offset, shown.end_offset) == ("Some text.", 4, 14)


def test_the_last_block_is_shortened_to_whole_sentences():
    context = assemble([passage("First."), passage(SICK), passage("Third.")], token_budget=20, count_tokens=words)
    assert [block.passage.content for block in context.blocks] == [
        "First.",
        "Call before nine. A note is needed from day three.",
    ]
    assert [block.shortened for block in context.blocks] == [False, True]
    assert "…" not in context.text
    assert context.omitted == 1
    assert context.token_count == words(context.text) <= 20


def test_a_passage_of_which_no_sentence_fits_is_left_out_and_ends_the_context():
    context = assemble([passage("First."), passage(SICK), passage("x.")], token_budget=9, count_tokens=words)
    assert [block.passage.content for block in context.blocks] == ["First."]
    assert context.omitted == 2


def test_a_sentence_over_the_whole_budget_is_cut_behind_a_word_and_marked():
    text = "We don't do " + "this or that or " * 500 + "more."
    context = assemble([passage(text), passage("Short.")], token_budget=20, count_tokens=words)
    (block,) = context.blocks
    assert block.text.endswith(" …")
    assert block.shortened
    assert text[block.passage.start_offset : block.passage.end_offset] == block.passage.content
    assert text[block.passage.end_offset] == " "
    assert words(context.text) == 20


def test_a_word_is_not_cut_at_its_apostrophe():
    text = "It doesn't " * 100
    for budget in range(60, 80):
        (block,) = assemble([passage(text)], token_budget=budget, count_tokens=len).blocks
        assert block.passage.content.endswith(("It", "doesn't"))
        assert len(block.text) <= budget


def test_a_shorter_cut_that_costs_more_is_not_taken():
    def count_tokens(text):
        return 10**6 if "t It …" in text else len(text)

    for budget in range(60, 80):
        context = assemble([passage("It doesn't " * 100)], token_budget=budget, count_tokens=count_tokens)
        assert count_tokens(context.text) <= budget


@pytest.mark.parametrize("text", ["休暇は年に二十八日です、" * 100, "QUJDREVG" * 500])
def test_text_without_spaces_is_cut_too(text):
    (block,) = assemble([passage(text)], token_budget=None, max_context_length=150).blocks
    assert 80 < len(block.text) <= 150
    assert text.startswith(block.passage.content)


def test_a_heading_is_not_shown_without_what_stands_below_it():
    headed = "# Leave\n\n## Annual leave\n\nEvery employee has thirty days. They expire in June."
    first = "Call the desk."
    shown = assemble([passage(first), passage(headed)], token_budget=110, count_tokens=len)
    assert [p.content for p in shown.passages] == [first]
    assert shown.omitted == 1
    more = assemble([passage(first), passage(headed)], token_budget=len(shown.text) + 95, count_tokens=len)
    assert more.passages[1].content.endswith("Every employee has thirty days.")
    # A sentence that is over the budget with its headings is cut like any other.
    cut = assemble([passage(headed)], token_budget=65, count_tokens=len)
    assert cut.passages[0].content.endswith("Every")
    assert len(cut.text) <= 65


def test_headings_alone_are_a_text_too():
    assert assemble([passage("# One\n\n# Two")], token_budget=500).blocks[0].passage.content == "# One\n\n# Two"
    assert assemble([passage("# One\n\n# " + "two " * 30)], token_budget=60, count_tokens=len).blocks


def test_tokens_are_counted_where_the_tokenizer_says_they_stand():
    count = counter_of(lambda text: [match.span() for match in re.finditer(r"\S+", text)])
    assert count("three short words") == 3
    assert count("") == 0
    # What one tokenizer swallows whole is no single token to others.
    assert count("A" * 4000) == 1000
    context = assemble([passage("Q" * 9000)], token_budget=100, count_tokens=count)
    assert count(context.text) <= 100
    assert 200 < len(context.text) < 500


def test_a_word_whose_tokens_are_known_is_not_asked_for_again():
    asked = []

    def spans(text):
        asked.append(text)
        return [match.span() for match in re.finditer(r"\w|[^\w\s]", text)]

    count = counter_of(spans, by_words=lambda: True)
    assert count("one two\n\none, two") == 13
    assert count("two  one three") == 11
    assert asked == ["one", "two", "one,", "three"]
    # Where tokens reach across blanks, texts are asked for whole.
    assert counter_of(spans, by_words=lambda: False)("two one") == 6
    assert asked[-1] == "two one"


def test_a_header_over_the_budget_leaves_nothing():
    context = assemble([passage("Text.", section="s" * 100)], token_budget=10)
    assert (context.text, context.omitted) == ("", 1)


def test_a_long_source_does_not_eat_the_budget():
    context = assemble([passage("Text.", source="a/" * 5000)], token_budget=100)
    assert context.text.endswith("…]\nText.")


def test_few_counts_where_everything_fits():
    counted = []
    assemble([passage(f"{n}.") for n in range(50)], token_budget=9000, count_tokens=lambda t: counted.append(t) or 1)
    assert len(counted) == 1


def test_long_contexts_are_not_counted_whole_again_and_again():
    counted = []
    assemble(
        [passage(f"{n} " + "word " * 100) for n in range(1000)],
        token_budget=500,
        count_tokens=lambda text: counted.append(len(text)) or words(text),
    )
    assert sum(counted[1:]) < 100_000


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("äöü", 2), ("\ud800", 1)])
def test_tokens_are_a_quarter_of_the_bytes(text, tokens):
    assert estimate_tokens(text) == tokens
