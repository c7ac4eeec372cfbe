"""What was asked of providers of models, what it took and what it cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from recollect.replies._shape import Shape, Timestamp, iso

if TYPE_CHECKING:
    from recollect.model.requests import LoggedRequest, RequestTotals


class LoggedRequestJson(Shape):
    """One request to a provider, its repetitions included."""

    request_id: int
    at: Timestamp
    """When it ended."""
    kind: str
    """`embed`, `rerank` or `answer`."""
    provider: str
    """For instance `openai`."""
    model: str
    """As the provider names it."""
    inputs: int
    """Texts, passages or messages that were sent."""
    input_tokens: int
    """What they took."""
    output_tokens: int
    """What was written."""
    tokens_estimated: bool
    """Whether the tokens are computed from the texts' lengths."""
    attempts: int
    """How often it was sent; 0 where the circuit breaker refused it."""
    milliseconds: float
    """From the first attempt to the end of the last."""
    success: bool
    """Whether there was a usable answer."""
    error: str | None
    """What kind of failure it was."""
    status: int | None
    """The HTTP status of a failure, where there was one."""
    cost: float | None
    """In the currency of the configured prices; null where none is configured."""


class RequestListJson(Shape):
    """Requests to providers, newest first."""

    requests: list[LoggedRequestJson]
    next_before: int | None
    """Where the next page begins; null: there is none."""


class RequestTotalsJson(Shape):
    """The requests of one kind to one model, summed up."""

    kind: str
    """`embed`, `rerank` or `answer`."""
    provider: str
    model: str
    requests: int
    """How many."""
    failures: int
    """How many of them had no usable answer."""
    attempts: int
    """How often something was sent."""
    inputs: int
    """Texts, passages or messages that were sent."""
    input_tokens: int
    output_tokens: int
    mean_milliseconds: float | None
    """Of the requests that succeeded; null: none did."""
    p95_milliseconds: float | None
    """The time that 95 of 100 of them took at most."""
    cost: float | None
    """Of those whose cost is known; null: of none."""


class RequestStatsJson(Shape):
    """Requests to providers, by kind and model."""

    models: list[RequestTotalsJson]


def logged_request_json(one: LoggedRequest) -> LoggedRequestJson:
    """One request to a provider."""
    return {
        "request_id": one.request_id,
        "at": iso(one.at),
        "kind": one.kind,
        "provider": one.provider,
        "model": one.model,
        "inputs": one.inputs,
        "input_tokens": one.input_tokens,
        "output_tokens": one.output_tokens,
        "tokens_estimated": one.tokens_estimated,
        "attempts": one.attempts,
        "milliseconds": one.milliseconds,
        "success": one.success,
        "error": one.error,
        "status": one.status,
        "cost": one.cost,
    }


def request_list_json(found: Sequence[LoggedRequest], *, more: bool) -> RequestListJson:
    """A page of requests to providers.

    Args:
        found: Of the page, newest first.
        more: Whether another page follows.
    """
    return {
        "requests": [logged_request_json(one) for one in found],
        "next_before": found[-1].request_id if found and more else None,
    }


def request_stats_json(totals: Sequence[RequestTotals]) -> RequestStatsJson:
    """Requests to providers, by kind and model."""
    return {
        "models": [
            {
                "kind": one.kind,
                "provider": one.provider,
                "model": one.model,
                "requests": one.requests,
                "failures": one.failures,
                "attempts": one.attempts,
                "inputs": one.inputs,
                "input_tokens": one.input_tokens,
                "output_tokens": one.output_tokens,
                "mean_milliseconds": one.mean_milliseconds,
                "p95_milliseconds": one.p95_milliseconds,
                "cost": one.cost,
            }
            for one in totals
        ]
    }
