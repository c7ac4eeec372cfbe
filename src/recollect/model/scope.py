"""Whose knowledge a read may see, and as of when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

DEFAULT_TENANT_ID = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The first argument of every read of tenant data.

    Attributes:
        tenant_id: The tenant whose rows exist for this read; no other tenant's do.
        as_of: Known time of the read (time-zone aware); None means the present.
    """

    tenant_id: int = DEFAULT_TENANT_ID
    as_of: datetime | None = None
