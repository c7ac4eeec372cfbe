from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from answer.samples import LEAVE
from recollect.answer._units import MAX_UNIT_CHARS, quotable_units


def quotes(text, **options):
    return [text[unit.start : unit.end] for unit in quotable_units(text, **options)]


def test_sentences_items_and_rows_but_no_headings():
    found = quotes(LEAVE)
    assert "Own wedding: 2 days" in found
    assert "Birth of a child | 3" in found
    assert "Call your manager before 9 a.m." in found
    assert not {"# Leave policy", "Leave policy", "Annual leave", "Occasion | Days"} & set(found)
    assert not any("---" in quote for quote in found)


def test_rows_and_items_know_what_they_belong_to():
    units = {LEAVE[unit.start : unit.end]: unit for unit in quotable_units(LEAVE)}
    assert units["Own wedding: 2 days"].lead == "Special leave is granted for:"
    assert "Occasion" in units["Birth of a child | 3"].lead
    assert units["Birth of a child | 3"].heading == "Sick leave"


def test_a_long_item_is_quoted_by_sentences_and_each_has_the_lists_opening_line():
    rules = " ".join(f"Rule {number} says that a vote is open for at least {number} days." for number in range(1, 6))
    units = quotable_units(f"In the second stage:\n\n- {rules}\n- The vote is open.\n")
    assert [unit.lead for unit in units[1:]] == ["In the second stage:"] * 6
    assert [unit.kind for unit in units[1:]] == ["item"] * 6
    assert units[2].end - units[2].start < 60


def test_headings_in_capitals_and_known_titles_are_left_out():
    text = "SICK LEAVE\nCall your manager.\n\nCertificates And Forms\nBring them."
    assert quotes(text, headings=["Certificates and forms"]) == ["Call your manager.", "Bring them."]


def test_a_record_on_a_line_is_one_unit():
    text = (
        "Rates in EUR.\nCountry: Norway; Full rate: 75; Half rate: 50\nCountry: Malta; Full rate: 46; Half rate: 31\n"
    )
    assert quotes(text) == [
        "Rates in EUR.",
        "Country: Norway; Full rate: 75; Half rate: 50",
        "Country: Malta; Full rate: 46; Half rate: 31",
    ]


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet=st.one_of(st.sampled_from("ab .\n|-*#>1!\t"), st.characters(codec="utf-8")), max_size=400))
def test_units_are_ordered_trimmed_and_bounded(text):
    units = quotable_units(text)
    end = 0
    for unit in units:
        assert end <= unit.start < unit.end <= len(text)
        assert unit.quote_start <= unit.start
        assert unit.end - unit.start <= MAX_UNIT_CHARS
        assert text[unit.start : unit.end] == text[unit.start : unit.end].strip()
        end = unit.end


def test_no_text_is_cubic():
    for text in (
        "[" * 50_000,
        "- " * 30_000,
        "|" * 60_000,
        "* *" * 20_000,
        "> " * 30_000,
        "a\tb " * 20_000,
        "a: b;" * 20_000,
    ):
        quotable_units(text)


LOST_TABLES = """Special leave

Occasion Paid days
Own wedding or civil partnership 2
Death of a spouse, partner, parent or child 4
Moving house for personal reasons 1, once in 24 months
Special leave is taken within 6 weeks of the occasion. Nobody may carry it over to another year.

Key Default Range Meaning
session_timeout_min 45 5 to 480
Minutes without activity
until sign-out
heartbeat_sec 300 60 to 3600
Interval of the gateway's
sign of life
Internal - Page 2 of 5

  System          Frequency       Kept for
  File server     every 4 hours   90 days
  Mail            daily           60 days,
                                  and 30 more
"""


def test_the_rows_of_a_table_that_lost_its_lines_stand_alone_with_their_header():
    units = {LOST_TABLES[unit.start : unit.end]: unit for unit in quotable_units(LOST_TABLES)}
    wedding = units["Own wedding or civil partnership 2"]
    assert (wedding.kind, wedding.lead) == ("row", "Occasion Paid days")
    assert LOST_TABLES[wedding.lead_start : wedding.lead_end] == wedding.lead
    assert units["File server     every 4 hours   90 days"].lead.startswith("System")
    assert "heartbeat_sec 300 60 to 3600\nInterval of the gateway's\nsign of life" in units
    assert any(text.endswith("and 30 more") and text.startswith("Mail") for text in units)
    assert units["Nobody may carry it over to another year."].kind == "sentence"
    assert not any("Page 2" in text for text in units)


def test_wrapped_prose_is_no_table():
    text = (
        "The policy covers office-based employees in all locations once they have\n"
        "finished their first month. It does not cover production, goods-in, the\n"
        "Calibration Laboratory and reception, where the work cannot be done elsewhere.\n"
        "Interns can work remotely.\n"
    )
    assert [unit.kind for unit in quotable_units(text)] == ["sentence"] * 3


def test_an_ordinal_does_not_end_a_sentence():
    text = "Den Antrag stellt man bis zum 10. des Vormonats. Vom 1. März bis zum 31. Juli gilt ein Verbot."
    assert len(quotes(text)) == 2


def test_names_and_what_they_stand_for_have_no_header():
    text = "  Portal      the preferred way\n  Telephone   extension 4400\n  Walk-in     room 12, from 10:00\n"
    assert {unit.lead for unit in quotable_units(text)} == {""}


def test_short_lines_without_a_sentence_are_rows_though_they_would_not_have_fitted_on_one_line():
    text = (
        "Topic Until 2025 From 2026\nAnnual leave, five days 28 days 30 days\nCarry-over 5 days 8 days\n"
        "Own wedding 1 day 2 days\n"
    )
    assert "Own wedding 1 day 2 days" in quotes(text)


def test_a_line_of_a_table_of_contents_says_nothing():
    text = "- [Links](#links)\n- [Lists](#lists) · [Art](#art)\n- [Handbook](handbook.md)\n\nSee [links](#links) first."
    assert quotes(text) == ["[Handbook](handbook.md)", "See [links](#links) first."]


COMMANDS = (
    """To sign commits, make a key first.

```bash
gpg --full-generate-key
```

Then say so:

```
# the same address as the key's
git config --global user.email me@example.com
git config --global user.signingkey 3AA5C34371567BD2 \\
  --replace-all
"""
    + "\n".join(f"git config --global alias.a{number} 'log --oneline'" for number in range(9))
    + "\n```\n"
)


def test_code_is_quoted_as_it_is_with_what_stands_above_it():
    units = quotable_units(COMMANDS)
    told = {COMMANDS[unit.start : unit.end]: unit for unit in units}
    assert told["gpg --full-generate-key"].kind == "code"
    assert told["gpg --full-generate-key"].lead == "To sign commits, make a key first."
    # A long block is quoted by commands, a comment with what it is about.
    assert "# the same address as the key's\ngit config --global user.email me@example.com" in told
    assert "git config --global user.signingkey 3AA5C34371567BD2 \\\n  --replace-all" in told
    assert all(unit.lead == "Then say so:" for unit in units[3:]) and len(units) == 3 + 11


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("pumpctl stop\n```\n\nWait a minute.\n", ["pumpctl stop"]),
        ("pumpctl stop\n```\n\nWait a minute, then:\n\n```sh\npumpctl start\n", ["pumpctl stop", "pumpctl start"]),
        ("It is in the safe.\n\n```\npumpctl start\n", ["pumpctl start"]),
        ("Only you may read it.\n\n.. code-block:: bash\n\n    chmod 600 a\n\nThen go on.\n", ["chmod 600 a"]),
        ("Write:\n\n.. code:: rst\n\n   .. code:: sh\n\n      ls\n\nThen go on.\n", [".. code:: sh\n\n      ls"]),
        ("```\n```\n\nNothing stands there.\n", []),
    ],
)
def test_a_text_may_be_cut_within_code(text, code):
    units = quotable_units(text)
    assert [text[unit.start : unit.end] for unit in units if unit.kind == "code"] == code
    assert not any(
        mark in text[unit.start : unit.end] for unit in units if unit.kind != "code" for mark in ("```", ".. code")
    )
