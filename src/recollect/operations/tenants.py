"""What is done with tenants."""

from __future__ import annotations

from typing import Annotated, Protocol

from pydantic import Field

from recollect.model.page import Page
from recollect.model.tenant import Sharing, Tenant, TenantErasure
from recollect.operations.declaring import operation
from recollect.operations.values import Cursor, Limit, Name, Text


class TenantOperations(Protocol):
    """The tenants of a store, for whoever runs it. A tenant is named by its number or name.

    They see every tenant, whichever tenant the view is of.
    """

    @operation("GET /v1/tenants", "operator")
    def list(self, *, cursor: Cursor | None = None, limit: Limit = 100) -> Page[Tenant]:
        """List the tenants.

        By name, without the bytes of their texts.

        Args:
            cursor: ``next_cursor`` of the page before; None: the first page.
            limit: Tenants at most.

        Raises:
            UsageError: The cursor is none of this list.
        """
        ...

    @operation("GET /v1/tenants/{tenant:named}", "operator", etag=True)
    def get(self, tenant: int | Name) -> Tenant:
        """Show a tenant.

        What it stores, how much it may, and what others let it read.

        Args:
            tenant: By number or name.

        Raises:
            NotFoundError: There is none.
        """
        ...

    @operation("DELETE /v1/tenants/{tenant:named}", "operator")
    def erase(
        self, tenant: int | Name, *, reason: Annotated[Text, Field(max_length=1_000)] | None = None
    ) -> TenantErasure:
        """Erase a tenant.

        With everything that belongs to it, for good. What is left is the receipt, which the audit keeps under the
        tenant's number, too.

        Args:
            tenant: By number or name; not the default one, which a store always has.
            reason: Why, for the receipt; None: nothing is said.

        Raises:
            NotFoundError: There is none.
            UsageError: It is the default tenant.
            StoreError: Something of it is still under way; it is suspended then, and can be erased again.
        """
        ...

    @operation("POST /v1/tenants/{tenant:named}/shares", "operator")
    def share(self, tenant: int | Name, collection: Name, reader: int | Name) -> Sharing:
        """Let another tenant read a collection.

        Where tenants may read one another's collections at all (``isolation_level = "shared"`` in
        ``[rag.multi_tenant]``).

        Args:
            tenant: Whose it is, by number or name.
            collection: Of that tenant.
            reader: The tenant that reads it, by number or name.

        Raises:
            UsageError: Isolation is strict, or the reader is the tenant itself.
            NotFoundError: There is no such tenant or collection.
        """
        ...

    @operation("DELETE /v1/tenants/{tenant:named}/shares", "operator")
    def unshare(self, tenant: int | Name, collection: Name, reader: int | Name) -> Sharing:
        """Keep another tenant from a collection.

        Args:
            tenant: Whose it is, by number or name.
            collection: Of that tenant.
            reader: The tenant that reads it, by number or name.

        Raises:
            NotFoundError: It is not shared with that tenant.
        """
        ...
