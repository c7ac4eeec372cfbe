"""What is kept of requests to providers of models: their figures, never their contents."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

RequestKind: TypeAlias = Literal["embed", "rerank", "answer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRecord:
    """One request to a provider, its repetitions included.

    Attributes:
        kind: What was asked for.
        provider: For instance ``"openai"``.
        model: As the provider names it.
        inputs: Texts, passages or messages that were sent.
        input_tokens: What they took.
        output_tokens: What was written; 0 where nothing is.
        tokens_estimated: Whether the tokens are computed from the texts' lengths.
        attempts: How often the request was sent; 0 where the circuit breaker refused it.
        milliseconds: From the first attempt to the end of the last, pauses included.
        success: Whether there was a usable answer.
        error: What kind of failure it was, for instance ``"rate_limit"``; None where it succeeded.
        status: The HTTP status of a failure, where there was one.
        cost: In the currency of the configured prices; None where none is configured.
    """

    kind: RequestKind
    provider: str
    model: str
    inputs: int
    input_tokens: int
    output_tokens: int = 0
    tokens_estimated: bool = False
    attempts: int = 1
    milliseconds: float = 0.0
    success: bool = True
    error: str | None = None
    status: int | None = None
    cost: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedRequest(RequestRecord):
    """A request as the log holds it.

    Attributes:
        request_id: Of the log; 0 before it is stored.
        at: When it ended.
    """

    request_id: int = 0
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestTotals:
    """The requests of one kind to one model, summed up.

    Attributes:
        requests: How many.
        failures: How many of them had no usable answer.
        attempts: How often something was sent.
        mean_milliseconds: Of the requests that succeeded; None: none did.
        p95_milliseconds: The time that 95 of 100 of them took at most.
        cost: Of those whose cost is known; None: of none.
    """

    kind: str
    provider: str
    model: str
    requests: int
    failures: int
    attempts: int
    inputs: int
    input_tokens: int
    output_tokens: int
    mean_milliseconds: float | None
    p95_milliseconds: float | None
    cost: float | None
