"""A document as it is handed to the store: with all that is stored of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from recollect.model import Chunk, Document
from recollect.store.search_rows import Floats, LexicalRow


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedDocument:
    """A document with everything that is stored of it.

    Attributes:
        document: Its ``source`` and ``title`` are set.
        chunks: In order of position.
        embedding_keys: SHA-256 of what was embedded of each chunk.
        embeddings: float32 array of shape (len(chunks), dimension), rows of unit length.
        lexical: One row a chunk.
        fingerprint: How it was read, cut and embedded.
        acronyms: (acronym, long form, occurrences) of those that its content explains, none twice.
        bands: Of its content, none twice (`recollect.ingest.prepare`).
        token_vectors: Packed, one a chunk, where the collection asks for them.
        cacheable: Embeddings of the chunks' own texts, to be found again by their keys; None: they are not kept.
        analysed_as: The language that the terms of ``lexical`` are in, and those of parts in others; None: the
            collection's.
        attached: What is attached to it, and to what is; none of these has any.
        keeps_attached: Whether what is attached to it is stored apart, and stays where ``attached`` does not name it.
        owner: The writer who stored it in the store that it comes from, and
        twin: which of that writer's documents of its name it was there, as a number below 0. What somebody who does not
            own the collection stores is theirs in any case.
    """

    document: Document
    chunks: Sequence[Chunk]
    embedding_keys: Sequence[bytes]
    embeddings: Floats
    lexical: Sequence[LexicalRow]
    fingerprint: str
    acronyms: Sequence[tuple[str, str, int]] = ()
    bands: Sequence[int] = ()
    token_vectors: Sequence[bytes] | None = None
    cacheable: Floats | None = None
    analysed_as: tuple[str, ...] | None = None
    attached: Sequence[PreparedDocument] = ()
    keeps_attached: bool = False
    owner: str = ""
    twin: int = 0
