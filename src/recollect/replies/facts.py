"""What a search of facts replies."""

from __future__ import annotations

from recollect.model.facts import RecalledFact
from recollect.model.memory import RecallMode
from recollect.replies._shape import Shape


class FactSearchJson(Shape):
    """The facts that answer a question."""

    query: str
    """As asked."""
    mode: RecallMode
    results: list[RecalledFact]
    """Best first."""
