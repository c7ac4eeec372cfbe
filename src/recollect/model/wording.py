"""What texts may say in place of words of a query."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Wording:
    """Words of a query, and what says the same.

    Attributes:
        original: The words, as the query or the rule that met it has them.
        others: What counts as them, wherever a text has all of its words; none: only the words themselves do.
        needed: Whether nothing answers the query that holds neither: a financial measure, a fiscal year.
    """

    original: str
    others: tuple[str, ...]
    needed: bool = False
