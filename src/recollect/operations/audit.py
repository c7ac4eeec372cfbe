"""What is done with the audit, and with the log of requests to providers of models."""

from __future__ import annotations

from typing import Protocol

from recollect.model.audit import AuditRecord, AuditVerification
from recollect.model.page import Page
from recollect.model.requests import LoggedRequest, RequestKind, RequestTotals
from recollect.model.shown import Access
from recollect.operations.declaring import operation
from recollect.operations.values import Cursor, Limit, Name, Number, Time


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
