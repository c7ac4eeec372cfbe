"""Editions are looked up in no more than their own chunks, whatever the planner knows."""

from __future__ import annotations

from shelf import Shelf

from recollect.store.sql import queries
from recollect.store.store import Store

_READ = (
    "SELECT sum(coalesce(idx_tup_fetch, 0) + seq_tup_read)::int FROM pg_stat_xact_user_tables "
    "WHERE relname IN ('chunk_vectors', 'chunks')"
)


def test_before_there_are_statistics_editions_are_looked_up_by_their_keys(store: Store):
    shelf = Shelf(store)
    shelf.fill([f"word{number}" for number in range(200)], per_document=50)
    first = min(shelf.vectors())
    (document,) = shelf.rows("SELECT document_id FROM chunks JOIN document_versions USING (tenant_id, version_id) "
                             "WHERE chunk_id = %(chunk)s", chunk=first)[0]  # fmt: skip
    given = {"chunk_ids": [first], "document_ids": [document], "limit": 6, "as_of": None, "access_ids": None}
    params = given | {"tenant_id": shelf.scope.tenant_id, "space_id": shelf.now().space_id}
    with store.database.transaction(shelf.scope) as connection:
        before = connection.execute(_READ).fetchall()[0][0]
        found = connection.execute(queries("staleness")["siblings"], params).fetchall()
        read = connection.execute(_READ).fetchall()[0][0] - before
    assert [row[2] for row in found] == ["fill100", "fill150", "fill50"]
    assert read <= 200
