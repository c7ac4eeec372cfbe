"""What a read must see at least."""

from __future__ import annotations

from typing import NamedTuple


class CollectionRevision(NamedTuple):
    """A collection as it was found: whatever changes in it, or who may read it, gives it a later revision."""

    tenant_id: int
    collection_id: int
    revision: int
