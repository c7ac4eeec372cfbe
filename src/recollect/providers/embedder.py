"""Any provider's embeddings as an `EmbeddingProvider`: batches, checks, unit length."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

import numpy as np

from recollect.embedding.base import Vectors
from recollect.llm.base import estimate_tokens
from recollect.providers._tokenizers import estimated_spans, openai_spans
from recollect.providers.batches import BatchLimits, batches, cut, in_parallel
from recollect.providers.connection import close_client
from recollect.providers.faults import Fault
from recollect.providers.requesting import Measured, Requester

if TYPE_CHECKING:
    from recollect.chunking.base import Span

Purpose: TypeAlias = Literal["document", "query"]

# What stands for a text without anything to embed: providers refuse the empty string.
_BLANK = "."


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingReply:
    """What a provider answered to one batch.

    Attributes:
        vectors: One a text.
        tokens: What the texts took, where the provider tells.
        indexes: Which text each vector belongs to, where the provider tells; None: they are in the texts' order.
    """

    vectors: Sequence[Sequence[float]] | Vectors
    tokens: int | None = None
    indexes: Sequence[int] | None = None


class EmbeddingBackend(Protocol):
    """What a provider's file adds: one request, and what is read of its reply.

    It may raise anything, its SDK's exceptions or a `Fault`; it neither repeats nor checks.

    Attributes:
        limits: Of one request.
        space: Names what vectors can be compared with each other, without their dimension.
        sdk: The modules of the SDK that a request needs.
    """

    sdk: Sequence[str]
    limits: BatchLimits
    space: str

    def embed(self, texts: Sequence[str], purpose: Purpose) -> EmbeddingReply:
        """Embed one batch; no text is empty."""
        ...


class HostedEmbedder:
    """An embedding model behind an API. Safe to share between threads.

    Args:
        backend: Sends one batch.
        requester: Sends requests under the common rules.
        dimension: The length of every vector.
        matryoshka: Whether the beginning of a longer vector is a vector of the same model, so that it may be cut.
    """

    def __init__(
        self, backend: EmbeddingBackend, requester: Requester, *, dimension: int, matryoshka: bool = False
    ) -> None:
        self._backend = backend
        self._requester = requester
        self._dimension = dimension
        self._matryoshka = matryoshka
        self._limits = backend.limits.within(requester.connection)
        # Whoever keeps several models may let go of one that is in use: its connections go when nobody has it any more.
        weakref.finalize(self, close_client, backend).atexit = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model_name!r})"

    @property
    def dimension(self) -> int:
        """The length of every vector."""
        return self._dimension

    @property
    def model_name(self) -> str:
        """Provider, model and dimension; for models that share a space, the space's name."""
        return f"{self._backend.space}:{self._dimension}"

    def close(self) -> None:
        """Close its connections; the next request opens new ones."""
        close_client(self._backend)

    def chunk_spans(self, text: str) -> Sequence[Span]:
        """Find the characters of each token, for the sizes of chunks; an estimate unless the tokenizer is here."""
        own = openai_spans(self._requester.model) if self._requester.provider == "openai" else None
        return (own or estimated_spans)(text.encode("utf-8", "replace").decode("utf-8"))

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Embed texts to be found; see `EmbeddingProvider`."""
        return self._embedded(texts, "document")

    def embed_query(self, text: str) -> Vectors:
        """Embed a question; see `EmbeddingProvider`."""
        vector: Vectors = self._embedded([text], "query")[0]
        return vector

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Embed several questions at once: float32 array of shape (len(texts), dimension)."""
        return self._embedded(texts, "query")

    def _embedded(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        sent = [self._sendable(text) for text in texts]
        calls = [self._call(sent[place.start : place.stop], purpose) for place in batches(sent, self._limits)]
        parts = in_parallel(calls, at_once=self._requester.connection.parallel)
        return np.concatenate(parts) if parts else np.empty((0, self._dimension), np.float32)

    def _sendable(self, text: str) -> str:
        # JSON has no lone surrogates.
        text = text.encode("utf-8", "replace").decode("utf-8")
        return cut(text, self._limits.text_tokens) if text.strip() else _BLANK

    def _call(self, texts: Sequence[str], purpose: Purpose) -> Callable[[threading.Event], Vectors]:
        def call(cancelled: threading.Event) -> Vectors:
            measured = Measured(len(texts), sum(map(estimate_tokens, texts)))

            def request() -> Vectors:
                reply = self._backend.embed(texts, purpose)
                vectors = unit_vectors(reply, count=len(texts), dimension=self._dimension, matryoshka=self._matryoshka)
                measured.told(reply.tokens)
                return vectors

            return self._requester.send(request, measured, cancelled=cancelled)

        return call


def unit_vectors(reply: EmbeddingReply, *, count: int, dimension: int, matryoshka: bool = False) -> Vectors:
    """A reply's vectors in the texts' order and of unit length.

    Args:
        reply: As the provider gave it.
        count: How many texts were sent.
        dimension: How long a vector must be.
        matryoshka: Whether longer ones may be cut to that length.

    Raises:
        Fault: There are fewer or more vectors than texts, a text has none or two, or one is no direction of that
            many finite numbers.
    """
    if len(reply.vectors) != count:
        raise Fault("malformed", f"it gave {len(reply.vectors)} vectors for {count} texts", retryable=True)
    try:
        given = np.asarray(reply.vectors, dtype=np.float64)
    except (TypeError, ValueError):
        raise Fault("malformed", "its vectors differ in length, or are no numbers") from None
    if given.ndim != 2:
        raise Fault("malformed", "it gave something else than one vector a text, for instance one a token")
    length = given.shape[1]
    if length != dimension and not (matryoshka and length > dimension):
        raise Fault(
            "malformed",
            f"its vectors have {length} dimensions, not {dimension}: set rag.embedding.dimensions (or --dimensions) to "
            "what the model gives",
        )
    given = given[_order(reply.indexes, count), :dimension]
    if not np.isfinite(given).all():
        raise Fault("malformed", "its vectors hold what is no finite number")
    norms = np.linalg.norm(given, axis=1, keepdims=True)
    if not (norms > 0).all():
        raise Fault("malformed", "one of its vectors is zero and has no direction")
    vectors: Vectors = (given / norms).astype(np.float32)
    return vectors


def _order(indexes: Sequence[int] | None, count: int) -> Sequence[int]:
    if indexes is None:
        return range(count)
    places = {index: place for place, index in enumerate(indexes)}
    if sorted(places) != list(range(count)):
        raise Fault("malformed", "it gave one text two vectors and another none", retryable=True)
    return [places[index] for index in range(count)]
