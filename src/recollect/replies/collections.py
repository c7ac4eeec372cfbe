"""Collections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from recollect.replies._shape import Shape, Timestamp, iso

if TYPE_CHECKING:
    from recollect.model.collection import Collection


class CollectionJson(Shape):
    """A named set of documents that are cut, embedded and searched alike."""

    name: str
    description: str
    documents: int
    """Current ones; of a principal, those that they may read."""
    chunks: int
    """Of these."""
    language: str
    """ISO 639-1, of most of its documents."""
    embedding_model: str
    embedding_dimension: int
    chunking: dict[str, Any]
    """The strategy and its parameters."""
    indexed: bool
    """Whether its vector index is built; small collections are searched exactly."""
    token_vectors: bool
    """Whether token vectors are stored, which late interaction reads."""
    created_at: Timestamp


class CollectionListJson(Shape):
    """Collections, by name."""

    collections: list[CollectionJson]
    more: bool
    """Whether others follow."""


def collection_json(collection: Collection) -> CollectionJson:
    """A collection."""
    return {
        "name": collection.name,
        "description": collection.description,
        "documents": collection.document_count,
        "chunks": collection.chunk_count,
        "language": collection.language,
        "embedding_model": collection.embedding_model,
        "embedding_dimension": collection.embedding_dimension,
        "chunking": dict(collection.chunking),
        "indexed": collection.indexed,
        "token_vectors": collection.token_vectors,
        "created_at": iso(collection.created_at),
    }


def collection_list_json(found: Sequence[Collection], *, more: bool = False) -> CollectionListJson:
    """Collections; ``more``: whether others follow."""
    return {"collections": [collection_json(collection) for collection in found], "more": more}
