"""Administration of a store: its collections, its documents, and the whole of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from recollect.config import DEFAULT_COLLECTION
from recollect.pipeline.parts import Parts
from recollect.pipeline.status import PipelineStatus, read_status

if TYPE_CHECKING:
    from recollect.config import RAGConfig
    from recollect.ingest.verify import VerifyCallback
    from recollect.model import Principal, RetrievalOptions
    from recollect.model.time import Moment
    from recollect.store.collections import Collection
    from recollect.store.documents import DocumentRecord
    from recollect.store.status import Finding
    from recollect.store.verification.report import VerifyReport

# What `check` advises where `verify` has nothing to mend.
_PUT_BACK = "What was put back needs nothing more, but somebody had changed it."
_DIFFERENT = "Have an administrator undo what was changed in the schema: it is not recollect's to change back."
_BROKEN = (
    "A broken audit cannot be mended, only compared with an earlier export or backup: recollect audit verify names "
    "the entry."
)


class Administration:
    """The part of `RAGPipeline` that looks after collections and documents.

    Attributes:
        config: The settings.
    """

    config: RAGConfig
    _parts: Parts

    # Collections

    def ensure_collection(self, name: str | None = None, tenant_id: int | None = None) -> Collection:
        """The collection of that name, made with the configured settings where it is missing."""
        from recollect.errors import ConflictError

        wanted = name or self.config.collection
        found = self._parts.store.collections.find(self._parts.scope_of(tenant_id), wanted)
        if found is not None:
            return found
        try:
            return self.create_collection(wanted, tenant_id=tenant_id)
        except ConflictError:  # another process was faster
            return self._parts.store.collections.get(self._parts.scope_of(tenant_id), wanted)

    def create_collection(
        self,
        name: str,
        *,
        tenant_id: int | None = None,
        description: str = "",
        language: str | None = None,
        chunking: Mapping[str, Any] | None = None,
        token_vectors: bool | None = None,
    ) -> Collection:
        """Make an empty collection.

        Args:
            name: Unique for the tenant.
            tenant_id: Whose; None: the default tenant's.
            description: For people.
            language: ISO 639-1; None: the configured one.
            chunking: ``strategy`` and its parameters; None: the configured ones.
            token_vectors: Whether ingest stores token vectors, at most 4 KB a chunk, so that the reranker
                ``late_interaction`` need not compute them; None: as configured.

        Raises:
            ConflictError: There is one of that name.
            UsageError: The name or the chunking is not valid, or the embedding model gives no token vectors.
        """
        made = self._parts.collection_settings(language=language, chunking=chunking, token_vectors=token_vectors)
        return self._parts.store.collections.create(
            self._parts.scope_of(tenant_id),
            name,
            embedding_model=made.embedding_model,
            embedding_dimension=made.embedding_dimension,
            language=made.language,
            chunking=made.chunking,
            description=description,
            token_vectors=made.token_vectors,
        )

    def list_collections(self, tenant_id: int | None = None, *, principal: Principal | None = None) -> list[Collection]:
        """Every collection, by name; with a ``principal`` those that exist for him, counting what he may read."""
        return self._parts.store.collections.list_all(self._parts.scope(tenant_id, principal=principal))

    def delete_collection(self, name: str, *, tenant_id: int | None = None) -> None:
        """Remove a collection with everything in it, physically.

        Raises:
            NotFoundError: There is none of that name.
        """
        self._parts.store.collections.delete(self._parts.scope_of(tenant_id), name)

    # Documents

    def list_documents(
        self,
        *,
        collection: str | None = None,
        department: str | None = None,
        after: int = 0,
        limit: int = 100,
        tenant_id: int | None = None,
        principal: Principal | None = None,
    ) -> list[DocumentRecord]:
        """Documents by id, without their contents; ``after`` is the last id of the page before.

        With a ``principal``, those that he may read.

        Raises:
            NotFoundError: There is no such collection.
        """
        scope = self._parts.scope(tenant_id, principal=principal)
        name = collection or self.config.collection
        if name == DEFAULT_COLLECTION and self._parts.store.collections.find(scope, name) is None:
            return []
        place = self._parts.store.collections.get(scope, name)
        return self._parts.store.documents.list_page(scope, place, department=department, after=after, limit=limit)

    def get_document(
        self, document: int | str, *, tenant_id: int | None = None, principal: Principal | None = None
    ) -> DocumentRecord:
        """One document with its content, by id or by source; what a ``principal`` may not read does not exist.

        Raises:
            NotFoundError: There is none.
            UsageError: Several have that source.
        """
        scope, documents = self._parts.scope(tenant_id, principal=principal), self._parts.store.documents
        return documents.get(scope, documents.resolve(scope, document))

    def resolve_documents(
        self,
        documents: Sequence[int | str],
        *,
        collection: str | None = None,
        tenant_id: int | None = None,
        principal: Principal | None = None,
    ) -> list[int]:
        """The ids of documents that are named by id or by source, deleted ones included.

        Args:
            documents: Ids and sources.
            collection: Only documents of this collection; None: of any.
            tenant_id: Whose; None: the default tenant's.
            principal: What he may not read does not exist.

        Raises:
            NotFoundError: There is no such collection, or one of the documents does not exist.
            UsageError: Several documents have one of the sources; the message says where each of them is.
        """
        scope, store = self._parts.scope(tenant_id, principal=principal), self._parts.store
        if collection is not None:
            store.collections.get(scope, collection)
        return [store.documents.resolve(scope, document, collection=collection) for document in documents]

    def filter_hints(
        self,
        options: RetrievalOptions,
        *,
        collection: str | None = None,
        as_of: Moment | None = None,
        tenant_id: int | None = None,
        principal: Principal | None = None,
    ) -> list[str]:
        """A line for each department, tag or field of metadata in a search's filters that no document has.

        Meant for a search that found nothing: every document is read where filters name anything.

        Args:
            options: Of the search.
            collection: That was searched; None: the configured one; ``*``: all.
            as_of: That was searched.
            tenant_id: Whose; None: the default tenant's.
            principal: Names only what he may read.
        """
        from recollect.pipeline.filter_hints import hints, named_values

        named = named_values(options)
        if not named:
            return []
        scope, store = self._parts.scope(tenant_id, as_of, principal=principal), self._parts.store
        wanted = collection or self.config.collection
        places = [place for place in store.collections.list_all(scope) if wanted in {place.name, "*"}]
        return hints(named, store.documents.filterable(scope, places)) if places else []

    def delete_documents(
        self, documents: Sequence[int | str], *, tenant_id: int | None = None, principal: Principal | None = None
    ) -> int:
        """Close documents: searches of the present no longer find them, their history stays.

        With a ``principal``, documents of his own in a collection that he may write to, or of one that he owns.

        Returns:
            How many were current.

        Raises:
            NotFoundError: One of them does not exist; then none is closed.
            PermissionDeniedError: One of them is not the principal's to change; then none is closed.
        """
        scope = self._parts.scope(tenant_id, principal=principal)
        ids = [self._parts.store.documents.resolve(scope, document) for document in documents]
        return self._parts.store.writer.close(scope, ids)

    # The store as a whole

    def status(
        self, tenant_id: int | None = None, *, principal: Principal | None = None, collection: str | None = None
    ) -> PipelineStatus:
        """What the store holds, or one ``collection``; with a ``principal``, what he may read of it.

        Raises:
            NotFoundError: There is no such collection.
        """
        scope, store = self._parts.scope(tenant_id, principal=principal), self._parts.store
        only = None if collection is None else store.collections.get(scope, collection)
        return read_status(store, scope, self._parts.embedder, collection=self.config.collection, only=only)

    def check(self, tenant_id: int | None = None) -> list[Finding]:
        """Everything in the store that contradicts itself; an empty list for a sound one.

        Args:
            tenant_id: Whose documents; None: the default tenant's. The audit's chains are looked at of every tenant.
        """
        from recollect.store.isolation import read_differences
        from recollect.store.status import Finding

        scope = self._parts.scope_of(tenant_id)
        broken = [chain for chain in self._parts.store.audit.verify_all(scope) if chain.broken]
        return [
            *self._parts.store.status.check(scope),
            *(
                Finding(f"{one} (put back when the store was opened)", 1, _PUT_BACK)
                for one in self._parts.store.put_back
            ),
            *(Finding(one, 1, _DIFFERENT) for one in read_differences(self._parts.store.database)),
            *(Finding(f"audit of tenant {chain.tenant_id} broken: {chain.broken}", 1, _BROKEN) for chain in broken),
        ]

    def verify(
        self,
        *,
        repair: bool = False,
        deep: bool = False,
        collection: str | None = None,
        tenant_id: int | None = None,
        on_progress: VerifyCallback | None = None,
    ) -> VerifyReport:
        """Compare documents, chunks, vectors, lexical rows and statistics with one another, and mend what differs.

        Each collection is read at one moment, so that others may write meanwhile. Every repair is a transaction under
        the locks that writers take; running it again, or after it was interrupted, does no harm.

        Args:
            repair: Mend what can be mended, and check again. Vectors are made by the configured model.
            deep: Compare every lexical row and every token vector, not a thousand of each collection.
            collection: Only this one, and not what belongs to no collection; None: the whole store.
            tenant_id: Whose; None: every tenant's, or with ``collection`` the default tenant's.
            on_progress: Told how far it has come.

        Returns:
            Every check with what it found and what of that is mended; ``clean`` if nothing is left.

        Raises:
            NotFoundError: There is no such collection.
        """
        from recollect.pipeline.verifying import make_verifier

        whole = tenant_id is None and collection is None
        return make_verifier(self._parts, on_progress=on_progress).run(
            None if whole else [self._parts.scope_of(tenant_id)], collection=collection, repair=repair, deep=deep
        )
