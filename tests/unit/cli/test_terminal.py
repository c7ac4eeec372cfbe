from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.cli._terminal import Highlighter, inline_markup, one_line, plain, shortened
from recollect.retrieval.analysis import Analyzer


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a \x1b[31mred\x1b[0m word", "a red word"),
        ("title \x1b]0;owned\x07 gone", "title  gone"),
        ("link \x1b]8;;http://x\x1b\\text\x1b]8;;\x1b\\", "link text"),
        ("clear \x9b2J screen", "clear  screen"),
        ("reset \x1bc and \x1b(B", "reset  and "),
        ("bell\x07 back\x08space\x7f", "bell backspace"),
        ("a\u202egnp.exe\u202c", "agnp.exe"),
        ("tab\tand\nline", "tab    and\nline"),
        ("שלום", "שלום"),
        ("cut off \x1b[", "cut off "),
    ],
)
def test_nothing_that_a_terminal_obeys_is_left(text, shown):
    assert plain(text) == shown


@given(st.text())
def test_plain_text_has_no_control_character_but_line_feeds(text):
    assert not [c for c in plain(text) if unicodedata.category(c) in {"Cc", "Cs"} and c != "\n"]
    assert "\n" not in one_line(text)


@given(st.text(min_size=1), st.integers(1, 50))
def test_shortened_keeps_within_its_length(text, length):
    assert len(shortened(text, length)) <= max(length, 2)


def test_emphasis_is_styled_and_its_marks_are_gone():
    shown = inline_markup("At **most 30** days, *not* 5 * 3 * 2, `max_sessions` and snake_case_*.")
    assert shown.plain == "At most 30 days, not 5 * 3 * 2, max_sessions and snake_case_*."
    assert [(shown.plain[s.start : s.end], s.style) for s in shown.spans] == [
        ("most 30", "bold"),
        ("not", "italic"),
        ("max_sessions", "cyan"),
    ]


def test_a_snippet_holds_the_querys_words_whatever_their_ending():
    text = "Nothing of interest stands here. " * 30 + "Employees are entitled to leaves. " + "Nothing again. " * 30
    snippet = Highlighter("employee leave", Analyzer("en")).snippet(text, length=120)
    assert {snippet.plain[span.start : span.end] for span in snippet.spans} == {"Employees", "leaves"}
    assert len(snippet.plain) <= 124
    assert snippet.plain.startswith("… ")
    assert snippet.plain.endswith(" …")


@given(st.text(), st.text(min_size=1).filter(str.strip), st.integers(20, 200))
def test_any_text_gives_a_snippet(text, query, length):
    snippet = Highlighter(query, Analyzer("en")).snippet(text, length=length)
    assert len(snippet.plain) <= length + 4
