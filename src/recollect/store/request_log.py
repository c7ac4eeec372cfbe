"""The log of requests to providers of models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

from recollect.model.requests import LoggedRequest, RequestTotals
from recollect.store.database import records
from recollect.store.logs import LogRepository
from recollect.store.sql import queries

if TYPE_CHECKING:
    from recollect.model import Scope

_SQL = queries("request_log")
_COLUMNS = (
    *("at", "kind", "provider", "model", "inputs", "input_tokens", "output_tokens", "tokens_estimated"),
    *("attempts", "milliseconds", "error", "status", "cost"),
)


class RequestLogRepository(LogRepository[LoggedRequest]):
    """Appends to the log, and reads it.

    Filters of a page: ``kind`` (``embed``, ``rerank`` or ``answer``), and ``failed``: requests without a usable answer.
    """

    _table = "request_log"
    _page = _SQL["page"]
    _filters: ClassVar[Mapping[str, object]] = {"kind": None, "failed": False}
    _entry = LoggedRequest

    def append(self, scope: Scope, requests: Sequence[LoggedRequest]) -> None:
        """Store requests of the scope's tenant, in one statement."""
        columns = {name: [getattr(one, name) for one in requests] for name in _COLUMNS}
        with self._database.transaction(scope) as connection:
            connection.execute(_SQL["append"], {"tenant_id": scope.tenant_id, **columns})

    def totals(
        self, scope: Scope, *, since: datetime | None = None, until: datetime | None = None
    ) -> list[RequestTotals]:
        """The requests of the scope's tenant summed up, by kind and model."""
        params = {"tenant_id": scope.tenant_id, "since": since, "until": until}
        with self._database.transaction(scope) as connection:
            return records(connection, _SQL["totals"], params, RequestTotals)
