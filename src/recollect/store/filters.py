"""Filters on documents, as SQL: which document versions a search may return."""

from __future__ import annotations

import marshal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock
from typing import Any, LiteralString, assert_never

from cachetools import LRUCache
from psycopg.types.json import Jsonb

from recollect.forking import renew_in_children
from recollect.model import RetrievalOptions, Scope
from recollect.model.collection import Collection
from recollect.model.filter import (
    EVERY_FIELD,
    And,
    Condition,
    Filter,
    Not,
    Operator,
    Or,
    describe,
    parse_filter,
    top_level,
)
from recollect.model.search_options import TimeLimits, time_limits
from recollect.model.source import ends
from recollect.model.time import DatedRange
from recollect.store.database import Database, rows
from recollect.store.sql import queries

_SQL = queries("filters")


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFilter:
    """Conditions that a document must all meet; an empty one holds for every document.

    Attributes:
        department: Its department is one of these.
        source: Its URI, or the name of the source it came from, is one of these.
        tags: It carries all of these.
        metadata: Its metadata has these values.
        where: A filter in the full language.
        times: When it happened, and when it became known.
    """

    department: tuple[str, ...] = ()
    source: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    where: Filter | None = None
    times: TimeLimits = field(default_factory=TimeLimits)

    def conditions(self) -> list[Filter]:
        """Everything that must hold, one by one; ``source`` stands for the origin's name too."""
        return [
            *([_one_of("department", self.department)] if self.department else []),
            *([_one_of("source", self.source)] if self.source else []),
            *(Condition("tags", "contains", tag) for tag in self.tags),
            *(Condition("metadata", "eq", value, (key,)) for key, value in self.metadata.items()),
            *(top_level(self.where) if self.where is not None else []),
            *_time_conditions(self.times),
        ]

    def __bool__(self) -> bool:
        return bool(self.department or self.source or self.tags or self.metadata or self.where or self.times)


def document_filter_of(options: RetrievalOptions, as_of: datetime | None = None) -> DocumentFilter:
    """The filter that the options of a search ask for.

    Args:
        options: Of the search.
        as_of: Its moment, which relative times count back from; None: the present.

    Raises:
        UsageError: ``options.filters`` is no filter, or a time is none.
    """
    return DocumentFilter(
        department=options.department,
        source=options.source,
        tags=options.tags,
        metadata=options.metadata_filters,
        where=parse_filter(options.filters) if options.filters else None,
        times=time_limits(options, as_of),
    )


@dataclass(frozen=True, slots=True)
class MatchingVersions:
    """The document versions that pass a filter, and how many chunks they have together."""

    version_ids: list[int]
    chunk_count: int


def _time_conditions(times: TimeLimits) -> list[Filter]:
    # Two stretches of time meet where each begins before the other ends; an event without an end is an instant.
    return [*_between("event_end", "event_time", times.event), *_between("known_from", "known_from", times.ingested)]


def _between(last: str, first: str, limits: DatedRange) -> list[Filter]:
    after = [] if limits.start is None else [Condition(last, "gte", limits.start)]
    before = [] if limits.end is None else [Condition(first, "lt", limits.end)]
    return [*after, *before]


def _one_of(field: str, names: Sequence[str]) -> Condition:
    return Condition(field, "eq", names[0]) if len(names) == 1 else Condition(field, "in", tuple(names))


_CONDITIONS: dict[str, LiteralString] = {
    "department": "v.department = ANY (%(department)s)",
    # The documents first, each way by its index: an OR of both would look at every version.
    "source": (
        "v.document_id = ANY (ARRAY("
        "SELECT d.document_id FROM documents d WHERE d.tenant_id = %(tenant_id)s "
        "AND d.collection_id = %(collection_id)s AND d.uri = ANY (%(source)s) UNION ALL "
        "SELECT d.document_id FROM documents d JOIN sources s USING (tenant_id, source_id) "
        "WHERE d.tenant_id = %(tenant_id)s AND s.collection_id = %(collection_id)s AND s.name = ANY (%(source)s) "
        # As documents are called whose path another root has too.
        "UNION ALL SELECT d.document_id FROM documents d JOIN sources s USING (tenant_id, source_id) "
        "JOIN unnest(%(source)s::text[]) n "
        "ON right('/' || ltrim(s.name, '/') || '/' || d.uri, length(n) + 1) = '/' || n "
        "WHERE d.tenant_id = %(tenant_id)s AND d.collection_id = %(collection_id)s AND d.uri = ANY (%(ends)s::text[])))"
    ),
    "tags": "v.tags @> %(tags)s",
    # Containment finds its rows by the index, but {"a": {}} is contained in any object: equal is what was asked for.
    "metadata": (
        "v.metadata @> %(metadata)s AND NOT EXISTS (SELECT FROM jsonb_each(%(metadata)s) AS wanted "
        "WHERE v.metadata -> wanted.key IS DISTINCT FROM wanted.value)"
    ),
}


def matching_versions(
    database: Database,
    scope: Scope,
    collection_id: int,
    document_filter: DocumentFilter,
    *,
    access_ids: Sequence[int] | None = None,
    unexpired: bool = False,
) -> MatchingVersions:
    """Resolve a filter to document versions, in SQL, before either retriever runs.

    Filters concern documents, of which there are far fewer than chunks; resolving them first tells how selective
    they are, so that a rare match is searched exactly and never lost to an approximate index.

    Args:
        database: The store's connections.
        scope: Whose documents, and as of when.
        collection_id: Where they are.
        document_filter: What they must meet.
        access_ids: Only versions of these access lists (`Collection.access_ids`); None: all.
        unexpired: Leave out what has expired and could not be closed; of the past that goes without saying.
    """
    params: dict[str, Any] = {
        "tenant_id": scope.tenant_id,
        "collection_id": collection_id,
        "as_of": scope.as_of,
        "department": list(document_filter.department),
        "source": list(document_filter.source),
        "ends": ends(document_filter.source),
        "tags": list(document_filter.tags),
        "metadata": Jsonb(dict(document_filter.metadata)),
    }
    given = [condition for name, condition in _CONDITIONS.items() if getattr(document_filter, name)]
    known = _SQL["known_now"] if scope.as_of is None else _SQL["known_as_of"]
    if unexpired and scope.as_of is None:
        given.append(_SQL["unexpired"])
    if access_ids is not None:
        given.append(_SQL["readable"])
        params["access_ids"] = list(access_ids)
    builder = ConditionBuilder()
    if document_filter.where is not None:
        given.append(builder.build(document_filter.where))
    given += [builder.build(condition) for condition in _time_conditions(document_filter.times)]
    params |= builder.params
    query = " AND ".join([_SQL["matching_versions"], known, *given])
    with database.single_reads(scope) as connection:
        ids, chunk_count = rows(connection, query, params, prepare=False)[0]
    return MatchingVersions(ids or [], int(chunk_count or 0))


# Versions of all filters together that are kept, about 40 bytes each.
_MOST_VERSIONS = 500_000


class MatchingVersionsReader:
    """Resolves the filters of searches, and keeps what they match while a collection stays what it is.

    Every change of what a filter reads gives a collection another revision, so nothing is ever invalidated. Only a
    document's source may move below its folder's without one: what is filtered by it is read every time. Safe to share
    between threads.

    Args:
        database: The store's connections.
        most: Versions of all filters together that are kept; those of the filters that were asked for last.
    """

    def __init__(self, database: Database, *, most: int = _MOST_VERSIONS) -> None:
        self._database = database
        self._most = most
        self._kept: LRUCache[tuple[object, ...], MatchingVersions] = LRUCache(most, getsizeof=_size)
        self._lock = Lock()
        renew_in_children(self)

    def renew_in_child(self) -> None:
        """In the child of a fork: nobody releases the lock that another thread held."""
        self._lock = Lock()

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._kept.clear()

    def read(
        self, scope: Scope, collection: Collection, options: RetrievalOptions, *, unexpired: bool
    ) -> MatchingVersions | None:
        """The versions that a search may return, as `matching_versions` gives them; None: all of the collection's.

        Args:
            scope: Whose documents, and as of when.
            collection: Where they are, as the caller sees it.
            options: Of the search.
            unexpired: See `matching_versions`.

        Raises:
            UsageError: ``options.filters`` is no filter, or a time is none.
        """
        if scope.as_of is None and not unexpired and not _confines(options):
            return None
        key = None if unexpired or scope.as_of is not None else _key(collection, options)
        if key is not None:
            with self._lock:
                known = self._kept.get(key)
            if known is not None:
                return known
        document_filter = document_filter_of(options, scope.as_of)
        # What was known at a moment in the past is found by its versions too.
        if not document_filter and scope.as_of is None and not unexpired:
            return None
        found = matching_versions(
            self._database,
            scope,
            collection.collection_id,
            document_filter,
            access_ids=collection.access_ids,
            unexpired=unexpired,
        )
        # A replica may have less than what the collection was when it was looked up.
        if key is not None and self._database.replica is None and _size(found) <= self._most:
            with self._lock:
                self._kept[key] = found
        return found


def _size(found: MatchingVersions) -> int:
    return len(found.version_ids) + 1


def _confines(options: RetrievalOptions) -> bool:
    return bool(
        options.metadata_filters
        or options.filters
        or options.department
        or options.source
        or options.tags
        or options.event_time_range
        or options.ingestion_time_range
        or options.event_window
    )


def _key(collection: Collection, options: RetrievalOptions) -> tuple[object, ...] | None:
    """What a filter's versions are kept by; None: they are not."""
    if collection.hidden or options.source or options.event_window is not None:
        return None
    conditions: Any = options.department, options.tags, dict(options.metadata_filters), options.filters
    try:
        # Equal only of equal values of Python's own types, each of which says its own; of others nothing is kept.
        given = marshal.dumps(conditions, 2)
        times = options.event_time_range, options.ingestion_time_range
        hash(times)
    except (TypeError, ValueError):
        return None
    if b"source" in given:
        return None
    return (
        collection.tenant_id,
        collection.collection_id,
        collection.revision_id,
        collection.access_ids,
        given,
        times,
    )


def removed_by_condition(
    database: Database,
    scope: Scope,
    collection_id: int,
    document_filter: DocumentFilter,
    *,
    access_ids: Sequence[int] | None = None,
) -> list[tuple[str, int]]:
    """Each condition of a filter in words, and how many documents it would remove by itself.

    Args:
        database: The store's connections.
        scope: Whose documents, and as of when.
        collection_id: Where they are.
        document_filter: Taken apart into what must hold: each simple option, and each part of an ``and``.
        access_ids: Count only documents of these access lists (`Collection.access_ids`); None: all.

    Returns:
        In the order given. A document may fail several conditions, so the counts can add up to more than the filter
        removes as a whole.
    """
    return [
        (describe(condition), removed)
        for condition, (removed, _) in zip(
            document_filter.conditions(),
            _judged(database, scope, collection_id, document_filter, None, access_ids),
            strict=True,
        )
    ]


def failed_conditions(
    database: Database, scope: Scope, collection_id: int, document_filter: DocumentFilter, *, version_id: int
) -> list[Filter]:
    """The conditions of a filter that one document version does not meet, in the order given."""
    judged = _judged(database, scope, collection_id, document_filter, version_id)
    return [
        condition
        for condition, (removed, looked_at) in zip(document_filter.conditions(), judged, strict=True)
        if removed and looked_at
    ]


def version_values(database: Database, scope: Scope, collection_id: int, version_id: int) -> dict[str, Any]:
    """The value of every field of `EVERY_FIELD` that one document version has, by name."""
    columns: list[LiteralString] = [field.column for field in EVERY_FIELD.values()]
    params = {"tenant_id": scope.tenant_id, "collection_id": collection_id, "version_id": version_id}
    with database.transaction(scope) as connection:
        found = rows(connection, f"SELECT {', '.join(columns)} {_SQL['documents']}", params)
    return dict(zip(EVERY_FIELD, found[0], strict=True)) if found else {}


def _judged(
    database: Database,
    scope: Scope,
    collection_id: int,
    document_filter: DocumentFilter,
    version_id: int | None,
    access_ids: Sequence[int] | None = None,
) -> list[tuple[int, int]]:
    """For each condition, how many documents fail it, and of how many."""
    conditions = document_filter.conditions()
    if not conditions:
        return []
    builder = ConditionBuilder()
    simple_sources = bool(document_filter.source)
    built: list[LiteralString] = []
    for place, condition in enumerate(conditions):
        # The simple option means more than the field of that name.
        by_origin = simple_sources and place == bool(document_filter.department)
        built.append(_CONDITIONS["source"] if by_origin else builder.build(condition))
    counts: list[LiteralString] = [f"count(*) FILTER (WHERE ({condition}) IS NOT TRUE)" for condition in built]
    known = _SQL["known_now"] if scope.as_of is None else _SQL["known_as_of"]
    query = f"SELECT count(*), {', '.join(counts)} {_SQL['documents']} AND {known}"
    if access_ids is not None:
        query = f"{query} AND {_SQL['readable']}"
    params = {
        "access_ids": None if access_ids is None else list(access_ids),
        "tenant_id": scope.tenant_id,
        "collection_id": collection_id,
        "as_of": scope.as_of,
        "source": list(document_filter.source),
        "ends": ends(document_filter.source),
        "version_id": version_id,
        **builder.params,
    }
    with database.transaction(scope) as connection:
        looked_at, *removed = rows(connection, query, params)[0]
    return [(int(count), int(looked_at)) for count in removed]


# Filters as SQL conditions on document versions: only fixed text and parameters, never a given name or value.


_COMPARISONS: dict[str, LiteralString] = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}


class ConditionBuilder:
    """Turns a filter into a condition and its parameters.

    Attributes:
        params: By name, for the placeholders in the conditions built.
    """

    def __init__(self) -> None:
        self.params: dict[str, Any] = {}

    def build(self, given: Filter) -> LiteralString:
        """The condition; true or false for every version, never null."""
        match given:
            case And(parts):
                return _joined([self.build(part) for part in parts], "AND", "true")
            case Or(parts):
                return _joined([self.build(part) for part in parts], "OR", "false")
            case Not(part):
                return f"(NOT {self.build(part)})"
            case Condition():
                return f"coalesce({self._condition(given)}, false)"
            case _:
                assert_never(given)

    def _param(self, value: Any) -> LiteralString:  # noqa: ANN401 - any value that PostgreSQL takes
        name = f"filter_{len(self.params)}"
        self.params[name] = value
        return f"%({name})s"

    def _condition(self, condition: Condition) -> LiteralString:
        positive: dict[Operator, Operator] = {"ne": "eq", "nin": "in"}
        if condition.operator in positive:
            opposite = Condition(condition.field, positive[condition.operator], condition.value, condition.path)
            return f"NOT coalesce({self._condition(opposite)}, false)"
        match EVERY_FIELD[condition.field].kind:
            case "json":
                return self._metadata(condition)
            case "names":
                return self._names(condition)
            case _:
                return self._column(condition)

    def _column(self, condition: Condition) -> LiteralString:
        field, operator, value = EVERY_FIELD[condition.field], condition.operator, condition.value
        column = field.column
        if operator == "exists":
            return f"({column} IS NOT NULL) = {self._param(value)}"
        if operator == "in":
            known = self._param([item for item in value if item is not None])
            return f"({column} = ANY ({known}) OR ({column} IS NULL AND {self._param(None in value)}))"
        if value is None:
            return f"{column} IS NULL"
        if operator == "contains":
            return f"strpos({column}, {self._param(value)}) > 0"
        if operator == "eq":
            return f"{column} = {self._param(value)}"
        # Texts are compared by code point, whatever the database's collation.
        collated: LiteralString = ' COLLATE "C"' if field.kind == "text" else ""
        return f"{column}{collated} {_COMPARISONS[operator]} {self._param(value)}"

    def _names(self, condition: Condition) -> LiteralString:
        column, operator, value = EVERY_FIELD[condition.field].column, condition.operator, condition.value
        if operator == "exists":
            return f"(cardinality({column}) > 0) = {self._param(value)}"
        if operator == "in":
            return f"{column} && {self._param([item for item in value if item is not None])}::text[]"
        if value is None:
            return f"cardinality({column}) = 0"
        return f"{column} @> ARRAY[{self._param(value)}::text]"

    def _metadata(self, condition: Condition) -> LiteralString:
        operator, value = condition.operator, condition.value
        if len(condition.path) == 1:
            found: LiteralString = f"(v.metadata -> {self._param(condition.path[0])}::text)"
        else:
            found = f"(v.metadata #> {self._param(list(condition.path))}::text[])"
        if operator == "exists":
            return f"({found} IS NOT NULL) = {self._param(value)}"
        if operator == "in":
            return f"{found} = ANY ({self._param([Jsonb(item) for item in value])}::jsonb[])"
        if operator == "contains":
            return self._metadata_contains(found, value)
        if operator == "eq":
            return f"{self._indexed(condition)} AND {found} = {self._param(Jsonb(value))}"
        sign = _COMPARISONS[operator]
        if isinstance(value, int | float):
            # As JSON, whose numbers are compared as such: no text is made of each to be read again.
            return f"({found} {sign} {self._param(Jsonb(value))} AND jsonb_typeof({found}) = 'number')"
        return f"(jsonb_typeof({found}) = 'string' AND {found} #>> '{{}}' COLLATE \"C\" {sign} {self._param(value)})"

    def _metadata_contains(self, found: LiteralString, value: object) -> LiteralString:
        contained = f"(jsonb_typeof({found}) = 'array' AND {found} @> jsonb_build_array({self._param(Jsonb(value))}))"
        if not isinstance(value, str):
            return contained
        part_of = f"strpos({found} #>> '{{}}', {self._param(value)}) > 0"
        return f"({contained} OR (jsonb_typeof({found}) = 'string' AND {part_of}))"

    def _indexed(self, condition: Condition) -> LiteralString:
        """Containment, which the index on metadata finds; equality is checked beside it."""
        nested: Any = condition.value
        for key in reversed(condition.path):
            nested = {key: nested}
        # A number in the path may be a position in a list, which containment does not know.
        if any(key.isdecimal() for key in condition.path):
            return "true"
        return f"v.metadata @> {self._param(Jsonb(nested))}"


def _joined(parts: list[LiteralString], word: LiteralString, empty: LiteralString) -> LiteralString:
    return f"({f' {word} '.join(parts)})" if parts else empty
