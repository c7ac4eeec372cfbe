"""What of a stored version contradicts itself, and what it must have been: pure functions over what was read."""

from __future__ import annotations

import hashlib
import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from recollect.ingest.prepare import CutDocument, TermIndexer, searchable_text
from recollect.model import Chunk, Document

if TYPE_CHECKING:
    from recollect.model.terms import TermCounts
    from recollect.store.verification import StoredTerms, StoredVersion

# Weights are computed in single precision, which processors round differently.
_TOLERANCE = 1e-3

# Reference lengths that differ by less give the same weights.
_LENGTH_TOLERANCE = 0.01

# Chunks that a reference length is recovered from.
_WITNESSES = 16
_HALVINGS = 60


def faults(version: StoredVersion) -> dict[str, int]:
    """What of a version contradicts itself, counted by the check that finds it."""
    content = version.content
    misplaced = {one.chunk_id for one in version.chunks if content is not None and not _stands_in(content, one.chunk)}
    stale = [one for one in version.chunks if key_of(version.title, one.chunk) != one.key]
    found = {
        "missing_contents": content is None,
        "content_hashes": content is not None and _hash(content) != version.content_hash,
        "chunk_counts": len(version.chunks) != version.chunk_count,
        "chunk_positions": any(one.chunk.position != rank for rank, one in enumerate(version.chunks)),
        "chunk_texts": len(misplaced),
        "chunk_hashes": sum(one.chunk_id not in misplaced for one in stale),
    }
    return {name: int(count) for name, count in found.items() if count}


def key_of(title: str, chunk: Chunk) -> bytes:
    """The hash of what is indexed of a chunk."""
    return _hash(searchable_text(Document(content="", title=title), chunk))


def proven_content(version: StoredVersion) -> str | None:
    """The version's text, where it can be shown that it is: None where it is lost.

    A text that has its hash is right. What chunks say whose own hash is right is put in the place of what the text
    says there, or of nothing; the result is right if it has the text's hash. A text that every chunk agrees with is
    right as well: then it is the hash that was changed.
    """
    content = version.content
    if content is not None and _hash(content) == version.content_hash:
        return content
    proven = [one.chunk for one in version.chunks if key_of(version.title, one.chunk) == one.key]
    end = max((chunk.end_offset for chunk in proven), default=0)
    fillers = [filler * end + last for filler in "\n " for last in ("", "\n")]
    for base in (content, *fillers):
        if base is None:
            continue
        patched = _patched(base, proven)
        if patched is not None and _hash(patched) == version.content_hash:
            return patched
    agreed = content is not None and version.chunks and len(proven) == len(version.chunks) == version.chunk_count
    if content is not None and agreed and all(_stands_in(content, chunk) for chunk in proven):
        return content
    return None


def proven_chunks(version: StoredVersion, content: str) -> list[Chunk] | None:
    """The version's chunks, with the texts that they must have had; None where it must be cut anew.

    A chunk whose text was changed says what the content has at its offsets, if its hash proves that.
    """
    if len(version.chunks) != version.chunk_count:
        return None
    proven: list[Chunk] = []
    for rank, one in enumerate(version.chunks):
        chunk = one.chunk
        if not _stands_in(content, chunk):
            chunk = replace(chunk, text=content[chunk.start_offset : chunk.end_offset])
            if not _stands_in(content, chunk) or key_of(version.title, chunk) != one.key:
                return None
        if chunk.position != rank:
            return None
        proven.append(chunk)
    return proven


def wrong_rows(found: Sequence[StoredTerms], indexer: TermIndexer, *, reference_length: float) -> Iterator[StoredTerms]:
    """Those lexical rows that are not what their text gives under a reference length."""
    expected = indexer.weigh(counted(found, indexer), reference_length=reference_length)
    for one, row in zip(found, expected, strict=True):
        same = (
            one.consistent
            and one.row.length == row.length
            and np.array_equal(one.row.lexemes, row.lexemes)
            and np.allclose(one.row.weights, row.weights, rtol=_TOLERANCE)
        )
        if not same:
            yield one


def recovered_length(found: Sequence[StoredTerms], indexer: TermIndexer) -> float | None:
    """The reference length that stored weights were made with; None where no row tells.

    A longer reference makes every weight of a chunk heavier, so the one length that gives the stored weights is found
    by halving.
    """
    lengths: list[float] = []
    for one, terms in zip(found, counted(found, indexer), strict=True):
        if len(lengths) == _WITNESSES:
            break
        if len(terms.lexemes) and np.array_equal(one.row.lexemes, terms.lexemes) and one.row.length == terms.length:
            lengths.append(_length_of(terms, float(one.row.weights.sum()), indexer))
    return statistics.median(lengths) if lengths else None


def differs(length: float | None, recovered: float) -> bool:
    """Whether weights made with one reference length are not those made with the other."""
    return length is None or not math.isclose(length, recovered, rel_tol=_LENGTH_TOLERANCE)


def counted(found: Sequence[StoredTerms], indexer: TermIndexer) -> list[TermCounts]:
    """The terms of the texts that lexical rows were made of."""
    texts = [searchable_text(Document(content="", title=one.title), one.chunk) for one in found]
    languages = [
        language
        for one, text in zip(found, texts, strict=True)
        for language in indexer.languages([text], one.analysed_as)
    ]
    return indexer.count(texts, languages)


def as_stored(version: StoredVersion, content: str, chunks: Sequence[Chunk], indexer: TermIndexer) -> CutDocument:
    """Chunks as they are stored, with their words counted anew."""
    document = Document(content=content, title=version.title)
    texts = [searchable_text(document, chunk) for chunk in chunks]
    return CutDocument(document, chunks, texts, indexer.count(texts, indexer.languages(texts, version.analysed_as)), "")


def _length_of(terms: TermCounts, weight: float, indexer: TermIndexer) -> float:
    low, high = math.log(1e-2), math.log(1e7)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        (row,) = indexer.weigh([terms], reference_length=math.exp(middle))
        low, high = (middle, high) if float(row.weights.sum()) < weight else (low, middle)
    return math.exp((low + high) / 2)


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _stands_in(content: str, chunk: Chunk) -> bool:
    start, end = chunk.parent or (chunk.start_offset, chunk.end_offset)
    around = 0 <= start <= chunk.start_offset < chunk.end_offset <= end <= len(content)
    return around and content[chunk.start_offset : chunk.end_offset] == chunk.text


def _patched(base: str, proven: Sequence[Chunk]) -> str | None:
    characters = list(base)
    for chunk in proven:
        if chunk.end_offset - chunk.start_offset != len(chunk.text) or chunk.end_offset > len(base):
            return None
        characters[chunk.start_offset : chunk.end_offset] = chunk.text
    return "".join(characters)
