"""Storing documents in a collection that was found or made: the steps that every way of ingesting shares."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.model import Document

if TYPE_CHECKING:
    from recollect.config import IngestConfig
    from recollect.ingest.report import IngestReport, IngestResult, ProgressCallback
    from recollect.model import Scope
    from recollect.pipeline.parts import Parts
    from recollect.store.collections import Collection


logger = logging.getLogger(__name__)


def ingest_documents_into(
    parts: Parts, scope: Scope, place: Collection, documents: Iterable[Document | str], *, force: bool = False
) -> list[IngestResult]:
    """Store documents, or texts, in batches that are transactions; returns what became of each, in order."""
    from recollect.ingest.documents import ingest_documents

    preparer = parts.preparer(scope, place)
    results = ingest_documents(
        (Document(content=item) if isinstance(item, str) else item for item in documents),
        scope=scope,
        preparer=preparer,
        batch_writer=parts.batch_writer(scope, place, preparer),
        repository=parts.store.documents,
        collection=place,
        force=force,
    )
    index_if_due(parts, replace(scope, principal=None), place)
    return results


def ingest_paths_into(
    parts: Parts,
    scope: Scope,
    place: Collection,
    paths: Sequence[Path | str],
    *,
    settings: IngestConfig,
    sync: bool = False,
    force: bool = False,
    follow_links: bool | None = None,
    tags: Sequence[str] = (),
    permissions: tuple[str, ...] | None = None,
    on_progress: ProgressCallback | None = None,
) -> IngestReport:
    """Store files and folders; the arguments are those of `RAGPipeline.ingest_paths`."""
    from recollect.ingest.folder import FolderIngest

    def give_default(source_ids: Sequence[int]) -> int:
        return parts.store.access.apply_default(scope, place, source_ids, parts.store.writer.default_permissions)

    preparer = parts.preparer(scope, place)
    run = FolderIngest(
        scope=scope,
        collection=place,
        preparer=preparer,
        batch_writer=parts.batch_writer(scope, place, preparer),
        repository=parts.store.documents,
        writer=parts.store.writer,
        workers=parts.parser_workers,
        readers=settings.readers,
        max_file_bytes=settings.max_file_bytes,
        follow_links=settings.follow_links if follow_links is None else follow_links,
        tags=tags,
        permissions=permissions,
        force=force,
        on_progress=on_progress,
        give_default=None if place.hidden else give_default,
    )
    report = run.run([Path(path) for path in paths], sync=sync)
    index_if_due(parts, replace(scope, principal=None), place, on_progress=on_progress)
    return report


def index_if_due(parts: Parts, scope: Scope, place: Collection, *, on_progress: ProgressCallback | None = None) -> None:
    """Build the approximate indexes of a collection that has grown large enough for them."""
    for indexer in (parts.store.dense_indexer, parts.store.history_indexer):
        if not indexer.due(scope, place.name):
            continue
        if not parts.store.database.has_sessions():
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
