"""Many tenants behind one object: each ingests and searches its own knowledge, by name or number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from recollect.config import RAGConfig
from recollect.errors import ConfigurationError
from recollect.model import Answer, Document, Principal, RetrievalOptions, Scope, SearchReply
from recollect.model.arguments import checked
from recollect.model.keywords import refined
from recollect.model.scope import Guest, Target
from recollect.pipeline.owned import OwnedPipeline
from recollect.pipeline.rag import RAGPipeline

if TYPE_CHECKING:
    from typing import Unpack

    from recollect.model import IngestResult
    from recollect.model.keywords import SearchKeywords
    from recollect.model.tenant import Tenant, TenantIdentity, TenantQuota
    from recollect.pipeline.standpoint import Standpoint
    from recollect.pipeline.view import View

#: The group that a tenant is of, to the permissions of another tenant's documents.
READER_GROUP = "tenant:{}"


@checked
class MultiTenantRAG(OwnedPipeline):
    """A `RAGPipeline` for many tenants. A context manager, safe to share between threads.

    However it is configured, no statement sees the rows of two tenants. ``[rag.multi_tenant]`` decides the rest: with
    ``isolation_level = "strict"`` (the default) it works only where the database itself keeps tenants apart, and a
    tenant finds nothing but its own; with ``"shared"`` it also finds what other tenants share with it
    (`Collections.share`).

    Args:
        config: The settings, or the pipeline to work with, which its owner closes; None: the default settings.

    Example:
        >>> from recollect import Document, MultiTenantRAG
        >>> with MultiTenantRAG() as rag:  # doctest: +SKIP
        ...     rag.create_tenant("acme")
        ...     rag.ingest("acme", Document(content="Annual leave is 30 days.", source="leave.txt"))
        ...     rag.search("acme", "How long is annual leave?").results
    """

    def __init__(self, config: RAGConfig | RAGPipeline | None = None) -> None:
        super().__init__(config)
        self._settings = self.pipeline.config.multi_tenant
        self._guarded = self._settings.isolation_level == "shared"

    def create_tenant(self, name: str, *, quota: TenantQuota | None = None) -> Tenant:
        """Make a tenant; see `Tenants.create`, and the other methods there."""
        return self.pipeline.tenants.create(name, quota=quota)

    def ingest(
        self,
        tenant_id: int | str,
        document: Document | str,
        *,
        collection: str | None = None,
        force: bool = False,
        principal: Principal | None = None,
    ) -> IngestResult:
        """Store a document of a tenant, as `View.ingest` does.

        Args:
            tenant_id: By number or name.
            document: The document, or its text.
            collection: Another one than the tenant's own, made where it is missing; None: its own.
            force: Store it anew even if it is unchanged.
            principal: Who of the tenant stores it; None: the tenant itself.

        Raises:
            NotFoundError: There is no such tenant.
            TenantSuspendedError: It is suspended.
            QuotaExceededError: It would have more than it may.
            ConfigurationError: Isolation is strict, and the database does not keep tenants apart.
        """
        return self._view(self._tenant(tenant_id), collection, principal).ingest(document, force=force)

    def search(
        self,
        tenant_id: int | str,
        query: str,
        options: RetrievalOptions | None = None,
        *,
        collection: str | None = None,
        principal: Principal | None = None,
        **keywords: Unpack[SearchKeywords],
    ) -> SearchReply:
        """Find the passages that answer a query in a tenant's knowledge; the rest is as in `ingest` and `View.search`.

        Without a ``collection`` they are of the tenant's own, which is empty rather than missing, and with the
        isolation level ``shared`` of those that other tenants share with it: then each passage names its collection,
        another tenant's as ``tenant/collection``.
        """
        tenant = self._tenant(tenant_id)
        view = self._view(tenant, collection, principal)
        if collection is not None:
            return view.search(query, options, **keywords)
        own, shared = view.standpoint.collection, tuple(_shared_with(view.standpoint, tenant))
        target = Target(collections=(own,), optional=frozenset({own}), shared=shared)
        searcher = view.standpoint.assembly.searcher
        return searcher.search(view.scope, query, refined(RetrievalOptions, options, keywords), target)

    def ask(
        self,
        tenant_id: int | str,
        question: str,
        options: RetrievalOptions | None = None,
        *,
        collection: str | None = None,
        principal: Principal | None = None,
        **keywords: Unpack[SearchKeywords],
    ) -> Answer:
        """Answer a question from a tenant's own collection, with citations, or refuse; see `search` and `View.ask`."""
        return self._view(self._tenant(tenant_id), collection, principal).ask(question, options, **keywords)

    def collection_of(self, tenant_id: int | str) -> str:
        """The name of a tenant's own collection, by ``collection_prefix`` and ``per_tenant_collections``.

        Raises:
            NotFoundError: There is no such tenant.
        """
        return self._own(self._tenant(tenant_id))

    def _tenant(self, tenant_id: int | str) -> TenantIdentity:
        if not self._guarded:
            isolation = self.pipeline.tenants.isolation()
            if not isolation.in_force:
                raise ConfigurationError(
                    f"Tenants are to be kept apart strictly, but row-level security does not bind the database role "
                    f"{isolation.role!r}. Let the program work as a role that owns nothing (docs/how-to/tenants.md has "
                    'the grants), or set isolation_level = "shared" in [rag.multi_tenant].'
                )
            self._guarded = True
        return self.pipeline.store.tenants.identity(tenant_id)

    def _own(self, tenant: TenantIdentity) -> str:
        if not self._settings.per_tenant_collections:
            return self.pipeline.config.collection
        return f"{self._settings.collection_prefix}{tenant.name}"

    def _view(self, tenant: TenantIdentity, collection: str | None, principal: Principal | None) -> View:
        name = self._own(tenant) if collection is None else collection
        return self.pipeline.view(tenant=tenant.tenant_id, collections=name, principal=principal)


def _shared_with(at: Standpoint, tenant: TenantIdentity) -> Iterator[Guest]:
    """The collections that other tenants let this one read, as far as they are granted to it."""
    if at.config.multi_tenant.isolation_level != "shared":
        return
    reader = Principal(groups=(READER_GROUP.format(tenant.name),))
    for one in at.store.shares.shared_with(at.scope):
        if one.active:
            scope = Scope(tenant_id=one.tenant_id, principal=reader)
            yield Guest(scope=scope, collection=one.collection, label=f"{one.tenant_name}/{one.collection}")
