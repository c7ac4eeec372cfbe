"""Whose knowledge a read may see, and as of when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.model.principal import Principal

DEFAULT_TENANT_ID = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The first argument of every read of tenant data.

    Attributes:
        tenant_id: The tenant whose rows exist for this read; no other tenant's do.
        as_of: Known time of the read (time-zone aware); None means the present.
        principal: Who reads: what he may not read does not exist for this read; None: an unrestricted caller.
        reads_as: Further grants that include him, by the rules for his roles (``[rag.access] role_departments``).
        ranked_for: Whose department and roles move the order of results; it hides nothing.
        session: The hidden collection (its id) of the document session that the read belongs to; None: documents of
            sessions do not exist for this read.
    """

    tenant_id: int = DEFAULT_TENANT_ID
    as_of: datetime | None = None
    principal: Principal | None = None
    reads_as: tuple[str, ...] = ()
    ranked_for: Principal | None = None
    session: int | None = None
