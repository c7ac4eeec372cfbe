"""A document as it is handed to the store: with all that is stored of it, and what identifies it.

Within its root and among its owner's that is its given id, or else its source.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, LiteralString, NamedTuple

from recollect.model import Chunk, Document
from recollect.store.search import Floats, LexicalRow
from recollect.store.sql import queries

_SQL = queries("writer")


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


class Identity(NamedTuple):
    """A given id, or the source of a document without one: the same text may be both, of two documents."""

    name: str
    is_given_id: bool = False


def identity_of(item: PreparedDocument) -> Identity:
    """The identity of a document that is about to be stored."""
    given_id = item.document.id
    return Identity(source_of(item)) if given_id is None else Identity(given_id, is_given_id=True)


def source_of(item: PreparedDocument) -> str:
    """The source of a document that is about to be stored."""
    if item.document.source is None:
        raise ValueError("A prepared document has a source.")
    return item.document.source


def by_identity(found_rows: Iterable[Sequence[Any]]) -> dict[Identity, int]:
    """Documents by identity, from rows of (name, is_given_id, document_id); of several, the latest."""
    found: dict[Identity, int] = {}
    for name, is_given_id, document_id in found_rows:
        identity = Identity(name, is_given_id)
        found[identity] = max(document_id, found.get(identity, 0))
    return found


def identity_params(items: Sequence[PreparedDocument]) -> dict[str, Any]:
    """The parameters of statements that store or find documents by their identities, one of each kind a document."""
    return {
        "uris": [source_of(item) for item in items],
        "given_ids": [item.document.id for item in items],
        "owners": [item.owner for item in items],
        "twins": [item.twin for item in items],
    }


def among(items: Sequence[PreparedDocument]) -> LiteralString:
    """The condition that a document ``d`` has one of the identities; its parameters are `identity_params`.

    Only the kinds that occur are named: each is found by an index of its own.
    """
    kinds = {item.document.id is not None for item in items}
    if kinds == {True, False}:
        return f"({_SQL['among_sources']} OR {_SQL['among_given_ids']})"
    return _SQL["among_given_ids" if True in kinds else "among_sources"]


def by_kind(items: Sequence[PreparedDocument]) -> list[Sequence[PreparedDocument]]:
    """The documents without a given id, and those with one, as far as there are any: in the order of every writer."""
    kinds = [[item for item in items if (item.document.id is not None) is given] for given in (False, True)]
    return [kind for kind in kinds if kind]
