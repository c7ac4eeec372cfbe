"""The sources of a view's documents: what changes outside changes inside."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from typing_extensions import override

from recollect.errors import ConflictError, SourceError, UsageError
from recollect.ingest.prepare import storable
from recollect.model.arguments import checked
from recollect.model.page import Page, names_at
from recollect.model.principal import read_permissions
from recollect.model.source import SourceRecord
from recollect.model.time import Duration, read_duration
from recollect.operations.collections import SourceOperations
from recollect.operations.declaring import implements
from recollect.pipeline.documents import Documents
from recollect.pipeline.ingesting import FileOptions
from recollect.pipeline.preparing import ensure_collection
from recollect.pipeline.refreshing import (
    FolderGoneError,
    Watching,
    connection_of,
    keep_watched,
    own_folder,
    read_no_more,
    refresh,
    reload,
    require_folders,
    require_openable,
)
from recollect.pipeline.standpoint import EVERY_COLLECTION, Group, source_record

if TYPE_CHECKING:
    from recollect.ingest.report import IngestReport, ProgressCallback, ReloadReport

_WINDOW = 256
_MOST_METADATA_CHARACTERS = 10_000


@implements(SourceOperations)
@checked
class Sources(Group, SourceOperations):
    """Where the documents of a view's collection come from; see `recollect.View`.

    A source is named by its name. To add, refresh and remove sources is for the owner of the store: they are read with
    credentials of the machine that reads them.
    """

    def add(
        self,
        location: str,
        *,
        connector: str | None = None,
        name: str | None = None,
        settings: Mapping[str, Any] | None = None,
        every: Duration | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> SourceRecord:
        """Have a place outside read into the view's collection. Nothing is contacted before it is refreshed.

        Args:
            location: ``s3://BUCKET/PREFIX``, the URL of a Git repository, or a folder of this machine.
            connector: What reads it; None: what the location looks like.
            name: Of the source, in its collection; None: the location. Documents of the folder that are there already
                are this source's from its first refresh on.
            settings: The connector's. Credentials are given as ``env:NAME``, and read from that variable when they are
                used. Of a folder ``{"watch": True}``: a worker watches it until the source is removed.
            every: How often it is refreshed where a worker runs; None: when somebody asks.
            metadata: Given to every document of the source, for keys that the document does not have itself: to filter
                by, for instance. JSON, up to 10,000 characters.

        Raises:
            UsageError: The location, a setting or the metadata is not valid.
            ConflictError: There is a source of that name, or the folder is another source already.
            PermissionDeniedError: The view has a principal.
        """
        scope = self._at.owner()
        kept = _checked_metadata(metadata or {})
        interval = None if every is None else read_duration(every, name="every").total_seconds()
        if interval is not None and interval <= 0:
            raise UsageError(f"every must be longer than nothing, not {every!r}.")
        new = connection_of(location, connector=connector, settings=settings or {})
        require_openable(self._at, new)
        place = ensure_collection(self._at, self._at.collection)
        documents = self._at.store.documents
        if new.type == "directory":
            self._require_unread(new.location, name or new.name)
        source = documents.ensure_source(scope, place, name or new.name, new.type)
        if source.type != new.type:
            raise UsageError(
                f"The source {source.name!r} holds documents of another kind ({source.type}): give a name."
            )
        self._at.store.sources.connect(
            scope,
            source,
            connector=new.connector,
            location=new.location,
            settings=new.settings,
            interval_seconds=interval,
        )
        if kept or source.metadata:
            documents.note_source(scope, source, {"given": kept})
        record = self.get(source.name)
        keep_watched(self._at, record)
        return record

    def _require_unread(self, folder: str, name: str) -> None:
        """Raise a `ConflictError` where a folder is another source already: its documents have one name."""
        for record in self._at.store.sources.records(self._at.owner(), collection=self._at.place(self._at.owner())):
            if record.type == "directory" and record.location == folder and record.name != name:
                raise ConflictError(f"The source {record.name!r} is that folder already: remove it first.")

    def get(self, source: str) -> SourceRecord:
        """A source of the view's collection, with what is known of its refreshing.

        Raises:
            NotFoundError: There is none of that name.
        """
        return source_record(self._at, source)

    def refresh(
        self,
        source: str,
        *,
        confirm_removals: bool = False,
        anew: bool = False,
        on_progress: ProgressCallback | None = None,
    ) -> IngestReport:
        """Bring the store to what a source holds now: new, changed and gone documents, and who may read them.

        It can be interrupted at any moment: the next refresh goes on where this one was.

        Args:
            source: By name.
            confirm_removals: Close what has gone, however much it is. Otherwise, where more than half of the documents
                have gone at once (``max_removed_share``), none is closed.
            anew: Look at every item, not only at what has changed since the last refresh; what is unchanged is not
                fetched.
            on_progress: Told after every item.

        Raises:
            NotFoundError: There is no such source.
            UsageError: Nothing refreshes it: documents are put there.
            SourceError: It cannot be read, or too much has gone; then nothing is closed.
            PermissionDeniedError: The view has a principal.
        """
        record = self.get(source)
        try:
            return refresh(self._at, record, confirm_removals=confirm_removals, anew=anew, on_progress=on_progress)
        except FolderGoneError as exc:
            # Only who reads everything, and skips it, needs to tell it from other sources that cannot be read.
            raise SourceError(exc.location, exc.reason, retryable=exc.retryable) from exc

    def refresh_all(self) -> ReloadReport:
        """Bring the store to what every known source, site and folder holds now: those that were ingested, too.

        Of the view's collection, or of all of them. Each is read, also where another could not be. Of a folder that was
        ingested, what was given then is read again, with the same tags and permissions. A folder that is not there or
        empty is skipped, and its documents stay.

        Raises:
            SourceError: Some could not be read; the message names them.
            PermissionDeniedError: The view has a principal.
        """
        return reload(self._at, [*self.each()])

    @override
    def remove(self, source: str, *, documents: Literal["close", "keep", "erase"] = "close") -> int:
        scope, store = self._at.owner(), self._at.store
        record = self.get(source)
        read_no_more(self._at, record)
        held = store.documents.ensure_source(scope, self._at.place(scope), record.name, record.type)
        ids = [] if documents == "keep" else store.sources.documents(scope, held)
        done = 0
        if documents == "erase" and ids:
            Documents(self._at).erase(ids, reason=f"The source {record.name!r} was removed.")
            done = len(ids)
        elif documents == "close":
            for start in range(0, len(ids), _WINDOW):
                done += store.writer.close(scope, ids[start : start + _WINDOW])
        store.sources.disconnect(scope, held)
        shutil.rmtree(own_folder(self._at, record), ignore_errors=True)
        return done

    def watch(
        self,
        folders: Sequence[Path],
        *,
        tags: Sequence[str] = (),
        permissions: Sequence[str] | None = None,
        follow_links: bool | None = None,
        polling: bool | None = None,
        on_progress: ProgressCallback | None = None,
    ) -> Watching:
        """Store what is in folders, and from then on what changes in them; what goes there is closed here.

        A change is taken up once its file has settled, a fifth of a second after the last write, together with what
        changes at the same time, and costs what the changed files cost. What is read is what `ingest` reads. A folder
        that goes as a whole, as one on another machine may, is waited for, and nothing of it is closed. Interrupting it
        at any moment leaves every document whole or absent.

        Args:
            folders: Which; one inside another is watched with it.
            tags: Given to every document.
            permissions: Who may read every document, as for `ingest`.
            follow_links: As for `ingest`. What changes behind a link is seen when the folder is looked through, once an
                hour.
            polling: Whether to compare files every now and then rather than be told by the system; None: on network
                file systems.
            on_progress: Called after every file.

        Returns:
            An iterator over what is done, which waits for changes until its ``stop()`` is called.

        Raises:
            NotFoundError: A folder does not exist.
            UsageError: One of them is a file, or an option is not valid.
            PermissionDeniedError: The principal may not write there.

        Example:
            >>> from pathlib import Path
            >>> from recollect import RAGPipeline
            >>> with RAGPipeline() as rag:  # doctest: +SKIP
            ...     for done in rag.sources.watch([Path("docs")]):
            ...         print(done.report)
        """
        if permissions is not None:
            read_permissions(permissions)
        self._at.present()
        options = FileOptions(tags=tags, permissions=permissions, follow_links=follow_links, on_progress=on_progress)
        return Watching(self._at, require_folders(list(folders)), options, polling=polling)

    # Last: its name is a type's in what stands before it.
    @override
    def list(self, *, name: str | None = None, cursor: str | None = None, limit: int = 100) -> Page[SourceRecord]:
        scope, store = self._at.owner(), self._at.store
        place, after = None, names_at(cursor, 3)
        if EVERY_COLLECTION not in self._at.names:
            own = self._at.collection
            if own == self._at.config.collection and store.collections.find(scope, own) is None:
                return Page(())
            place = self._at.place(scope)
        found = store.sources.records(scope, collection=place, name=name, after=after, limit=limit + 1)
        return Page.of(found, limit, lambda one: (one.collection, one.type, one.name))


def _checked_metadata(given: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        text = json.dumps(dict(given), allow_nan=False)
    except (TypeError, ValueError) as exc:
        raise UsageError(f"The metadata of a source must be JSON: {exc}.") from exc
    if len(text) > _MOST_METADATA_CHARACTERS:
        raise UsageError(f"The metadata of a source is longer than {_MOST_METADATA_CHARACTERS:,} characters.")
    return storable(dict(given))
