"""What is done with keys, logins, tenants and the audit."""

from __future__ import annotations

from typing import Annotated, Protocol

from pydantic import Field

from recollect.model.activity import Access
from recollect.model.audit import AuditRecord, AuditVerification
from recollect.model.key import ApiKey, Login
from recollect.model.page import Page
from recollect.model.requests import LoggedRequest, RequestKind, RequestTotals
from recollect.model.tenant import Sharing, Tenant, TenantErasure
from recollect.operations.declaring import operation
from recollect.operations.values import Cursor, Limit, Name, Number, Text, Time


class KeyOperations(Protocol):
    """What programs present to a server to say whose and who they are.

    In a view with a principal, keys are those of the principal's user.
    """

    @operation("GET /v1/keys", "administrator")
    def list(self, *, cursor: Cursor | None = None, limit: Limit = 100) -> Page[ApiKey]:
        """List keys.

        Newest first, those that are expired or revoked among them.

        Args:
            cursor: ``next_cursor`` of the page before; None: the first page.
            limit: Keys at most.

        Raises:
            UsageError: The cursor is none of this list.
        """
        ...

    @operation("GET /v1/keys/{key_id}", "administrator")
    def get(self, key_id: Name) -> ApiKey:
        """Show a key.

        What is kept of it: nothing of its secret.

        Args:
            key_id: Its public name.

        Raises:
            NotFoundError: There is none.
        """
        ...

    @operation("DELETE /v1/keys/{key_id}", "administrator", forgets=True)
    def revoke(self, key_id: Name) -> ApiKey:
        """Revoke a key.

        It is refused from now on, with both secrets if it was rotated; other processes notice within five seconds. A
        key that is revoked already stays as it was.

        Args:
            key_id: Its public name.

        Raises:
            NotFoundError: There is none.
        """
        ...


# What is done with logins.


class LoginOperations(Protocol):
    """Browsers that are logged in to a server: listed, and logged out.

    A login is made by the server alone, with a key or with an issuer's word. In a view with a principal, logins are
    those of the principal's user.
    """

    @operation("GET /v1/logins", "administrator")
    def list(self, *, user: Name | None = None, cursor: Cursor | None = None, limit: Limit = 100) -> Page[Login]:
        """List the browsers that are logged in.

        Newest first, those that have ended in the last month among them.

        Args:
            user: Only those of this user; None: of everybody.
            cursor: ``next_cursor`` of the page before; None: the first page.
            limit: Logins at most.

        Raises:
            UsageError: The cursor is none of this list.
        """
        ...

    @operation("DELETE /v1/logins", "administrator", reply="ended", forgets=True)
    def revoke_all(self, *, user: Name | None = None) -> int:
        """Log out every browser of a user, or of everybody.

        Other processes notice within five seconds. Whoever has a key, or is known to the issuer, may log in again.

        Args:
            user: Whose; None: everybody's.

        Returns:
            How many there were.

        Raises:
            PermissionDeniedError: The view's principal is another user.
        """
        ...

    @operation("GET /v1/logins/{login_id}", "administrator")
    def get(self, login_id: Name) -> Login:
        """Show a login.

        What is kept of it: nothing of its cookie.

        Args:
            login_id: Its public name.

        Raises:
            NotFoundError: There is none.
        """
        ...

    @operation("DELETE /v1/logins/{login_id}", "administrator", forgets=True)
    def revoke(self, login_id: Name) -> Login:
        """Log a browser out.

        Other processes notice within five seconds. A login that has ended before stays as it was.

        Args:
            login_id: Its public name.

        Raises:
            NotFoundError: There is none.
        """
        ...


# What is done with tenants.


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


# What is done with the audit, and with the log of requests to providers of models.


class AuditOperations(Protocol):
    """The audit of a tenant, and the log of what was shown to whom. For the owner of the store."""

    @operation("GET /v1/audit", "administrator")
    def list(
        self,
        *,
        action: Name | None = None,
        since: Time | None = None,
        until: Time | None = None,
        cursor: Cursor | None = None,
        limit: Limit = 100,
    ) -> Page[AuditRecord]:
        """List what was done, newest first.

        The record of an erasure is shown with what its proof found, which was recorded after it.

        Args:
            action: Only of this kind, such as ``erase``, ``restore`` or ``forget``.
            since: Only of this time or later.
            until: Only before this time.
            cursor: ``next_cursor`` of the page before; None: the first page.
            limit: Records at most.

        Raises:
            UsageError: One of the times is invalid, or the cursor is none of this list.
        """
        ...

    @operation("GET /v1/audit/accesses", "administrator")
    def accesses(
        self,
        *,
        document: Number | None = None,
        actor: Name | None = None,
        since: Time | None = None,
        until: Time | None = None,
        cursor: Cursor | None = None,
        limit: Limit = 100,
    ) -> Page[Access]:
        """List what the server was asked, and which documents it showed to whom, newest first.

        Requests that changed something are among them.

        Args:
            document: Only where the document of this id was shown; it may be erased since.
            actor: Only of this one, for instance ``user:ann``.
            since: Only of this time or later.
            until: Only before this time.
            cursor: ``next_cursor`` of the page before; None: the first page.
            limit: Accesses at most.

        Raises:
            UsageError: One of the times is invalid, or the cursor is none of this list.
        """
        ...

    @operation("GET /v1/audit/verification", "administrator")
    def verify(self) -> AuditVerification:
        """Follow the audit's chain.

        From end to end: whether an entry was changed, removed or put in. A view that names no tenant follows every
        tenant's chain, those of erased tenants included.
        """
        ...


class RequestOperations(Protocol):
    """The requests to providers of models: their figures, never their contents. For the owner of the store."""

    @operation("GET /v1/requests", "administrator")
    def requests(
        self,
        *,
        kind: RequestKind | None = None,
        failed: bool = False,
        since: Time | None = None,
        until: Time | None = None,
        cursor: Cursor | None = None,
        limit: Limit = 100,
    ) -> Page[LoggedRequest]:
        """List requests to providers of models, newest first.

        What each took and what it cost; never what it said.

        Args:
            kind: Only of this kind.
            failed: Only those without a usable answer.
            since: Only of this time or later.
            until: Only before this time.
            cursor: ``next_cursor`` of the page before; None: the first page.
            limit: Requests at most.

        Raises:
            UsageError: One of the times is invalid, or the cursor is none of this list.
        """
        ...

    @operation("GET /v1/requests/stats", "administrator", reply="models")
    def request_totals(self, *, since: Time | None = None, until: Time | None = None) -> list[RequestTotals]:
        """Sum requests to providers of models up, by kind and model.

        Args:
            since: Only of this time or later.
            until: Only before this time.

        Raises:
            UsageError: One of the times is invalid.
        """
        ...
