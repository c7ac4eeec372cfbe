"""How long documents are kept."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from recollect.model.time import read_lifetime

if TYPE_CHECKING:
    from recollect.model.document import Document

#: Documents that carry one of these never expire, whatever their time to live.
PRESERVE_TAGS = ("critical", "compliance", "legal")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiryPolicy:
    """When documents expire that are stored from now on.

    Attributes:
        default_ttl: Time to live of documents that bring none of their own; None: they are kept.
        preserve_tags: Documents that carry one of these, in whatever case, never expire.
    """

    default_ttl: timedelta | None = None
    preserve_tags: tuple[str, ...] = PRESERVE_TAGS

    def lifetime(self, document: Document) -> timedelta | None:
        """How long a version of a document is kept after it became known; None: for ever.

        Raises:
            UsageError: The document's ``ttl`` is no length of time.
        """
        kept = {tag.casefold() for tag in self.preserve_tags}
        if any(tag.casefold() in kept for tag in document.tags):
            return None
        if document.ttl is None:
            return self.default_ttl
        return read_lifetime(document.ttl, name=f"The ttl of {document.source!r}")
