"""The audit of a view's tenant: what was done, whether its chain holds, and what was asked of providers of models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from typing_extensions import override

from recollect.model.arguments import checked
from recollect.model.audit import AuditRecord, AuditVerification
from recollect.model.page import Page, number_at
from recollect.model.time import Moment, read_time
from recollect.operations.declaring import implements
from recollect.operations.people import AuditOperations, RequestOperations
from recollect.pipeline.standpoint import Group

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.model.activity import Access
    from recollect.model.requests import LoggedRequest, RequestKind, RequestTotals
    from recollect.store.access_log import AccessBatch
    from recollect.store.logs import LogRepository

_Entry = TypeVar("_Entry")


@implements(RequestOperations)
@implements(AuditOperations)
@checked
class Audit(Group, AuditOperations, RequestOperations):
    """What was done to documents and conversations; see `recollect.View`. For the owner of the store."""

    @override
    def verify(self) -> AuditVerification:
        scope, audit = self._at.owner(), self._at.store.audit
        chains = audit.verify_all(scope) if self._at.tenant is None else [audit.verify(scope)]
        return AuditVerification(tuple(chains))

    def export(
        self, *, action: str | None = None, since: Moment | None = None, until: Moment | None = None
    ) -> Iterator[str]:
        """The audit as JSON Lines, oldest first, with hashes, so that anybody can verify it without the store.

        Of each line, ``hash`` is SHA-256 of the bytes of ``previous_hash`` followed by ``content`` in UTF-8, and the
        other keys are what ``content`` says. Each line's ``previous_hash`` is the ``hash`` of the entry before it.

        Args:
            action: Only of this kind; None: all.
            since: Only of this time or later.
            until: Only before this time.

        Raises:
            UsageError: One of the times is none.
        """
        return self._at.store.audit.lines(
            self._at.owner(), action=action, since=_time("since", since), until=_time("until", until)
        )

    @override
    def requests(
        self,
        *,
        kind: RequestKind | None = None,
        failed: bool = False,
        since: Moment | None = None,
        until: Moment | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> Page[LoggedRequest]:
        self._at.assembly.request_log.flush()
        filters = {"kind": kind, "failed": failed}
        return self._page(self._at.store.requests, since, until, cursor, limit, lambda one: one.request_id, **filters)

    @override
    def request_totals(self, *, since: Moment | None = None, until: Moment | None = None) -> list[RequestTotals]:
        self._at.assembly.request_log.flush()
        return self._at.store.requests.totals(
            self._at.owner(), since=_time("since", since), until=_time("until", until)
        )

    @override
    def accesses(
        self,
        *,
        document: int | None = None,
        actor: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> Page[Access]:
        self._at.assembly.access_log.flush()
        filters = {"document": document, "actor": actor}
        return self._page(self._at.store.access_log, since, until, cursor, limit, lambda one: one.access_id, **filters)

    def verify_accesses(self) -> Sequence[AccessBatch]:
        """Compare the log of accesses with the hashes that the audit's chain holds of it, batch by batch."""
        scope = self._at.owner()
        self._at.assembly.access_log.flush()
        return self._at.store.access_log.verify(scope)

    def _page(
        self,
        log: LogRepository[_Entry],
        since: Moment | None,
        until: Moment | None,
        cursor: str | None,
        limit: int,
        number: Callable[[_Entry], int],
        **filters: object,
    ) -> Page[_Entry]:
        first, past = _time("since", since), _time("until", until)
        before = number_at(cursor)
        found = log.page(self._at.owner(), since=first, until=past, before=before, limit=limit + 1, **filters)
        return Page.of(found, limit, number)

    # Last: its name is a type's in what stands before it.
    @override
    def list(
        self,
        *,
        action: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> Page[AuditRecord]:
        return self._page(self._at.store.audit, since, until, cursor, limit, lambda one: one.audit_id, action=action)


def _time(name: str, moment: Moment | None) -> datetime | None:
    return None if moment is None else read_time(moment, name=name)
