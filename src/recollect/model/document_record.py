"""A document as it is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from recollect.model.source import SourceType

DocumentStatus = Literal["pending", "embedded", "error"]
DOCUMENT_STATUSES: tuple[DocumentStatus, ...] = ("pending", "embedded", "error")


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentRecord:
    """A stored document.

    Attributes:
        source: Its URI within its origin, for instance a path relative to the ingested folder.
        origin: The source it belongs to, for instance that folder.
        known_from: When this version entered the knowledge base.
        content: Its text; None in listings.
        status: ``embedded``; ``pending`` where a job is to store it; ``error`` where that job has failed.
        error: Why, then.
        source_type: Of its origin: ``directory``, ``web``, ``upload``, ``api`` or ``manual``.
        id: The id that it was given (`Document.id`); None: its source identifies it.
    """

    document_id: int
    source: str
    title: str
    collection: str
    version: int
    department: str | None
    mime_type: str
    language: str | None
    metadata: Mapping[str, Any]
    tags: tuple[str, ...]
    chunk_count: int
    content_hash: str
    known_from: datetime
    event_time: datetime | None
    origin: str
    content: str | None
    status: DocumentStatus = "embedded"
    error: str | None = None
    source_type: SourceType = "manual"
    id: str | None = None
