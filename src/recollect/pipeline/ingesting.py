"""Storing documents where a view writes: texts, files and folders, and JSON Lines."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.documents.walk import require_roots
from recollect.errors import UsageError
from recollect.model import Document, IngestResult, Scope
from recollect.model.arguments import require_no_path
from recollect.model.principal import read_permissions
from recollect.pipeline.preparing import ChunkSizes, ensure_collection, make_door, make_preparer
from recollect.pipeline.standpoint import Standpoint, session_place

if TYPE_CHECKING:
    from recollect.ingest.documents import BatchWriter
    from recollect.ingest.folder import FolderIngest
    from recollect.ingest.prepare import Preparer
    from recollect.ingest.records import BadLine, ImportedDocument
    from recollect.ingest.report import IngestReport, ProgressCallback
    from recollect.jobs.progress import Progress
    from recollect.model.collection import Collection
    from recollect.store.documents import Source


logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Destination:
    """Where documents go, and what takes them there."""

    scope: Scope
    collection: Collection
    preparer: Preparer
    batch_writer: BatchWriter


def store_documents(at: Standpoint, documents: Iterable[Document | str], *, force: bool) -> list[IngestResult]:
    """Store documents, or texts, in batches that are transactions; returns what became of each, in order."""
    from recollect.ingest.documents import ingest_documents

    with destination(at) as target:
        return ingest_documents(
            (Document(content=item) if isinstance(item, str) else item for item in documents),
            scope=target.scope,
            preparer=target.preparer,
            batch_writer=target.batch_writer,
            repository=at.store.documents,
            collection=target.collection,
            force=force,
            keep_originals=at.config.ingest.keep_originals != "never",
        )


@dataclass(frozen=True, kw_only=True)
class FileOptions:
    """How files are stored; see `View.ingest`, and of ``apart`` `FolderIngest`."""

    force: bool = False
    follow_links: bool | None = None
    tags: Sequence[str] = ()
    permissions: Sequence[str] | None = None
    on_progress: ProgressCallback | None = None
    apart: Sequence[str] | None = None


def store_files(at: Standpoint, paths: Sequence[Path], options: FileOptions, *, sync: bool) -> IngestReport:
    """Store files and folders; the arguments are those of `View.ingest`."""
    # Before the collection is made: what is refused leaves nothing behind.
    require_roots(paths)
    with _folder_ingest(at, options) as run:
        return run.run(paths, sync=sync)


def store_changes(at: Standpoint, folder: Path, changed: Sequence[Path], options: FileOptions) -> IngestReport:
    """Store what has changed below a folder that was stored whole, and close what has gone from it."""
    with _folder_ingest(at, options) as run:
        return run.update(folder, changed)


@contextmanager
def _folder_ingest(at: Standpoint, options: FileOptions) -> Iterator[FolderIngest]:
    from recollect.ingest.folder import FolderIngest

    granted = None if options.permissions is None else read_permissions(options.permissions).as_tokens()
    store, settings = at.store, at.config.ingest
    with destination(at, on_progress=options.on_progress) as target:
        scope, place = target.scope, target.collection

        def give_default(source_ids: Sequence[int]) -> int:
            return store.access.apply_default(scope, place, source_ids, store.writer.default_permissions)

        yield FolderIngest(
            scope=scope,
            collection=place,
            preparer=target.preparer,
            batch_writer=target.batch_writer,
            repository=store.documents,
            writer=store.writer,
            workers=at.assembly.parser_workers,
            readers=settings.readers,
            max_file_bytes=settings.max_file_bytes,
            follow_links=settings.follow_links if options.follow_links is None else options.follow_links,
            tags=tuple(options.tags),
            permissions=granted,
            keep_originals=settings.keep_originals == "always",
            force=options.force,
            on_progress=options.on_progress,
            give_default=None if place.hidden else give_default,
            apart=None if options.apart is None else frozenset(options.apart),
        )


def store_file_of_lines(
    at: Standpoint, path: Path, *, force: bool, on_progress: ProgressCallback | None
) -> IngestReport:
    """Store the documents of a file of JSON Lines."""
    from recollect.ingest.line_files import require_file
    from recollect.ingest.records import read_records

    require_file(path)
    return store_records(at, read_records(path), named=str(path), force=force, on_progress=on_progress)


def store_records(
    at: Standpoint,
    records: Iterable[ImportedDocument | BadLine],
    *,
    named: str,
    force: bool,
    on_progress: ProgressCallback | None = None,
) -> IngestReport:
    """Store documents of JSON Lines; ``named`` is what they stand in."""
    from recollect.ingest.records import Importer

    with destination(at, on_progress=on_progress) as target:
        importer = Importer(
            scope=target.scope,
            collection=target.collection,
            preparer=target.preparer,
            batch_writer=target.batch_writer,
            repository=at.store.documents,
            attachments=at.store.attachments,
            access=at.store.access,
            keep_originals=at.config.ingest.keep_originals != "never",
            on_progress=on_progress,
        )
        return importer.run(records, named=named, force=force)


@contextmanager
def destination(
    at: Standpoint, *, sizes: ChunkSizes | None = None, on_progress: ProgressCallback | None = None
) -> Iterator[Destination]:
    """Where a view writes: its session, or its collection, which the unrestricted caller makes where it is missing.

    What has grown large enough is indexed at the end.
    """
    from recollect.ingest.documents import BatchWriter

    with _place(at) as (scope, place):
        prepare = partial(make_preparer, at.assembly, scope, door=make_door(at.assembly, scope), sizes=sizes)
        preparer = prepare(place)
        batch_writer = BatchWriter(
            preparer, at.store.collections, at.store.writer, scope=scope, collection=place, renew=prepare
        )
        yield Destination(scope, place, preparer, batch_writer)
        _index_if_due(at, replace(scope, principal=None), place, on_progress=on_progress)


def store_in_stages(
    place: Destination,
    source: Source,
    document: Document,
    *,
    given: Mapping[str, object],
    force: bool,
    progress: Progress,
) -> tuple[str | None, IngestResult]:
    """Store one document that a job is about, telling the stages ``cut``, ``embed`` and ``store``.

    Returns:
        The title that it is stored under, and what became of it.

    Args:
        place: Where.
        source: What it belongs to.
        document: What is stored.
        given: What its version depends on besides the document and how it is cut.
        force: Whether to store it anew, changed or not.
        progress: Told.
    """
    cut = place.preparer.cut(document, place.preparer.fingerprint({**given, **source.given}), source.metadata)
    chunks = len(cut.chunks)
    progress("cut", chunks, chunks)
    embedded = place.preparer.embed([cut])
    progress("embed", chunks, chunks)
    (written,) = place.batch_writer.write(source, [cut], embedded, force=force)
    place.batch_writer.refresh_statistics()
    progress("store", 1, 1)
    return cut.document.title, written


def told(source: Source, title: str | None, written: IngestResult) -> dict[str, Any]:
    """What became of one document, as the result of a job."""
    return {
        "status": written.status,
        "document_id": written.document_id,
        "version": written.version,
        "chunks": written.chunk_count,
        "source": source.name,
        "title": title,
    }


@contextmanager
def _place(at: Standpoint) -> Iterator[tuple[Scope, Collection]]:
    scope, collections = at.present(), at.store.collections
    if at.session is not None:
        with session_place(at, scope) as (own, place):
            collections.require_writer(own, place)
            yield replace(own, ranked_for=None), place
        return
    if scope.principal is not None:
        collections.require_writer(scope, at.place(scope))
    yield scope, ensure_collection(at, at.collection)


def _index_if_due(
    at: Standpoint, scope: Scope, place: Collection, *, on_progress: ProgressCallback | None = None
) -> None:
    """Build the approximate indexes of a collection that has grown large enough for them."""
    for indexer in (at.store.dense_indexer, at.store.history_indexer):
        if not indexer.due(scope, place.name):
            continue
        if not at.store.database.has_sessions():
            logger.warning(
                "The collection %r is large enough for an index, which is not built through a connection pooler: its "
                "searches compare every chunk. Let dsn name the server itself; application_dsn may name the pooler.",
                place.name,
            )
            return
        if on_progress:
            from recollect.ingest.report import IngestProgress

            on_progress(IngestProgress(done=0, total=0, chunks=0, stage="index"))
        indexer.build(scope, place.name)


def sorted_out(several: Iterable[Document | str | Path]) -> tuple[Iterable[Document | str], list[Path]]:
    """Documents or paths, whichever they are by the first of them; documents are not read ahead."""
    if isinstance(several, list | tuple):
        # Before anything is made for them: what is refused leaves no collection behind.
        for one in several:
            if isinstance(one, str):
                require_no_path(one)
    items = iter(several)
    first = next(items, None)
    if isinstance(first, Path):
        rest = list(items)
        if all(isinstance(one, Path) for one in rest):
            return (), [first, *rest]  # type: ignore[list-item]
        raise UsageError("Documents and files are ingested one after the other: give paths alone, or none.")
    return _documents(() if first is None else chain([first], items)), []


def _documents(items: Iterable[Document | str | Path]) -> Iterator[Document | str]:
    for item in items:
        if isinstance(item, Path):
            raise UsageError("Documents and files are ingested one after the other: give paths alone, or none.")
        if isinstance(item, str):
            require_no_path(item)
        yield item
