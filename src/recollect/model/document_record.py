"""A document as it is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from recollect.model.record import Public, PublicIfKnown, Record
from recollect.model.source import SourceType

DocumentStatus = Literal["pending", "embedded", "error"]
DOCUMENT_STATUSES: tuple[DocumentStatus, ...] = ("pending", "embedded", "error")


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentRecord(Record):
    """A stored document, as its current version is.

    Attributes:
        document_id: Stays the same over all versions of the document.
        source: Its URI within its origin, for instance a path relative to the ingested folder.
        origin: The source it belongs to, for instance that folder.
        version: From 1.
        language: ISO 639-1; None: not known.
        content_hash: SHA-256 of the content, in hexadecimal digits.
        known_from: When this version entered the knowledge base.
        event_time: When what it tells happened or was written.
        content: Its text; None in listings.
        status: ``embedded``; ``pending`` where a job is to store it; ``error`` where that job has failed.
        error: Why it has failed.
        source_type: Of its origin: ``directory``, ``web``, ``upload``, ``api`` or ``manual``.
        id: The id that it was given (`Document.id`); None: its source identifies it.
    """

    document_id: Public[int]
    source: Public[str]
    title: Public[str]
    collection: Public[str]
    version: Public[int]
    department: Public[str | None]
    mime_type: Public[str]
    language: Public[str | None]
    metadata: Public[Mapping[str, Any]]
    tags: Public[tuple[str, ...]]
    chunk_count: Public[int]
    content_hash: Public[str]
    known_from: Public[datetime]
    event_time: Public[datetime | None]
    origin: Public[str]
    content: str | None = None
    status: Public[DocumentStatus] = "embedded"
    error: Public[str | None] = None
    source_type: Public[SourceType] = "manual"
    id: PublicIfKnown[str | None] = None
