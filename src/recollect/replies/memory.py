"""What a search of conversations replies."""

from __future__ import annotations

from recollect.model.memory import RecallMode, Recollection
from recollect.replies._shape import Shape


class RecallJson(Shape):
    """What was said that answers a question."""

    query: str
    """As asked."""
    mode: RecallMode
    results: list[Recollection]
    """Best first."""
