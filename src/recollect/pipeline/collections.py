"""The collections of a view: made, listed, deleted, shared with other tenants, and moved as files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from recollect.errors import NotFoundError, UsageError
from recollect.languages import AUTO
from recollect.model.arguments import checked
from recollect.model.collection import Collection, CollectionNotes
from recollect.model.page import Page, name_at
from recollect.operations.collections import CollectionOperations
from recollect.operations.declaring import implements
from recollect.pipeline.preparing import collection_settings, ensure_collection
from recollect.pipeline.standpoint import Group, Standpoint
from recollect.retrieval.relevance import undeclared_languages
from recollect.store.collections import as_shown

if TYPE_CHECKING:
    from recollect.ingest.report import IngestReport, ProgressCallback
    from recollect.model import Scope
    from recollect.model.tenant import SharedCollection


MOST_IDLE_DAYS = 36_500

#: Larger originals are no part of an export as JSON Lines: a line is read into memory.
MAX_ORIGINAL_BYTES = 64 * 1024 * 1024


@implements(CollectionOperations)
@checked
class Collections(Group, CollectionOperations):
    """The collections of a view's tenant; see `recollect.View`.

    The owner of the store alone makes, deletes and shares them: of a principal that is a `PermissionDeniedError`.
    """

    def ensure(self, name: str | None = None) -> Collection:
        """The collection of that name, made with the configured settings where it is missing; None: the view's own."""
        self._at.owner()
        return ensure_collection(self._at, self._at.collection if name is None else name)

    @override
    def create(
        self,
        name: str,
        *,
        description: str = "",
        language: str | None = None,
        chunking: Mapping[str, Any] | None = None,
        token_vectors: bool | None = None,
        dimensions: int | None = None,
    ) -> Collection:
        scope = self._at.owner()
        settings = collection_settings(
            self._at.assembly,
            language=language,
            chunking=chunking,
            token_vectors=token_vectors,
            dimensions=dimensions,
        )
        return self._at.store.collections.create(scope, name, description=description, **settings)

    @override
    def get(self, name: str) -> Collection:
        return as_shown(self._at.store.collections.get(self._at.present(), name))

    def update(self, name: str, *, description: str, check: Callable[[Collection], object] | None = None) -> Collection:
        """Change what is said of a collection; how it is cut and embedded stays as it was made.

        Args:
            name: Of the collection.
            description: For people.
            check: Told the collection as it is, which nobody describes until this has; what it raises changes nothing.

        Raises:
            NotFoundError: There is none of that name.
        """
        scope = self._at.owner()
        self._at.store.collections.describe(scope, name, description, check=check)
        return self._at.store.collections.get(scope, name)

    def note(
        self, name: str, *, metadata: Mapping[str, str] | None = None, idle_days: int | None = None
    ) -> CollectionNotes:
        """Write something on a collection, or have it expire when nobody uses it.

        Args:
            name: Of the collection.
            metadata: All of it from now on; None: as it is.
            idle_days: After so many days without a search and without a new document its documents are closed, by the
                clean-up; 0: never; None: as it is.

        Raises:
            NotFoundError: There is none of that name.
            UsageError: ``idle_days`` is no such number.
        """
        if idle_days is not None and not 0 <= idle_days <= MOST_IDLE_DAYS:
            raise UsageError(f"idle_days must lie between 0 and {MOST_IDLE_DAYS:,}, not {idle_days}.")
        scope = self._at.owner()
        place = self._at.store.collections.get(scope, name)
        repository = self._at.store.collection_notes
        repository.note(scope, place.collection_id, metadata=metadata, idle_days=idle_days)
        return repository.all(scope)[place.collection_id]

    def notes(self) -> Mapping[int, CollectionNotes]:
        """What is noted of collections, by their numbers; of a principal, of those that exist for it."""
        scope = self._at.present()
        noted = self._at.store.collection_notes.all(scope)
        if not noted:
            return {}
        seen = {one.collection_id for one in self._at.store.collections.list_all(scope)}
        return {number: one for number, one in noted.items() if number in seen}

    @override
    def delete(self, name: str) -> None:
        self._at.store.collections.delete(self._at.owner(), name)

    def import_file(
        self, path: Path | str, *, force: bool = False, on_progress: ProgressCallback | None = None
    ) -> IngestReport:
        """Import documents from JSON Lines, with chunks and vectors where they are given; any size, bounded memory.

        They go where `View.ingest` stores documents.

        Args:
            path: The file; `recollect.ingest.records` has its forms. Given vectors must be of the collection's model.
            force: Store every document anew, changed or not.
            on_progress: Told after every batch.

        Returns:
            What became of the lines; a bad one is an error that names it and does not stop the others.

        Raises:
            NotFoundError: There is no such file.
        """
        from recollect.pipeline.ingesting import store_file_of_lines

        return store_file_of_lines(self._at, Path(path), force=force, on_progress=on_progress)

    def export_lines(self, *, originals: bool = False) -> Iterator[str]:
        """The view's collection as JSON Lines, one document with its chunks and vectors a line, for `import_file`.

        Of a principal, what may be read of it.

        Args:
            originals: With each document the file that it was read from, where it is kept and has no more than
                `MAX_ORIGINAL_BYTES`.

        Raises:
            NotFoundError: There is no such collection.
        """
        from recollect.ingest.records import to_line

        scope = self._at.present()
        most = MAX_ORIGINAL_BYTES if originals else 0
        return map(to_line, self._at.store.exports.documents(scope, self._at.place(scope), max_original_bytes=most))

    def share(self, name: str, reader: int | str) -> bool:
        """Let another tenant read a collection, as far as its documents are granted to ``*`` or to that tenant.

        To the permissions of documents the reader is somebody of the group ``tenant:NAME``.

        Args:
            name: Of the collection.
            reader: The tenant that reads it from now on, by number or name.

        Returns:
            Whether it could not before.

        Raises:
            UsageError: Isolation is strict (``[rag.multi_tenant]``), or the reader is the tenant itself.
            NotFoundError: There is no such tenant or collection.
        """
        scope, store = self._of_tenant(), self._at.store
        if self._at.config.multi_tenant.isolation_level == "strict":
            raise UsageError(
                'Tenants are kept apart strictly. Set isolation_level = "shared" in [rag.multi_tenant] first, if they '
                "are meant to read one another's collections."
            )
        reader_id = store.tenants.number(reader)
        store.collections.get(scope, name)
        return store.shares.share(scope, name, reader_id=reader_id)

    def unshare(self, name: str, reader: int | str) -> None:
        """Keep another tenant from a collection again; the arguments are those of `share`.

        Raises:
            NotFoundError: It is not shared with that tenant.
        """
        scope, store = self._of_tenant(), self._at.store
        if not store.shares.unshare(scope, name, reader_id=store.tenants.number(reader)):
            raise NotFoundError(f"The collection {name!r} is not shared with {reader!r}.")

    def shared(self) -> list[SharedCollection]:
        """The collections that other tenants let this one read; of a suspended tenant, too."""
        from recollect.store.tenants import ShareRepository

        return ShareRepository(self._at.store.caretaking).shared_with(self._of_tenant())

    # Last: its name is a type's in what stands before it.
    @override
    def list(self, *, cursor: str | None = None, limit: int = 100) -> Page[Collection]:
        scope, after = self._at.present(), name_at(cursor) or ""
        found = self._at.store.collections.page(scope, after=after, limit=limit + 1)
        return Page.of(found, limit, lambda one: one.name)

    def _of_tenant(self) -> Scope:
        """The owner's scope of a tenant that there is."""
        scope = self._at.owner()
        self._at.store.tenants.number(scope.tenant_id)
        return scope


# A quotation or a list of names is in some language, too: nobody changes a model for it.
_LEAST_SHARE = 0.1
_DOCUMENTS = 2_000


def unknown_languages(at: Standpoint) -> list[str]:
    """Those that at least a tenth of the standpoint's collection is in, by the chunks of the documents stored last.

    Another model would find such texts by what they mean; the words are found as they are.
    """
    place = Collections(at).get(at.collection)
    unknown = undeclared_languages(place)
    if not unknown or place.language != AUTO:
        return list(unknown)
    chunks = at.assembly.store.status.languages(at.scope, place, documents=_DOCUMENTS)
    least = _LEAST_SHARE * sum(chunks.values())
    return [code for code in unknown if chunks.get(code, 0) >= max(least, 1)]
