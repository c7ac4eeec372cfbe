"""Reading documents: by id, by name, page by page, now and as of a moment."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from shelf import Shelf, second_tenant

from recollect.errors import NotFoundError, UsageError
from recollect.store.store import Store


@pytest.fixture
def shelf(store: Store) -> Shelf:
    return Shelf(store)


def test_a_document_comes_back_as_it_was_given(shelf: Shelf):
    event = datetime(2024, 2, 29, tzinfo=UTC)
    given = {
        "title": "Leave",
        "metadata": {"n": 1, "deep": {"x": [None, True, 1.5]}, "ü": "\u05d0"},
        "tags": ("a", "b"),
        "department": "hr",
        "mime_type": "text/markdown",
        "language": "de",
        "event_time": event,
    }
    written = shelf.add("hr/leave.md", "thirty\ndays", **given)
    record = shelf.store.documents.get(shelf.scope, written.document_id)
    assert {name: getattr(record, name) for name in given} == given
    assert (record.source, record.origin, record.collection) == ("hr/leave.md", "manual", "shelf")
    assert (record.version, record.chunk_count, record.content) == (1, 2, "thirty\ndays")


def test_another_tenant_sees_none_of_it(shelf: Shelf):
    other = second_tenant(shelf.store)
    written = shelf.add("a", "one", department="d")
    documents = shelf.store.documents
    with pytest.raises(NotFoundError):
        documents.get(other, written.document_id)
    with pytest.raises(NotFoundError):
        documents.resolve(other, "a")
    with pytest.raises(NotFoundError):
        documents.resolve(other, written.document_id)
    assert documents.list_page(other, shelf.collection) == []
    assert documents.stamps(other, shelf.source, ["a"]) == {}
    assert list(documents.current_uris(other, shelf.source)) == []
    assert documents.sources_named(other, shelf.collection, ["manual"], "manual") == []
    assert documents.held_twice(other, shelf.source) == []


def test_names_resolve_to_one_document_or_say_why_not(shelf: Shelf):
    documents = shelf.store.documents
    first = shelf.add("a.txt", "one").document_id
    assert documents.resolve(shelf.scope, "a.txt") == documents.resolve(shelf.scope, str(first)) == first
    other = Shelf(shelf.store, name="other")
    second = other.add("a.txt", "two").document_id
    with pytest.raises(UsageError, match=f"{second} in the collection 'other', {first} in the collection 'shelf'"):
        documents.resolve(shelf.scope, "a.txt")
    other.store.writer.close(shelf.scope, [second])
    assert documents.resolve(shelf.scope, "a.txt") == first
    shelf.store.writer.close(shelf.scope, [first])
    shelf.store.erasure.erase(shelf.scope, [second], actor="x")
    # Closed, but not erased: it can still be named, for instance to erase it.
    assert documents.resolve(shelf.scope, "a.txt") == first


def test_a_source_of_digits_is_one(shelf: Shelf):
    documents = shelf.store.documents
    first = shelf.add("a.txt", "one").document_id
    year = shelf.add("2024", "two").document_id
    assert documents.resolve(shelf.scope, "2024") == year
    assert documents.resolve(shelf.scope, "2024", collections=["shelf"]) == year
    other = shelf.add(str(first), "three").document_id
    with pytest.raises(UsageError, match="the one with that id by its source, another one by its own id"):
        documents.resolve(shelf.scope, str(first))
    assert [documents.resolve(shelf.scope, one) for one in (first, "a.txt", other)] == [first, first, other]


def test_pages_cover_everything_once(shelf: Shelf):
    shelf.write(*(shelf.prepared(f"d{number:02}", "x", department="ab"[number % 2]) for number in range(23)))
    seen, after = [], 0
    while page := shelf.store.documents.list_page(shelf.scope, shelf.collection, after=after, limit=10):
        seen += [one.source for one in page]
        after = page[-1].document_id
    assert sorted(seen) == [f"d{number:02}" for number in range(23)]
    only = shelf.store.documents.list_page(shelf.scope, shelf.collection, department="b", limit=100)
    assert {one.department for one in only} == {"b"} and len(only) == 11


def test_uris_below_a_prefix_are_taken_literally(shelf: Shelf, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("recollect.store.documents._PAGE", 2)
    uris = ["a%/1", "a%/2", "a%/3", "ab/1", "a_/1", "z"]
    shelf.write(*(shelf.prepared(uri, "x") for uri in uris))
    found = [uri for uri, _ in shelf.store.documents.current_uris(shelf.scope, shelf.source, prefix="a%/")]
    assert found == ["a%/1", "a%/2", "a%/3"]
    assert len(list(shelf.store.documents.current_uris(shelf.scope, shelf.source))) == len(uris)
