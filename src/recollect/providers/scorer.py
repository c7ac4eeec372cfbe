"""Any provider's reranker as a `PairScorer`: batches, checks."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from recollect.llm.base import estimate_tokens
from recollect.providers.batches import BatchLimits, batches, cut, in_parallel
from recollect.providers.connection import close_client
from recollect.providers.faults import Fault
from recollect.providers.requesting import Measured, Requester

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


class HostedScorer:
    """A reranking model behind an API. Safe to share between threads.

    Args:
        backend: Sends one batch.
        requester: Sends requests under the common rules.
    """

    def __init__(self, backend: RerankBackend, requester: Requester) -> None:
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

    def scores(self, query: str, passages: Sequence[str]) -> list[float]:
        """One finite number a passage, higher is better.

        Raises:
            ProviderError: The model failed, or what it answered is no such list.
        """
        asked = _encodable(query) or _BLANK
        sent = [cut(_encodable(passage), self._limits.text_tokens) or _BLANK for passage in passages]
        calls = [self._call(asked, sent[place.start : place.stop]) for place in batches(sent, self._limits)]
        parts = in_parallel(calls, at_once=self._requester.connection.parallel)
        return [score for part in parts for score in part]

    def _call(self, query: str, passages: Sequence[str]) -> Callable[[threading.Event], list[float]]:
        def call(cancelled: threading.Event) -> list[float]:
            tokens = sum(estimate_tokens(text) for text in passages) + len(passages) * estimate_tokens(query)
            measured = Measured(len(passages), tokens)

            def request() -> list[float]:
                reply = self._backend.rerank(query, passages)
                scores = ordered_scores(reply, count=len(passages))
                measured.told(reply.tokens)
                measured.searches = reply.searches
                return scores

            return self._requester.send(request, measured, cancelled=cancelled)

        return call


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
