"""What stands beside chunks is read for itself, however long their document is."""

from __future__ import annotations

import pytest
from shelf import Shelf, read_in_vain

from recollect.model import Scope
from recollect.store.sql import queries
from recollect.store.store import Store

LONG = 300


@pytest.fixture
def shelf(store: Store) -> Shelf:
    shelf = Shelf(store)
    shelf.fill([f"line {number}" for number in range(LONG)], per_document=LONG)
    shelf.add("short", "alone")
    return shelf


@pytest.fixture
def places(shelf: Shelf) -> dict[int, tuple[int, int]]:
    """By chunk: its version, and where it stands there."""
    found = shelf.rows("SELECT chunk_id, version_id, position FROM chunks")
    return {chunk_id: (version_id, position) for chunk_id, version_id, position in found}


def test_the_chunks_beside_are_those_before_and_after(shelf: Shelf, places: dict[int, tuple[int, int]]):
    rows = shelf.store.search.beside(Scope(), list(places))
    expected = [one for one, (version, at) in places.items() for by in (-1, 1) if (version, at + by) in places.values()]
    assert sorted(rows.chunk_ids) == sorted(expected)
    assert len(expected) == 2 * LONG - 2


@pytest.mark.parametrize("neighbours", [1, 3])
def test_a_stretch_holds_so_many_neighbours(shelf: Shelf, places: dict[int, tuple[int, int]], neighbours: int):
    stretches = shelf.store.search.stretches(Scope(), list(places), neighbours=neighbours)
    texts = dict(zip(places, shelf.contents(places), strict=True))
    for chunk_id, (version, at) in places.items():
        together = [one for one, (of, where) in places.items() if of == version and abs(where - at) <= neighbours]
        assert stretches[chunk_id].content.split("\n") == [texts[one].strip() for one in together]
    assert stretches.keys() == places.keys()


def test_a_long_document_is_not_read_for_what_stands_beside_its_chunks(
    shelf: Shelf, places: dict[int, tuple[int, int]]
):
    params = {"tenant_id": 1, "chunk_ids": list(places), "neighbours": 1}
    for name in ("beside", "stretches"):
        assert read_in_vain(shelf.store, queries("search")[name], params) <= 2 * len(places)
