"""Lists of documents, filtered and sorted: what a page shows is looked up for the page alone.

Which entries a page has is decided by their versions, without a join, and the first page of a filtered list counts as
it goes: all documents are looked at once a page at most. Whoever may not read all of a collection is confined by its
access lists, as searches are, and what is shown of an entry is checked once more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, LiteralString

from recollect.errors import NotFoundError
from recollect.model.document_record import (
    MOST_COUNTED,
    Duplicates,
    ListedDocument,
    Listing,
    ListingPlace,
    ListingQuery,
    ListingSort,
    SameDocument,
)
from recollect.model.principal import Permissions
from recollect.store.database import Database, Repository, rows
from recollect.store.documents import record_of
from recollect.store.filters import ConditionBuilder
from recollect.store.jobs import UNSTORED_STATUSES
from recollect.store.rights import access_params, asker_params, may_read_version
from recollect.store.sql import queries

if TYPE_CHECKING:
    from recollect.model import Scope
    from recollect.model.collection import Collection
    from recollect.model.document_record import DocumentRecord


_SQL = queries("listing")

# What somebody can choose from is what so many of the newest documents have.
_MOST_SAMPLED = 20_000

# What a list is sorted by, and whether the largest comes first.
_KEYS: Mapping[ListingSort, tuple[LiteralString, bool]] = {
    "newest": ("v.document_id", True),
    "oldest": ("v.document_id", False),
    "changed": ("v.known_from", True),
    "title": ('v.title COLLATE "C"', False),
    "longest": ("v.chunk_count", True),
}

# Parameters of the words that are looked for.
_WORDS: tuple[LiteralString, ...] = ("w0", "w1", "w2", "w3", "w4", "w5", "w6", "w7", "w8", "w9")


class ListingRepository(Repository):
    """Lists documents of collections, as their reader sees them (`CollectionRepository.list_all`)."""

    def page(self, scope: Scope, places: Sequence[Collection], query: ListingQuery) -> Listing:
        """A page of a list.

        Args:
            scope: Whose, and who asks.
            places: The collections that are looked through.
            query: Which documents, and in which order.
        """
        found: dict[int, ListedDocument] = {}
        if query.status != "embedded" and not query.of_stored:
            found = {one.record.document_id: one for one in self._unstored(scope, places, query)}
        counted = len(found) if query.place is None else 0
        found = {number: one for number, one in found.items() if _is_beyond(one, query)}
        if query.status in {None, "embedded"}:
            # Behind the others: what is stored between the two looks is among these.
            conditions = _Conditions(self._database, scope, places, query)
            stored, there = self._stored(scope, conditions, query)
            found |= {one.record.document_id: one for one in stored}
            counted += there if _counts(query) else sum(place.document_count for place in places)
        return _page_of(list(found.values()), query, counted)

    def choices(self, scope: Scope, places: Sequence[Collection]) -> dict[str, list[str]]:
        """What documents can be filtered by: ``department``, ``tag``, ``type``, ``metadata`` and ``source``.

        Of the newest documents: for when somebody is about to choose.
        """
        conditions = _Conditions(self._database, scope, places, ListingQuery())
        found: dict[str, list[str]] = {name: [] for name in ("department", "tag", "type", "metadata", "source")}
        with self._database.transaction(scope) as connection:
            query: LiteralString = f"{_SQL['choices']} {conditions.text} {_SQL['choices_of']}"
            for kind, value, _ in rows(connection, query, {**conditions.params, "most": _MOST_SAMPLED}):
                found[kind].append(value)
            # Of a collection that somebody may read a part of, its sources' names may tell of the rest.
            whole = {**conditions.params, "collection_ids": conditions.params["whole"]}
            found["source"] = [row[0] for row in rows(connection, _SQL["source_names"], whole)]
        return found

    def sizes(self, scope: Scope, places: Sequence[Collection]) -> tuple[int, int]:
        """The bytes that texts of collections take, compressed as they are stored, and those of kept originals."""
        conditions = _Conditions(self._database, scope, places, ListingQuery())
        texts, originals = self._database.run(scope, f"{_SQL['sizes']} {conditions.text}", conditions.params)[0]
        return texts, originals

    def unstored_counts(self, scope: Scope) -> dict[int, tuple[int, int]]:
        """By collection, how many documents wait for their job, and whose job failed; a principal's own jobs."""
        statuses = [one for of in UNSTORED_STATUSES.values() for one in of]
        params = {"tenant_id": scope.tenant_id, **asker_params(scope), "statuses": statuses}
        return {row[0]: (row[1], row[2]) for row in self._database.run(scope, _SQL["unstored_counts"], params)}

    def _stored(self, scope: Scope, conditions: _Conditions, query: ListingQuery) -> tuple[list[ListedDocument], int]:
        """The stored documents of a page and one behind it, and how many there are as far as that is counted."""
        key, descending = _KEYS[query.sort]
        backwards = query.place is not None and query.place.backwards
        shown = query.limit + 1
        limit = max(shown, MOST_COUNTED + 1) if _counts(query) else shown
        params = {**conditions.params, **access_params(scope), "shown": shown, "limit": limit}
        beyond: LiteralString = ""
        if query.place is not None:
            at: LiteralString = _SQL["title_at"] if query.sort == "title" else "%(key)s"
            beyond = f"AND ({key}, v.document_id) {'<' if descending != backwards else '>'} ({at}, %(document_id)s)"
            params |= {"key": query.place.key, "document_id": query.place.document_id}
            if query.sort in {"newest", "oldest"}:
                beyond = f"AND v.document_id {'<' if descending != backwards else '>'} %(document_id)s"
        way: LiteralString = "DESC" if descending != backwards else "ASC"
        order: LiteralString = f"ORDER BY {key} {way}, v.document_id {way} LIMIT %(limit)s"
        if query.sort in {"newest", "oldest"}:
            order = f"ORDER BY v.document_id {way} LIMIT %(limit)s"
        text: LiteralString = (
            f"{_SQL['page']} {conditions.text} {beyond} {order} {_SQL['shown']} AND {may_read_version(scope)}"
        )
        found = self._database.run(scope, text, params)
        listed = [_listed(row[:-1], query.sort, owner=scope.principal is None) for row in found]
        return listed, found[0][-1] if found else 0

    def _unstored(self, scope: Scope, places: Sequence[Collection], query: ListingQuery) -> list[ListedDocument]:
        statuses = [one for name, of in UNSTORED_STATUSES.items() if query.status in {None, name} for one in of]
        params = {
            "tenant_id": scope.tenant_id,
            **asker_params(scope),
            "statuses": statuses,
            "collection_ids": [place.collection_id for place in places],
            "origin": query.origin,
            "changed_from": query.changed_from,
            "changed_to": query.changed_to,
            "words": list(query.words),
        }
        found = self._database.run(scope, _SQL["unstored"], params)
        records = [(record_of(row[:-1]), row[-1]) for row in found]
        return [ListedDocument(record=one, key=_key(one, query.sort), job_id=job_id) for one, job_id in records]


class _Conditions:
    """What stored documents of a list meet, as SQL on their versions."""

    def __init__(self, database: Database, scope: Scope, places: Sequence[Collection], query: ListingQuery) -> None:
        whole = [place.collection_id for place in places if place.access_ids is None]
        lists = [(place.collection_id, number) for place in places for number in place.access_ids or ()]
        self.params: dict[str, Any] = {
            "tenant_id": scope.tenant_id,
            "whole": whole,
            "confined": [number for number, _ in lists],
            "lists": [number for _, number in lists],
        }
        self.text: LiteralString = f"AND {_SQL['confined' if lists else 'whole']}"
        for number, word in enumerate(query.words):
            self._add_word(number, word)
        if query.origin is not None:
            self._add(_SQL["of_sources"], source_ids=self._sources(database, scope, places, query.origin))
        if query.mime_types:
            self._add("v.mime_type = ANY (%(mime_types)s::text[])", mime_types=list(query.mime_types))
        if query.changed_from is not None:
            self._add("v.known_from >= %(changed_from)s", changed_from=query.changed_from)
        if query.changed_to is not None:
            self._add("v.known_from < %(changed_to)s", changed_to=query.changed_to)
        if query.grant is not None:
            # Whom else a document is granted to is for the owner of the store to know.
            self._add(_SQL["granted"] if scope.principal is None else "false", grant=query.grant)
        if query.where is not None:
            builder = ConditionBuilder()
            # The language of a document that names none is that of its own collection.
            self._add(builder.build(query.where).replace("%(collection_id)s", "v.collection_id"), **builder.params)

    def _add(self, condition: LiteralString, **params: object) -> None:
        self.text = f"{self.text} AND {condition}"
        self.params |= params

    def _add_word(self, number: int, word: str) -> None:
        name: LiteralString = _WORDS[number]
        self._add(f"strpos({_SQL['text']}, lower(%({name})s)) > 0", **{name: word})

    def _sources(self, database: Database, scope: Scope, places: Sequence[Collection], name: str) -> list[int]:
        # They are few, and a list that is known is looked for in an index.
        params = {
            "tenant_id": scope.tenant_id,
            "origin": name,
            "collection_ids": [place.collection_id for place in places],
        }
        with database.transaction(scope) as connection:
            return [row[0] for row in rows(connection, _SQL["sources"], params)]


def _listed(row: Sequence[Any], sort: ListingSort, *, owner: bool) -> ListedDocument:
    *fields, expires_at, grants, denials, inherited = row
    record = record_of(fields)
    told = Permissions(grants=tuple(grants or ()), denials=tuple(denials or ())) if owner else None
    return ListedDocument(
        record=record, key=_key(record, sort), expires_at=expires_at, permissions=told, inherited=inherited
    )


def _key(record: DocumentRecord, sort: ListingSort) -> str | int | datetime:
    match sort:
        case "changed":
            return record.known_from
        case "title":
            return record.title
        case "longest":
            return record.chunk_count
        case _:
            return record.document_id


def _order(one: ListedDocument) -> tuple[Any, int]:
    # Python compares texts by code point, which is the order of "C" in UTF-8.
    return one.key, one.record.document_id


def _is_beyond(one: ListedDocument, query: ListingQuery) -> bool:
    """Whether a document stands on the page's side of where it begins or ends."""
    if query.place is None:
        return True
    place = (query.place.key, query.place.document_id)
    descending = _KEYS[query.sort][1] != query.place.backwards
    return _order(one) < place if descending else _order(one) > place


def _counts(query: ListingQuery) -> bool:
    """Whether stored documents are counted as they are found: on the first page of a list that is narrowed."""
    return query.place is None and replace(query, status=None).narrowed


def _page_of(found: list[ListedDocument], query: ListingQuery, counted: int) -> Listing:
    backwards = query.place is not None and query.place.backwards
    descending = _KEYS[query.sort][1]
    found.sort(key=_order, reverse=descending != backwards)
    more = len(found) > query.limit
    shown = found[: query.limit]
    if backwards:
        shown.reverse()
    before = more if backwards else query.place is not None
    behind = backwards or more
    many = counted > MOST_COUNTED and replace(query, status=None).narrowed
    count = (None if many else counted) if query.place is None else query.place.count
    return Listing(
        documents=tuple(shown),
        previous=_place_at(shown[0], count, backwards=True) if shown and before else None,
        following=_place_at(shown[-1], count, backwards=False) if shown and behind else None,
        count=count,
    )


def _place_at(one: ListedDocument, count: int | None, *, backwards: bool) -> ListingPlace:
    return ListingPlace(key=one.key, document_id=one.record.document_id, backwards=backwards, count=count)


# Documents that say the same, or nearly so, wherever they came from.


_COPIES_SQL = queries("duplicates")

_DOCUMENTS = queries("documents")

#: Documents that are named of each kind, at most.
MOST_NAMED = 50

# Texts that are compared word by word.
_MOST_COMPARED = 20


class DuplicateRepository(Repository):
    """Finds documents by what they say. What the scope's principal may not read is not there, in every statement."""

    def of_document(
        self, scope: Scope, document_id: int, *, likeness: Callable[[str, str], float], threshold: float
    ) -> Duplicates:
        """The documents of the scope's tenant that say what a document says, or nearly that.

        Args:
            scope: Whose, who and when.
            document_id: Of the document.
            likeness: Compares two texts, from 0 to 1.
            threshold: Of what is nearly the same.

        Raises:
            NotFoundError: There is no such document.
        """
        params: dict[str, Any] = {"document_id": document_id}
        found = self._rows(scope, _COPIES_SQL["content_of"], params)
        if not found:
            raise NotFoundError(f"There is no document {document_id}. `recollect documents list` shows what there is.")
        version_id, content_hash, content = found[0]
        params |= {"version_id": version_id, "content_hash": content_hash, "limit": MOST_NAMED}
        same = self._rows(scope, _COPIES_SQL["same"], params, end=_COPIES_SQL["by_id"])
        alike = self._rows(
            scope, _COPIES_SQL["alike"], params | {"limit": _MOST_COMPARED}, end=_COPIES_SQL["most_first"]
        )
        measured = ((SameDocument(*row[:-1]), likeness(content, row[-1])) for row in alike)
        near = [SameDocument(**{**_values(one), "likeness": share}) for one, share in measured if share >= threshold]
        return Duplicates(
            same=tuple(SameDocument(*row) for row in same),
            near=tuple(sorted(near, key=lambda one: (-one.likeness, one.document_id))),
        )

    def groups(self, scope: Scope, *, after: int, limit: int) -> list[tuple[SameDocument, ...]]:
        """Documents of the scope's tenant that say the same, by the first id of each group."""
        found = self._rows(scope, _COPIES_SQL["groups"], {"after": after, "limit": limit}, end=_COPIES_SQL["several"])
        return [tuple(SameDocument(*one) for one in zip(*row, strict=True)) for row in found]

    def _rows(
        self, scope: Scope, query: LiteralString, params: dict[str, Any], *, end: LiteralString = ""
    ) -> list[tuple[Any, ...]]:
        known = _DOCUMENTS["known_now"] if scope.as_of is None else _DOCUMENTS["known_as_of"]
        complete: LiteralString = f"{query} AND {known} AND {may_read_version(scope)} {end}"
        given = {"tenant_id": scope.tenant_id, "as_of": scope.as_of, **access_params(scope), **params}
        return self._database.read(scope, complete, given)


def _values(one: SameDocument) -> dict[str, Any]:
    return {name: getattr(one, name) for name in SameDocument.__dataclass_fields__}
