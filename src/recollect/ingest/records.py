"""Documents as JSON Lines: the form that collections are exported to and imported from.

One line is one document. The full form is what `export` writes::

    {"source": "hr/leave.md", "content": "…", "title": "…", "metadata": {…}, "tags": […], "department": "hr",
     "event_time": "2026-01-01T00:00:00+00:00", "headings": [[1, "Leave", 0, 7]], "pages": [[1, 0, 380]],
     "attached_to": "hr/mail.eml", "origin": "/srv/handbook", "permissions": ["role:hr"], "readers": ["role:staff"],
     "id": "leave-1", "expires_at": "2027-01-01T00:00:00+00:00", "owner": "ann", "twin": 7,
     "original": {"name": "leave.md", "mime_type": "text/markdown", "sha256": "…", "data": "…"},
     "chunks": [{"start_offset": 0, "end_offset": 380, "embedding": [0.1, …], "section": ["…"], "page": 1,
                 "context": "…", "context_by": "…"}]}

``origin`` is the folder, the site or the other place that a document came from: once that is read here, it meets the
document. ``readers`` are those of the whole collection. ``owner`` is the writer who stored it, ``twin`` tells apart
what that writer stored under one name. ``permissions`` of ``!*`` without a grant are for the collection's owners alone.
``id`` identifies the document whatever its source is; without it, the source does. ``attached_to`` is the source of the
message that a document is attached to, which stands in the file too or is in the store, and ``attached_to_id`` that
message's id, where it has one; ``data`` is the file in base64; ``headings`` are level, title, start and end, ``pages``
number, start and end, and of PDF files the lines: as `export` packs them, or a list of start, end, left, top, right and
bottom edge in ten thousandths of the page. Only ``content`` is required: without ``chunks`` the document is cut and
embedded, and chunks without ``embedding`` are embedded. The flat form, one line a chunk, is what most other stores
give: ``{"id", "text", "embedding", "metadata"}``.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from recollect.errors import UsageError
from recollect.ingest.line_files import MAX_LINE_BYTES, numbered_lines, require_file, too_long
from recollect.model import Chunk, Document, LineBox
from recollect.model.original import Original
from recollect.model.outline import Heading, PageSpan
from recollect.model.principal import Principal, read_permissions

_MAX_CONTEXT_CHARACTERS = 4_000


class _Record(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=False)


class ChunkRecord(_Record):
    """A chunk of the full form."""

    start_offset: Annotated[int, Field(ge=0)]
    end_offset: Annotated[int, Field(gt=0)]
    embedding: list[float] | None = None
    section: list[str] = []
    page: int | None = None
    token_count: int = 0
    parent: tuple[int, int] | None = None
    metadata: dict[str, Any] = {}
    context: Annotated[str, Field(max_length=_MAX_CONTEXT_CHARACTERS)] = ""
    context_by: str | None = None


class OriginalRecord(_Record):
    """The file that a document was read from."""

    name: str
    mime_type: str
    sha256: str
    data: Annotated[bytes, Field(repr=False)]


#: A line of a page: start and end, left, upper, right and lower edge.
LineRecord = tuple[int, int, int, int, int, int]


class DocumentRecord(_Record):
    """A line of either form."""

    content: str | None = None
    text: str | None = None
    source: str | None = None
    id: str | int | None = None
    title: str | None = None
    metadata: dict[str, Any] | None = None
    tags: list[str] = []
    department: str | None = None
    language: str | None = None
    mime_type: str = "text/plain"
    event_time: datetime | None = None
    event_end: datetime | None = None
    ttl: str | float | None = None
    permissions: list[str] | str | None = None
    expires_at: datetime | None = None
    origin: Annotated[str, Field(min_length=1)] | None = None
    readers: list[str] | None = None
    owner: str = ""
    twin: Annotated[int, Field(ge=0, lt=2**63)] = 0
    attached_to: str | None = None
    attached_to_id: str | None = None
    headings: list[tuple[int, str, int, int]] = []
    pages: list[tuple[int, int, int] | tuple[int, int, int, list[LineRecord] | str]] = []
    original: OriginalRecord | None = None
    chunks: list[ChunkRecord] | None = None
    embedding: list[float] | None = None


@dataclass(frozen=True, slots=True)
class ImportedDocument:
    """A document, its chunks where they were given, and their vectors where all of them had one.

    Attributes:
        line: Where it stood in the file, from 1.
        chunks: None: the document is still to be cut.
        embeddings: float32 array of shape (chunks, dimension), as given; None: the chunks are still to be embedded.
        attached_to: The source of the message that it is attached to.
        attached_to_id: The id that this message was given; None: its source identifies it.
        origin: What its source is called; None: documents that are given by hand.
        readers: For whom alone the collection exists that it was in; none: everybody.
        owner: The writer who stored it there; empty: the collection's owners.
        twin: Which of the owner's documents of its name it was there, where these are several.
        expires_at: When it ends; None: as its ``ttl`` says.
    """

    line: int
    document: Document
    chunks: tuple[Chunk, ...] | None
    embeddings: np.ndarray[Any, np.dtype[np.float32]] | None
    attached_to: str | None = None
    attached_to_id: str | None = None
    origin: str | None = None
    readers: tuple[str, ...] = ()
    owner: str = ""
    twin: int = 0
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that holds no document, and why."""

    line: int
    reason: str


def read_records(path: Path) -> Iterator[ImportedDocument | BadLine]:
    """The documents of a JSON Lines file, one at a time; empty lines are passed over.

    Raises:
        NotFoundError: There is no such file.
    """
    require_file(path)
    with path.open("rb") as file:
        yield from records_of(file)


def records_of(file: IO[bytes], *, most: int = MAX_LINE_BYTES, first: int = 1) -> Iterator[ImportedDocument | BadLine]:
    """As `read_records`, of a file that is open.

    Args:
        file: Read from where it is.
        most: Bytes of a line at most.
        first: The number of the first line.
    """
    for number, line in numbered_lines(file, most=most, first=first):
        yield BadLine(number, too_long(most)) if len(line) > most else _read_line(line, number)


def _read_line(line: bytes, number: int) -> ImportedDocument | BadLine:
    try:
        record = DocumentRecord.model_validate_json(line)
        return _imported(record, number)
    except ValidationError as exc:
        error = exc.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in error["loc"])
        return BadLine(number, f"{place}: {error['msg']}" if place else error["msg"])
    except (ValueError, UsageError) as exc:
        return BadLine(number, str(exc))


def _imported(record: DocumentRecord, number: int) -> ImportedDocument:
    content = record.content if record.content is not None else record.text
    if not content or not content.strip():
        raise ValueError("has neither 'content' nor 'text', or it is empty")
    document = Document(
        content=content,
        source=record.source,
        id=None if record.id is None else str(record.id),
        title=record.title,
        metadata=record.metadata or {},
        tags=tuple(record.tags),
        department=record.department,
        language=record.language,
        mime_type=record.mime_type,
        event_time=_aware(record.event_time),
        permissions=_permissions(record.permissions),
        event_end=_aware(record.event_end),
        ttl=record.ttl,
        headings=tuple(Heading(*one) for one in record.headings),
        pages=tuple(PageSpan.of_list(one) for one in record.pages),
    )
    _require_outline(document)
    if record.original is not None:
        original = _original(record.original)
        document = replace(document, original=original, file_hash=original.file_hash)
    given = record.chunks
    if given is None and record.embedding is not None:
        given = [ChunkRecord(start_offset=0, end_offset=len(content), embedding=record.embedding)]
    return ImportedDocument(
        line=number,
        document=document,
        chunks=_chunks(given, content) if given else None,
        embeddings=_embeddings(given) if given else None,
        attached_to=record.attached_to,
        attached_to_id=record.attached_to_id,
        origin=record.origin,
        readers=() if record.readers is None else read_permissions(record.readers, name="readers").grants,
        owner=record.owner and (Principal(user_id=record.owner).user_id or ""),
        twin=record.twin,
        expires_at=_aware(record.expires_at),
    )


def _permissions(given: list[str] | str | None) -> tuple[str, ...] | None:
    return None if given is None else read_permissions(given).as_tokens()


def _aware(moment: datetime | None) -> datetime | None:
    # Times without a zone are read as UTC, here as everywhere.
    return moment.replace(tzinfo=UTC) if moment is not None and moment.tzinfo is None else moment


def _chunks(given: Sequence[ChunkRecord], content: str) -> tuple[Chunk, ...]:
    ordered = sorted(given, key=lambda chunk: (chunk.start_offset, chunk.end_offset))
    if ordered != list(given):
        raise ValueError("its chunks are not in order of their start offsets")
    for chunk in given:
        _require_inside(chunk, len(content))
    return tuple(
        Chunk(
            text=content[chunk.start_offset : chunk.end_offset],
            position=position,
            start_offset=chunk.start_offset,
            end_offset=chunk.end_offset,
            section=tuple(chunk.section),
            page=chunk.page,
            token_count=chunk.token_count,
            parent=chunk.parent,
            metadata=chunk.metadata,
            context=chunk.context,
            context_by=chunk.context_by,
        )
        for position, chunk in enumerate(given)
    )


def _require_outline(document: Document) -> None:
    lines = (line for page in document.pages for line in page.lines)
    parts: Sequence[Heading | PageSpan | LineBox] = (*document.headings, *document.pages, *lines)
    spans = [(one.start_offset, one.end_offset) for one in parts]
    if any(not 0 <= start <= end <= len(document.content) for start, end in spans):
        raise ValueError("has a heading or a page outside its content")


def _original(record: OriginalRecord) -> Original:
    try:
        data = base64.b64decode(record.data, validate=True)
    except binascii.Error:
        raise ValueError("has an original that is not base64") from None
    original = Original.of_bytes(data, name=record.name, mime_type=record.mime_type)
    if original.file_hash.hex() != record.sha256:
        raise ValueError("has an original that is not the one of its hash (sha256)")
    return original


def _require_inside(chunk: ChunkRecord, length: int) -> None:
    start, end = chunk.start_offset, chunk.end_offset
    if not start < end <= length:
        raise ValueError(f"has a chunk from {start} to {end}, outside its {length} characters")
    if chunk.parent is None:
        return
    outer_start, outer_end = chunk.parent
    if not 0 <= outer_start <= start < end <= outer_end <= length:
        raise ValueError(
            f"has a chunk from {start} to {end} with a parent from {outer_start} to {outer_end}: a parent contains its "
            f"chunk, within the {length} characters of the document"
        )


def _embeddings(given: Sequence[ChunkRecord]) -> np.ndarray[Any, np.dtype[np.float32]] | None:
    vectors = [chunk.embedding for chunk in given if chunk.embedding is not None]
    if len(vectors) < len(given):
        return None
    if len({len(vector) for vector in vectors}) > 1:
        raise ValueError("its embeddings have different lengths")
    matrix = np.asarray(vectors, dtype=np.float32)
    norms = np.linalg.norm(matrix, axis=1, keepdims=True)
    if not np.isfinite(matrix).all() or not norms.all():
        raise ValueError("has an embedding that is zero or not finite")
    result: np.ndarray[Any, np.dtype[np.float32]] = matrix / norms
    return result


def to_line(document: Mapping[str, Any]) -> str:
    """One line of the full form, with its line end."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")) + "\n"
