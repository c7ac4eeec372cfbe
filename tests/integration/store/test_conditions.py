"""Every filter selects in SQL what a plain reading of it selects in Python."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hostile import EFFORT
from recollect import Document, RetrievalOptions
from recollect.errors import UsageError
from recollect.model import Scope
from recollect.model.filter import And, Condition, Not, Or, parse_filter
from recollect.store.filters import DocumentFilter, matching_versions

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
DOCUMENTS = [
    Document(
        content="one",
        source="hr/a.md",
        title="Leave",
        department="hr",
        language="en",
        tags=("policy", "old"),
        metadata={"year": 2024, "owner": "Ann", "deep": {"x": 1, "y": [1, "b"]}, "flag": True},
        event_time=NOON,
    ),
    Document(
        content="two",
        source="it/b.md",
        title="Reset",
        department="it",
        language="de",
        tags=("policy",),
        metadata={"year": 2026, "owner": None, "deep": {"x": "1"}, "list": ["a", 2]},
        event_time=NOON + timedelta(days=1),
    ),
    Document(content="three", source="c.md", title="Plain", metadata={"year": "2026", "owner": "ann", "flag": False}),
    Document(
        content="four",
        source="d'; DROP TABLE documents; --",
        title="Ünïcode",
        tags=("a,b",),
        department="hr",
        metadata={"year": 2025.5, "list": [], "deep": {}, "owner": "Ann % _ \\"},
    ),
]

FIELDS = [
    *("department", "language", "source", "title", "tags", "event_time", "source_type", "metadata.year"),
    *("metadata.owner", "metadata.deep.x", "metadata.deep.y", "metadata.flag", "metadata.list", "metadata.gone"),
]
TEXTS = st.sampled_from(
    [
        *("hr", "it", "en", "de", "policy", "a,b", "Ann", "ann", "1", "2026", "hr/a.md", "e", "%", "_", ""),
        *("d'; DROP TABLE documents; --", "manual", "Ünïcode", "b"),
    ]
)
NUMBERS = st.sampled_from([0, 1, 2, 2024, 2025, 2025.5, 2026, -3, 1e300])
JSON = st.one_of(TEXTS, NUMBERS, st.booleans(), st.none(), st.sampled_from([["a", 2], {}, [], [1, "b"]]))
MOMENTS = st.sampled_from([NOON.isoformat(), "2026-01-02T12:00:00Z", "2026-01-01T23:00:00", "1999-01-01"])


@st.composite
def conditions(draw):
    field = draw(st.sampled_from(FIELDS))
    ordered = field.startswith("metadata") or field in {"event_time", "source", "title"}
    operators = ["eq", "ne", "in", "nin", "exists"] + (["gt", "gte", "lt", "lte"] if ordered else [])
    operator = draw(st.sampled_from(operators + ([] if field == "event_time" else ["contains"])))
    if field == "event_time":
        values = MOMENTS
    elif not field.startswith("metadata"):
        values = TEXTS
    else:
        values = st.one_of(TEXTS, NUMBERS) if operator in {"gt", "gte", "lt", "lte"} else JSON
    if operator == "exists":
        value = draw(st.booleans())
    elif operator in {"in", "nin"}:
        value = draw(st.lists(values, max_size=3))
    else:
        value = draw(values)
    return {field: {operator: value}}


FILTERS = st.recursive(
    conditions(),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"and": parts}),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"or": parts}),
        inner.map(lambda part: {"not": part}),
    ),
    max_leaves=6,
)

MISSING = object()


def found_in(document: Document, condition: Condition) -> object:
    if condition.field != "metadata":
        # The collection's language is that of documents which name none.
        language = document.language or "en"
        named = {"source_type": "manual", "event_time": document.event_time, "language": language}
        value = named[condition.field] if condition.field in named else getattr(document, condition.field)
        return MISSING if value is None else value
    value: object = document.metadata
    for key in condition.path:
        if not isinstance(value, Mapping) or key not in value:
            return MISSING
        value = value[key]
    return value


def same(one: object, other: object) -> bool:
    """Equality as JSON has it: true is not 1."""
    return json.dumps(one, sort_keys=True, default=str) == json.dumps(other, sort_keys=True, default=str) or (
        isinstance(one, int | float)
        and isinstance(other, int | float)
        and not isinstance(one, bool)
        and not isinstance(other, bool)
        and one == other
    )


def holds(document: Document, condition: Condition) -> bool:  # noqa: C901 - the reading in full is the point
    value, wanted = found_in(document, condition), condition.value
    if condition.operator in {"ne", "nin"}:
        opposite = {"ne": "eq", "nin": "in"}[condition.operator]
        return not holds(document, Condition(condition.field, opposite, wanted, condition.path))
    if condition.field == "tags":
        if condition.operator == "exists":
            return bool(document.tags) == wanted
        if condition.operator == "in":
            return any(item in document.tags for item in wanted)
        return wanted in document.tags
    if condition.operator == "exists":
        return (value is not MISSING) == wanted
    if condition.operator == "in":
        return value is not MISSING and any(same(value, item) for item in wanted)
    if value is MISSING:
        return False
    if condition.operator == "eq":
        return same(value, wanted)
    if condition.operator == "contains":
        if isinstance(value, str):
            return isinstance(wanted, str) and wanted in value
        return isinstance(value, list) and any(contains(item, wanted) for item in value)
    if isinstance(value, bool) or isinstance(value, str) != isinstance(wanted, str):
        return False
    if not isinstance(value, int | float | str | datetime):
        return False
    sign = condition.operator
    return {"gt": value > wanted, "gte": value >= wanted, "lt": value < wanted, "lte": value <= wanted}[sign]


def contains(item: object, wanted: object) -> bool:
    """As PostgreSQL contains: an element of a list that is itself a list or an object may hold more."""
    if isinstance(item, list) and isinstance(wanted, list):
        return all(any(contains(one, part) for one in item) for part in wanted)
    if isinstance(item, dict) and isinstance(wanted, dict):
        return all(key in item and contains(item[key], part) for key, part in wanted.items())
    return same(item, wanted)


def selects(document: Document, wanted) -> bool:
    match wanted:
        case And(parts):
            return all(selects(document, part) for part in parts)
        case Or(parts):
            return any(selects(document, part) for part in parts)
        case Not(part):
            return not selects(document, part)
        case _:
            return holds(document, wanted)


@pytest.fixture
def shelf(pipeline):
    for document in DOCUMENTS:
        pipeline.ingest(document)
    place = pipeline.store.collections.get(Scope(), "default")
    records = pipeline.store.documents.list_page(Scope(), place)
    ids = {record.source: record.document_id for record in records}

    def run(given) -> set[str]:
        where = DocumentFilter(where=parse_filter(given))
        found = matching_versions(pipeline.store.database, Scope(), place.collection_id, where).version_ids
        with pipeline.store.database.transaction(Scope()) as connection:
            sources = connection.execute("SELECT uri FROM document_versions WHERE version_id = ANY (%s)", (found,))
            return {row[0] for row in sources}

    run.ids = ids
    run.pipeline = pipeline
    return run


@settings(max_examples=150 * EFFORT, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(wanted=FILTERS)
def test_sql_selects_what_python_selects(shelf, wanted):
    expected = {document.source for document in DOCUMENTS if selects(document, parse_filter(wanted))}
    assert shelf(wanted) == expected


def test_document_ids_and_several_entries(shelf):
    one, two = shelf.ids["hr/a.md"], shelf.ids["it/b.md"]
    assert shelf({"document_id": one}) == {"hr/a.md"}
    assert shelf({"document_id": {"in": [one, two]}, "department": "it"}) == {"it/b.md"}
    assert shelf({"document_id": {"gt": one}, "metadata.year": {"gte": 2025, "lt": 2026.5}}) == {
        "it/b.md",
        "d'; DROP TABLE documents; --",
    }
    assert shelf({}) == {document.source for document in DOCUMENTS}


def test_a_search_takes_filters(shelf):
    options = RetrievalOptions(filters={"metadata.owner": {"contains": "nn"}, "not": {"department": "hr"}})
    assert [result.source for result in shelf.pipeline.retrieve("three", options)] == ["c.md"]


@pytest.mark.parametrize(
    ("wanted", "named"),
    [
        ({"departement": "hr"}, "'departement'.*'department'"),
        ({"metadata": "x"}, "'metadata'"),
        ({"metadata.": "x"}, "metadata"),
        ({"department": {"like": "h%", "eq": "hr"}}, "'department' has no operator 'like'"),
        ({"department": {"eq": 3}}, "'department': 'eq' takes a text, not 3"),
        ({"tags": {"gt": "a"}}, "'tags' has no order"),
        ({"tags": ["a", "b"]}, "'tags': 'eq' takes a text.*use 'in'"),
        ({"metadata.year": {"$gte": 3}}, r"'metadata.year' has no operator '\$gte'.*Did you mean 'gte'"),
        ({"metadata.year": {"above": 3}}, "'metadata.year' has no operator 'above'.*An object to compare with"),
        ({"metadata.year": {}}, "'metadata.year' has an empty condition"),
        ({"metadata": {"year": 3}}, "Did you mean 'metadata.<key>'"),
        ({"OR": [{"title": "x"}]}, "no field 'OR'.*Did you mean 'or'"),
        ({"document_id": "7"}, "'document_id'.*whole numbers"),
        ({"metadata.year": {"gt": True}}, "'gt' takes a number"),
        ({"metadata.year": {"in": 3}}, "'in' takes a list"),
        ({"metadata.year": {"exists": "yes"}}, "'exists' takes true or false"),
        ({"event_time": {"gt": "yesterday"}}, "'event_time'.*a time such as"),
        ({"or": []}, "'or' takes a list"),
        ({"not": "x"}, "not must be an object"),
        ({"metadata.a": {"eq": float("nan")}}, "finite"),
        ({"title": "a\0b"}, "NUL"),
    ],
)
def test_a_bad_filter_names_the_field_and_the_operator(wanted, named):
    with pytest.raises(UsageError, match=named):
        parse_filter(wanted)


def test_documents_that_name_no_language_are_in_their_collections(shelf):
    assert len(shelf({"language": "de"})) == 1
    assert len(shelf({"language": "en"})) == len(DOCUMENTS) - 1
    assert shelf({"language": {"exists": False}}) == set()


def test_an_object_is_compared_as_one_where_that_is_said(shelf):
    assert shelf({"metadata.deep": {"eq": {"x": "1"}}}) == {"it/b.md"}


def test_a_filter_without_end_is_refused():
    deep: dict = {"department": "hr"}
    for _ in range(100):
        deep = {"not": deep}
    with pytest.raises(UsageError, match="levels deep"):
        parse_filter(deep)
    with pytest.raises(UsageError, match="more than 1000 conditions"):
        parse_filter({"or": [{"department": str(number)} for number in range(1001)]})
