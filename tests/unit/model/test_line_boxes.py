"""Boxes of lines, packed and read again."""

from __future__ import annotations

import base64
import json
import pickle
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.model import LineBox, Outline, PageBox, PageSpan

EDGES = st.integers(0, 10_000).map(lambda parts: parts / 10_000)
LINES = st.lists(
    st.builds(LineBox, st.integers(0, 10**7), st.integers(0, 10**7), EDGES, EDGES, EDGES, EDGES), max_size=20
)


@given(LINES, st.integers(0, 10**7))
def test_lines_come_back_as_they_were(lines: list[LineBox], start: int):
    span = PageSpan(7, start, start + 1, tuple(lines))
    stored = json.loads(json.dumps(span.as_list()))
    back = PageSpan.of_list(stored)
    assert bool(back.lines) == bool(lines)
    assert back == span
    assert hash(back) == hash(span)
    assert back.as_list() == stored
    assert pickle.loads(pickle.dumps(back)) == span


def test_a_page_that_was_moved_keeps_its_lines_where_they_are():
    span = PageSpan.of_list(PageSpan(1, 100, 200, (LineBox(110, 120, 0.1, 0.2, 0.3, 0.4),)).as_list())
    moved = PageSpan(1, 50, 150, span.lines)
    assert PageSpan.of_list(moved.as_list()).lines[0] == span.lines[0]


def test_lines_one_by_one_are_read_too():
    span = PageSpan.of_list([1, 0, 9, [[0, 4, 100, 200, 300, 400], [5, 9, 100, 500, 300, 600]]])
    assert span.lines[1:] == (LineBox(5, 9, 0.01, 0.05, 0.03, 0.06),)
    assert Outline(pages=(span,)).boxes(3, 5) == (PageBox(1, 0.01, 0.02, 0.03, 0.04),)


def test_a_line_takes_a_few_bytes():
    lines, offset = [], 0
    for number in range(60):
        length = 90 + number * 37 % 20
        top = 0.05 + 0.015 * number
        lines.append(LineBox(offset, offset + length, 0.1, top, 0.6 + number * 13 % 30 / 100, top + 0.0117))
        offset += length + 1
    assert len(PageSpan(1, 0, offset, tuple(lines)).as_list()[3]) < 10 * len(lines)


@pytest.mark.parametrize(
    "text",
    [
        "?",
        "AAAA",
        base64.b64encode(b"no deflate").decode(),
        base64.b64encode(zlib.compress(b"\x02\x02\x02")).decode(),
        base64.b64encode(zlib.compress(b"\xff" * 600)).decode(),
        base64.b64encode(zlib.compress(bytes(6_000_000))).decode(),
        base64.b64encode(zlib.compress(b"\x02" * 60)[:-3]).decode(),
    ],
    ids=["no base64", "too short", "no deflate", "half a line", "a huge number", "a bomb", "cut off"],
)
def test_what_is_no_packed_lines_is_refused(text: str):
    with pytest.raises(ValueError, match="is not what lines of a page are packed to"):
        tuple(PageSpan.of_list([1, 0, 9, text]).lines)
