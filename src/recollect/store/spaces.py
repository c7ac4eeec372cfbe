"""The vector spaces of collections: the one that searches use, and those beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.errors import ModelChangedError

if TYPE_CHECKING:
    from recollect.model.collection import Collection


def require_same_space(collection: Collection, space_id: int) -> None:
    """Refuse vectors that were made for another space than the one that a held collection uses.

    Args:
        collection: As it was when they were made.
        space_id: What its row says, under its lock.

    Raises:
        ModelChangedError: They differ.
    """
    if space_id != collection.space_id:
        raise ModelChangedError(
            f"The embedding model of the collection {collection.name!r} was changed meanwhile, and nothing of this "
            "batch was stored: try again."
        )
