"""Totals; what `check` finds is tested where things are written."""

from __future__ import annotations

from shelf import Shelf

from recollect.model import Scope
from recollect.store.migrate import code_schema_version
from recollect.store.store import Store


def test_an_empty_store_counts_nothing(store: Store):
    status = store.status.status(Scope())
    assert (status.total_documents, status.total_chunks, status.departments) == (0, 0, {})
    assert status.schema_version == store.schema_version == code_schema_version()
    assert status.database_bytes > 1_000_000
    assert store.status.check(Scope()) == []


def test_totals_count_current_versions_of_all_collections(store: Store):
    first, second = Shelf(store, name="a"), Shelf(store, name="b")
    first.add("x", "one\ntwo", department="hr")
    first.add("x", "one\ntwo\nthree", department="hr")
    second.add("x", "one", department="hr")
    second.add("y", "one\ntwo")
    closed = second.add("z", "one", department="it")
    store.writer.close(Scope(), [closed.document_id])
    status = store.status.status(Scope())
    assert (status.total_documents, status.total_chunks) == (3, 6)
    assert status.departments == {"hr": 4, "": 2}
