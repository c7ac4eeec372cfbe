"""Stages that overlap: order, bounds, and what an error leaves."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.ingest.documents import BATCH_CHUNKS, BATCH_DOCUMENTS, ahead, batches, embed_and_write, threads, windows


@given(st.lists(st.integers(0, 30), max_size=60), st.integers(1, 5), st.integers(1, 40))
def test_ahead_is_map_within_its_bounds(sizes: list[int], max_items: int, max_size: int):
    taken, given_out = 0, 0
    worst = 0

    def items():
        nonlocal taken, worst
        for number, size in enumerate(sizes):
            taken += 1
            # Beyond what was given out: those made ahead, and the one in hand.
            worst = max(worst, taken - given_out)
            yield number, size

    results = []
    with threads(2, "test") as workers:
        for made in ahead(
            workers, lambda x: x[0], items(), size=lambda x: x[1], max_items=max_items, max_size=max_size
        ):
            results.append(made)
            given_out += 1
    assert results == list(range(len(sizes)))
    assert worst <= max_items + 1


def test_an_error_surfaces_in_its_turn():
    def make(number: int) -> int:
        if number == 3:
            raise ValueError("three")
        return number

    seen = []
    with threads(2, "test") as workers, pytest.raises(ValueError, match="three"):
        seen.extend(ahead(workers, make, range(10), size=lambda _: 1, max_items=4, max_size=100))
    assert seen == [0, 1, 2]


DOCUMENTS = st.lists(
    st.tuples(st.sampled_from("abcdefgh"), st.integers(1, 200), st.integers(1, 2)), max_size=150
)  # (uri, chunks, source)


@given(DOCUMENTS)
def test_batches_keep_the_order_and_every_rule(documents: list[tuple[str, int, int]]):
    made = [
        SimpleNamespace(document=SimpleNamespace(source=u, id=None), chunks=[0] * n, of=s, attached=())
        for u, n, s in documents
    ]
    cut = list(batches(made, cut=lambda one: one, source_id=lambda one: one.of))
    assert [one for batch in cut for one in batch] == made
    for batch in cut:
        assert len({one.of for one in batch}) == 1
        assert len({one.document.source for one in batch}) == len(batch) <= BATCH_DOCUMENTS
        assert sum(len(one.chunks) for one in batch[:-1]) < BATCH_CHUNKS


def test_what_need_not_be_embedded_is_stored_in_larger_batches():
    made = [
        SimpleNamespace(document=SimpleNamespace(source=str(n), id=None), chunks=[0], attached=()) for n in range(600)
    ]
    cut = [
        [
            len(batch)
            for batch in batches(
                made, cut=lambda one: one, source_id=lambda _: 1, light=lambda _, is_light=is_light: is_light
            )
        ]
        for is_light in (True, False)
    ]
    assert max(cut[0]) == 4 * max(cut[1])


def test_one_batch_is_embedded_while_another_is_written():
    meeting = threading.Barrier(2, timeout=10)
    log = []

    def embed(batch: int) -> int:
        if batch == 2:
            meeting.wait()
        return batch * 10

    def write(batch: int, embedded: int) -> None:
        if batch == 1:
            meeting.wait()
        log.append((batch, embedded))

    embed_and_write([1, 2, 3], embed, write)
    assert log == [(1, 10), (2, 20), (3, 30)]


def test_a_failing_write_stops_the_run_and_a_failing_embedding_ends_what_was_begun():
    written = []

    def write(batch: int, _: int) -> None:
        if batch == 2:
            raise OSError("full")
        written.append(batch)

    with pytest.raises(OSError, match="full"):
        embed_and_write(iter(range(1, 100)), lambda batch: batch, write)
    assert written == [1]
    with pytest.raises(ZeroDivisionError):
        embed_and_write([3, 4, 0], lambda batch: 12 // batch, write)
    # What the writer had begun is finished, what it had not is dropped, and nothing is written out of turn.
    assert written in ([1, 3], [1, 3, 4])


@given(st.lists(st.integers()), st.integers(1, 7))
def test_windows_cover_everything(items: list[int], size: int):
    cut = list(windows(items, size))
    assert [one for window in cut for one in window] == items
    assert all(len(window) == size for window in cut[:-1])
