"""Tenants: made, listed, suspended, limited, exported and erased; and collections that they share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from recollect.errors import NotFoundError, UsageError
from recollect.model import Principal, RetrievalOptions, Scope, SearchReply
from recollect.model.scope import Guest, Target
from recollect.model.tenant import TenantQuota
from recollect.pipeline.history import LIBRARY

if TYPE_CHECKING:
    from recollect.config import RAGConfig
    from recollect.model.tenant import Isolation, SharedCollection, Tenant, TenantErasure, TenantExport, TenantIdentity
    from recollect.pipeline.parts import Parts

#: The group that a tenant is of, to the permissions of another tenant's documents.
READER_GROUP = "tenant:{}"


class Tenancy:
    """The part of `RAGPipeline` that looks after tenants.

    Wherever a method takes a ``tenant``, it is a number or a name. These methods are for whoever runs the store, not
    for its tenants: they see every tenant.

    Attributes:
        config: The settings.
    """

    config: RAGConfig
    _parts: Parts

    def scope_of(self, tenant_id: int | None = None) -> Scope:
        """All that a tenant knows at present; None: the configured tenant (``[rag] tenant``), or else the store's own.

        Raises:
            NotFoundError: There is no such tenant as is configured.
        """
        return self._parts.scope_of(tenant_id)

    def create_tenant(self, name: str, *, quota: TenantQuota | None = None) -> Tenant:
        """Make a tenant: somebody whose knowledge no other tenant sees.

        Args:
            name: Of it alone, and no number; at most 100 printable characters.
            quota: How much it may store; None: any amount.

        Raises:
            UsageError: The name or a quota is not valid.
            ConflictError: There is one of that name.
            IsolationError: The database would not keep it apart from the tenant that there is.
        """
        return self._parts.store.tenants.create(name, quota=quota or TenantQuota())

    def list_tenants(self, *, after: str = "", limit: int = 100) -> list[Tenant]:
        """Tenants by name, without the bytes of their texts; ``after`` is the last name of the page before."""
        return self._parts.store.tenants.page(after=after, limit=limit)

    def get_tenant(self, tenant: int | str) -> Tenant:
        """One tenant, with what it stores.

        Raises:
            NotFoundError: There is none.
        """
        return self._parts.store.tenants.get(tenant)

    def suspend_tenant(self, tenant: int | str) -> Tenant:
        """From now on the tenant can neither be searched nor written to (`TenantSuspendedError`); it keeps what it has.

        What is under way goes on to its end.

        Raises:
            NotFoundError: There is none.
        """
        return self._parts.store.tenants.set_status(tenant, "suspended")

    def resume_tenant(self, tenant: int | str) -> Tenant:
        """Take a suspension back.

        Raises:
            NotFoundError: There is no such tenant.
        """
        return self._parts.store.tenants.set_status(tenant, "active")

    def set_tenant_quota(self, tenant: int | str, quota: TenantQuota) -> Tenant:
        """Say how much a tenant may store; what it has already stays, even where it is more.

        Writers that would go beyond it get a `QuotaExceededError`, however many of them write at the same time.

        Raises:
            NotFoundError: There is no such tenant.
            UsageError: A quota is negative.
        """
        return self._parts.store.tenants.set_quota(tenant, quota)

    def export_tenant(self, tenant: int | str, folder: Path | str) -> TenantExport:
        """Write everything of a tenant into a new folder; `recollect.pipeline.tenant_export` says in what form.

        Raises:
            NotFoundError: There is no such tenant.
            ConflictError: There is something in the folder already.
            UsageError: The folder cannot be written.
        """
        from recollect.pipeline.tenant_export import export_tenant

        found = self._parts.store.tenants.get(tenant)
        try:
            return export_tenant(self._parts.store, found, Path(folder))
        except OSError as exc:
            raise UsageError(f"Cannot write the export to {str(folder)!r}: {exc.strerror or exc}.") from exc

    def erase_tenant(self, tenant: int | str, *, actor: str = LIBRARY, reason: str | None = None) -> TenantErasure:
        """Remove a tenant with everything that belongs to it, for good.

        Args:
            tenant: By number or name; not the default one, which a store always has.
            actor: Who asks, for the receipt.
            reason: Why, for the receipt.

        Returns:
            The receipt, which the audit keeps under the tenant's number too.

        Raises:
            NotFoundError: There is no such tenant.
            UsageError: It is the default tenant.
            StoreError: Something of it is still under way; it is suspended then, and can be erased again.
        """
        receipt = self._parts.store.tenants.erase(tenant, actor=actor, reason=reason)
        self._parts.searcher.forget()
        return receipt

    def share_collection(self, tenant: int | str, collection: str, reader: int | str) -> bool:
        """Let another tenant read a collection, as far as its documents are granted to ``*`` or to that tenant.

        To the permissions of documents the reader is somebody of the group ``tenant:NAME``.

        Args:
            tenant: Whose collection.
            collection: By name.
            reader: Who reads it from now on.

        Returns:
            Whether it could not before.

        Raises:
            UsageError: Isolation is strict (``[rag.multi_tenant]``), or the reader is the tenant itself.
            NotFoundError: There is no such tenant or collection.
        """
        if self.config.multi_tenant.isolation_level == "strict":
            raise UsageError(
                'Tenants are kept apart strictly. Set isolation_level = "shared" in [rag.multi_tenant] first, if they '
                "are meant to read one another's collections."
            )
        store = self._parts.store
        scope, reader_id = Scope(tenant_id=store.tenants.number(tenant)), store.tenants.number(reader)
        store.collections.get(scope, collection)
        return store.shares.share(scope, collection, reader_id=reader_id)

    def unshare_collection(self, tenant: int | str, collection: str, reader: int | str) -> None:
        """Keep another tenant from a collection again; the arguments are those of `share_collection`.

        Raises:
            NotFoundError: It is not shared with that tenant.
        """
        store = self._parts.store
        scope, reader_id = Scope(tenant_id=store.tenants.number(tenant)), store.tenants.number(reader)
        if not store.shares.unshare(scope, collection, reader_id=reader_id):
            raise NotFoundError(f"The collection {collection!r} of {tenant!r} is not shared with {reader!r}.")

    def shared_collections(self, tenant: int | str) -> list[SharedCollection]:
        """The collections that other tenants let this one read.

        Raises:
            NotFoundError: There is no such tenant.
        """
        from recollect.store.tenants import ShareRepository

        store = self._parts.store
        # Those of a suspended tenant can be looked at.
        return ShareRepository(store.caretaking).shared_with(Scope(tenant_id=store.tenants.number(tenant)))

    def search_shared(
        self,
        tenant: TenantIdentity,
        collection: str,
        query: str,
        options: RetrievalOptions | None = None,
        *,
        principal: Principal | None = None,
    ) -> SearchReply:
        """Search a collection of a tenant together with those that other tenants share with it.

        Where isolation is strict, nothing is shared. What was embedded with another model than the configured one is
        left out of what others share.

        Args:
            tenant: Who searches.
            collection: Its own; where it does not exist, it is empty.
            query: In plain words.
            options: How to search; None: the configured defaults.
            principal: Who of the tenant asks; None: the tenant itself.

        Returns:
            A reply as of one collection, where nothing is shared; otherwise each passage names its collection, another
            tenant's as ``tenant/collection``.

        Raises:
            UsageError: The query or an option is not valid.
            TenantSuspendedError: The tenant is suspended.
        """
        scope = self._parts.scope(tenant.tenant_id, principal=principal)
        shared: list[Guest] = []
        if self.config.multi_tenant.isolation_level == "shared":
            reader = Principal(groups=(READER_GROUP.format(tenant.name),))
            shared = [
                Guest(
                    scope=Scope(tenant_id=one.tenant_id, principal=reader),
                    collection=one.collection,
                    label=f"{one.tenant_name}/{one.collection}",
                )
                for one in self._parts.store.shares.shared_with(scope)
                if one.active
            ]
        target = Target(collections=(collection,), optional=frozenset({collection}), shared=tuple(shared))
        return self._parts.searcher.search(scope, query, options or self._default_options(), target)

    def _default_options(self) -> RetrievalOptions:
        return RetrievalOptions(top_k=self.config.retrieval.top_k, mode=self.config.retrieval.mode)

    def isolation(self) -> Isolation:
        """Whether the database itself keeps tenants apart, or statements alone."""
        from recollect.store.isolation import read_isolation

        return read_isolation(self._parts.store.database)
