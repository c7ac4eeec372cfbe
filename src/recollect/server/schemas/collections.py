"""Bodies about collections."""

from __future__ import annotations

from typing import Any

from pydantic import Field
from typing_extensions import TypedDict

from recollect.model.collection import MOST_DIMENSIONS
from recollect.operations.values import Name, Text
from recollect.replies.collections import CollectionJson
from recollect.server.schemas.base import Body


class CollectionChanges(Body):
    """What is said of a collection; how it is cut and embedded stays as it was made."""

    description: Text = Field(max_length=10_000)


class CollectionPage(TypedDict):
    """Collections, by name."""

    collections: list[CollectionJson]
    next_cursor: str | None


class CollectionBody(Body):
    """A new collection."""

    name: Name
    description: Text = Field("", max_length=10_000)
    language: Name | None = Field(None, description="ISO 639-1; left out: the configured one.")
    chunking: dict[str, Any] | None = Field(None, description="strategy, and its parameters; left out: as configured.")
    token_vectors: bool | None = Field(
        None, description="Whether ingest stores token vectors; left out: as configured."
    )
    dimensions: int | None = Field(
        None,
        ge=1,
        le=MOST_DIMENSIONS,
        description="The length of its vectors, one that the embedding model offers; left out: as configured.",
    )
