"""Logs that are stored in batches: who is stored with whom, what is lost when, and what waits."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from recollect.buffered_log import BufferedLog
from recollect.errors import NotFoundError, StoreError, StoreUnavailableError
from recollect.interruption import Interruption, check, current

NEVER = 1e6


class Shelf:
    """Keeps what is stored; while it is down it takes nothing."""

    def __init__(self):
        self.batches: list[tuple[int, list[int]]] = []
        self.trouble: Exception | None = None

    def append(self, scope, entries):
        if self.trouble is not None:
            raise self.trouble
        self.batches.append((scope.tenant_id, entries))


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


def test_entries_are_stored_by_tenant_in_their_order_and_in_batches(shelf):
    log = BufferedLog(shelf.append, name="things", flush_seconds=NEVER, batch=2)
    before = threading.active_count()
    log.flush()
    assert threading.active_count() == before and not shelf.batches
    for tenant, *numbers in ((2, 1, 2, 3), (1, 4), (2, 5)):
        log.add(tenant, *numbers)
    assert log.waiting == 5
    log.flush()
    assert shelf.batches == [(1, [4]), (2, [1, 2]), (2, [3, 5])]
    for number in (6, 7):
        log.add(1, number)
        log.close()
    assert shelf.batches[3:] == [(1, [6]), (1, [7])] and threading.active_count() == before


def test_entries_are_stored_by_time(shelf):
    stored = threading.Event()
    log = BufferedLog(lambda *_: stored.set(), name="things", flush_seconds=0.01)
    log.add(1, 1)
    assert stored.wait(20)
    log.close()


def test_what_the_store_does_not_take_is_lost_or_waits(shelf, caplog):
    shelf.trouble = StoreUnavailableError("the server is gone")
    lossy = BufferedLog(shelf.append, name="counts", flush_seconds=NEVER)
    keeping = BufferedLog(shelf.append, name="things", flush_seconds=NEVER, keeps=True)
    for log in (lossy, keeping):
        log.add(1, 1, 2)
        log.flush()
    assert (lossy.waiting, keeping.waiting) == (0, 2)
    assert "2 counts are not in their log: the server is gone" in caplog.text
    assert "2 things are not in their log yet: the server is gone" in caplog.text
    keeping.add(1, 3)
    shelf.trouble = None
    keeping.flush()
    assert shelf.batches == [(1, [1, 2, 3])]
    # Nobody's entries wait for a tenant that was erased, or for a store that comes back after the end.
    for trouble, end in ((NotFoundError("no such tenant"), keeping.flush), (StoreError("down"), keeping.close)):
        shelf.trouble = trouble
        keeping.add(1, 4)
        end()
        assert keeping.waiting == 0


def test_the_oldest_are_lost_where_too_many_wait(shelf, caplog):
    log = BufferedLog(shelf.append, name="things", flush_seconds=NEVER, most_waiting=3)
    for number in range(6):
        log.add(1, number)
    log.close()
    assert shelf.batches == [(1, [3, 4, 5])]
    assert [one.getMessage() for one in caplog.records] == ["3 things are not in their log: more than 3 waited."]


def test_what_is_added_by_many_threads_is_stored_once(shelf):
    log = BufferedLog(shelf.append, name="things", flush_seconds=0.001)
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda number: log.add(number % 3, number), range(2_000)))
    log.close()
    assert sorted(number for _, entries in shelf.batches for number in entries) == list(range(2_000))


def test_whoever_gives_up_while_it_stores_takes_nothing_with_them(shelf):
    """Whoever lists a log has it stored first; the entries are those of others."""
    interruption = Interruption()
    interruption.interrupt()

    def append(scope, entries):
        check()
        shelf.append(scope, entries)

    log = BufferedLog(append, name="things", flush_seconds=NEVER)
    log.add(1, 1)
    before = current.set(interruption)
    try:
        log.flush()
    finally:
        current.reset(before)
    assert shelf.batches == [(1, [1])]
    log.close()


def test_who_waits_is_served_by_whoever_stores():
    """While one stores, all who come wait, and the next transaction is all of theirs: none is stored for itself."""
    sizes, begun, go = [], threading.Event(), threading.Event()

    def slowly(_, entries):
        sizes.append(len(entries))
        begun.set()
        assert go.wait(30)

    log = BufferedLog(slowly, name="things", flush_seconds=NEVER)

    def told(number: int) -> None:
        log.add(1, number)
        log.store()

    with ThreadPoolExecutor(9) as threads:
        waiting = [threads.submit(told, 0)]
        assert begun.wait(30)
        waiting += [threads.submit(told, number) for number in range(1, 9)]
        while log.waiting < 8:
            threading.Event().wait(0.001)
        go.set()
        for one in waiting:
            one.result(30)
    assert sizes == [1, 8]
    log.close()


def test_whoever_must_know_is_told_that_it_is_not_stored(shelf):
    shelf.trouble = StoreUnavailableError("the server is gone")
    log = BufferedLog(shelf.append, name="things", flush_seconds=NEVER, keeps=True)
    log.add(1, 1)
    with pytest.raises(StoreError, match="The log of things cannot be stored: the server is gone"):
        log.store()
    shelf.trouble = None
    log.add(1, 2)
    log.store()
    assert shelf.batches == [(1, [1, 2])]
    log.close()
