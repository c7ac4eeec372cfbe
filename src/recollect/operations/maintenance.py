"""What is done with the store as a whole."""

from __future__ import annotations

from typing import Protocol

from recollect.model.history import CleanupReport
from recollect.model.status import PipelineStatus
from recollect.operations.declaring import operation


class MaintenanceOperations(Protocol):
    """The store as a whole: what it holds, and what has passed its time."""

    @operation("GET /v1/stats", "reader", of_view=("collection",))
    def status(self) -> PipelineStatus:
        """Show what the store holds, and how its searches fare.

        Of the tenant's collections, or of the one that the view was given, as far as its principal may read it.

        Raises:
            NotFoundError: There is no such collection.
        """
        ...

    @operation("POST /v1/cleanup", "operator")
    def cleanup(self) -> CleanupReport:
        """Close what has expired.

        Expired sessions are removed, and the audit's partitions kept. The server does it every so many hours anyway.
        Partitions hold what all tenants have.
        """
        ...
