"""Where a passage stands, as every ``--json`` prints it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recollect.model import RetrievedContext


def where_as_json(passage: RetrievedContext) -> dict[str, Any]:
    """The document and the place in it; ``parts`` are cut where another section or page begins."""
    names = ("document_id", "title", "source", "department", "section", "page", "start_offset", "end_offset")
    return {**{name: getattr(passage, name) for name in names}, "parts": [asdict(part) for part in passage.parts]}
