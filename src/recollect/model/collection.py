"""A collection, as it is at a moment and for a caller."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from recollect.model.scope import DEFAULT_TENANT_ID

#: The longest vector that the database stores.
MOST_DIMENSIONS = 16_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """A named set of documents that are cut, embedded and searched alike.

    Attributes:
        space_id: The vector space that searches use and ingests write.
        first_model: The model that it was made with, which the fingerprints of its documents name.
        chunking: The chunker's canonical description.
        revision: Grows with every change that a search could see.
        language: ISO 639-1; ``auto``: each document is analysed in its own language.
        stats_chunks: Chunks counted at the last refresh of the lexical statistics.
        stats_terms: Their total length in terms.
        stats_pending: Chunks added or closed since.
        reference_length: The average length (in terms) that stored BM25 weights were computed with; None before
            the first write.
        indexed: Whether its dense index is built and valid.
        refusal: The calibrated rule that says when an answer is refused; None: the built-in rule.
        token_vectors: Whether ingest stores token vectors, which late interaction reads.
        tenant_id: Whose it is.
        expiry_due: Whether a current version may have expired: `recollect.store.expiry` closes it.
        hidden: Whether it is a session's: listings leave it out.
        languages: With ``auto``: those that its documents, and parts of them, have been analysed in.
        embedding_spec: How its model is made (`recollect.model.embedding_spec`); None: only its name is known.
        access_ids: The access lists of what the caller may read of it, which confine both retrievers; None: they may
            read all of it. Where it is not None, ``document_count`` and ``chunk_count`` count what they may read.
    """

    collection_id: int
    name: str
    description: str
    embedding_model: str
    embedding_dimension: int
    space_id: int
    first_model: str
    language: str
    chunking: Mapping[str, Any]
    created_at: datetime
    revision: int
    document_count: int
    chunk_count: int
    stats_chunks: int
    stats_terms: int
    stats_pending: int
    reference_length: float | None
    indexed: bool
    refusal: Mapping[str, Any] | None = None
    token_vectors: bool = False
    tenant_id: int = DEFAULT_TENANT_ID
    expiry_due: bool = False
    hidden: bool = False
    embedding_spec: Mapping[str, Any] | None = None
    languages: tuple[str, ...] = ()
    access_ids: tuple[int, ...] | None = None

    @property
    def average_length(self) -> float:
        """Average chunk length in terms, by the last refresh; the reference length before the first one."""
        if self.stats_chunks and self.stats_terms:
            return self.stats_terms / self.stats_chunks
        return self.reference_length or 1.0
