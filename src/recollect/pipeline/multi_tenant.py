"""Many tenants behind one object: each ingests and searches its own knowledge, by name or number."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from recollect.config import RAGConfig
from recollect.errors import ConfigurationError
from recollect.model import Answer, Document, Principal, RetrievalOptions, SearchReply
from recollect.model.arguments import checked
from recollect.pipeline.rag import RAGPipeline

if TYPE_CHECKING:
    from recollect.ingest.report import IngestResult
    from recollect.model.tenant import Tenant, TenantIdentity, TenantQuota


@checked
class MultiTenantRAG:
    """A `RAGPipeline` for many tenants. A context manager, safe to share between threads.

    However it is configured, no statement sees the rows of two tenants. ``[rag.multi_tenant]`` decides the rest: with
    ``isolation_level = "strict"`` (the default) it works only where the database itself keeps tenants apart, and a
    tenant finds nothing but its own; with ``"shared"`` it also finds what other tenants share with it
    (`RAGPipeline.share_collection`).

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
        self._owns = not isinstance(config, RAGPipeline)
        self.pipeline = config if isinstance(config, RAGPipeline) else RAGPipeline(config)
        self._settings = self.pipeline.config.multi_tenant
        self._guarded = self._settings.isolation_level == "shared"

    def __enter__(self) -> MultiTenantRAG:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the pipeline, where this object opened it."""
        if self._owns:
            self.pipeline.close()

    def create_tenant(self, name: str, *, quota: TenantQuota | None = None) -> Tenant:
        """Make a tenant; see `RAGPipeline.create_tenant`. The pipeline has the methods that look after tenants."""
        return self.pipeline.create_tenant(name, quota=quota)

    def ingest(
        self,
        tenant_id: int | str,
        document: Document | str,
        *,
        collection: str | None = None,
        force: bool = False,
        principal: Principal | None = None,
    ) -> IngestResult:
        """Store a document of a tenant, as `RAGPipeline.ingest` does.

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
        tenant = self._tenant(tenant_id)
        name = collection or self._own(tenant)
        return self.pipeline.ingest(document, tenant.tenant_id, collection=name, force=force, principal=principal)

    def search(
        self,
        tenant_id: int | str,
        query: str,
        options: RetrievalOptions | None = None,
        *,
        collection: str | None = None,
        principal: Principal | None = None,
    ) -> SearchReply:
        """Find the passages that answer a query in a tenant's knowledge.

        Args:
            tenant_id: By number or name.
            query: In plain words.
            options: How to search; None: the configured defaults.
            collection: Another one of the tenant's than its own; None: its own, and with the isolation level
                ``shared`` those that other tenants share with it: then each passage names its collection, another
                tenant's as ``tenant/collection``.
            principal: Who of the tenant asks; None: the tenant itself.

        Raises:
            UsageError: The query or an option is not valid.
            NotFoundError: There is no such tenant or collection. Its own is empty rather than missing.
            TenantSuspendedError: It is suspended.
            ConfigurationError: Isolation is strict, and the database does not keep tenants apart.
        """
        tenant = self._tenant(tenant_id)
        if collection is not None:
            return self.pipeline.search(
                query, options, collection=collection, tenant_id=tenant.tenant_id, principal=principal
            )
        return self.pipeline.search_shared(tenant, self._own(tenant), query, options, principal=principal)

    def ask(
        self,
        tenant_id: int | str,
        question: str,
        options: RetrievalOptions | None = None,
        *,
        collection: str | None = None,
        principal: Principal | None = None,
    ) -> Answer:
        """Answer a question from a tenant's own collection, with citations, or refuse; see `RAGPipeline.ask`.

        Raises:
            NotFoundError: There is no such tenant, or nothing was ever stored in the collection.
            TenantSuspendedError: It is suspended.
            ConfigurationError: Isolation is strict, and the database does not keep tenants apart.
        """
        tenant = self._tenant(tenant_id)
        name = collection or self._own(tenant)
        return self.pipeline.ask(question, options, collection=name, tenant_id=tenant.tenant_id, principal=principal)

    def collection_of(self, tenant_id: int | str) -> str:
        """The name of a tenant's own collection, by ``collection_prefix`` and ``per_tenant_collections``.

        Raises:
            NotFoundError: There is no such tenant.
        """
        return self._own(self._tenant(tenant_id))

    def _tenant(self, tenant_id: int | str) -> TenantIdentity:
        if not self._guarded:
            isolation = self.pipeline.isolation()
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
