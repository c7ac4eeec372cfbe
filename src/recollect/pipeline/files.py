"""Files that are sent to be kept, and made into documents of collections when somebody says of which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from recollect.errors import NotFoundError, UsageError
from recollect.model.arguments import checked
from recollect.model.time import Duration, read_lifetime
from recollect.model.uploaded_file import BatchedJob, FileUse, UploadedFile
from recollect.pipeline.jobs import enqueue_all
from recollect.pipeline.preparing import ChunkSizes, chunker
from recollect.pipeline.standpoint import EVERY_COLLECTION, Group
from recollect.pipeline.uploading import named_file, room_told, upload_job
from recollect.store.files import missing_file

if TYPE_CHECKING:
    from recollect.model.job import Job, NewJob
    from recollect.model.original import Original
    from recollect.store.database import Connection

_LONGEST_PURPOSE = 100
_MOST_AT_ONCE = 2_000


@checked
class Files(Group):
    """Files that were sent to be kept; see `recollect.View`.

    No search finds them. A collection that is given one (`attach`) makes it a document, whose source is the file: in
    several collections, one of each. A principal sees the files that it has sent itself, the owner of the store all.
    """

    def add(self, original: Original, *, purpose: str = "user_data", ttl: Duration | None = None) -> UploadedFile:
        """Keep a file.

        Args:
            original: `Original.of_file`, `Original.of_bytes` or `Original.of_open_file`.
            purpose: What it is sent for, in a word.
            ttl: How long it is kept; None: until it is deleted.

        Raises:
            UsageError: It has no name, or ``purpose`` or ``ttl`` is none.
            ParseError: It is empty, or larger than files may be.
            QuotaExceededError: The tenant would have more than it may.
            PermissionDeniedError: So it is, and a principal asks.
        """
        if not purpose.strip() or len(purpose) > _LONGEST_PURPOSE:
            raise UsageError(f"purpose is a word of at most {_LONGEST_PURPOSE} characters.")
        lifetime = read_lifetime(ttl)
        scope = self._at.present()
        file = named_file(self._at, original)
        with room_told(scope):
            return self._at.store.files.add(scope, file, purpose=purpose, lifetime=lifetime)

    def get(self, file_id: int) -> UploadedFile:
        """One file.

        Raises:
            NotFoundError: There is none of that number, or somebody else has sent it.
        """
        return self._at.store.files.get(self._at.present(), file_id)

    def read(self, file_id: int) -> Original:
        """The bytes of a file, piece by piece.

        Raises:
            NotFoundError: There is none of that number, or somebody else has sent it.
        """
        scope = self._at.present()
        return self._at.store.files.original(scope, self._at.store.files.get(scope, file_id))

    def attach(self, uses: Sequence[FileUse], *, batch: str | None = None) -> Sequence[Job]:
        """Ask for files to be made documents of the view's collection, all or none; a job each.

        A file that is there already is read again, and stored anew where it would be different.

        Args:
            uses: Which ones, and what is said of each.
            batch: A name that `batch` finds the jobs by; None: they have nothing in common.

        Raises:
            NotFoundError: There is no such file, or for the principal no such collection.
            PermissionDeniedError: The principal may not write there.
            UsageError: There is no file, there are too many, or sizes of chunks are not what the collection takes.
        """
        if not 0 < len(uses) <= _MOST_AT_ONCE or len({one.file_id for one in uses}) < len(uses):
            raise UsageError(f"Name files, each once: {_MOST_AT_ONCE:,} at most.")
        scope, at = self._at.present(), self._at
        found = at.store.files.several(scope, [one.file_id for one in uses])
        place = at.place(scope)
        at.store.collections.require_writer(scope, place)
        originals: list[Original] = []
        jobs: list[NewJob] = []
        for use in uses:
            if use.file_id not in found:
                raise missing_file(use.file_id)
            self._require_sizes(use, place.chunking)
            file = found[use.file_id]
            # Their bytes stay for the jobs, whatever becomes of the files meanwhile.
            originals.append(at.store.files.original(scope, file))
            jobs.append(upload_job(originals[-1], _wanted(use, file, batch), source=file.source))

        def enqueue(connection: Connection) -> Sequence[Job]:
            return enqueue_all(at, jobs, connection=connection)

        with room_told(scope):
            asked = at.store.uploads.add(scope, originals, enqueue)
        at.store.collection_notes.use(scope, place.collection_id)
        return asked

    def _require_sizes(self, use: FileUse, chunking: Mapping[str, Any]) -> None:
        if use.chunk_tokens is None and use.overlap_tokens is None:
            return

        sizes = ChunkSizes(size=use.chunk_tokens, overlap=use.overlap_tokens, in_tokens=True)
        assembly = self._at.assembly
        chunker(sizes.within(chunking, assembly.chunkers), assembly.embedder, assembly.chunkers)

    def batch(self, batch: str) -> Sequence[BatchedJob]:
        """The jobs that were asked for under one name, which are known for as long as jobs are kept.

        Raises:
            NotFoundError: There are none, or somebody else has asked for them.
        """
        found = self._at.store.files.batch(self._at.present(), batch)
        if not found:
            raise NotFoundError(f"There is no batch {batch!r}: it was asked for too long ago, or by somebody else.")
        return found

    def documents(self, file_id: int) -> Mapping[str, int]:
        """The documents that were made from a file, by their collections; of a principal, where it may read."""
        scope = self._at.present()
        names = {one.name for one in self._at.store.collections.list_all(scope)}
        made = self._at.store.files.documents(scope, file_id)
        return {name: document_id for document_id, _, name in made if name in names}

    def files_of(self, document_ids: Sequence[int]) -> Mapping[int, int]:
        """Of documents that were made from files, these files; they may be gone by now."""
        return self._at.store.files.files_of(self._at.present(), document_ids)

    def unstored_counts(self) -> Mapping[int, tuple[int, int, int]]:
        """By collection, how many documents wait for a job that stores them, and whose job failed or was cancelled."""
        return self._at.store.files.unstored_counts(self._at.present())

    def detach(self, document_id: int) -> None:
        """Take a document that was made from a file out of its collection: it is closed, and the file stays.

        Raises:
            NotFoundError: There is no such document.
            PermissionDeniedError: It is not the principal's to change.
        """
        scope, store = self._at.present(), self._at.store
        unstored = store.jobs.unstored_documents(scope, document_id=document_id)
        if not any(self._at.names_documents_of(one.collection) for one in unstored):
            self._at.resolve(scope, document_id)
        store.documents.require_changeable(scope, [document_id])
        # A job that runs stops at its next step; where it has stored by then, it closes that itself.
        for job_id in store.files.detach(scope, document_id):
            store.jobs.cancel(replace(scope, principal=None), job_id, reason="The file was taken out.")
        store.writer.close(scope, [document_id])
        store.files.forget_unstored(scope, document_id)

    def delete(self, file_id: int) -> None:
        """Keep a file no longer, and take what was made of it out of every collection; histories stay.

        Raises:
            NotFoundError: There is none of that number, or somebody else has sent it.
            PermissionDeniedError: A document made from it is not the principal's to change; then nothing is done.
        """
        scope, store = self._at.present(), self._at.store
        store.files.get(scope, file_id)
        made = [document_id for document_id, _, _ in store.files.documents(scope, file_id)]
        store.documents.require_changeable(scope, made)
        store.files.delete(scope, file_id)
        # Behind it: a job that stores it now looks once more whether the file is there, and closes what it has stored.
        everywhere = Files(replace(self._at, collections=(EVERY_COLLECTION,)))
        for document_id in made:
            everywhere.detach(document_id)

    # Last: its name is a type's in what stands before it.
    def list(
        self, *, purpose: str | None = None, newest_first: bool = False, after: int = 0, limit: int = 100
    ) -> list[UploadedFile]:
        """Files by their numbers.

        Args:
            purpose: Only those that were sent for this.
            newest_first: The largest numbers first.
            after: The last number of the page before; 0: the first page.
            limit: How many at most.
        """
        return self._at.store.files.page(
            self._at.present(), purpose=purpose, newest_first=newest_first, after=after, limit=limit
        )


def _wanted(use: FileUse, file: UploadedFile, batch: str | None) -> dict[str, Any]:
    said = {
        "source": file.source,
        "metadata": dict(use.metadata),
        "department": use.department,
        "chunk_tokens": use.chunk_tokens,
        "overlap_tokens": use.overlap_tokens,
        "batch": batch,
    }
    return {name: value for name, value in said.items() if value is not None and value != {}}
