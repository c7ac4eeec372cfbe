"""What became of documents: their versions, what expired, and what was erased."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from recollect.errors import NotFoundError, PermissionDeniedError, UsageError
from recollect.model.history import CleanupReport, ErasureProbe, VersionDiff
from recollect.model.time import read_duration
from recollect.pipeline.parts import Parts

if TYPE_CHECKING:
    from recollect.config import RAGConfig
    from recollect.model import IngestResult, Principal, RetrievalOptions
    from recollect.model.history import DocumentHistory, ErasureReceipt, EvidenceDiff
    from recollect.model.scrub import ScrubReport
    from recollect.model.time import Duration, Moment

#: Who is named in the audit where nobody else is.
LIBRARY = "library"


class History:
    """The part of `RAGPipeline` that looks after the times of documents.

    Attributes:
        config: The settings.
    """

    config: RAGConfig
    _parts: Parts

    def document_history(
        self, document: int | str, *, tenant_id: int | None = None, principal: Principal | None = None
    ) -> DocumentHistory:
        """Every version of a document, oldest first; the document may be deleted.

        Args:
            document: By id or by source.
            tenant_id: Whose; None: the default tenant's.
            principal: Who asks: what he may not read does not exist for him; None: the owner of the store.

        Raises:
            NotFoundError: There is none.
            UsageError: Several have that source.
        """
        scope = self._parts.scope(tenant_id, principal=principal)
        return self._parts.store.history.versions(scope, self._parts.store.documents.resolve(scope, document))

    def document_diff(
        self,
        document: int | str,
        *,
        from_version: int | None = None,
        to_version: int | None = None,
        context_lines: int = 3,
        tenant_id: int | None = None,
        principal: Principal | None = None,
    ) -> VersionDiff:
        """How the text of a document changed from one version to another, as a unified diff.

        Args:
            document: By id or by source.
            from_version: None: the one before ``to_version``.
            to_version: None: the newest.
            context_lines: Unchanged lines shown around each change.
            tenant_id: Whose; None: the default tenant's.
            principal: Who asks: what he may not read does not exist for him; None: the owner of the store.

        Raises:
            NotFoundError: There is no such document or version.
            UsageError: The document has one version only, and none is named.
        """
        scope = self._parts.scope(tenant_id, principal=principal)
        history = self.document_history(document, tenant_id=tenant_id, principal=principal)
        known = [version.version for version in history.versions]
        last = known[-1] if to_version is None else to_version
        first = (
            max((number for number in known if number < last), default=None) if from_version is None else from_version
        )
        if first is None:
            raise UsageError(f"There is no version before {last} of {history.source!r}: nothing to compare it with.")
        for number in (first, last):
            if number not in known:
                raise NotFoundError(f"{history.source!r} has no version {number}; it has {_listed(known)}.")
        texts = [self._parts.store.history.content(scope, history.document_id, number) for number in (first, last)]
        lines = _unified(texts[0], texts[1], (first, last), context_lines)
        changes = lines[2:]
        return VersionDiff(
            document_id=history.document_id,
            source=history.source,
            department=history.department,
            from_version=first,
            to_version=last,
            lines=tuple(lines),
            added=sum(line.startswith("+") for line in changes),
            removed=sum(line.startswith("-") for line in changes),
        )

    def restore_document(
        self,
        document: int | str,
        version: int,
        *,
        actor: str = LIBRARY,
        tenant_id: int | None = None,
        principal: Principal | None = None,
    ) -> IngestResult:
        """Make what an old version said the newest version; the versions between stay in the history.

        Title, text, metadata, language and dates are the old version's. Department, tags and grants stay as they are,
        and the next ingest of an unchanged file leaves the restored version alone.

        Args:
            document: By id or by source; it may be deleted.
            version: Which one, from 1.
            actor: Who asks, for the audit.
            tenant_id: Whose; None: the default tenant's.
            principal: Who asks: it must be a document of his own, or of a collection that he owns, and he must be
                allowed to read both the document and the version; None: the owner of the store.

        Raises:
            NotFoundError: There is no such document or version.
            PermissionDeniedError: It is not the principal's to change.
        """
        scope = self._parts.scope(tenant_id, principal=principal)
        document_id = self._parts.store.documents.resolve(scope, document)
        return self._parts.store.history.restore(scope, document_id, version, actor=actor)

    def set_document_ttl(
        self,
        document: int | str,
        ttl: Duration | None,
        *,
        tenant_id: int | None = None,
        principal: Principal | None = None,
    ) -> None:
        """Decide how long a document is found from now on.

        Args:
            document: By id or by source.
            ttl: So long from now; None: it never expires.
            tenant_id: Whose; None: the default tenant's.
            principal: Who asks: it must be his to change; None: the owner of the store.

        Raises:
            NotFoundError: There is no such document, or it is deleted.
            UsageError: ``ttl`` is no length of time.
            PermissionDeniedError: It is not the principal's to change.
        """
        scope = self._parts.scope(tenant_id, principal=principal)
        lifetime = None if ttl is None else read_duration(ttl, name="ttl")
        document_id = self._parts.store.documents.resolve(scope, document)
        if not self._parts.store.expiry.set_lifetime(scope, document_id, lifetime):
            raise NotFoundError(f"The document {document!r} is deleted: it has no time left to live.")

    def erase(
        self,
        documents: Sequence[int | str],
        *,
        actor: str = LIBRARY,
        reason: str | None = None,
        scrub: bool = False,
        tenant_id: int | None = None,
        principal: Principal | None = None,
    ) -> ErasureReceipt:
        """Remove documents physically, with every version, and prove it.

        Turns of conversations that quote them go too: those that repeat seven words in a row, or a shorter document
        whole, that stand in no other document. Afterwards the store is searched for the hashes and for distinctive
        phrases of what was erased. The receipt holds none of the content; the audit keeps it.

        Args:
            documents: By id or by source.
            actor: Who asks, for the receipt.
            reason: Why, for the receipt; None: nothing is said.
            scrub: Take it out of the database's files too, as `scrub` does, and look for it in them.
            tenant_id: Whose; None: the default tenant's.
            principal: Who asks: they must be his to change. Of others' conversations and sessions nothing goes, and his
                receipt tells of the documents alone; the audit's is whole. None: the owner of the store.

        Raises:
            NotFoundError: One of them does not exist; then none is erased.
            PermissionDeniedError: One of them is not the principal's to change; then none is erased.
            UsageError: A conversation that quotes them was embedded with another model than the configured one.
        """
        scope, store = self._parts.scope(tenant_id, principal=principal), self._parts.store
        ids = [store.documents.resolve(scope, document) for document in documents]
        store.documents.require_changeable(scope, ids)
        if scrub and scope.principal is not None:
            raise PermissionDeniedError("To scrub the whole store is for its owner: leave --scrub out.")
        # Before the documents: interrupted here, the same call finds what is left to do.
        quotes = store.quotes.of_documents(scope, ids)
        turns = sum(
            self._parts.forgetter(scope).forget(scope, session, positions, actor=actor, user=user)
            for (session, user), positions in quotes.items()
        )

        def finish() -> None:
            self._parts.searcher.forget()
            # The statistics of terms still count the erased words.
            everything = replace(scope, principal=None)
            for place in store.collections.list_all(everything):
                if place.stats_pending:
                    store.collections.refresh_term_stats(everything, place)

        receipt = store.erasure.erase(
            scope,
            ids,
            actor=actor,
            reason=reason,
            removed={"episode_quotes": turns},
            finish=finish,
            scrubber=store.scrubber if scrub else None,
        )
        return receipt if scope.principal is None else _of_documents_alone(receipt)

    def scrub(self, *, look_for: Sequence[str] = (), actor: str = LIBRARY, tenant_id: int | None = None) -> ScrubReport:
        """Take what was erased out of the database's files, where its bytes stay until they are written over.

        Every table but the audit is written anew with its indexes, and waits for that; so are the planner's statistics.
        On recollect's own server the write-ahead log's segments are removed and the server's log is emptied too, and
        every file is read afterwards. Of another server's files nothing can be proven, which the report says.

        Args:
            look_for: Strings of eight bytes or more that must not be in the files; those that rows still hold are not
                looked for.
            actor: Who asks, for the audit.
            tenant_id: In whose audit it is recorded; None: the default tenant's. Files hold the rows of all tenants.

        Raises:
            StoreUnavailableError: Others hold a table for half a minute, or scrub the store already.
            StoreError: A transaction that began before went on for a minute.
        """
        scope = self._parts.scope_of(tenant_id)
        return self._parts.store.scrubber.scrub(scope, actor=actor, texts=look_for)

    def erase_documents(self, documents: Sequence[int | str], *, tenant_id: int | None = None) -> int:
        """As `erase`, for those who want no more than the number of documents.

        Raises:
            NotFoundError: One of them does not exist; then none is erased.
        """
        return self.erase(documents, tenant_id=tenant_id).counts["documents"]

    def cleanup_expired(self, *, collection: str | None = None, tenant_id: int | None = None) -> int:
        """Close every document whose time is over; searches leave them out without it.

        Args:
            collection: Only of this one; None: of all.
            tenant_id: Whose; None: the default tenant's.

        Returns:
            How many documents expired by this call.

        Raises:
            NotFoundError: There is no such collection.
        """
        scope, store = self._parts.scope_of(tenant_id), self._parts.store
        place = None if collection is None else store.collections.get(scope, collection).collection_id
        return store.expiry.close_all(scope, place)

    def cleanup(self, *, tenant_id: int | None = None) -> CleanupReport:
        """Close what has expired, and keep the audit's partitions: what is done every so many hours anyway.

        Args:
            tenant_id: Whose documents and sessions; None: the default tenant's. Partitions hold the records of all
                tenants.
        """
        from recollect.pipeline.upkeep import clean_up

        return clean_up(self._parts.store, self.config.temporal, self._parts.scope_of(tenant_id))

    def diff_evidence(
        self,
        question: str,
        *,
        from_time: Moment,
        to_time: Moment | None = None,
        options: RetrievalOptions | None = None,
        collection: str | None = None,
        tenant_id: int | None = None,
        principal: Principal | None = None,
    ) -> EvidenceDiff:
        """How the evidence for a question changed between two moments: what came, went, stayed and changed.

        Args:
            question: In plain words.
            from_time: The earlier moment.
            to_time: The later one; None: now.
            options: How to search; None: as answers are searched for.
            collection: Where; None: the configured one.
            tenant_id: Whose; None: the default tenant's.
            principal: Who asks: what he may not read does not exist for him; None: the owner of the store.

        Raises:
            UsageError: The question, an option or a time is not valid.
            NotFoundError: There is no such collection.
        """
        from recollect.pipeline.history_evidence import diff_evidence

        return diff_evidence(
            self.config,
            self._parts,
            question,
            from_time=from_time,
            to_time=to_time,
            options=options,
            collection=collection,
            tenant_id=tenant_id,
            principal=principal,
        )


def _of_documents_alone(receipt: ErasureReceipt) -> ErasureReceipt:
    """A receipt without what tells whether others hold, or have said, the same."""
    return replace(
        receipt,
        documents=tuple(replace(one, hashes=()) for one in receipt.documents),
        counts={"documents": receipt.counts["documents"]},
        copies=(),
        probe=ErasureProbe(phrases=0, hashes=0, places=0),
    )


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


def _unified(before: str, after: str, versions: tuple[int, int], context_lines: int) -> list[str]:
    first, last = (f"version {number}" for number in versions)
    lines = (before.splitlines(), after.splitlines())
    return list(difflib.unified_diff(*lines, first, last, n=max(0, context_lines), lineterm=""))
