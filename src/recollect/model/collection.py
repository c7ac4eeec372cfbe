"""A collection, as it is at a moment and for a caller."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any

from recollect.model.record import Public, Record, public_as
from recollect.model.scope import DEFAULT_TENANT_ID

#: The longest vector that the database stores.
MOST_DIMENSIONS = 16_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection(Record):
    """A named set of documents that are cut, embedded and searched alike.

    Attributes:
        document_count: Current documents; of a principal, those that they may read.
        chunk_count: Of these.
        language: ISO 639-1, of most of its documents; ``auto``: each document is analysed in its own language.
        chunking: The chunker's canonical description: the strategy and its parameters.
        indexed: Whether its vector index is built and valid; small collections are searched exactly.
        token_vectors: Whether ingest stores token vectors, which late interaction reads.
        space_id: The vector space that searches use and ingests write.
        first_model: The model that it was made with, which the fingerprints of its documents name.
        revision: Grows with every change that a search could see.
        stats_chunks: Chunks counted at the last refresh of the lexical statistics.
        stats_terms: Their total length in terms.
        stats_pending: Chunks added or closed since.
        reference_length: The average length (in terms) that stored BM25 weights were computed with; None before
            the first write.
        refusal: The calibrated rule that says when an answer is refused; None: the built-in rule.
        tenant_id: Whose it is.
        expiry_due: Whether a current version may have expired: `recollect.store.closing` closes it.
        hidden: Whether it is a session's: listings leave it out.
        languages: With ``auto``: those that its documents, and parts of them, have been analysed in.
        embedding_spec: How its model is made (`recollect.model.embedding_spec`); None: only its name is known.
        revision_id: Of its revision alone, whose number can be given again; see `recollect.store.changes`.
        access_ids: The access lists of what the caller may read of it, which confine both retrievers; None: they may
            read all of it.
    """

    # In the order of the store's columns.
    collection_id: int = 0
    name: Public[str]
    description: Public[str]
    embedding_model: Public[str]
    embedding_dimension: Public[int]
    space_id: int = 0
    first_model: str = ""
    language: Public[str]
    chunking: Public[Mapping[str, Any]]
    created_at: Public[datetime]
    revision: int = 0
    document_count: Annotated[int, public_as("documents")]
    chunk_count: Annotated[int, public_as("chunks")]
    stats_chunks: int = 0
    stats_terms: int = 0
    stats_pending: int = 0
    reference_length: float | None = None
    indexed: Public[bool]
    refusal: Mapping[str, Any] | None = None
    token_vectors: Public[bool] = False
    tenant_id: int = DEFAULT_TENANT_ID
    expiry_due: bool = False
    hidden: bool = False
    embedding_spec: Mapping[str, Any] | None = None
    languages: tuple[str, ...] = ()
    revision_id: str = ""
    access_ids: tuple[int, ...] | None = None

    @property
    def average_length(self) -> float:
        """Average chunk length in terms, by the last refresh; the reference length before the first one."""
        if self.stats_chunks and self.stats_terms:
            return self.stats_terms / self.stats_chunks
        return self.reference_length or 1.0


# What is noted of collections beside what they hold.


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionNotes:
    """What programs have written on a collection, and whether it expires when nobody uses it.

    Attributes:
        metadata: Words by name.
        idle_days: After so many days without a search and without a new document its documents are closed; None: never.
        last_active_at: When it was last used, as far as that was counted.
        expired_at: When its documents were closed for that; None: they were not, or something was put in since.
    """

    metadata: Mapping[str, str]
    idle_days: int | None
    last_active_at: datetime
    expired_at: datetime | None

    @property
    def expires_at(self) -> datetime | None:
        """When it expires if nobody uses it until then; None: it does not."""
        return None if self.idle_days is None else self.last_active_at + timedelta(days=self.idle_days)
