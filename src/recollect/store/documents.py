"""Reading documents and their sources."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, LiteralString

from recollect.errors import NotFoundError, UsageError
from recollect.model import Scope
from recollect.model.arguments import whole_number
from recollect.model.collection import Collection
from recollect.model.document_record import DocumentRecord
from recollect.model.source import MANUAL_SOURCE, SourceType, ends, told_apart
from recollect.store.database import Repository, rows
from recollect.store.rights import access_params, may_find, may_read_version, met, require_changeable
from recollect.store.sql import queries

_SQL = queries("documents")

_PAGE = 1000
# Documents of a shared source that an error names, and signs in a name that may begin an id.
_MOST_NAMES = 10
_MOST_SIGNS = 100


@dataclass(frozen=True, slots=True)
class Source:
    """Where documents come from: a directory, a web domain, or a name given by hand.

    Attributes:
        location: Of a directory that is read under a name of its own: where it is.
        metadata: Given to every document that does not have the key itself.
    """

    source_id: int
    name: str
    type: SourceType
    location: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def given(self) -> dict[str, object]:
        """What the versions of its documents depend on."""
        return {"metadata": dict(self.metadata)} if self.metadata else {}

    @property
    def directory(self) -> str:
        """Where a directory is."""
        return self.location or self.name


@dataclass(frozen=True, slots=True)
class Stamp:
    """How a document's current version was read: equal stamps mean that nothing needs to be done."""

    file_hash: bytes | None
    fingerprint: str
    document_id: int
    version: int
    chunk_count: int


@dataclass(frozen=True, slots=True)
class StoredPage:
    """A current document of a web source, as it was fetched.

    Attributes:
        metadata: Of its version.
    """

    uri: str
    document_id: int
    file_hash: bytes | None
    fingerprint: str
    metadata: Mapping[str, Any]


def record_of(row: Sequence[Any]) -> DocumentRecord:
    """A row of those that tell of a document."""
    fields = dict(zip(DocumentRecord.__dataclass_fields__, row, strict=True))
    fields["tags"] = tuple(fields["tags"])
    return DocumentRecord(**fields)


class DocumentRepository(Repository):
    """Reads documents; `recollect.store.writer` writes them."""

    def ensure_source(self, scope: Scope, collection: Collection, name: str, source_type: SourceType) -> Source:
        """The source of that name, made where it is missing."""
        params = {
            "tenant_id": scope.tenant_id,
            "collection_id": collection.collection_id,
            "name": name,
            "type": source_type,
        }
        # Where nothing is to be written, no transaction waits for the disk.
        for row in self._database.read(scope, _SQL["get_source"], params):
            found = Source(*row)
            if found.type == source_type or found.type != MANUAL_SOURCE or found.name == MANUAL_SOURCE:
                return found
        with self._database.transaction(scope) as connection:
            connection.execute(_SQL["ensure_source"], params)
            return Source(*rows(connection, _SQL["get_source"], params)[0])

    def adopt_inner_sources(self, scope: Scope, collection: Collection, source: Source) -> int:
        """Move the documents of directories inside a directory to it, so that it does not meet them as strangers.

        So are those that came from it before it was read under a name of its own.

        Others' documents, which an ingest of the scope's principal does not meet, stay where they are.

        Returns:
            How many documents moved; they keep their ids and versions.
        """
        params: dict[str, Any] = {
            "tenant_id": scope.tenant_id,
            "collection_id": collection.collection_id,
            "source_id": source.source_id,
            "directory": source.directory.rstrip("/"),
            **access_params(scope),
        }
        with self._database.transaction(scope) as connection:
            connection.execute(_SQL["hold_collection"], params)
            inner: LiteralString = f"{_SQL['lock_inner_documents']} AND {met(scope)} {_SQL['in_order']}"
            params["document_ids"] = [row[0] for row in rows(connection, inner, params)]
            moved = len(rows(connection, _SQL["adopt_documents"], params))
            connection.execute(_SQL["drop_former"], params)
        return moved

    def sources_named(
        self, scope: Scope, collection: Collection, names: Sequence[str], source_type: SourceType
    ) -> list[Source]:
        """The sources of a type that bear one of these names and hold a document that an ingest meets.

        A directory that is read under a name of its own is named by where it is.
        """
        params = {
            "tenant_id": scope.tenant_id,
            "collection_id": collection.collection_id,
            "names": list(names),
            "type": source_type,
            **access_params(scope),
        }
        own: LiteralString = f"{_SQL['meets']} AND {met(scope)})"
        if scope.principal is None:
            own = f"({own} OR {_SQL['empty']})"
        return [Source(*row) for row in self._database.run(scope, f"{_SQL['sources_named']} AND {own}", params)]

    def stamps(self, scope: Scope, source: Source, uris: Sequence[str]) -> dict[str, Stamp]:
        """Stamps of the current versions of those ``uris`` that have one and that an ingest meets."""
        params = {
            "tenant_id": scope.tenant_id,
            "source_id": source.source_id,
            "uris": list(uris),
            **access_params(scope),
        }
        found = self._database.run(scope, f"{_SQL['stamps']} AND {met(scope)} {_SQL['by_age']}", params)
        return {row[0]: Stamp(*row[1:]) for row in found}

    def pages(self, scope: Scope, source: Source) -> Iterator[StoredPage]:
        """A web source's current documents that an ingest meets, each with how it was fetched, page by page."""
        after, after_id = "", 0
        query: LiteralString = f"{_SQL['web_pages']} AND {met(scope)} {_SQL['by_uri']}"
        while True:
            params = {
                "tenant_id": scope.tenant_id,
                "source_id": source.source_id,
                "after": after,
                "after_id": after_id,
                "limit": _PAGE,
                **access_params(scope),
            }
            found = self._database.run(scope, query, params)
            yield from (StoredPage(*row) for row in found)
            if len(found) < _PAGE:
                return
            after, after_id = found[-1][0], found[-1][1]

    def source_metadata(self, scope: Scope, source: Source) -> dict[str, Any]:
        """What is noted of a source."""
        params = {"tenant_id": scope.tenant_id, "source_id": source.source_id}
        found = self._database.run(scope, _SQL["source_metadata"], params)
        return dict(found[0][0]) if found else {}

    def note_source(self, scope: Scope, source: Source, metadata: Mapping[str, Any]) -> None:
        """Note something of a source; what is noted under other names stays."""
        params = {
            "tenant_id": scope.tenant_id,
            "source_id": source.source_id,
            "metadata": json.dumps(dict(metadata), allow_nan=False),
        }
        self._database.run(scope, _SQL["note_source"], params)

    def current_uris(self, scope: Scope, source: Source, *, prefix: str = "") -> Iterator[tuple[str, int]]:
        """(uri, document_id) of a source's current documents below ``prefix`` that an ingest meets, page by page."""
        after, after_id = "", 0
        query: LiteralString = f"{_SQL['current_uris']} AND {met(scope)} {_SQL['by_uri']}"
        while True:
            params = {
                "tenant_id": scope.tenant_id,
                "source_id": source.source_id,
                "prefix": prefix,
                "after": after,
                "after_id": after_id,
                "limit": _PAGE,
                **access_params(scope),
            }
            page = self._database.run(scope, query, params)
            yield from ((row[0], row[1]) for row in page)
            if len(page) < _PAGE:
                return
            after, after_id = page[-1]

    def held_twice(self, scope: Scope, source: Source) -> list[int]:
        """Current documents of directories inside a directory's that are current as the outer one's too.

        A folder that was ingested before the one around it left them under a source of its own.
        """
        params = {
            "tenant_id": scope.tenant_id,
            "source_id": source.source_id,
            "below": source.directory.rstrip("/") + "/",
            **access_params(scope),
        }
        return [row[0] for row in self._database.run(scope, f"{_SQL['held_twice']} AND {met(scope)}", params)]

    def get(self, scope: Scope, document_id: int) -> DocumentRecord:
        """One document with its content, as it is known in the scope.

        Raises:
            NotFoundError: No such document, or none that is known in the scope.
        """
        params = {
            "tenant_id": scope.tenant_id,
            "document_id": document_id,
            "as_of": scope.as_of,
            **access_params(scope),
        }
        found = self._database.run(scope, f"{_SQL['get']} AND {_known(scope)} AND {may_read_version(scope)}", params)
        if not found:
            raise NotFoundError(f"There is no document {document_id}. `recollect documents list` shows what there is.")
        return record_of(found[0])

    def _ids_by_name(self, scope: Scope, name: str) -> list[int]:
        """Numbers of the documents whose source or given id is ``name``, or ``source#id``, in every collection."""
        named = {"uri": name, "name": name, "given_ids": _endings(name)}
        params = {"tenant_id": scope.tenant_id, "as_of": scope.as_of, **named, **access_params(scope)}
        known: LiteralString = f"{_known(scope)} AND {may_read_version(scope)}"
        with self._database.transaction(scope) as connection:
            of_source = rows(connection, f"{_SQL['ids_by_uri']} AND {known}", params)
            of_id = rows(connection, f"{_SQL['ids_by_given_id']} AND {known}", params)
        return [row[0] for row in (*of_source, *of_id)]

    def require_changeable(self, scope: Scope, document_ids: Sequence[int]) -> None:
        """Refuse before anything is done what the change itself would refuse; see `rights.require_changeable`."""
        if scope.principal is not None:
            with self._database.transaction(scope) as connection:
                require_changeable(connection, scope, document_ids)

    def resolve(self, scope: Scope, document: int | str, *, collections: Sequence[str] | None = None) -> int:
        """Return the number of the one document that a name means; see `resolve_all`.

        Raises:
            NotFoundError: There is none of that name in these collections.
            UsageError: Several documents have that name; the message says how to name each of them.
        """
        found = self._meant(scope, document, collections)
        if len(found) == 1:
            return found[0].document_id
        raise UsageError(_several(document, found))

    def resolve_all(self, scope: Scope, document: int | str, *, collections: Sequence[str] | None = None) -> list[int]:
        """Return the numbers of the documents that a name means; a closed one has its name still.

        A name is a number, a source, a given id, or ``source#id``. A source that documents with ids share means all of
        them. Of several that have a name otherwise, the one is meant that an ingest of it would meet. A text of digits
        is a number, a source or a given id, whichever there is.

        Args:
            scope: Whose.
            document: The name.
            collections: Only documents of these; None: of any.

        Raises:
            NotFoundError: There is none of that name in these collections.
            UsageError: Several documents have that name otherwise, and none or several of them are met, or it is the
                number or the id of one and the source of another; the message says how to name each of them.
        """
        found = self._meant(scope, document, collections)
        if len(found) > 1 and not _share_source(document, found):
            raise UsageError(_several(document, found))
        return [place.document_id for place in found]

    def _meant(self, scope: Scope, document: int | str, collections: Sequence[str] | None) -> list[_Place]:
        """The documents that a name means: several only where nothing tells which.

        Raises:
            NotFoundError: There are none.
        """
        number = document if isinstance(document, int) else whole_number(document)
        ids = [] if number is None else self._ever(scope, "by_id", document_id=number)
        if isinstance(document, str):  # a text of digits may be either
            name = document.replace("\0", "")
            of_root = self._ever(scope, "by_root", uris=ends([name]), name=name.lstrip("/")) if "/" in name else []
            ids = list(dict.fromkeys([*ids, *self._ids_by_name(scope, name), *of_root]))
        places = self._whereabouts(scope, ids)
        wanted = [place for place in places if collections is None or place.collection in collections]
        if isinstance(document, str) and not wanted:
            # A closed one is meant only where none of that name is current.
            of_source = self._ever(scope, "ever_by_uri", uri=name)
            of_id = self._ever(scope, "ever_by_given_id", name=name, given_ids=_endings(name))
            places = self._whereabouts(scope, [*ids, *of_source, *of_id])
            wanted = [place for place in places if collections is None or place.collection in collections]
        if len(wanted) > 1 and number not in {place.document_id for place in wanted}:
            own = self._ever(scope, "given", condition=met(scope), document_ids=[place.document_id for place in wanted])
            if len(own) == 1 or (own and _share_source(document, wanted)):
                wanted = [place for place in wanted if place.document_id in own]
        if not wanted:
            raise NotFoundError(_nowhere(document, collections or (), places))
        return wanted

    def _whereabouts(self, scope: Scope, ids: Sequence[int]) -> list[_Place]:
        if not ids:
            return []
        params = {"tenant_id": scope.tenant_id, "document_ids": list(ids)}
        return [_Place(*row) for row in self._database.run(scope, _SQL["whereabouts"], params)]

    def filterable(self, scope: Scope, collections: Sequence[Collection]) -> dict[str, list[str]]:
        """The departments, tags and keys of metadata that documents of collections have, by ``department`` and so on.

        Reads every document that the scope may read: for when nothing was found.
        """
        params = {
            "tenant_id": scope.tenant_id,
            "collection_ids": [collection.collection_id for collection in collections],
            "as_of": scope.as_of,
            **access_params(scope),
        }
        query: LiteralString = (
            f"{_SQL['filterable']} AND {_known(scope)} AND {may_read_version(scope)} {_SQL['filterable_kinds']}"
        )
        found: dict[str, list[str]] = {"department": [], "tags": [], "metadata": []}
        with self._database.transaction(scope) as connection:
            for kind, value in rows(connection, query, params):
                found[kind].append(value)
        return found

    def _ever(
        self, scope: Scope, query: str, *, condition: LiteralString = "true", **params: int | str | Sequence[int | str]
    ) -> list[int]:
        given = {"tenant_id": scope.tenant_id, **params, **access_params(scope)}
        found = self._database.run(scope, f"{_SQL[query]} AND {condition} AND {may_find(scope)}", given)
        return [row[0] for row in found]

    def list_page(
        self,
        scope: Scope,
        collection: Collection,
        *,
        department: str | None = None,
        source: str | None = None,
        tags: Sequence[str] = (),
        newest_first: bool = False,
        after: int = 0,
        limit: int = 100,
    ) -> list[DocumentRecord]:
        """Documents by id, without their contents.

        Args:
            scope: Whose, who and when.
            collection: Where.
            department: Only of this one.
            source: Only those whose URI, or whose source's name, is this.
            tags: Only those with all of these.
            newest_first: By id from the largest on.
            after: The last id of the page before; 0: the first page.
            limit: How many at most.
        """
        params = {
            "tenant_id": scope.tenant_id,
            "collection_id": collection.collection_id,
            "department": department,
            "source": source,
            "tags": list(tags),
            "after": after,
            "limit": limit,
            "as_of": scope.as_of,
            **access_params(scope),
        }
        order = _SQL["list_newest" if newest_first else "list_order"]
        query: LiteralString = f"{_SQL['list_page']} AND {_known(scope)} AND {may_read_version(scope)} {order}"
        return [record_of(row) for row in self._database.run(scope, query, params)]


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a document stands."""

    document_id: int
    collection: str
    origin: str
    source: str
    id: str | None


def _endings(name: str) -> list[str]:
    """What of a name may be a given id: all of it, or what follows a source and ``#``."""
    parts = name.split("#")
    return ["#".join(parts[at:]) for at in range(min(len(parts), _MOST_SIGNS))]


def _share_source(document: int | str, places: Sequence[_Place]) -> bool:
    """Whether a name is the source that documents of a collection share, of which at most one has no id of its own."""
    return (
        all(place.source == document != place.id for place in places)
        and sum(place.id is None for place in places) <= 1
        and len({place.collection for place in places}) == 1
    )


def _nowhere(document: int | str, collections: Sequence[str], places: Sequence[_Place]) -> str:
    shown = document if whole_number(str(document)) is not None else repr(document)
    others = sorted({place.collection for place in places})
    if not others:
        # The same text as for a read by number: nothing tells that the caller may not read it.
        return f"There is no document {shown}. `recollect documents list` shows what there is."
    return (
        f"Document {shown} is in collection{'s' * (len(others) > 1)} {' and '.join(map(repr, others))}, not in "
        f"{' or '.join(map(repr, collections)) or 'this session'}. Name that collection: "
        f"`--collection {shlex.quote(others[0])}`, `view(collections={others[0]!r})` in Python, or the parameter "
        "`collection` over HTTP."
    )


def _several(document: int | str, places: Sequence[_Place]) -> str:
    if _share_source(document, places):
        names = [str(place.document_id) if place.id is None else repr(place.id) for place in places[:_MOST_NAMES]]
        more = f" and {len(places) - len(names):,} more" if len(places) > len(names) else ""
        return f"{len(places):,} documents have the source {document!r}. Say which, by id: {', '.join(names)}{more}."
    collections = {place.collection for place in places}
    apart = len(collections) == len(places)
    told = ", ".join(
        f"{place.document_id} in the collection {place.collection!r}"
        + ("" if apart else f" from {place.origin!r}")
        + ("" if place.id is None else f", named {place.source + '#' + place.id!r}")
        for place in places
    )
    roots = told_apart({place.origin for place in places})
    how = f"by id, or as {next(iter(roots.values())) + '/' + str(document)!r}" if len(roots) > 1 else "by id"
    how = "by --collection or by id" if apart else how
    if isinstance(document, str) and whole_number(document) in {place.document_id for place in places}:
        how = "the one with that id by its source, another one by its own id"
    return f"Several documents are named {document!r}: {told}. Say which, {how}."


def _known(scope: Scope) -> LiteralString:
    return _SQL["known_now"] if scope.as_of is None else _SQL["known_as_of"]
