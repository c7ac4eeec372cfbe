"""What is noted of collections beside what they hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionNotes:
    """What programs have written on a collection, and whether it expires when nobody uses it.

    Attributes:
        metadata: Words by name.
        idle_days: After so many days without a search and without a new document its documents are closed; None: never.
        last_active_at: When it was last used, as far as that was counted.
        expired_at: When its documents were closed for that; None: they were not, or something was put in since.
    """

    metadata: Mapping[str, str]
    idle_days: int | None
    last_active_at: datetime
    expired_at: datetime | None

    @property
    def expires_at(self) -> datetime | None:
        """When it expires if nobody uses it until then; None: it does not."""
        return None if self.idle_days is None else self.last_active_at + timedelta(days=self.idle_days)
