"""Documents as JSON Lines: what collections are exported to, and how that is imported.

One line is one document. The full form is what `export` writes::

    {"source": "hr/leave.md", "content": "…", "title": "…", "metadata": {…}, "tags": […], "department": "hr",
     "event_time": "2026-01-01T00:00:00+00:00", "headings": [[1, "Leave", 0, 7]], "pages": [[1, 0, 380]],
     "attached_to": "hr/mail.eml", "origin": "/srv/handbook", "permissions": ["role:hr"], "readers": ["role:staff"],
     "id": "leave-1", "expires_at": "2027-01-01T00:00:00+00:00", "owner": "ann", "twin": 7,
     "original": {"name": "leave.md", "mime_type": "text/markdown", "sha256": "…", "data": "…"},
     "chunks": [{"start_offset": 0, "end_offset": 380, "vector": "ZipmnA…", "section": ["…"], "page": 1,
                 "context": "…", "context_by": "…"}]}

``vector`` holds the numbers of a chunk's embedding in half precision, little-endian, as base64: a third of the bytes of
``"embedding": [0.1, …]``, which is read too, and read several times as fast.

``origin`` is the folder, the site or the other place that a document came from: once that is read here, it meets the
document. ``readers`` are those of the whole collection. ``owner`` is the writer who stored it, ``twin`` tells apart
what that writer stored under one name. ``permissions`` of ``!*`` without a grant are for the collection's owners alone.
``id`` identifies the document whatever its source is; without it, the source does. ``attached_to`` is the source of the
message that a document is attached to, which stands in the file too or is in the store, and ``attached_to_id`` that
message's id, where it has one; ``data`` is the file in base64; ``headings`` are level, title, start and end, ``pages``
number, start and end, and of PDF files the lines: as `export` packs them, or a list of start, end, left, top, right and
bottom edge in ten thousandths of the page. Only ``content`` is required: without ``chunks`` the document is cut and
embedded, and chunks without a vector are embedded. The flat form, one line a chunk, is what most other stores
give: ``{"id", "text", "embedding", "metadata"}``.
"""

from __future__ import annotations

import base64
import binascii
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from recollect.errors import PermissionDeniedError, RecollectError, UsageError
from recollect.ingest.documents import batches, embed_and_write
from recollect.ingest.line_files import MAX_LINE_BYTES, numbered_lines, require_file, too_long
from recollect.ingest.prepare import MAX_NAME_BYTES, CutDocument, Embedded, Preparer, require_storable, storable
from recollect.ingest.report import EXPIRED, IngestProgress, IngestReport, ProgressCallback, Tally
from recollect.ingest.roots import Origins
from recollect.model import Chunk, Document, LineBox
from recollect.model.original import Original
from recollect.model.outline import Heading, PageSpan
from recollect.model.principal import EVERYONE, Principal, read_permissions
from recollect.model.source import MANUAL_SOURCE
from recollect.store.prepared import Identity

if TYPE_CHECKING:
    from recollect.embedding.base import Vectors
    from recollect.ingest.documents import BatchWriter
    from recollect.model import IngestResult, Scope
    from recollect.model.collection import Collection
    from recollect.store.access import AccessRepository
    from recollect.store.closing import AttachmentRepository
    from recollect.store.documents import DocumentRepository, Source


_MAX_CONTEXT_CHARACTERS = 4_000

# Longer documents are stored in smaller batches, so that little is in memory.
_LIGHT_CHARACTERS = 100_000


class _Record(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=False)


# Pydantic copies a default for each record, with steps of Python, and calls a factory without.
_LIST: Any = Field(default_factory=list)
_DICT: Any = Field(default_factory=dict)


class ChunkRecord(_Record):
    """A chunk of the full form."""

    start_offset: Annotated[int, Field(ge=0)]
    end_offset: Annotated[int, Field(gt=0)]
    embedding: list[float] | None = None
    vector: bytes | None = None
    section: list[str] = _LIST
    page: int | None = None
    token_count: int = 0
    parent: tuple[int, int] | None = None
    metadata: dict[str, Any] = _DICT
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
    tags: list[str] = _LIST
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
    headings: list[tuple[int, str, int, int]] = _LIST
    pages: list[tuple[int, int, int] | tuple[int, int, int, list[LineRecord] | str]] = _LIST
    original: OriginalRecord | None = None
    chunks: list[ChunkRecord] | None = None
    embedding: list[float] | None = None
    vector: bytes | None = None


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
    vector = {"embedding": record.embedding, "vector": record.vector}
    if given is None and any(one is not None for one in vector.values()):
        given = [ChunkRecord(start_offset=0, end_offset=len(content), **vector)]
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
    vectors = [
        _unpacked(chunk.vector) if chunk.embedding is None else chunk.embedding
        for chunk in given
        if chunk.embedding is not None or chunk.vector is not None
    ]
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


def _unpacked(vector: bytes | None) -> np.ndarray[Any, Any]:
    try:
        return np.frombuffer(binascii.a2b_base64(vector or b"", strict_mode=True), dtype="<f2")
    except ValueError:  # binascii.Error is one
        raise ValueError("has a vector that is not base64 of half-precision numbers") from None


def to_line(document: Mapping[str, Any]) -> str:
    """One line of the full form, with its line end."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")) + "\n"


# Collections from JSON Lines, of any size in bounded memory.


# What a version depends on, too; documents that never had it keep the fingerprint of before.
_ALSO = ("event_time", "event_end", "permissions")


@dataclass(frozen=True, slots=True)
class _Item:
    line: int
    cut: CutDocument
    embeddings: Vectors | None
    source: Source
    attached_to: Identity | None


def _is_light(item: _Item) -> bool:
    document = item.cut.document
    return item.embeddings is not None and document.original is None and len(document.content) <= _LIGHT_CHARACTERS


@dataclass(kw_only=True, eq=False, repr=False)
class Importer:
    """Reads documents of JSON Lines into a collection.

    Attributes:
        scope: The tenant.
        collection: Where the documents go.
        preparer: Cuts and embeds what comes without chunks or vectors.
        batch_writer: Stores.
        repository: Makes the source that the documents belong to.
        attachments: Hangs what is attached to messages on them.
        access: Keeps the collection as closed as the one that documents come from.
        keep_originals: Whether the files that documents come with are kept.
        on_progress: Told after every batch.
    """

    scope: Scope
    collection: Collection
    preparer: Preparer
    batch_writer: BatchWriter
    repository: DocumentRepository
    attachments: AttachmentRepository
    access: AccessRepository
    keep_originals: bool = True
    on_progress: ProgressCallback | None = None
    _tally: Tally = field(init=False, default_factory=Tally)
    _done: int = field(init=False, default=0)
    _loose: dict[int, Identity] = field(init=False, default_factory=dict)
    _readers: Sequence[str] = field(init=False, default=(EVERYONE,))

    @cached_property
    def _origins(self) -> Origins:
        door = self.preparer.door
        return Origins(self.scope, self.repository, self.collection, str if door is None else door.name)

    def run(self, records: Iterable[ImportedDocument | BadLine], *, named: str, force: bool = False) -> IngestReport:
        """Import documents; a bad line is reported and does not stop the others.

        Args:
            records: Of lines.
            named: What they stand in, for the report.
            force: Store every document anew, changed or not.

        Raises:
            StoreUnavailableError: The database went away; what was stored before is safe.
        """
        start = time.perf_counter()

        def write(batch: list[_Item], embedded: Sequence[Embedded]) -> None:
            cuts = [item.cut for item in batch]
            outcomes = self.batch_writer.write_each(batch[0].source, cuts, embedded, force=force)
            self._tally.count_each([f"{named}:{item.line}" for item in batch], outcomes)
            self._hang(zip(batch, outcomes, strict=True))
            self._advance(len(batch))

        items = self._items(records, named)
        grouped = batches(
            items, cut=lambda item: item.cut, source_id=lambda item: item.source.source_id, light=_is_light
        )
        embed_and_write(grouped, self._embed, write)
        # Those whose message came behind them.
        self.attachments.hang(self.scope, self._loose)
        self.batch_writer.finish()
        return self._tally.report(time.perf_counter() - start)

    def _hang(self, written: Iterable[tuple[_Item, IngestResult | RecollectError]]) -> None:
        """Hang attachments on their messages: a killed import, begun anew, finds them stored and hangs them then."""
        attached = {
            result.document_id: item.attached_to
            for item, result in written
            if item.attached_to is not None and not isinstance(result, RecollectError)
        }
        loose = self.attachments.hang(self.scope, attached)
        self._loose |= {document_id: attached[document_id] for document_id in loose}

    def _items(self, records: Iterable[ImportedDocument | BadLine], named: str) -> Iterator[_Item]:
        for record in records:
            if isinstance(record, BadLine):
                self._tally.fail(f"{named}:{record.line}", record.reason)
                continue
            lifetime = None if record.expires_at is None else record.expires_at - datetime.now(UTC)
            if lifetime is not None and lifetime <= timedelta(0):
                self._tally.skip(EXPIRED, f"{named}:{record.line}", "its time is over")
                continue
            try:
                self._require_as_closed(record.readers)
                yield self._item(record, lifetime)
            except (UsageError, PermissionDeniedError) as exc:
                self._tally.fail(f"{named}:{record.line}", str(exc))

    def _require_as_closed(self, readers: Sequence[str]) -> None:
        """Nobody reads by an import what they could not read where it comes from.

        A collection without documents is closed to all but its readers there.

        Raises:
            UsageError: The collection is in use, and others read it.
            PermissionDeniedError: The scope's principal may not close it.
        """
        if not readers or EVERYONE in readers or self.collection.hidden:
            return
        place, everything = self.collection, replace(self.scope, principal=None)
        if set(self._readers) <= set(readers):
            return
        self._readers = self.access.of_collection(everything, place).readers
        if not set(self._readers) <= set(readers):
            self.access.close_unused(self.scope, place, readers)
            # Somebody else may have closed it at the same time.
            self._readers = self.access.of_collection(everything, place).readers
        if not set(self._readers) <= set(readers):
            raise UsageError(
                f"comes from a collection that only {', '.join(readers)} may read, and others read {place.name!r} "
                f"({', '.join(self._readers)}). Import into a new collection, or close this one first: recollect "
                f"grants collection -c {place.name} --reader {readers[0]}"
            )

    def _item(self, record: ImportedDocument, lifetime: timedelta | None) -> _Item:
        origin = storable(record.origin or MANUAL_SOURCE)
        if len(origin.encode()) > MAX_NAME_BYTES:
            raise UsageError(f"has an origin that is longer than {MAX_NAME_BYTES:,} bytes")
        source, uri = self._origins.place(origin, storable(record.document.source or ""))
        ttl = record.document.ttl if lifetime is None else lifetime
        record = replace(record, document=replace(record.document, source=uri or None, ttl=ttl))
        if not self.keep_originals:
            record = replace(record, document=replace(record.document, original=None))
        original = record.document.original
        contexts = [chunk.context for chunk in record.chunks or ()]
        fingerprint = self.preparer.fingerprint(
            {
                "title": record.document.title,
                "metadata": dict(record.document.metadata),
                "tags": record.document.tags,
                "department": record.document.department,
                "imported_vectors": record.embeddings is not None,
                # Only where there is something: documents that never had it keep the fingerprint of before.
                **{name: value for name in _ALSO if (value := getattr(record.document, name)) is not None},
                **({} if original is None else {"original": original.file_hash.hex()}),
                **({} if not any(contexts) else {"contexts": contexts}),
            }
        )
        dimension = self.collection.embedding_dimension
        if record.embeddings is not None and record.embeddings.shape[1] != dimension:
            raise UsageError(
                f"has embeddings of {record.embeddings.shape[1]} dimensions, but the collection "
                f"{self.collection.name!r} has {dimension}. Import into a collection of that model."
            )
        admitted = self._admitted(record) if record.chunks is not None else None
        if record.chunks is None or admitted is None:
            cut, embeddings = self.preparer.cut(record.document, fingerprint), None
        else:
            cut, embeddings = self.preparer.adopt(admitted, record.chunks, fingerprint), record.embeddings
        # What is attached to it has lines of its own. Numbers of another store are none of this one's.
        cut = replace(cut, keeps_attached=True, owner=record.owner, twin=-record.twin)
        return _Item(record.line, cut, embeddings, source, self._message(record, origin))

    def _message(self, record: ImportedDocument, origin: str) -> Identity | None:
        if record.attached_to_id:
            given_id = storable(record.attached_to_id)
            door = self.preparer.door
            return Identity(given_id if door is None else door.name(given_id), is_given_id=True)
        if record.attached_to is None:
            return None
        return Identity(self._origins.place(origin, storable(record.attached_to))[1])

    def _admitted(self, record: ImportedDocument) -> Document | None:
        """The document as it may be stored; None: its chunks were cut, and embedded, with what is taken out of it."""
        door = self.preparer.door
        if door is None:
            return record.document
        require_storable(record.document)
        admitted = door.admit(record.document)
        beside = [(dict(chunk.metadata), list(chunk.section), chunk.context) for chunk in record.chunks or ()]
        if door.policy != "tag" and (admitted.content != record.document.content or door.holds(beside)):
            return None
        return admitted

    def _embed(self, batch: Sequence[_Item]) -> list[Embedded]:
        missing = [item.cut for item in batch if item.embeddings is None]
        computed = iter(self.batch_writer.embed(missing) if missing else [])
        given = [(item.cut, item.embeddings) for item in batch if item.embeddings is not None]
        known = iter(self.preparer.complete([cut for cut, _ in given], [vectors for _, vectors in given]))
        return [next(computed if item.embeddings is None else known) for item in batch]

    def _advance(self, documents: int) -> None:
        self._done += documents
        if self.on_progress:
            self.on_progress(IngestProgress(done=self._done, total=0, chunks=self._tally.chunks))
        if self.batch_writer.statistics_lag_far():
            self.batch_writer.refresh_statistics()
