"""Operations as coroutines; written by ``tests/conventions/test_awaited_operations.py``."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Annotated, Any, Literal, Protocol

from pydantic import Field

from recollect.model.activity import Access
from recollect.model.audit import AuditRecord, AuditVerification
from recollect.model.collection import MOST_DIMENSIONS, Collection
from recollect.model.facts import ConsolidationReport, Fact
from recollect.model.history import CleanupReport
from recollect.model.job import Job, JobStatus
from recollect.model.key import ApiKey, Login
from recollect.model.page import MOST_OF_A_PAGE, Page, every_awaited
from recollect.model.requests import LoggedRequest, RequestKind, RequestTotals
from recollect.model.source import SourceRecord
from recollect.model.status import PipelineStatus
from recollect.model.tenant import Sharing, Tenant, TenantErasure
from recollect.operations.collections import CollectionOperations, SourceOperations
from recollect.operations.conversations import FactOperations, FeedbackOperations
from recollect.operations.declaring import awaiting
from recollect.operations.jobs import JobOperations, MaintenanceOperations
from recollect.operations.people import (
    AuditOperations,
    KeyOperations,
    LoginOperations,
    RequestOperations,
    TenantOperations,
)
from recollect.operations.values import Cursor, Limit, Name, Number, SourceName, Text, Time


@awaiting(CollectionOperations)
class AsyncCollectionOperations(Protocol):
    """Collections: made, listed, shown and removed. Awaited."""

    async def list(self, *, cursor: Cursor | None = None, limit: Limit = 100) -> Page[Collection]:
        """List the collections by name."""
        ...

    async def create(
        self,
        name: Name,
        *,
        description: Annotated[Text, Field(max_length=10000)] = "",
        language: Name | None = None,
        chunking: Mapping[str, Any] | None = None,
        token_vectors: bool | None = None,
        dimensions: Annotated[int, Field(ge=1, le=MOST_DIMENSIONS)] | None = None,
    ) -> Collection:
        """Make an empty collection."""
        ...

    async def get(self, name: Name) -> Collection:
        """Show a collection."""
        ...

    async def delete(self, name: Name) -> None:
        """Remove a collection with everything in it, physically."""
        ...

    def each(self) -> AsyncGenerator[Collection]:
        """All of them, page by page as they are read."""
        return every_awaited(self.list, limit=MOST_OF_A_PAGE)


@awaiting(SourceOperations)
class AsyncSourceOperations(Protocol):
    """Where the documents of a collection come from: listed, and read no longer. Awaited."""

    async def list(
        self, *, name: SourceName | None = None, cursor: Cursor | None = None, limit: Limit = 100
    ) -> Page[SourceRecord]:
        """List where documents come from."""
        ...

    async def remove(self, source: SourceName, *, documents: Literal["close", "keep", "erase"] = "close") -> int:
        """Have a source read no longer."""
        ...

    def each(self) -> AsyncGenerator[SourceRecord]:
        """All of them, page by page as they are read."""
        return every_awaited(self.list, limit=MOST_OF_A_PAGE)


@awaiting(FactOperations)
class AsyncFactOperations(Protocol):
    """Facts drawn from the conversations of a view: its session's or its user's; of a view with neither, from all.

    Where permissions are enforced, facts from others' conversations do not exist for a principal. Awaited.
    """

    async def consolidate(
        self, *, min_retrievals: Annotated[int, Field(ge=1, le=1000000)] | None = None, limit: Limit = 100
    ) -> ConsolidationReport:
        """Draw facts from what is asked for again and again."""
        ...

    async def get(self, fact_id: Number) -> Fact:
        """Show a fact with the words that it rests on."""
        ...

    async def history(self, fact_id: Number) -> list[Fact]:
        """Show what was said of the same before and after."""
        ...

    async def delete(self, fact_id: Number) -> None:
        """Remove a fact."""
        ...

    async def list(self, *, superseded: bool = False, cursor: Cursor | None = None, limit: Limit = 100) -> Page[Fact]:
        """List facts, what was said last first."""
        ...


@awaiting(FeedbackOperations)
class AsyncFeedbackOperations(Protocol):
    """Whether what contexts and answers showed has helped. Awaited."""

    async def judge(self, position: Number, *, helpful: bool) -> bool:
        """Say whether an answer helped."""
        ...

    async def reset(self) -> int:
        """Forget the feedback."""
        ...


@awaiting(JobOperations)
class AsyncJobOperations(Protocol):
    """Work in the background: looked at, stopped and tried again. Awaited."""

    async def list(
        self,
        *,
        status: JobStatus | None = None,
        kind: Name | None = None,
        source: Name | None = None,
        cursor: Cursor | None = None,
        limit: Limit = 100,
    ) -> Page[Job]:
        """List jobs, newest first."""
        ...

    async def get(self, job_id: Number) -> Job:
        """Show a job as it is now."""
        ...

    async def cancel(self, job_id: Number) -> Job:
        """Cancel a job."""
        ...

    async def retry(self, job_id: Number) -> Job:
        """Try a job again."""
        ...

    def each(
        self, *, status: JobStatus | None = None, kind: str | None = None, source: str | None = None
    ) -> AsyncGenerator[Job]:
        """All of them, page by page as they are read."""
        return every_awaited(self.list, status=status, kind=kind, source=source)


@awaiting(MaintenanceOperations)
class AsyncMaintenanceOperations(Protocol):
    """The store as a whole: what it holds, and what has passed its time. Awaited."""

    async def status(self) -> PipelineStatus:
        """Show what the store holds, and how its searches fare."""
        ...

    async def cleanup(self) -> CleanupReport:
        """Close what has expired."""
        ...


@awaiting(KeyOperations)
class AsyncKeyOperations(Protocol):
    """What programs present to a server to say whose and who they are.

    In a view with a principal, keys are those of the principal's user. Awaited.
    """

    async def list(self, *, cursor: Cursor | None = None, limit: Limit = 100) -> Page[ApiKey]:
        """List keys."""
        ...

    async def get(self, key_id: Name) -> ApiKey:
        """Show a key."""
        ...

    async def revoke(self, key_id: Name) -> ApiKey:
        """Revoke a key."""
        ...


@awaiting(LoginOperations)
class AsyncLoginOperations(Protocol):
    """Browsers that are logged in to a server: listed, and logged out.

    A login is made by the server alone, with a key or with an issuer's word. In a view with a principal, logins are
    those of the principal's user. Awaited.
    """

    async def list(self, *, user: Name | None = None, cursor: Cursor | None = None, limit: Limit = 100) -> Page[Login]:
        """List the browsers that are logged in."""
        ...

    async def revoke_all(self, *, user: Name | None = None) -> int:
        """Log out every browser of a user, or of everybody."""
        ...

    async def get(self, login_id: Name) -> Login:
        """Show a login."""
        ...

    async def revoke(self, login_id: Name) -> Login:
        """Log a browser out."""
        ...


@awaiting(TenantOperations)
class AsyncTenantOperations(Protocol):
    """The tenants of a store, for whoever runs it. A tenant is named by its number or name.

    They see every tenant, whichever tenant the view is of. Awaited.
    """

    async def list(self, *, cursor: Cursor | None = None, limit: Limit = 100) -> Page[Tenant]:
        """List the tenants."""
        ...

    async def get(self, tenant: int | Name) -> Tenant:
        """Show a tenant."""
        ...

    async def erase(
        self, tenant: int | Name, *, reason: Annotated[Text, Field(max_length=1000)] | None = None
    ) -> TenantErasure:
        """Erase a tenant."""
        ...

    async def share(self, tenant: int | Name, collection: Name, reader: int | Name) -> Sharing:
        """Let another tenant read a collection."""
        ...

    async def unshare(self, tenant: int | Name, collection: Name, reader: int | Name) -> Sharing:
        """Keep another tenant from a collection."""
        ...


@awaiting(AuditOperations)
class AsyncAuditOperations(Protocol):
    """The audit of a tenant, and the log of what was shown to whom. For the owner of the store. Awaited."""

    async def list(
        self,
        *,
        action: Name | None = None,
        since: Time | None = None,
        until: Time | None = None,
        cursor: Cursor | None = None,
        limit: Limit = 100,
    ) -> Page[AuditRecord]:
        """List what was done, newest first."""
        ...

    async def accesses(
        self,
        *,
        document: Number | None = None,
        actor: Name | None = None,
        since: Time | None = None,
        until: Time | None = None,
        cursor: Cursor | None = None,
        limit: Limit = 100,
    ) -> Page[Access]:
        """List what the server was asked, and which documents it showed to whom, newest first."""
        ...

    async def verify(self) -> AuditVerification:
        """Follow the audit's chain."""
        ...


@awaiting(RequestOperations)
class AsyncRequestOperations(Protocol):
    """The requests to providers of models: their figures, never their contents. For the owner of the store. Awaited."""

    async def requests(
        self,
        *,
        kind: RequestKind | None = None,
        failed: bool = False,
        since: Time | None = None,
        until: Time | None = None,
        cursor: Cursor | None = None,
        limit: Limit = 100,
    ) -> Page[LoggedRequest]:
        """List requests to providers of models, newest first."""
        ...

    async def request_totals(self, *, since: Time | None = None, until: Time | None = None) -> list[RequestTotals]:
        """Sum requests to providers of models up, by kind and model."""
        ...
