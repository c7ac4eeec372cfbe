"""The audit: what was done, whether its chain holds, and all of it as lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from recollect.model.time import read_time
from recollect.pipeline.parts import Parts

if TYPE_CHECKING:
    from recollect.model.audit import AuditChain, AuditRecord
    from recollect.model.time import Moment


class Auditing:
    """The part of `RAGPipeline` that reads the audit."""

    _parts: Parts

    def list_audit(
        self,
        *,
        action: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        before: int | None = None,
        limit: int = 100,
        tenant_id: int | None = None,
    ) -> list[AuditRecord]:
        """What was done to documents and conversations, newest first.

        The record of an erasure is shown with what its proof found, which was recorded after it.

        Args:
            action: Only of this kind, such as ``erase``, ``restore`` or ``forget``; None: all.
            since: Only of this time or later.
            until: Only before this time.
            before: Only records older than the one of this id: the next page.
            limit: Records at most.
            tenant_id: Whose; None: the default tenant's.

        Raises:
            UsageError: One of the times is none.
        """
        return self._parts.store.audit.page(
            self._parts.scope_of(tenant_id),
            action=action,
            since=None if since is None else read_time(since, name="since"),
            until=None if until is None else read_time(until, name="until"),
            before=before,
            limit=limit,
        )

    def verify_audit(self, *, tenant_id: int | None = None) -> list[AuditChain]:
        """Follow chains of the audit from end to end: whether an entry was changed, removed or put in.

        Args:
            tenant_id: Whose; None: every tenant's, erased ones included.
        """
        if tenant_id is None:
            return self._parts.store.audit.verify_all(self._parts.scope_of(None))
        return [self._parts.store.audit.verify(self._parts.scope_of(tenant_id))]

    def export_audit(
        self,
        *,
        action: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        tenant_id: int | None = None,
    ) -> Iterator[str]:
        """The audit as JSON Lines, oldest first, with hashes, so that anybody can verify it without the store.

        Of each line, ``hash`` is SHA-256 of the bytes of ``previous_hash`` followed by ``content`` in UTF-8, and the
        other keys are what ``content`` says. Each line's ``previous_hash`` is the ``hash`` of the entry before it.

        Args:
            action: Only of this kind; None: all.
            since: Only of this time or later.
            until: Only before this time.
            tenant_id: Whose; None: the default tenant's.

        Raises:
            UsageError: One of the times is none.
        """
        return self._parts.store.audit.lines(
            self._parts.scope_of(tenant_id),
            action=action,
            since=None if since is None else read_time(since, name="since"),
            until=None if until is None else read_time(until, name="until"),
        )
