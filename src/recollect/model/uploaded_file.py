"""Files that were sent to be kept, before anybody said which collection they are for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

_NAME = re.compile(r"file-([1-9][0-9]{0,17})", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadedFile:
    """A file that was sent to be kept; no search finds it until a collection is given it.

    Attributes:
        file_id: Of the numbers of documents: no document has the same one.
        name: As its sender wrote it, without folders.
        mime_type: As its sender declared it.
        byte_count: Its length.
        file_hash: SHA-256 of its bytes.
        purpose: What it was sent for, in its sender's words.
        sent_by: The user who sent it; None: the store's owner, or nobody by name.
        created_at: When it came.
        expires_at: When it goes, and what was made of it is closed; None: when it is deleted.
    """

    file_id: int
    name: str
    mime_type: str
    byte_count: int
    file_hash: bytes = field(repr=False)
    purpose: str
    sent_by: str | None
    created_at: datetime
    expires_at: datetime | None

    @property
    def source(self) -> str:
        """The source that documents belong to which are made from it."""
        return source_of_file(self.file_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileUse:
    """What a collection is to make of a file.

    Attributes:
        file_id: Which one.
        metadata: Of the document, beside what the file says of itself.
        department: Of the document, where the file names none.
        chunk_tokens: The most tokens in a chunk; None: as the collection cuts.
        overlap_tokens: The most tokens that a chunk repeats of the one before it; None: the same.
    """

    file_id: int
    metadata: Mapping[str, Any] = field(default_factory=dict)
    department: str | None = None
    chunk_tokens: int | None = None
    overlap_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchedJob:
    """A job that was asked for together with others.

    Attributes:
        job_id: Within its tenant.
        status: As `Job` has it.
        created_at: When it was asked for.
        collection: Where it writes.
        document_id: The document that it stores; None: it is gone.
    """

    job_id: int
    status: str
    created_at: datetime
    collection: str | None
    document_id: int | None


def source_of_file(file_id: int) -> str:
    """The source that documents belong to which are made from a file."""
    return f"file-{file_id}"


def file_of_source(source: str) -> int | None:
    """The file that a source is named after; None: it is none of these."""
    found = _NAME.fullmatch(source)
    return None if found is None else int(found[1])
