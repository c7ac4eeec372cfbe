"""`ask` and `chat` where no exact answer was found: the passages that may help, with what they are made of."""

from __future__ import annotations

import json

import pytest

from recollect.model.answer import REFUSAL

OFFER = "No exact answer found. These passages may help:"
# Which of two plans has what is told; of a third one nothing is.
PRICES = """# Prices

## Plans

The prices of the plans per month, which hold for teams of every size and are
paid in advance at the beginning of each month:

| Plan | Price | Support |
|---|---|---|
| Basic plan | 10 euros | by mail |
| Premium plan | 30 euros | by phone |

To change the plan:

1. Open the settings of the team.
2. Choose the new plan:

   recollect-team plan set premium
   recollect-team plan confirm
"""
QUESTION = "What is the price of the Platinum plan ERR-9999?"


@pytest.fixture
def priced(recollect):
    recollect.folder.joinpath("prices.md").write_text(PRICES, encoding="utf-8")
    recollect("ingest", "prices.md")
    return recollect


def test_passages_are_shown_with_their_place_and_their_lines(priced):
    shown = priced("ask", QUESTION)
    assert shown.status == 0
    assert shown.out.startswith(f"{OFFER}\n\n[1] prices.md › Prices › Plans\n")
    # Rows stay rows, without the bars around them; a paragraph's lines are joined and wrapped.
    assert "    Basic plan | 10 euros | by mail\n    Premium plan | 30 euros | by phone\n" in shown.out
    reply = priced("ask", QUESTION, "--json").json
    assert (reply["outcome"], reply["refused"], reply["answer"], reply["citations"]) == ("passages", True, OFFER, [])
    for marker, passage in enumerate(reply["passages"], start=1):
        assert passage["marker"] == marker
        assert passage["text"] == PRICES[passage["start_offset"] : passage["end_offset"]]
        for part in passage["highlights"]:
            assert passage["start_offset"] <= part["start_offset"] < part["end_offset"] <= passage["end_offset"]
    streamed = priced("ask", QUESTION, "--stream").out
    assert streamed.startswith(OFFER) and streamed.count("[1] prices.md") == 1


def test_nothing_relevant_is_none_and_says_why_where_that_is_known(priced):
    reply = priced("ask", "qwzx vbnk ghjt", "--json").json
    assert (reply["outcome"], reply["passages"], reply["answer"]) == ("none", [], REFUSAL)
    priced("collections", "create", "empty")
    assert "is empty" in priced("ask", QUESTION, "-c", "empty").err
    # What is shown needs no reason for being nothing.
    assert priced("ask", QUESTION).err == ""


def test_what_a_passage_would_have_a_terminal_do_is_not_done(recollect):
    hostile = "The Platinum plan has a price. It is a secret \x1b[2J\x1b]0;owned\x07 of the board \u202eno.\n"
    recollect.folder.joinpath("prices.md").write_text(hostile, encoding="utf-8")
    recollect("ingest", "prices.md")
    shown = recollect("ask", QUESTION).out
    assert OFFER in shown and "a secret" in shown
    assert not {"\x1b", "\x07", "\u202e"} & set(shown)


def test_a_conversation_goes_on_behind_passages_and_keeps_only_where_they_stand(priced):
    lines = f"{QUESTION}\n/sources\n/save talk.md\nPrice of the Basic plan, support by mail?\n"
    shown = priced("chat", "--session", "talk", stdin=lines).out
    assert shown.count("[1] prices.md › Prices › Plans\n    ") == 2 and "cites nothing" not in shown
    saved = priced.folder.joinpath("talk.md").read_text(encoding="utf-8")
    assert f"{OFFER}\n\n- [1] prices.md, characters " in saved and "  > | Premium plan | 30 euros" in saved
    document = priced("chat", "--session", "talk", "--json", stdin="Price of the Basic plan, support by mail?\n").json
    assert [one["outcome"] for one in document["answers"]] == ["answer"]
    recalled = json.dumps(priced("recall", "Platinum plan", "--session", "talk", "--json").json)
    assert OFFER in recalled and "Premium" not in recalled
