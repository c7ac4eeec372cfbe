"""What is kept of requests to providers of models: their figures, never their contents."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

from recollect.model.record import Public, Record

RequestKind: TypeAlias = Literal["embed", "rerank", "answer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRecord(Record):
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

    kind: Public[RequestKind]
    provider: Public[str]
    model: Public[str]
    inputs: Public[int]
    input_tokens: Public[int]
    output_tokens: Public[int] = 0
    tokens_estimated: Public[bool] = False
    attempts: Public[int] = 1
    milliseconds: Public[float] = 0.0
    success: Public[bool] = True
    error: Public[str | None] = None
    status: Public[int | None] = None
    cost: Public[float | None] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedRequest(RequestRecord):
    """A request as the log holds it.

    Attributes:
        request_id: Of the log; 0 before it is stored.
        at: When it ended.
    """

    request_id: Public[int] = 0
    at: Public[datetime]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestTotals(Record):
    """The requests of one kind to one model, summed up.

    Attributes:
        kind: ``embed``, ``rerank`` or ``answer``.
        provider: For instance ``openai``.
        model: As the provider names it.
        requests: How many.
        failures: How many of them had no usable answer.
        attempts: How often something was sent.
        inputs: Texts, passages or messages that were sent.
        input_tokens: What they took.
        output_tokens: What was written.
        mean_milliseconds: Of the requests that succeeded; None: none did.
        p95_milliseconds: The time that 95 of 100 of them took at most.
        cost: Of those whose cost is known; None: of none.
    """

    kind: Public[str]
    provider: Public[str]
    model: Public[str]
    requests: Public[int]
    failures: Public[int]
    attempts: Public[int]
    inputs: Public[int]
    input_tokens: Public[int]
    output_tokens: Public[int]
    mean_milliseconds: Public[float | None]
    p95_milliseconds: Public[float | None]
    cost: Public[float | None]
