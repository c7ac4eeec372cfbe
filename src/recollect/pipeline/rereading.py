"""Reading the kept originals of documents anew, with the present settings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import PurePath
from typing import TYPE_CHECKING, Literal

from recollect.documents.reader import read_bytes
from recollect.errors import UsageError
from recollect.model.pictures import DESCRIBED, DESCRIBED_BY
from recollect.pipeline.preparing import make_door, make_preparer, shows_pictures
from recollect.pipeline.refreshing import DIRECTORY, WEB
from recollect.pipeline.search import session_place
from recollect.sources.declared import connector_class

if TYPE_CHECKING:
    from recollect.model import Document, IngestResult, Scope
    from recollect.model.collection import Collection
    from recollect.model.document_record import DocumentRecord
    from recollect.model.history import VersionRecord
    from recollect.model.original import Original
    from recollect.pipeline.standpoint import Standpoint


#: What the metadata says of how a document was read the last time.
_OF_READING = {
    *(DESCRIBED, DESCRIBED_BY, "pictures_left_out", "attachments_left_out"),
    *("pages_recognised", "pages_without_text", "pages_damaged", "drawings_not_read"),
}


def reread(at: Standpoint, document: int | str, *, force: bool) -> IngestResult:
    """Read a document's original anew; see `Documents.reread`."""
    from recollect.ingest.documents import BatchWriter, given_of
    from recollect.store.contents import Places

    present = at.present()
    document_id = at.resolve(present, document)
    at.store.documents.require_changeable(present, [document_id])
    with place_of(at, present, document_id) as (scope, place, record):
        original = at.store.contents.original(scope, Places(collection_ids=(place.collection_id,)), document_id)
        _require_size(original, at.config.ingest.max_file_bytes)
        version = at.store.history.versions(scope, document_id).versions[-1]
        apart = _names_apart(at, scope, document_id)
        read = read_bytes(
            original.read(),
            name=original.name,
            mime_type=original.mime_type,
            attachments=not apart,
            pictures=shows_pictures(at.assembly, scope),
            workers=at.assembly.parser_workers,
        )
        anew = _merged(read, record, version)
        preparer = make_preparer(at.assembly, scope, place, door=make_door(at.assembly, scope))
        batch_writer = BatchWriter(preparer, at.store.collections, at.store.writer, scope=scope, collection=place)
        # As the next ingest of the folder or of the document would say it, so that this one finds it unchanged.
        of_folder = PurePath(record.origin).is_absolute()
        given = {"department": record.department, "tags": ()} if of_folder else given_of(anew)
        cut = preparer.cut(anew, preparer.fingerprint(given))
        rewrite = batch_writer.rewrite if apart else batch_writer.rewrite_whole
        written = rewrite(document_id, cut, force=force)
        batch_writer.finish()
    return written


def _names_apart(at: Standpoint, scope: Scope, document_id: int) -> bool:
    """Whether what is attached to a document comes from elsewhere than its file: from a connector that names it."""
    connector = at.store.sources.connector_of(scope, document_id)
    if connector in {None, DIRECTORY, WEB}:
        return at.store.attachments.names_apart(scope, document_id)
    try:
        return getattr(connector_class(connector), "names_attachments", False)
    except UsageError:  # of a package that is not installed here
        return at.store.attachments.names_apart(scope, document_id)


@contextmanager
def place_of(at: Standpoint, scope: Scope, document_id: int) -> Iterator[tuple[Scope, Collection, DocumentRecord]]:
    """Where a document is, and as it is."""
    if at.session is not None:
        with session_place(at, scope) as (own, place):
            yield own, place, at.store.documents.get(own, document_id)
        return
    record = at.store.documents.get(scope, document_id)
    yield scope, at.store.collections.get(scope, record.collection), record


def _require_size(original: Original, max_bytes: int) -> None:
    if original.byte_count > max_bytes:
        raise UsageError(
            f"The original {original.name!r} is larger than files may be ({original.byte_count:,} of {max_bytes:,} "
            "bytes): raise [rag.ingest] max_file_bytes to read it."
        )


def _merged(read: Document, record: DocumentRecord, version: VersionRecord) -> Document:
    """What was read, under what is said of the document: nobody's title, tags or grants are taken back by reading."""
    dated = record.event_time is not None
    said = {name: value for name, value in record.metadata.items() if name not in _OF_READING}
    return replace(
        read,
        source=record.source,
        id=record.id,
        title=record.title,
        metadata={**read.metadata, **said},
        tags=record.tags,
        department=record.department,
        language=record.language,
        event_time=version.event_time if dated else read.event_time,
        event_end=version.event_end if dated else read.event_end,
        permissions=None,
        ttl=time_left(version),
    )


def time_left(version: VersionRecord) -> float | Literal["never"]:
    """The seconds until a version expires, or ``"never"``, whatever is configured for documents by default."""
    if version.expires_at is None:
        return "never"
    return max((version.expires_at - datetime.now(UTC)).total_seconds(), 1.0)
