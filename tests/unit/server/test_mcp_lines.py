"""Lines of a pipe, however it hands them over."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.server.mcp import stdio
from recollect.server.mcp.stdio import _split, _TooLong, private_streams

LIMIT = 20


@pytest.fixture(autouse=True, scope="module")
def short() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stdio, "MAX_MESSAGE_BYTES", LIMIT)
        yield


@given(st.lists(st.binary(max_size=30) | st.sampled_from([b"\n", b"\n\n", b"x" * LIMIT, b"x" * (LIMIT + 1)])))
def test_lines_are_the_same_however_they_come(chunks):
    whole = b"".join(chunks)
    expected = [line if len(line) <= LIMIT else _TooLong for line in whole.split(b"\n")]
    expected = [line for line in expected if line is _TooLong or line.strip()]
    found = [line if isinstance(line, bytes) else _TooLong for line in _split(iter(chunks))]
    # What is too long and never ends is told to nobody: the pipe is at its end.
    if expected and expected[-1] is _TooLong and len(whole.split(b"\n")[-1]) > LIMIT:
        expected.pop()
    assert found == expected


def test_of_a_line_without_an_end_no_more_is_kept_than_a_message_may_have():
    kept = []

    def chunks() -> Iterator[bytes]:
        for _ in range(1_000):
            kept.append(sum(len(piece) for piece in held.gi_frame.f_locals["pieces"]))
            yield b"x" * 7
        yield b"\nshort\n"

    held = _split(chunks())
    told, short = held
    assert isinstance(told, _TooLong) and short == b"short"
    assert max(kept) <= LIMIT


def test_standard_streams_are_the_clients_alone_for_the_time_of_a_block(capfd):
    with private_streams() as (read_fd, write_fd):
        os.write(1, b"written below Python\n")
        assert os.read(0, 1) == b"" and {read_fd, write_fd}.isdisjoint({0, 1, 2})
        os.write(write_fd, b"a message\n")
    os.write(1, b"and after\n")
    out, err = capfd.readouterr()
    assert out == "a message\nand after\n"
    assert err == "written below Python\n"
