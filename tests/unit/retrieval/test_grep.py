"""Exact patterns: what they match, and that no pattern and no text takes long."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import UsageError
from recollect.retrieval.grep import MAX_PATTERN_CHARACTERS, OVERLAP, WINDOW, ExactPattern


def found(text: str, pattern: str, **options: bool) -> list[str]:
    data = text.encode()
    return [data[first:last].decode() for first, last in ExactPattern(pattern, **options).spans(data) if first < last]


@pytest.mark.parametrize(
    ("text", "pattern", "options", "expected"),
    [
        ("See ERR-4012, err-4012.", "ERR-4012", {}, ["ERR-4012", "err-4012"]),
        ("See ERR-4012, err-4012.", "ERR-4012", {"case_sensitive": True}, ["ERR-4012"]),
        ("Remote\n   work and remote\u00a0work", "remote work", {}, ["Remote\n   work", "remote\u00a0work"]),
        ("a.b*c aXbXc", "a.b*c", {}, ["a.b*c"]),
        ("Übernachtung ÜBERNACHTUNG", "übernachtung", {}, ["Übernachtung", "ÜBERNACHTUNG"]),
        ("congé, congés, congé.", "congé", {"whole_words": True}, ["congé", "congé"]),
        ("pot potato spot", "pot", {"whole_words": True}, ["pot"]),
        ("x_pot pot1", "pot", {"whole_words": True}, []),
        ("ERR-1 ERR-22", r"ERR-\d+", {"regex": True}, ["ERR-1", "ERR-22"]),
        ("one\ntwo\n", "^two$", {"regex": True}, ["two"]),
        ("Größe 5 größer", r"gr\pL+", {"regex": True}, ["Größe", "größer"]),
        ("abc", "x*", {"regex": True}, []),
        ("", "x", {}, []),
        ("日本語 日本", "日本", {}, ["日本", "日本"]),
    ],
)
def test_what_is_looked_for_is_found(text: str, pattern: str, options: dict[str, bool], expected: list[str]):
    assert found(text, pattern, **options) == expected


@pytest.mark.parametrize(
    ("pattern", "options", "message"),
    [
        ("", {}, "empty"),
        (" \n", {"regex": True}, "empty"),
        ("a" * (MAX_PATTERN_CHARACTERS + 1), {}, "shorter"),
        ("(", {"regex": True}, "missing"),
        ("(?=look)", {"regex": True}, "Look-around"),
        (r"(a)\1", {"regex": True}, "back-references"),
        ("a{1001}", {"regex": True}, "repetition"),
        ("(?:a{1,100}){1,100}", {"regex": True}, "repetition|too large"),
        (r"(?:\pL{1,30}){1,33}", {"regex": True}, "too large"),
        ("(" * 900, {"regex": True}, "missing|nesting"),
        ("[" * 900, {"regex": True}, "missing"),
        ("a**", {"regex": True}, "repetition"),
    ],
)
def test_what_is_no_pattern_is_refused_with_what_is_wrong(pattern: str, options: dict[str, bool], message: str):
    with pytest.raises(UsageError, match=message):
        ExactPattern(pattern, **options)


EVIL = [
    "(a+)+$", "(a|a)*b", "(a|aa)+$", "(.*a){20}", "(x+x+)+y", "^(([a-z])+.)+[A-Z]([a-z])+$", "(?:a?){300}a{300}",
    "[a-q][^u-z]{13}x", "(.*)*(.*)*(.*)*!", "(?i)(?:\\pL|\\pN|a)*?!", "((((a*)*)*)*)*b", "a.{500}b", "(?s).*.*.*.*!",
]  # fmt: skip


@pytest.mark.parametrize("pattern", EVIL)
def test_no_pattern_goes_back(pattern: str):
    """Each of these takes a backtracking engine longer than the universe has lasted, on some text of this length."""
    text = ("a" * 50_000).encode()
    assert len(list(ExactPattern(pattern, regex=True).spans(text))) < 1_000


def test_a_match_is_found_wherever_a_window_ends():
    needle = "needle " * 40
    for before in (*range(WINDOW - 300, WINDOW + 5, 7), WINDOW - OVERLAP - 3, 2 * WINDOW - OVERLAP - 100):
        text = "ä" * (before // 2) + needle + "\n" + "é" * WINDOW
        assert found(text, needle.strip()) == [needle.strip()], before


def test_a_match_that_is_longer_than_a_window_ends_and_does_not_hang():
    text = "a" * (3 * WINDOW)
    matches = found(text, "a+", regex=True)
    assert 1 <= len(matches) <= 4 and all(matches)


def test_positions_of_windows_only_move_on():
    text = ("word " * 60_000).encode()
    marks = [first for first, last in ExactPattern("nothing like it").spans(text) if first == last]
    assert len(marks) >= len(text) // WINDOW and marks == sorted(set(marks))


@given(
    text=st.text(st.sampled_from("ab ä\n日_.\u00a0"), max_size=60),
    pattern=st.text(st.sampled_from("abä日_."), min_size=1, max_size=4),
    start=st.integers(0, 60),
)
def test_exact_text_is_found_as_pythons_own_engine_finds_it(text: str, pattern: str, start: int):
    data = text.encode()
    begin = len(text[:start].encode())
    expected = [
        (begin + len(text[start:][: m.start()].encode()), begin + len(text[start:][: m.end()].encode()))
        for m in re.finditer(re.escape(pattern), text[start:])
    ]
    spans = ExactPattern(pattern, case_sensitive=True).spans(data, begin)
    assert [one for one in spans if one[0] < one[1]] == expected
