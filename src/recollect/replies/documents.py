"""Documents, and others that say the same."""

from __future__ import annotations

from recollect.replies._shape import Shape


class DocumentIdJson(Shape):
    """A document that was named otherwise."""

    document_id: int
    document_ids: list[int]
    """All that the name means: more than one of a source that documents with ids share, where they were asked for."""
