"""Documents, and others that say the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NotRequired

from recollect.model.source import SourceType
from recollect.replies._shape import Shape, Timestamp, iso

if TYPE_CHECKING:
    from recollect.model.document_record import DocumentRecord
    from recollect.model.duplicates import Duplicates, SameDocument
    from recollect.model.original import Original


class DocumentIdJson(Shape):
    """A document that was named otherwise."""

    document_id: int
    document_ids: list[int]
    """All that the name means: more than one of a source that documents with ids share, where they were asked for."""


class DocumentJson(Shape):
    """A stored document, as its current version is."""

    document_id: int
    """Stays the same over all versions of the document."""
    source: str
    """Its URI within its origin, for instance a path relative to the ingested folder."""
    title: str
    collection: str
    department: str | None
    version: int
    """From 1."""
    mime_type: str
    language: str | None
    """ISO 639-1; null: not known."""
    tags: list[str]
    metadata: dict[str, Any]
    chunk_count: int
    content_hash: str
    """SHA-256 of the content, in hexadecimal digits."""
    known_from: Timestamp
    """When this version entered the knowledge base."""
    event_time: Timestamp | None
    """When what it tells happened or was written."""
    origin: str
    """The source that it belongs to, for instance a folder."""
    source_type: SourceType
    """Of its origin."""
    status: Literal["pending", "embedded", "error"]
    """`pending` where a job is to store it, `error` where that job has failed."""
    error: str | None
    """Why it has failed."""
    id: NotRequired[str]
    """That it was given; left out: its source identifies it."""


class SameDocumentJson(Shape):
    """A document that says what another one says."""

    document_id: int
    source: str
    title: str
    collection: str
    origin: str
    """Its folder, web domain or other source."""
    likeness: float
    """The share of runs of five words that both have, of those that either has; 1: the same text."""


class DocumentContentJson(DocumentJson):
    """A stored document with its text, and the documents that say the same."""

    content: str | None
    same_content: list[SameDocumentJson]
    """Those with the same text."""
    nearly_the_same: list[SameDocumentJson]
    """Those with nearly the same text, the likest first."""


class DocumentListJson(Shape):
    """Documents of a collection, by id."""

    collection: str
    documents: list[DocumentJson]
    next_after: int | None
    """Where the next page begins; null: there is none."""
    warnings: NotRequired[list[str]]
    """Why there is none, where something can be said about it."""


class DuplicateGroupsJson(Shape):
    """Documents that have the same text."""

    groups: list[list[SameDocumentJson]]


class DuplicatesJson(Shape):
    """The documents that say what one says."""

    same_content: list[SameDocumentJson]
    """Those with the same text."""
    nearly_the_same: list[SameDocumentJson]
    """Those with nearly the same text, the likest first."""


class OriginalJson(Shape):
    """The file that a document was read from."""

    name: str
    """As its sender wrote it."""
    mime_type: str
    byte_count: int
    sha256: str
    """Of its bytes, in hexadecimal digits."""


def document_json(record: DocumentRecord) -> DocumentJson:
    """A document without its text."""
    shown: DocumentJson = {
        "document_id": record.document_id,
        "source": record.source,
        "title": record.title,
        "collection": record.collection,
        "department": record.department,
        "version": record.version,
        "mime_type": record.mime_type,
        "language": record.language,
        "tags": list(record.tags),
        "metadata": dict(record.metadata),
        "chunk_count": record.chunk_count,
        "content_hash": record.content_hash,
        "known_from": iso(record.known_from),
        "event_time": iso(record.event_time),
        "origin": record.origin,
        "source_type": record.source_type,
        "status": record.status,
        "error": record.error,
    }
    if record.id is not None:
        shown["id"] = record.id
    return shown


def document_content_json(record: DocumentRecord, copies: Duplicates) -> DocumentContentJson:
    """A document with its text.

    Args:
        record: With its content.
        copies: The documents that say the same.
    """
    return {
        **document_json(record),
        "content": record.content,
        "same_content": [same_document_json(one) for one in copies.same],
        "nearly_the_same": [same_document_json(one) for one in copies.near],
    }


def duplicates_json(copies: Duplicates) -> DuplicatesJson:
    """The documents that say what one says."""
    return {
        "same_content": [same_document_json(one) for one in copies.same],
        "nearly_the_same": [same_document_json(one) for one in copies.near],
    }


def document_list_json(
    records: Sequence[DocumentRecord], *, collection: str, more: bool, warnings: Sequence[str] = ()
) -> DocumentListJson:
    """A page of documents.

    Args:
        records: Of the page.
        collection: Where they are.
        more: Whether another page follows.
        warnings: Why there is none.
    """
    shown: DocumentListJson = {
        "collection": collection,
        "documents": [document_json(record) for record in records],
        "next_after": records[-1].document_id if records and more else None,
    }
    if warnings:
        shown["warnings"] = list(warnings)
    return shown


def duplicate_groups_json(groups: Sequence[Sequence[SameDocument]]) -> DuplicateGroupsJson:
    """Documents that have the same text, group by group."""
    return {"groups": [[same_document_json(one) for one in group] for group in groups]}


def same_document_json(one: SameDocument) -> SameDocumentJson:
    """A document that says what another one says."""
    return {
        "document_id": one.document_id,
        "source": one.source,
        "title": one.title,
        "collection": one.collection,
        "origin": one.origin,
        "likeness": one.likeness,
    }


def original_json(original: Original) -> OriginalJson:
    """The file that a document was read from, without its bytes."""
    return {
        "name": original.name,
        "mime_type": original.mime_type,
        "byte_count": original.byte_count,
        "sha256": original.file_hash.hex(),
    }
