"""The store as a whole: what it holds, whether it is sound, and what has passed its time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from recollect.model.arguments import checked
from recollect.pipeline.standpoint import Group

if TYPE_CHECKING:
    from recollect.model.contexts import ContextEstimate, ContextReport
    from recollect.model.history import CleanupReport
    from recollect.model.scrub import ScrubReport
    from recollect.model.status import PipelineStatus
    from recollect.pipeline.verifying import VerifyCallback
    from recollect.store.status import Finding
    from recollect.store.verification.report import VerifyReport

# What `check` advises where `verify` has nothing to mend.
_PUT_BACK = "What was put back needs nothing more, but somebody had changed it."
_DIFFERENT = "Have an administrator undo what was changed in the schema: it is not recollect's to change back."
_BROKEN = (
    "A broken audit cannot be mended, only compared with an earlier export or backup: recollect audit verify names "
    "the entry."
)


@checked
class Maintenance(Group):
    """The store as a whole; see `recollect.View`. For its owner, but for `status`."""

    def status(self) -> PipelineStatus:
        """What the tenant's collections hold, or the one that the view was given, as far as its principal may read it.

        Raises:
            NotFoundError: There is no such collection.
        """
        from recollect.pipeline.status import read_status

        at, scope = self._at, self._at.present()
        only = None if at.named is None else at.place(scope)
        return read_status(at.store, scope, at.assembly.embedder, collection=at.config.collection, only=only)

    def check(self) -> list[Finding]:
        """Everything of the tenant that contradicts itself, and of every tenant's audit; empty for a sound store."""
        from recollect.store.isolation import read_differences
        from recollect.store.status import Finding

        scope, store = self._at.owner(), self._at.store
        broken = [chain for chain in store.audit.verify_all(scope) if chain.broken]
        return [
            *store.status.check(scope),
            *(Finding(f"{one} (put back when the store was opened)", 1, _PUT_BACK) for one in store.put_back),
            *(
                Finding(one, 1) if one.startswith(("index ", "constraint ")) else Finding(one, 1, _DIFFERENT)
                for one in read_differences(store.database)
            ),
            *(Finding(f"audit of tenant {chain.tenant_id} broken: {chain.broken}", 1, _BROKEN) for chain in broken),
        ]

    def estimate_contexts(self) -> ContextEstimate:
        """What `write_contexts` would ask of the language model of ``[rag.ingest] contextualise``, about.

        Raises:
            UsageError: No model is configured for it.
            NotFoundError: There is no such collection.
        """
        from recollect.pipeline.contexts import estimate

        return estimate(self._at)

    def write_contexts(self, *, on_progress: Callable[[int, int], None] | None = None) -> ContextReport:
        """Have every chunk of the view's collection situated in its document by a sentence, and index it with that.

        Chunks that the present model and prompt were asked about are passed over, and each document is stored by
        itself: interrupted at any moment, it is completed by running it again.

        Args:
            on_progress: Told after each document how many are done, and of how many.

        Raises:
            UsageError: No model is configured for it.
            NotFoundError: There is no such collection.
            ProviderError: The language model or the embedding model failed; what was done before stays.
        """
        from recollect.pipeline.contexts import write

        return write(self._at, on_progress)

    def verify(
        self, *, repair: bool = False, deep: bool = False, on_progress: VerifyCallback | None = None
    ) -> VerifyReport:
        """Compare documents, chunks, vectors, lexical rows and statistics with one another, and mend what differs.

        A view that names neither a tenant nor a collection is of the whole store, every tenant's: every table is read
        whole, and the schema is compared too. A repair makes dropped or changed indexes and constraints again, and
        indexes whose file is damaged; tables, columns and unreadable rows need a backup. A view that names a
        collection is of that, without what belongs to no collection. Each collection is read at one moment, so that
        others may write meanwhile. Every repair is a transaction under the locks that writers take; running it again,
        or after it was interrupted, does no harm.

        Args:
            repair: Mend what can be mended, and check again. Vectors are made by the collections' models.
            deep: Compare every lexical row and every token vector, not a thousand of each collection.
            on_progress: Told how far it has come.

        Returns:
            Every check with what it found and what of that is mended; ``clean`` if nothing is left.

        Raises:
            NotFoundError: There is no such collection.
        """
        from recollect.pipeline.verifying import Verifier

        scope, collection = self._at.owner(), self._at.named
        whole = self._at.tenant is None and collection is None
        verifier = Verifier(self._at.assembly, repair=repair, deep=deep, on_progress=on_progress)
        return verifier.run(None if whole else [scope], collection=collection)

    def scrub(self, *, look_for: Sequence[str] = ()) -> ScrubReport:
        """Take what was erased out of the database's files, where its bytes stay until they are written over.

        Every table but the audit is written anew with its indexes, and waits for that; so are the planner's statistics.
        On recollect's own server the write-ahead log's segments are removed and the server's log is emptied too, and
        every file is read afterwards. Of another server's files nothing can be proven, which the report says. Files
        hold the rows of all tenants; it is recorded in the audit of the view's.

        Args:
            look_for: Strings of eight bytes or more that must not be in the files; those that rows still hold are not
                looked for.

        Raises:
            StoreUnavailableError: Others hold a table for half a minute, or scrub the store already.
            StoreError: A transaction that began before went on for a minute.
        """
        return self._at.store.scrubber.scrub(self._at.owner(), actor=self._at.actor, texts=look_for)

    def close_expired(self) -> int:
        """Close every document whose time is over, of the tenant or of the collection that the view was given.

        Searches leave them out without it.

        Returns:
            How many documents expired by this call.

        Raises:
            NotFoundError: There is no such collection.
        """
        scope = self._at.owner()
        place = None if self._at.named is None else self._at.place(scope).collection_id
        return self._at.store.expiry.close_all(scope, place)

    def cleanup(self) -> CleanupReport:
        """Close what has expired, remove expired sessions, and keep the audit's partitions.

        This is done every so many hours anyway. Partitions hold the records of all tenants.
        """
        from recollect.pipeline.upkeep import clean_up

        at, config = self._at, self._at.config
        days = config.embedding.keep_previous_days
        return clean_up(at.store, config.temporal, at.owner(), keep_previous_days=days)
