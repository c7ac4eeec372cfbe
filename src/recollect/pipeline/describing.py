"""Saying something else of documents whose text stays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from recollect.errors import NotFoundError, VersionChangedError
from recollect.model import Document, IngestResult
from recollect.pipeline.door import make_door
from recollect.pipeline.preparing import make_preparer
from recollect.pipeline.rereading import place_of, time_left

if TYPE_CHECKING:
    from recollect.model import Scope
    from recollect.model.original import Original
    from recollect.pipeline.standpoint import Standpoint
    from recollect.store.contents import Places


def update(at: Standpoint, document: int | str, said: Mapping[str, Any], *, if_version: int | None) -> IngestResult:
    """Give a document a title, metadata, tags or a department; see `Documents.update`."""
    from recollect.ingest.documents import BatchWriter
    from recollect.ingest.prepare import require_storable
    from recollect.store.contents import Places

    present = at.present()
    document_id = at.resolve(present, document)
    at.store.documents.require_changeable(present, [document_id])
    with place_of(at, present, document_id) as (scope, place, record):
        if if_version is not None and record.version != if_version:
            raise VersionChangedError(
                f"The document {document_id} is at version {record.version} by now, not {if_version}: read it again."
            )
        if all(getattr(record, name) == value for name, value in said.items()):
            return IngestResult(document_id, record.version, "unchanged", record.chunk_count)
        anew = replace(_stored(at, scope, Places(collection_ids=(place.collection_id,)), document_id), **said)
        require_storable(anew)
        preparer = make_preparer(at.assembly, scope, place, door=make_door(at.assembly, scope))
        batch_writer = BatchWriter(preparer, at.store.collections, at.store.writer, scope=scope, collection=place)
        cut = preparer.cut(anew, preparer.fingerprint({}))
        # What was read here is what is replaced: not what another has stored meanwhile.
        written = batch_writer.rewrite(document_id, cut, force=True, if_version=record.version, read_alike=True)
        batch_writer.finish()
    shared = {name: said[name] for name in ("tags", "department") if name in said}
    for attached in at.store.attachments.current(present, document_id) if shared else ():
        update(at, attached, shared, if_version=None)
    return written


def _stored(at: Standpoint, scope: Scope, places: Places, document_id: int) -> Document:
    """A stored document as it would be ingested."""
    record = at.store.documents.get(scope, document_id)
    version = at.store.history.versions(scope, document_id).versions[-1]
    headings, pages = at.store.contents.structure(scope, places, document_id)
    return Document(
        content=record.content or "",
        source=record.source,
        id=record.id,
        title=record.title,
        metadata=record.metadata,
        tags=record.tags,
        department=record.department,
        mime_type=record.mime_type,
        language=record.language,
        headings=headings,
        pages=pages,
        event_time=version.event_time,
        event_end=version.event_end,
        ttl=time_left(version),
        original=_original(at, scope, places, document_id),
    )


def _original(at: Standpoint, scope: Scope, places: Places, document_id: int) -> Original | None:
    try:
        return at.store.contents.original(scope, places, document_id)
    except NotFoundError:
        return None
