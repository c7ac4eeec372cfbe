"""Bodies about collections."""

from __future__ import annotations

from pydantic import Field

from recollect.operations.values import Text
from recollect.server.schemas.base import Body


class CollectionChanges(Body):
    """What is said of a collection; how it is cut and embedded stays as it was made."""

    description: Text = Field(max_length=10_000)
