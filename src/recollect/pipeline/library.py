"""What people look through: lists of documents, what they can be filtered by, and how a text would be cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from recollect.chunking.registry import describe_chunker
from recollect.documents.reader import read_bytes
from recollect.errors import NotFoundError
from recollect.model.arguments import did_you_mean
from recollect.pipeline.preparing import chunker, shows_pictures
from recollect.pipeline.standpoint import EVERY_COLLECTION, Standpoint
from recollect.pipeline.uploading import upload_name

if TYPE_CHECKING:
    from recollect.model import Chunk, Document
    from recollect.model.collection import Collection
    from recollect.model.document_record import Listing, ListingQuery
    from recollect.model.job import Job


def list_documents(at: Standpoint, query: ListingQuery) -> Listing:
    """A page of the documents of a view's collections, in the order that the query says.

    Those that a job is to store are among them as ``pending``, those whose job has failed as ``error``; a principal
    sees those of the jobs that they asked for.

    Args:
        at: Where the view stands.
        query: Which documents, and which page of them.

    Raises:
        NotFoundError: There is no such collection.
    """
    return at.store.listing.page(at.present(), _places(at), query)


def filter_choices(at: Standpoint) -> Mapping[str, Sequence[str]]:
    """What documents of a view's collections can be filtered by, the commonest first, a hundred of each kind.

    Raises:
        NotFoundError: There is no such collection.
    """
    return at.store.listing.choices(at.present(), _places(at))


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSize:
    """What documents take.

    Attributes:
        text_bytes: Their texts, compressed as they are stored.
        original_bytes: The files that they were read from, where these are kept.
    """

    text_bytes: int
    original_bytes: int


def stored_size(at: Standpoint) -> StoredSize:
    """What the documents of a view's collections take, as far as they may be read. Every one of them is looked at.

    Raises:
        NotFoundError: There is no such collection.
    """
    texts, originals = at.store.listing.sizes(at.present(), _places(at))
    return StoredSize(text_bytes=texts, original_bytes=originals)


def unstored_counts(at: Standpoint) -> Mapping[int, tuple[int, int]]:
    """By collection, how many documents wait for a job that stores them, and whose job failed."""
    return at.store.listing.unstored_counts(at.present())


def several_jobs(at: Standpoint, job_ids: Sequence[int]) -> list[Job]:
    """Those of these jobs that there are, by number; a principal's own."""
    return at.store.jobs.several(at.present(), job_ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkPreview:
    """How a document would be cut.

    Attributes:
        document: As it was read.
        chunking: The whole description of the strategy.
        chunks: In their order.
    """

    document: Document
    chunking: Mapping[str, Any]
    chunks: Sequence[Chunk]


def read_for_preview(at: Standpoint, data: bytes, *, name: str, mime_type: str | None = None) -> Document:
    """A file as it would be read; nothing is stored.

    Raises:
        ParseError: It cannot be read, or is larger than files may be.
    """
    most = at.config.ingest.max_file_bytes
    return read_bytes(
        data,
        name=upload_name(name),
        mime_type=mime_type,
        max_bytes=most,
        pictures=shows_pictures(at.assembly, at.present()),
        workers=at.assembly.parser_workers,
    )


def preview_chunks(at: Standpoint, document: Document, chunking: Mapping[str, Any]) -> ChunkPreview:
    """How a document would be cut; nothing is stored.

    Args:
        at: Where the view stands.
        document: The document.
        chunking: ``strategy`` and its parameters.

    Raises:
        UsageError: The chunking is not valid.
    """
    made = chunker(chunking, at.assembly.embedder, at.assembly.chunkers)
    return ChunkPreview(document=document, chunking=describe_chunker(made), chunks=made.chunk(document))


def _places(at: Standpoint) -> list[Collection]:
    """The view's collections, as its principal sees them."""
    scope = at.present()
    found = at.store.collections.searchable(scope)
    if EVERY_COLLECTION in at.names:
        return found
    named = [place for place in found if place.name in at.names]
    for name in at.names:
        if name != at.config.collection and name not in {place.name for place in named}:
            similar = did_you_mean(name, (place.name for place in found))
            raise NotFoundError(f"There is no collection {name!r}.{similar}")
    return named
