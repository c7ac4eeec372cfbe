"""Any provider's embeddings as an `EmbeddingProvider`, its reranker as a `PairScorer`: batches, checks, tokens."""

from __future__ import annotations

import math
import os
import tempfile
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha1, sha256
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Generic, Literal, Protocol, TypeAlias, TypeVar

import numpy as np

from recollect.chunking.base import tokenize
from recollect.embedding.base import Vectors
from recollect.llm.base import estimate_tokens
from recollect.providers.connection import Fault, close_client
from recollect.providers.requesting import BatchLimits, Measured, Requester, batches, cut, in_parallel

if TYPE_CHECKING:
    from tiktoken import Encoding

    from recollect.chunking.base import Span


Purpose: TypeAlias = Literal["document", "query"]

# What stands for a text without anything to embed: providers refuse the empty string.
_BLANK = "."

# What bills reranking by searches cuts a passage that is longer than this with its question, and counts each piece.
_PIECE_TOKENS = 512
_SEARCH_PIECES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankReply:
    """What a provider answered to one batch.

    Attributes:
        scores: Pairs of a passage's place in the batch and its score, in any order.
        tokens: What question and passages took, where the provider tells.
        searches: How many searches it is billed as, by a provider that bills by them; None: it bills by tokens.
    """

    scores: Sequence[tuple[int, float]]
    tokens: int | None = None
    searches: float | None = None


def estimated_searches(query: str, passages: Sequence[str]) -> float:
    """About how many searches a request is billed as: each is a question with up to a hundred pieces of passages."""
    asked = estimate_tokens(query)
    pieces = sum(-(-(asked + estimate_tokens(passage)) // _PIECE_TOKENS) for passage in passages)
    return float(-(-pieces // _SEARCH_PIECES))


class RerankBackend(Protocol):
    """What a provider's file adds: one request, and what is read of its reply.

    Attributes:
        limits: Of one request.
        sdk: The modules of the SDK that a request needs.
    """

    sdk: Sequence[str]
    limits: BatchLimits

    def rerank(self, query: str, passages: Sequence[str]) -> RerankReply:
        """Score one batch; no passage is empty."""
        ...


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


Backend = TypeVar("Backend", bound=RerankBackend | EmbeddingBackend)
Answer = TypeVar("Answer")


class _Hosted(Generic[Backend]):
    """What embeddings and reranking behind an API do alike: texts in batches, several requests at once.

    Args:
        backend: Sends one batch.
        requester: Sends requests under the common rules.
    """

    def __init__(self, backend: Backend, requester: Requester) -> None:
        self._backend = backend
        self._requester = requester
        self._limits = backend.limits.within(requester.connection)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model_name!r})"

    @property
    def model_name(self) -> str:
        """Provider and model."""
        return f"{self._requester.provider}/{self._requester.model}"

    def close(self) -> None:
        """Close its connections; the next request opens new ones."""
        close_client(self._backend)

    def _in_batches(
        self, texts: Sequence[str], ask: Callable[[Sequence[str], Measured], Answer], *, tokens_each: int = 0
    ) -> list[Answer]:
        """What each batch of texts was answered, in order; each text costs so many tokens beside its own."""

        def call(batch: Sequence[str]) -> Callable[[threading.Event], Answer]:
            def send(cancelled: threading.Event) -> Answer:
                measured = Measured(len(batch), sum(map(estimate_tokens, batch)) + len(batch) * tokens_each)
                return self._requester.send(lambda: ask(batch, measured), measured, cancelled=cancelled)

            return send

        calls = [call(texts[place.start : place.stop]) for place in batches(texts, self._limits)]
        return in_parallel(calls, at_once=self._requester.connection.parallel)


class HostedScorer(_Hosted[RerankBackend]):
    """A reranking model behind an API. Safe to share between threads."""

    def scores(self, query: str, passages: Sequence[str]) -> list[float]:
        """One finite number a passage, higher is better.

        Raises:
            ProviderError: The model failed, or what it answered is no such list.
        """
        asked = _encodable(query) or _BLANK
        sent = [cut(_encodable(passage), self._limits.text_tokens) or _BLANK for passage in passages]

        def ask(batch: Sequence[str], measured: Measured) -> list[float]:
            reply = self._backend.rerank(asked, batch)
            scores = ordered_scores(reply, count=len(batch))
            measured.told(reply.tokens)
            measured.searches = reply.searches
            return scores

        parts = self._in_batches(sent, ask, tokens_each=estimate_tokens(asked))
        return [score for part in parts for score in part]


class HostedEmbedder(_Hosted[EmbeddingBackend]):
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
        super().__init__(backend, requester)
        self._dimension = dimension
        self._matryoshka = matryoshka
        # Whoever keeps several models may let go of one that is in use: its connections go when nobody has it any more.
        weakref.finalize(self, close_client, backend).atexit = False

    @property
    def dimension(self) -> int:
        """The length of every vector."""
        return self._dimension

    @property
    def model_name(self) -> str:
        """Provider, model and dimension; for models that share a space, the space's name."""
        return f"{self._backend.space}:{self._dimension}"

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
        def ask(batch: Sequence[str], measured: Measured) -> Vectors:
            reply = self._backend.embed(batch, purpose)
            vectors = unit_vectors(reply, count=len(batch), dimension=self._dimension, matryoshka=self._matryoshka)
            measured.told(reply.tokens)
            return vectors

        parts = self._in_batches([self._sendable(text) for text in texts], ask)
        return np.concatenate(parts) if parts else np.empty((0, self._dimension), np.float32)

    def _sendable(self, text: str) -> str:
        # JSON has no lone surrogates.
        text = text.encode("utf-8", "replace").decode("utf-8")
        return cut(text, self._limits.text_tokens) if text.strip() else _BLANK


def ordered_scores(reply: RerankReply, *, count: int) -> list[float]:
    """A reply's scores in the passages' order.

    Raises:
        Fault: A passage has no score or two, or a score is no finite number.
    """
    found = dict(reply.scores)
    if len(reply.scores) != count or sorted(found) != list(range(count)):
        raise Fault("malformed", f"it gave {len(reply.scores)} scores for {count} passages", retryable=True)
    scores = [float(found[place]) for place in range(count)]
    if not all(map(math.isfinite, scores)):
        raise Fault("malformed", "its scores hold what is no finite number")
    return scores


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8").strip()


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


# Tokenizers of providers' models, where one is at hand: on this machine, without a request.


# The encodings of OpenAI's present models, with the SHA-256 that tiktoken takes of each; and where they come from.
_FILES = {
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
}
_PIECE_CHARACTERS = 10_000
_ADDRESS = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"


def openai_counter(model: str) -> Callable[[str], int] | None:
    """Return what counts tokens as a model of OpenAI does; None if its tokenizer is not on this machine.

    Args:
        model: As OpenAI names it.
    """
    encoding = _openai_encoding(model)
    return None if encoding is None else lambda text: len(encoding.encode_ordinary(text))


def openai_spans(model: str) -> Callable[[str], Sequence[Span]] | None:
    """Return what finds the characters of each token as a model of OpenAI does; None as of `openai_counter`."""
    encoding = _openai_encoding(model)
    if encoding is None:
        return None

    def spans(text: str) -> list[Span]:
        starts: list[int] = []
        # In pieces: what a run of letters costs grows with the square of its length.
        for begin in range(0, len(text), _PIECE_CHARACTERS):
            piece = text[begin : begin + _PIECE_CHARACTERS]
            _, own = encoding.decode_with_offsets(encoding.encode_ordinary(piece))
            starts.extend(begin + start for start in own)
        return list(pairwise([*starts, len(text)]))

    return spans


def estimated_spans(text: str) -> list[Span]:
    """Estimate the tokens of a model whose tokenizer is unknown: words, in pieces of four ASCII letters or two others.

    Example:
        >>> estimated_spans("Annual leave")
        [(0, 4), (4, 6), (7, 11), (11, 12)]
    """
    found: list[Span] = []
    for start, end in tokenize(text):
        size = 4 if text[start:end].isascii() else 2
        found.extend((at, min(at + size, end)) for at in range(start, end, size))
    return found


@cache
def _openai_encoding(model: str) -> Encoding | None:
    """A model's encoding; None: tiktoken is not installed, or the encoding's file is not here.

    tiktoken would fetch a file that it lacks, and wait without an end for a network that does not answer: so it is
    asked for encodings only whose files lie in its cache already.
    """
    if find_spec("tiktoken") is None:
        return None
    import tiktoken

    try:
        name = tiktoken.encoding_name_for_model(model)
    except KeyError:
        return None
    if not _is_here(name):
        return None
    return tiktoken.get_encoding(name)


def _is_here(encoding: str) -> bool:
    folder = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR"))
    if folder is None:
        folder = str(Path(tempfile.gettempdir()) / "data-gym-cache")
    if not folder or encoding not in _FILES:
        return False
    file = Path(folder) / sha1(_ADDRESS.format(encoding).encode(), usedforsecurity=False).hexdigest()
    try:
        return sha256(file.read_bytes()).hexdigest() == _FILES[encoding]
    except OSError:
        return False
