"""Whatever settings and filters say, they are read or refused with recollect's own error."""

from __future__ import annotations

from types import UnionType
from typing import Any, get_args

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

import hostile
from recollect import RAGConfig, RecollectError
from recollect.model.filter import describe, parse_filter

FUZZED = settings(max_examples=60 * hostile.EFFORT, suppress_health_check=list(HealthCheck), deadline=None)


def tables_of(annotation: object) -> list[type[BaseModel]]:
    """The models that a field may hold."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [one for inner in get_args(annotation) for one in tables_of(inner)] if annotation is not UnionType else []


def table(model: type[BaseModel]) -> st.SearchStrategy[dict[str, Any]]:
    """Some keys of a table with some values, sometimes one that it does not have."""
    known = {
        name: st.one_of(*map(table, tables_of(field.annotation)), hostile.junk)
        for name, field in model.model_fields.items()
    }
    key = st.sampled_from(sorted(known))
    one = key.flatmap(lambda name: known[name].map(lambda value: {name: value}))
    unknown = st.dictionaries(hostile.texts, hostile.junk, max_size=1)
    return st.lists(st.one_of(one, one, one, unknown), max_size=4).map(
        lambda parts: {name: value for part in parts for name, value in part.items()}
    )


@FUZZED
@given(overrides=table(RAGConfig))
def test_settings_are_taken_or_refused(overrides):
    try:
        RAGConfig.load(**{str(name): value for name, value in overrides.items()})
    except RecollectError as error:
        assert str(error).strip()


@FUZZED
@given(text=st.one_of(hostile.texts, st.text(max_size=200)))
def test_a_file_of_settings_is_read_or_refused(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("settings") / "recollect.toml"
    path.write_bytes(text.encode("utf-8", "surrogateescape" if hostile_bytes(text) else "replace"))
    try:
        RAGConfig.load(path)
    except RecollectError as error:
        assert str(path.name) in str(error)


def hostile_bytes(text: str) -> bool:
    """Whether lone surrogates of a text all stand for bytes."""
    return all(not "\ud800" <= letter <= "\udfff" or "\udc80" <= letter <= "\udcff" for letter in text)


FIELDS = ["department", "source", "tags", "metadata.a", "event_time", "id", "title", "and", "or", "not"]
OPERATORS = ["eq", "ne", "in", "gt", "gte", "lt", "lte", "exists", "contains", "prefix", "between"]
CONDITIONS = st.recursive(
    hostile.junk,
    lambda inner: st.one_of(
        st.dictionaries(st.sampled_from(FIELDS + OPERATORS), inner, max_size=3), st.lists(inner, max_size=3)
    ),
    max_leaves=8,
)


@FUZZED
@given(given_filter=st.dictionaries(st.one_of(st.sampled_from(FIELDS), hostile.texts), CONDITIONS, max_size=3))
def test_a_filter_is_read_or_refused(given_filter):
    try:
        read = parse_filter(given_filter)
    except RecollectError as error:
        assert str(error).strip()
    else:
        assert describe(read)
