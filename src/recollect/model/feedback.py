"""What people say of the passages they were shown."""

from __future__ import annotations

from dataclasses import dataclass

from recollect.model.record import Public, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackCounts(Record):
    """How many passages helped and how many did not, of documents and of memory.

    Attributes:
        documents_helpful: Passages of documents that helped.
        documents_not: Passages of documents that did not.
        memory_helpful: Turns and facts that helped.
        memory_not: Turns and facts that did not.
    """

    documents_helpful: Public[int] = 0
    documents_not: Public[int] = 0
    memory_helpful: Public[int] = 0
    memory_not: Public[int] = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.documents_helpful + self.documents_not + self.memory_helpful + self.memory_not
