"""Reading what documents say: listed, outlined, in parts, and text by text for exact searches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, LiteralString

from psycopg.rows import TupleRow

from recollect.errors import NotFoundError
from recollect.model import Heading, PageSpan, Scope
from recollect.model.contents import DocumentChunk, DocumentEntry, DocumentOutline, DocumentPart
from recollect.model.original import Original
from recollect.model.outline import page_at, section_path
from recollect.store.database import CollectionRevision, Repository
from recollect.store.files import stored_pieces
from recollect.store.rights import access_params, may_read_version
from recollect.store.sql import queries

_SQL = queries("contents")
_DOCUMENTS = queries("documents")
_ORIGINALS = queries("originals")

# Sizes that are asked for at a time.
_PAGE = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where documents are looked for.

    Attributes:
        collection_ids: The collections.
        hides_expired: Whether something in them has expired that could not be closed, so that it is left out.
        revisions: As they were found, so that a replica that has them may be read from; none: it may not.
    """

    collection_ids: tuple[int, ...]
    hides_expired: bool = False
    revisions: tuple[CollectionRevision, ...] = ()


@dataclass(frozen=True, slots=True)
class TextSize:
    """How long a document's text is, in bytes."""

    document_id: int
    version_id: int
    byte_count: int


@dataclass(frozen=True, slots=True)
class DocumentText:
    """A document's whole text."""

    document_id: int
    source: str
    title: str
    collection: str
    version_id: int
    content: str


class ContentRepository(Repository):
    """Reads texts. Whatever the scope's principal may not read is not there, in every statement."""

    def entries(
        self, scope: Scope, places: Places, *, name: str | None, department: str | None, after: int, limit: int
    ) -> list[DocumentEntry]:
        """Documents by id, as they are known in the scope.

        Args:
            scope: Whose, who and when.
            places: Where.
            name: Only those whose source or title holds this, in whatever case.
            department: Only of this one.
            after: The last id of the page before.
            limit: How many at most.
        """
        params = {"name": name, "department": department, "after": after, "limit": limit}
        found = self._rows(scope, places, _SQL["listed"], params, end=_SQL["listed_order"])
        fields = DocumentEntry.__dataclass_fields__
        return [DocumentEntry(**{**dict(zip(fields, row, strict=True)), "tags": tuple(row[6])}) for row in found]

    def sizes(
        self, scope: Scope, places: Places, *, from_document: int, document_id: int | None, department: str | None
    ) -> Iterator[TextSize]:
        """How long the texts of documents are, by id, page by page.

        Args:
            scope: Whose, who and when.
            places: Where.
            from_document: The first id.
            document_id: Only this one; None: all.
            department: Only of this one; None: of all.
        """
        while True:
            params = {
                "from_document": from_document,
                "document_id": document_id,
                "department": department,
                "limit": _PAGE,
            }
            page = [TextSize(*row) for row in self._rows(scope, places, _SQL["sizes"], params, end=_SQL["sizes_order"])]
            yield from page
            if len(page) < _PAGE:
                return
            from_document = page[-1].document_id + 1

    def texts(self, scope: Scope, places: Places, version_ids: Sequence[int]) -> list[DocumentText]:
        """The texts of versions by their documents' ids; what is gone, or withdrawn, is left out."""
        found = self._rows(scope, places, _SQL["texts"], {"version_ids": list(version_ids)}, end=_SQL["texts_order"])
        return [DocumentText(*row) for row in found]

    def part(self, scope: Scope, places: Places, document_id: int, *, start: int, length: int) -> DocumentPart:
        """So many characters of a document from one on; fewer where it ends.

        Raises:
            NotFoundError: There is no such document.
        """
        found = self._one(scope, places, document_id, start=start, length=length)
        *names, characters, text, headings, pages, mime_type = found
        return DocumentPart(
            **_named(names),
            characters=characters,
            start_offset=min(start, characters),
            end_offset=min(start, characters) + len(text),
            text=text,
            section=" > ".join(section_path(_headings(headings), start)) or None,
            page=page_at(_pages(pages), start),
            mime_type=mime_type,
        )

    def outline(self, scope: Scope, places: Places, document_id: int) -> DocumentOutline:
        """The headings and pages of a document.

        Raises:
            NotFoundError: There is no such document.
        """
        *names, characters, _, headings, pages, _ = self._one(scope, places, document_id, start=0, length=0)
        own = _headings(headings)
        if not own:
            params = {"tenant_id": scope.tenant_id, "version_id": names[4]}
            cut = self._read(scope, places, _SQL["sections"], params)
            own = tuple(Heading(len(path), path[-1], start, start) for path, start in cut)
        return DocumentOutline(**_named(names), characters=characters, headings=own, pages=_pages(pages))

    def structure(
        self, scope: Scope, places: Places, document_id: int
    ) -> tuple[tuple[Heading, ...], tuple[PageSpan, ...]]:
        """The headings and pages that a document came with.

        Raises:
            NotFoundError: There is no such document.
        """
        *_, headings, pages, _ = self._one(scope, places, document_id, start=0, length=0)
        return _headings(headings), _pages(pages)

    def chunks(
        self, scope: Scope, places: Places, document_id: int, *, after: int, limit: int, start: int, end: int
    ) -> list[DocumentChunk]:
        """What a document was cut into, in order.

        Args:
            scope: Whose, who and when.
            places: Where.
            document_id: Which.
            after: The last position of the page before; -1: from the beginning.
            limit: How many at most.
            start: Only those that hold this character or one behind it.
            end: Only those that hold a character before this one.

        Raises:
            NotFoundError: There is no such document.
        """
        version_id = self._one(scope, places, document_id, start=0, length=0)[4]
        params = {"tenant_id": scope.tenant_id, "version_id": version_id, "after": after, "limit": limit}
        found = self._read(scope, places, _SQL["chunks"], {**params, "start": start, "end": end})
        fields = DocumentChunk.__dataclass_fields__
        return [
            DocumentChunk(**{**dict(zip(fields, row, strict=True)), "section": " > ".join(row[5]) or None})
            for row in found
        ]

    def original(self, scope: Scope, places: Places, document_id: int) -> Original:
        """The file that a document was read from; its bytes are read when they are wanted.

        Raises:
            NotFoundError: There is no such document, or its original was not kept.
        """
        found = self._rows(scope, places, _ORIGINALS["of_document"], {"document_id": document_id})
        if not found:
            self._one(scope, places, document_id, start=0, length=0)
            raise NotFoundError(
                f"The original of document {document_id} was not kept: those of uploads are, where [rag.ingest] "
                "keep_originals does not say otherwise."
            )
        name, mime_type, byte_count, file_hash = found[0]
        digest = bytes(file_hash)
        opened = stored_pieces(self._database, scope, digest, byte_count)
        return Original(name=name, mime_type=mime_type, byte_count=byte_count, file_hash=digest, opened=opened)

    def _one(self, scope: Scope, places: Places, document_id: int, *, start: int, length: int) -> tuple[Any, ...]:
        params = {"document_id": document_id, "start": start, "length": length}
        found = self._rows(scope, places, _SQL["part"], params)
        if not found:
            raise NotFoundError(f"There is no document {document_id} where this view looks.")
        return found[0]

    def _rows(
        self,
        scope: Scope,
        places: Places,
        query: LiteralString,
        params: dict[str, Any],
        *,
        end: LiteralString = "",
    ) -> list[tuple[Any, ...]]:
        complete: LiteralString = f"{query} AND {_known(scope, places)} AND {may_read_version(scope)} {end}"
        given = {
            "tenant_id": scope.tenant_id,
            "collection_ids": list(places.collection_ids),
            "as_of": scope.as_of,
            **access_params(scope),
            **params,
        }
        return self._read(scope, places, complete, given)

    def _read(self, scope: Scope, places: Places, query: LiteralString, params: dict[str, Any]) -> list[TupleRow]:
        def read() -> list[TupleRow]:
            return self._database.read(scope, query, params)

        return self._database.on_replica(places.revisions, read)


def _known(scope: Scope, places: Places) -> LiteralString:
    if scope.as_of is not None:
        return f"{_DOCUMENTS['known_as_of']} AND {_SQL['unexpired_then']}"
    return f"{_DOCUMENTS['known_now']} AND {_SQL['unexpired']}" if places.hides_expired else _DOCUMENTS["known_now"]


def _named(names: Sequence[Any]) -> dict[str, Any]:
    return dict(zip(("document_id", "source", "title", "collection", "version_id"), names, strict=True))


def _headings(stored: Sequence[Sequence[Any]] | None) -> tuple[Heading, ...]:
    return tuple(Heading(*one) for one in stored or ())


def _pages(stored: Sequence[Sequence[Any]] | None) -> tuple[PageSpan, ...]:
    return tuple(PageSpan.of_list(one) for one in stored or ())
