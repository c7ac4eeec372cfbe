"""Who may read what, and what somebody finds in all that he may read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from recollect.errors import NotFoundError, UsageError
from recollect.model.principal import Permissions, read_permissions, read_token
from recollect.model.scope import Target
from recollect.pipeline.parts import Parts

if TYPE_CHECKING:
    from recollect.config import RAGConfig
    from recollect.model import Principal, RetrievalOptions, Scope, SearchReply
    from recollect.model.time import Moment
    from recollect.store.access import CollectionAccess, DocumentPermissions, PermissionChange


class Permitting:
    """The part of `RAGPipeline` that knows who may read what.

    A change counts from the next search on, cached replies included.

    Attributes:
        config: The settings.
    """

    config: RAGConfig
    _parts: Parts

    def grant(
        self,
        grants: Sequence[str] | str,
        *,
        documents: Sequence[int | str] | int | str = (),
        source: str | None = None,
        collection: str | None = None,
        only: bool = False,
        tenant_id: int | None = None,
        principal: Principal | None = None,
    ) -> int:
        """Let somebody read documents; past versions keep whom they were granted to.

        Args:
            grants: ``user:NAME``, ``role:NAME``, ``department:NAME``, ``group:NAME`` or ``*``; several as a sequence or
                with commas between. One that begins with ``!`` is a denial.
            documents: By id or by source; or one.
            source: Every document that came from there: a folder's path, a domain.
            collection: Alone: the default of its documents, those that have no permissions of their own. With
                ``source``: where that is; None: the configured one.
            only: Take away every other grant; denials stay.
            tenant_id: Whose documents; None: the default tenant's.
            principal: Who says so: documents must be his to change, and a collection his. None: the owner of the store.

        Returns:
            How many documents have other permissions now; a collection's default counts as one.

        Raises:
            UsageError: A grant is none, or it is not said what for.
            PermissionDeniedError: It is not the principal's to say; then nothing is changed.
            NotFoundError: A document, a source or the collection does not exist; then nothing is changed.
        """
        from recollect.store.access import PermissionChange

        change = PermissionChange(add=read_permissions(grants, name="grants"), only=only)
        return self._change(self._parts.scope(tenant_id, principal=principal), change, documents, source, collection)

    def deny(
        self,
        denials: Sequence[str] | str,
        *,
        documents: Sequence[int | str] | int | str = (),
        source: str | None = None,
        collection: str | None = None,
        tenant_id: int | None = None,
        principal: Principal | None = None,
    ) -> int:
        """Keep somebody from documents, whatever grants include him; only the collection's owners still read them.

        The arguments are those of `grant`; to take a denial back, `revoke` it with a ``!`` before it.
        """
        from recollect.store.access import PermissionChange

        texts = denials.split(",") if isinstance(denials, str) else denials
        tokens = tuple(sorted({read_token(text, name="denials") for text in texts}))
        change = PermissionChange(add=Permissions(grants=(), denials=tokens))
        return self._change(self._parts.scope(tenant_id, principal=principal), change, documents, source, collection)

    def revoke(
        self,
        grants: Sequence[str] | str,
        *,
        documents: Sequence[int | str] | int | str = (),
        source: str | None = None,
        collection: str | None = None,
        tenant_id: int | None = None,
        principal: Principal | None = None,
    ) -> int:
        """Take grants away, and denials where they have a ``!`` before them; the arguments are those of `grant`."""
        from recollect.store.access import PermissionChange

        change = PermissionChange(remove=read_permissions(grants, name="grants"))
        return self._change(self._parts.scope(tenant_id, principal=principal), change, documents, source, collection)

    def permissions_of(
        self,
        documents: Sequence[int | str] | int | str,
        *,
        tenant_id: int | None = None,
        principal: Principal | None = None,
    ) -> list[DocumentPermissions]:
        """Who may read documents, by their id; with a ``principal``, documents that are his to change.

        Raises:
            NotFoundError: One of them does not exist.
            PermissionDeniedError: One of them is not the principal's to change.
        """
        scope = self._parts.scope(tenant_id, principal=principal)
        return self._parts.store.access.of_documents(scope, self._resolved(scope, documents))

    def collection_access(
        self, collection: str | None = None, *, tenant_id: int | None = None, principal: Principal | None = None
    ) -> CollectionAccess:
        """Who owns, reads and writes a collection, and the default of its documents; a ``principal`` must own it.

        Raises:
            NotFoundError: There is no such collection.
            PermissionDeniedError: The principal does not own it.
        """
        scope = self._parts.scope(tenant_id, principal=principal)
        place = self._parts.store.collections.get(scope, collection or self.config.collection)
        return self._parts.store.access.of_collection(scope, place)

    def set_collection_access(
        self,
        collection: str | None = None,
        *,
        owners: Sequence[str] | None = None,
        readers: Sequence[str] | None = None,
        writers: Sequence[str] | None = None,
        tenant_id: int | None = None,
        principal: Principal | None = None,
    ) -> CollectionAccess:
        """Say who owns, reads and writes a collection. For whoever neither owns nor reads it, it does not exist.

        Args:
            collection: By name; None: the configured one.
            owners: Grants, such as ``("user:ann",)``; they read everything in it, and write. None: as they are.
            readers: Likewise; ``("*",)`` at first.
            writers: Likewise; nobody at first. They store documents, and change those that they have stored.
            tenant_id: Whose; None: the default tenant's.
            principal: Who says so: one of its owners; None: the owner of the store.

        Raises:
            NotFoundError: There is no such collection.
            UsageError: A grant is none.
            PermissionDeniedError: The principal does not own it.
        """
        scope = self._parts.scope(tenant_id, principal=principal)
        place = self._parts.store.collections.get(scope, collection or self.config.collection)
        self._parts.store.access.set_collection(
            scope,
            place,
            owners=_tokens("owners", owners),
            readers=_tokens("readers", readers),
            writers=_tokens("writers", writers),
        )
        # Whoever gives the collection away is told what he made of it all the same.
        return self._parts.store.access.of_collection(replace(scope, principal=None), place)

    def augment_context(
        self,
        query: str,
        principal: Principal | None = None,
        options: RetrievalOptions | None = None,
        *,
        tenant_id: int | None = None,
        as_of: Moment | None = None,
    ) -> SearchReply:
        """Search every collection that somebody may read, and give the best passages of all together.

        Collections that were embedded with another model than the configured one are left out.

        Args:
            query: In plain words.
            principal: Who asks; None: the owner of the store.
            options: How to search; None: the configured defaults.
            tenant_id: Whose knowledge; None: the default tenant's.
            as_of: Search what was known at this time; None: now.

        Returns:
            A reply whose ``collection`` is ``*``; each passage names its own.

        Raises:
            UsageError: The query or an option is not valid.
        """
        scope = self._parts.scope(tenant_id, as_of, principal=principal)
        return self._parts.searcher.search(scope, query, options or self.default_options(), Target(collections=None))

    def default_options(self) -> RetrievalOptions:
        """The configured options of a search."""
        from recollect.model import RetrievalOptions

        return RetrievalOptions(top_k=self.config.retrieval.top_k, mode=self.config.retrieval.mode)

    def _change(
        self,
        scope: Scope,
        change: PermissionChange,
        documents: Sequence[int | str] | int | str,
        source: str | None,
        collection: str | None,
    ) -> int:
        access = self._parts.store.access
        ids = self._resolved(scope, documents)
        if ids and (source is not None or collection is not None):
            raise UsageError("Documents, or a source, or a collection: say for one of them who may read.")
        if ids:
            return access.change(scope, ids, change)
        if source is None and collection is None:
            raise UsageError("Say who may read what: documents, a source or a collection.")
        place = self._parts.store.collections.get(scope, collection or self.config.collection)
        if source is None:
            before = access.of_collection(scope, place).default
            return int(access.change_default(scope, place, change) != before)
        ids = access.documents_of_source(scope, place, source)
        if not ids:
            raise NotFoundError(
                f"No document of the collection {place.name!r} came from {source!r}. `recollect documents show ID` "
                "names a document's origin."
            )
        return access.change(scope, ids, change)

    def _resolved(self, scope: Scope, documents: Sequence[int | str] | int | str) -> list[int]:
        several = [documents] if isinstance(documents, int | str) else documents
        return [self._parts.store.documents.resolve(scope, document) for document in several]


def _tokens(name: str, given: Sequence[str] | None) -> list[str] | None:
    if given is None:
        return None
    if isinstance(given, str):
        raise UsageError(f'{name} must be a sequence of grants, for instance {name}=("user:ann",), not {given!r}.')
    return [read_token(one, name=name) for one in given]
