"""Reranking by late interaction: token vectors, packed into at most 4 KB a chunk, and vectors of sentences."""

from __future__ import annotations

import hashlib
import re
import struct
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from cachetools import LRUCache

from recollect.errors import StoreCorruptError, UsageError
from recollect.retrieval.rerank.apply import inner_products
from recollect.retrieval.rerank.base import Candidate

if TYPE_CHECKING:
    from recollect.embedding.base import EmbeddingProvider, Vectors


# Token vectors in at most 4 KB a chunk, and the MaxSim score computed from them.
#
# A vector keeps the signs of its components, one bit each: 48 bytes for 384 dimensions. Where a chunk has more tokens
# than fit, neighbouring ones are averaged first. Keeping every token coarsely measured better than keeping few of
# them precisely, see `docs/how-to/reranking.md`.


#: The most bytes that one chunk's vectors take.
MAX_BYTES = 4096

_VERSION = 1

_HEADER = struct.Struct("<BxHH")  # version, dimension, number of vectors


def pack(token_vectors: npt.NDArray[np.floating[Any]]) -> bytes:
    """Pack one text's token vectors.

    Args:
        token_vectors: Shape (tokens, dimension), any number of tokens, none included; rows of unit length.

    Returns:
        At most `MAX_BYTES`.

    Raises:
        UsageError: The array has another shape, or a dimension that does not fit.
    """
    if token_vectors.ndim != 2 or not 0 < token_vectors.shape[1] <= (MAX_BYTES - _HEADER.size) * 8:
        raise UsageError(f"token vectors have the shape (tokens, dimension), not {token_vectors.shape}")
    dimension = token_vectors.shape[1]
    pooled = _pooled(token_vectors.astype(np.float32, copy=False), (MAX_BYTES - _HEADER.size) // (-(-dimension // 8)))
    return _HEADER.pack(_VERSION, dimension, len(pooled)) + np.packbits(pooled > 0, axis=1).tobytes()


def unpack(packed: bytes) -> Floats:
    """The packed vectors, each component of the same size: float32 of shape (vectors, dimension), of unit length.

    Raises:
        StoreCorruptError: The bytes are not what `pack` gave.
    """
    bits, dimension = _bits(packed)
    return _signs(bits, dimension)


def maxsim(query_vectors: Floats, packed: Sequence[bytes]) -> list[float]:
    """How well texts answer a question: for each of its tokens the best cosine with any of a text's, averaged.

    This is the score of Khattab and Zaharia 2020, "ColBERT: Efficient and Effective Passage Search via Contextualized
    Late Interaction over BERT", divided by the number of the question's tokens.

    Args:
        query_vectors: Shape (tokens, dimension), rows of unit length.
        packed: From `pack`, one per text.

    Returns:
        One score per text; 0 for a text without tokens, and for every one where the question has none.

    Raises:
        StoreCorruptError: Bytes are not what `pack` gave, or are of another model's dimension.
    """
    taken = [_bits(one) for one in packed]
    counts = [len(bits) for bits, _ in taken]
    if not sum(counts) or not len(query_vectors):
        return [0.0] * len(packed)
    dimension = query_vectors.shape[1]
    if any(own != dimension for _, own in taken):
        raise StoreCorruptError("Stored token vectors are of another model than the query's: ingest the chunks again.")
    signs = _signs(np.concatenate([bits for bits, _ in taken]), dimension)
    similarities = inner_products(signs, query_vectors)
    return _best_mean(similarities, counts)


def _best_mean(similarities: Floats, counts: Sequence[int]) -> list[float]:
    """The mean over columns of the greatest value in each text's rows; 0 for a text without rows."""
    starts = np.cumsum([0, *counts[:-1]])
    present = [index for index, count in enumerate(counts) if count]
    scores = np.zeros(len(counts))
    if present:
        scores[present] = np.maximum.reduceat(similarities, starts[present], axis=0).mean(axis=1)
    return [float(score) for score in scores]


def _pooled(vectors: Floats, limit: int) -> Floats:
    if len(vectors) <= limit:
        return vectors
    starts = np.linspace(0, len(vectors), limit, endpoint=False).astype(np.int64)
    pooled: Floats = np.add.reduceat(vectors, starts, axis=0)
    return pooled


def _bits(packed: bytes) -> tuple[npt.NDArray[np.uint8], int]:
    if len(packed) >= _HEADER.size:
        version, dimension, count = _HEADER.unpack_from(packed)
        width = -(-dimension // 8)
        if version == _VERSION and dimension and len(packed) == _HEADER.size + count * width:
            bits = np.frombuffer(packed, np.uint8, offset=_HEADER.size).reshape(count, width)
            return bits, dimension
    raise StoreCorruptError(f"{len(packed)} bytes that should be token vectors are not: ingest the chunks again.")


def _signs(bits: npt.NDArray[np.uint8], dimension: int) -> Floats:
    ones = np.unpackbits(bits, axis=1, count=dimension).astype(np.float32)
    size = np.float32(dimension**-0.5)
    ones *= 2 * size
    ones -= size
    return ones


#: Memory that token vectors computed at query time may take in this process.
CACHE_BYTES = 64 << 20

#: Gives the packed token vectors that are stored for chunks; those that have none are left out.
StoredVectors = Callable[[Sequence[int]], Mapping[int, bytes]]

Floats = npt.NDArray[np.float32]


@runtime_checkable
class TokenEncoder(Protocol):
    """Gives token vectors; `recollect.embedding.local.LocalEmbedder` is one."""

    def token_vectors(self, texts: Sequence[str], *, as_query: bool = False) -> list[Floats]:
        """For each text a float32 array of shape (tokens, dimension), rows of unit length."""
        ...


class LateInteractionReranker:
    """Scores a passage by MaxSim: each token of the question looks for its best match in the passage.

    Stored token vectors are used where there are any. Otherwise they are computed the first time a passage is seen
    and kept in this process, packed the same way; fifty passages of 170 tokens take about 0.4 s on two cores.

    Args:
        encoder: The local model.
        stored: Looks up what ingest stored; None: nothing is stored.
        cache_bytes: Memory for what is computed here; 0 keeps none.
    """

    name = "late_interaction"

    def __init__(
        self, encoder: TokenEncoder, *, stored: StoredVectors | None = None, cache_bytes: int = CACHE_BYTES
    ) -> None:
        self._encoder = encoder
        self._stored = stored
        self._memory = BoundedMemory(cache_bytes)

    def rerank(self, query: str, candidates: Sequence[Candidate]) -> list[float]:
        """See `Reranker`; 0 for a passage without tokens."""
        if not candidates:
            return []
        wanted = self._encoder.token_vectors([query], as_query=True)[0]
        stored = self._stored([candidate.chunk_id for candidate in candidates]) if self._stored else {}
        computed = self._computed([candidate.text for candidate in candidates if candidate.chunk_id not in stored])
        # Packed in both cases, so that what is stored and what is computed here compare.
        packed = [
            stored[candidate.chunk_id] if candidate.chunk_id in stored else computed[candidate.text]
            for candidate in candidates
        ]
        return maxsim(wanted, packed)

    def _computed(self, texts: Sequence[str]) -> dict[str, bytes]:
        keys = {text: text_key(text) for text in texts}
        found = self._memory.get_many(keys.values())
        missing = [text for text, key in keys.items() if key not in found]
        if missing:
            vectors = self._encoder.token_vectors(missing)
            fresh = {keys[text]: np.frombuffer(pack(own), np.uint8) for text, own in zip(missing, vectors, strict=True)}
            self._memory.put_many(fresh)
            found |= fresh
        return {text: found[key].tobytes() for text, key in keys.items()}


# Arrays kept in this process by what they were computed from, the least recently used dropped first.

Array = npt.NDArray[Any]


class BoundedMemory:
    """A cache of arrays with a bound on their bytes. Safe to share between threads.

    Args:
        max_bytes: What the arrays may take together; one that is larger alone is not kept.
    """

    def __init__(self, max_bytes: int) -> None:
        self._arrays: LRUCache[bytes, Array] = LRUCache(max_bytes, getsizeof=lambda array: array.nbytes)
        self._lock = threading.Lock()

    @property
    def size_bytes(self) -> int:
        """What the arrays take now."""
        return int(self._arrays.currsize)

    def get_many(self, keys: Iterable[bytes]) -> dict[bytes, Array]:
        """The arrays that are kept; they must not be written to."""
        with self._lock:
            return {key: self._arrays[key] for key in keys if key in self._arrays}

    def put_many(self, arrays: Mapping[bytes, Array]) -> None:
        """Keep arrays, dropping what was used least recently."""
        with self._lock:
            for key, array in arrays.items():
                if array.nbytes <= self._arrays.maxsize and key not in self._arrays:
                    # A copy: a view would hold the whole array that it was cut from.
                    self._arrays[key] = np.array(array)


def text_key(text: str) -> bytes:
    """The key of what was computed from a text: the SHA-256 of its UTF-8, lone surrogates allowed."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


# Reranking by the best sentence: a passage is as relevant as the sentence in it that comes closest.


_SURROGATES = re.compile("[\ud800-\udfff]")

#: Memory that sentences' vectors may take in this process.
SENTENCE_CACHE_BYTES = 64 << 20


class BestSentenceReranker:
    """Scores a passage by the greatest cosine similarity between one of its sentences and the question.

    The sentences are embedded the first time they are seen and kept in this process; that first time costs what
    embedding the passages again would.

    Args:
        embedder: Embeds question and sentences.
        language: Of the texts, ISO 639-1; decides where sentences end.
        cache_bytes: Memory for sentences' vectors; 0 keeps none.
    """

    name = "best_sentence"

    def __init__(
        self, embedder: EmbeddingProvider, *, language: str = "en", cache_bytes: int = SENTENCE_CACHE_BYTES
    ) -> None:
        self._embedder = embedder
        self._language = language
        self._memory = BoundedMemory(cache_bytes)

    def rerank(self, query: str, candidates: Sequence[Candidate]) -> list[float]:
        """See `Reranker`."""
        if not candidates:
            return []
        wanted = self._embedder.embed_query(query)
        known = self._vectors([candidate.text for candidate in candidates])
        return [float((vectors @ wanted).max()) for vectors in known]

    def _vectors(self, texts: Sequence[str]) -> list[Vectors]:
        keys = [text_key(text) for text in texts]
        found = self._memory.get_many(keys)
        missing = {key: self._sentences(text) for key, text in zip(keys, texts, strict=True) if key not in found}
        if missing:
            flat = [sentence for sentences in missing.values() for sentence in sentences]
            vectors = self._embedder.embed_documents(flat)
            ends = np.cumsum([len(sentences) for sentences in missing.values()])
            fresh = dict(zip(missing, np.split(vectors, ends[:-1]), strict=True))
            self._memory.put_many(fresh)
            found |= fresh
        return [found[key] for key in keys]

    def _sentences(self, text: str) -> list[str]:
        from recollect.chunking.sentences import sentence_spans

        # The rules for sentences refuse lone surrogates, which a text from outside the store may hold.
        valid = _SURROGATES.sub("\ufffd", text)
        # A text without words is its own only sentence, so that every passage has a vector.
        return [valid[start:end] for start, end in sentence_spans(valid, self._language)] or [valid]
