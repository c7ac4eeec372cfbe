"""Filters: every kind, together, and against hostile values."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from shelf import Shelf

from hostile import EFFORT
from recollect.model import RetrievalOptions, Scope
from recollect.model.filter import describe, parse_filter
from recollect.store.filters import (
    DocumentFilter,
    MatchingVersions,
    MatchingVersionsReader,
    failed_conditions,
    matching_versions,
    removed_by_condition,
)
from recollect.store.store import Store

HOSTILE = ["'", "'; DROP TABLE documents; --", "%s", "%(tenant_id)s", "\\", '"', "{}", "$1", "\u05d0", "a\nb"]


@pytest.fixture
def shelf(store: Store) -> Shelf:
    return Shelf(store)


def matches(shelf: Shelf, scope: Scope | None = None, **conditions: Any) -> set[str]:
    found = matching_versions(
        shelf.store.database, scope or shelf.scope, shelf.collection.collection_id, DocumentFilter(**conditions)
    )
    names = shelf.rows("SELECT uri FROM document_versions WHERE version_id = ANY (%(ids)s)", ids=found.version_ids)
    assert found.chunk_count == len(names)
    return {row[0] for row in names}


def test_hostile_values_are_values(shelf: Shelf):
    shelf.add("plain", "x", department="d", tags=("t",), metadata={"k": "v"})
    for value in HOSTILE:
        shelf.add(value, "x", department=value, tags=(value,), metadata={value: value})
    for value in HOSTILE:
        for conditions in (
            {"department": (value,)},
            {"tags": (value,)},
            {"source": (value,)},
            {"metadata": {value: value}},
        ):
            assert matches(shelf, **conditions) == {value}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text("ab\u05d0%'\"", max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("xy"), inner, max_size=2),
    max_leaves=4,
)


@settings(max_examples=12 * EFFORT, deadline=None, suppress_health_check=list(HealthCheck))
@given(stored=JSON, asked=JSON)
def test_equal_means_what_it_means_in_python(store: Store, stored: Any, asked: Any):
    def same(a: Any, b: Any) -> bool:
        if isinstance(a, bool) or isinstance(b, bool):
            return a is b
        if isinstance(a, dict) and isinstance(b, dict):
            return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
        if isinstance(a, list) and isinstance(b, list):
            return len(a) == len(b) and all(map(same, a, b))
        return a == b

    shelf = Shelf(store)
    shelf.write(shelf.prepared("one", "x", metadata={"k": stored}), force=True)
    assert matches(shelf, metadata={"k": asked}) == ({"one"} if same(stored, asked) else set())


def test_every_condition_is_counted_by_itself(shelf: Shelf):
    shelf.add("a", "x", department="hr", tags=("new", "red"), metadata={"year": 2024})
    shelf.add("b", "x", department="hr", tags=("red",), metadata={"year": 2023})
    shelf.add("c", "x", department="it", metadata={"year": 2024})
    shelf.add("d", "x")
    asked = DocumentFilter(
        department=("hr",),
        source=("manual", "nowhere"),
        tags=("new", "red"),
        metadata={"year": 2024},
        where=parse_filter({"and": [{"department": {"ne": "hr"}}, {"or": [{"source": "a"}, {"language": "de"}]}]}),
    )
    assert removed(shelf, asked) == [
        ("department = 'hr'", 2),
        ("source in ('manual', 'nowhere')", 0),
        ("tags contains 'new'", 3),
        ("tags contains 'red'", 2),
        ("metadata.year = 2024", 2),
        ("department ≠ 'hr'", 2),
        ("source = 'a' or language = 'de'", 3),
    ]
    assert removed(shelf, DocumentFilter()) == []
    # An earlier version of a document is no document that a filter removes.
    shelf.add("d", "another text", department="hr")
    assert removed(shelf, DocumentFilter(department=("hr",))) == [("department = 'hr'", 1)]


def removed(shelf: Shelf, asked: DocumentFilter) -> list[tuple[str, int]]:
    return removed_by_condition(shelf.store.database, shelf.scope, shelf.collection.collection_id, asked)


def test_counting_takes_hostile_values_as_values(shelf: Shelf):
    for value in HOSTILE:
        shelf.add(value, "x", department=value, tags=(value,), metadata={value: value})
    for value in HOSTILE:
        asked = DocumentFilter(
            department=(value,), source=(value,), tags=(value,), metadata={value: value},
            where=parse_filter({"title": "x"}),
        )  # fmt: skip
        assert [count for _, count in removed(shelf, asked)][:4] == [len(HOSTILE) - 1] * 4


def test_a_failed_condition_is_named_for_one_document(shelf: Shelf):
    shelf.add("a", "x", department="hr", tags=("red",))
    shelf.add("b", "x", department="it")
    ids = dict(shelf.rows("SELECT uri, version_id FROM document_versions"))
    asked = DocumentFilter(department=("hr",), tags=("red",), where=parse_filter({"not": {"department": "it"}}))

    def failed(uri: str) -> list[str]:
        found = failed_conditions(
            shelf.store.database, shelf.scope, shelf.collection.collection_id, asked, version_id=ids[uri]
        )
        return [describe(condition) for condition in found]

    assert failed("a") == []
    assert failed("b") == ["department = 'hr'", "tags contains 'red'", "not (department = 'it')"]


def test_what_a_filter_matches_is_kept_until_the_collection_changes(shelf: Shelf):
    shelf.add("one", "x", metadata={"k": 1}, tags=("t",))
    reader = MatchingVersionsReader(shelf.store.database)

    def found(**options: Any) -> MatchingVersions | None:
        place = shelf.store.collections.get(shelf.scope, shelf.collection.name)
        return reader.read(shelf.scope, place, RetrievalOptions(**options), unexpired=False)

    def count(**options: Any) -> int:
        matching = found(**options)
        return -1 if matching is None else len(matching.version_ids)

    assert count() == -1
    first = found(metadata_filters={"k": 1})
    assert found(metadata_filters={"k": 1}) is first
    # Equal in Python, and others in JSON.
    assert [count(metadata_filters={"k": value}) for value in (1, True, 1.0, "1")] == [1, 0, 1, 0]
    assert [count(filters={"tags": {"contains": tag}}) for tag in ("t", "u")] == [1, 0]
    assert [count(tags=("t",)), count(department=("t",)), count(tags=("t",))] == [1, 0, 1]
    # A folder that is read takes over what came from folders inside it, and says so of no collection.
    assert found(source=("one",)) is not found(source=("one",))
    shelf.add("two", "y", metadata={"k": 1})
    assert count(metadata_filters={"k": 1}) == 2
    reader.clear()
    assert found(metadata_filters={"k": 1}) is not found(metadata_filters={"k": 1}, tags=("t",))


def test_no_more_is_kept_of_filters_than_fits(shelf: Shelf):
    for number in range(3):
        shelf.add(f"{number}", "x", metadata={"k": number, "all": True})
    place = shelf.store.collections.get(shelf.scope, shelf.collection.name)
    reader = MatchingVersionsReader(shelf.store.database, most=3)

    def found(**wanted: Any) -> MatchingVersions | None:
        return reader.read(shelf.scope, place, RetrievalOptions(metadata_filters=wanted), unexpired=False)

    assert found(all=True) is not found(all=True)
    first = found(k=1)
    assert found(k=1) is first
    found(k=2)
    assert found(k=1) is not first
