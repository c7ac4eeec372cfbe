"""A test case that somebody saved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedCase:
    """A question, and what a good search finds for it.

    Attributes:
        case_id: Within its tenant.
        definition: As a file of cases has it; see `recollect.evaluation.case_files.Case`.
        as_of: As of when it is searched; None: now.
        made_by: The user; empty: the owner of the store.
        made_at: When it was saved last.
    """

    case_id: int
    definition: Mapping[str, Any]
    as_of: datetime | None
    made_by: str
    made_at: datetime
