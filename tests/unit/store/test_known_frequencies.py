"""What is remembered of words: of a collection as it is, so many at most, and nothing of sessions."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from recollect.model import Scope
from recollect.model.collection import Collection
from recollect.store.search import KnownFrequencies

SCOPE = Scope(tenant_id=1)
BOOKS = Collection(
    collection_id=1,
    name="books",
    description="",
    embedding_model="m",
    embedding_dimension=3,
    space_id=1,
    first_model="m",
    language="en",
    chunking={},
    created_at=datetime(2026, 1, 1, tzinfo=UTC),
    revision=7,
    document_count=2,
    chunk_count=4,
    stats_chunks=4,
    stats_terms=40,
    stats_pending=0,
    reference_length=10.0,
    indexed=False,
)


def test_what_was_read_is_known_and_added_to():
    known = KnownFrequencies()
    assert dict(known.of(SCOPE, BOOKS)) == {}
    known.keep(SCOPE, BOOKS, {11: 3, 12: 0})
    known.keep(SCOPE, BOOKS, {13: 1})
    assert dict(known.of(SCOPE, BOOKS)) == {11: 3, 12: 0, 13: 1}
    known.clear()
    assert dict(known.of(SCOPE, BOOKS)) == {}


@pytest.mark.parametrize(
    "changed",
    [
        {"revision_id": "another"},
        *({name: getattr(BOOKS, name) + 1} for name in ("stats_chunks", "stats_terms", "stats_pending")),
    ],
)
def test_a_collection_that_changed_or_was_counted_anew_is_another(changed):
    known = KnownFrequencies()
    known.keep(SCOPE, BOOKS, {11: 3})
    later = replace(BOOKS, **changed)
    assert dict(known.of(SCOPE, later)) == {}
    known.keep(SCOPE, later, {11: 4})
    assert dict(known.of(SCOPE, later)) == {11: 4}
    assert dict(known.of(SCOPE, BOOKS)) == {}


def test_each_tenant_and_each_collection_has_its_own():
    known = KnownFrequencies()
    known.keep(SCOPE, BOOKS, {11: 3})
    assert dict(known.of(Scope(tenant_id=2), BOOKS)) == {}
    assert dict(known.of(SCOPE, replace(BOOKS, collection_id=2))) == {}


def test_nothing_of_a_session_is_kept():
    known, session = KnownFrequencies(), replace(BOOKS, hidden=True)
    known.keep(SCOPE, session, {11: 3})
    assert dict(known.of(SCOPE, session)) == {}


def test_so_many_are_kept_and_those_kept_first_go():
    known = KnownFrequencies(most=5)
    others = [replace(BOOKS, collection_id=number) for number in (2, 3)]
    known.keep(SCOPE, BOOKS, dict.fromkeys(range(3), 1))
    known.keep(SCOPE, others[0], dict.fromkeys(range(2), 1))
    assert known.of(SCOPE, BOOKS) and known.of(SCOPE, others[0])
    # What is read again is counted once.
    known.keep(SCOPE, BOOKS, dict.fromkeys(range(3), 2))
    assert known.of(SCOPE, others[0])
    known.keep(SCOPE, others[1], {1: 1})
    assert not known.of(SCOPE, BOOKS)
    assert known.of(SCOPE, others[0]) and known.of(SCOPE, others[1])
    known.keep(SCOPE, BOOKS, dict.fromkeys(range(6), 1))
    assert not known.of(SCOPE, BOOKS)
