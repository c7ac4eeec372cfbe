"""The audit of a view's tenant: what was done, whether its chain holds, and what was asked of providers of models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from recollect.model.arguments import checked
from recollect.model.time import read_time
from recollect.pipeline.standpoint import Group

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.model.audit import AuditChain, AuditRecord
    from recollect.model.requests import LoggedRequest, RequestTotals
    from recollect.model.shown import Access
    from recollect.model.time import Moment
    from recollect.store.access_log import AccessBatch
    from recollect.store.logs import LogRepository

_Entry = TypeVar("_Entry")


@checked
class Audit(Group):
    """What was done to documents and conversations; see `recollect.View`. For the owner of the store."""

    def verify(self) -> list[AuditChain]:
        """Follow the chain from end to end: whether an entry was changed, removed or put in.

        Of a view that names no tenant, every tenant's chain, erased ones included.
        """
        scope, audit = self._at.owner(), self._at.store.audit
        return audit.verify_all(scope) if self._at.tenant is None else [audit.verify(scope)]

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

    def requests(
        self,
        *,
        kind: str | None = None,
        failed: bool = False,
        since: Moment | None = None,
        until: Moment | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> Sequence[LoggedRequest]:
        """The tenant's requests to providers of models, newest first: figures, no contents.

        Args:
            kind: ``embed``, ``rerank`` or ``answer``; None: all.
            failed: Whether only those without a usable answer.
            since: Only of this time or later.
            until: Only before this time.
            before: Only requests older than the one of this id: the next page.
            limit: Requests at most.

        Raises:
            UsageError: One of the times is none.
        """
        self._at.assembly.request_log.flush()
        return self._page(self._at.store.requests, since, until, before, limit, kind=kind, failed=failed)

    def request_totals(self, *, since: Moment | None = None, until: Moment | None = None) -> Sequence[RequestTotals]:
        """The tenant's requests to providers of models, summed up by kind and model.

        Args:
            since: Only of this time or later.
            until: Only before this time.

        Raises:
            UsageError: One of the times is none.
        """
        self._at.assembly.request_log.flush()
        return self._at.store.requests.totals(
            self._at.owner(), since=_time("since", since), until=_time("until", until)
        )

    def accesses(
        self,
        *,
        document: int | None = None,
        actor: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> Sequence[Access]:
        """What the server was asked, and which documents it showed to whom, newest first.

        Args:
            document: Only where the document of this id was shown; it may be erased since.
            actor: Only of this one, for instance ``user:ann``.
            since: Only of this time or later.
            until: Only before this time.
            before: Only those older than the one of this id: the next page.
            limit: Accesses at most.

        Raises:
            UsageError: One of the times is none.
        """
        self._at.assembly.access_log.flush()
        return self._page(self._at.store.access_log, since, until, before, limit, document=document, actor=actor)

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
        before: int | None,
        limit: int,
        **filters: object,
    ) -> list[_Entry]:
        first, past = _time("since", since), _time("until", until)
        return log.page(self._at.owner(), since=first, until=past, before=before, limit=limit, **filters)

    # Last: its name is a type's in what stands before it.
    def list(
        self,
        *,
        action: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> list[AuditRecord]:
        """What was done, newest first.

        The record of an erasure is shown with what its proof found, which was recorded after it.

        Args:
            action: Only of this kind, such as ``erase``, ``restore`` or ``forget``; None: all.
            since: Only of this time or later.
            until: Only before this time.
            before: Only records older than the one of this id: the next page.
            limit: Records at most.

        Raises:
            UsageError: One of the times is none.
        """
        return self._page(self._at.store.audit, since, until, before, limit, action=action)


def _time(name: str, moment: Moment | None) -> datetime | None:
    return None if moment is None else read_time(moment, name=name)
