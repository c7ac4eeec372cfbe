"""What is kept of a request to a provider: its figures, never its contents."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

RequestKind: TypeAlias = Literal["embed", "rerank", "answer"]

_log = logging.getLogger(__name__)


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


#: Told of each request, in the thread that waits for it. What it raises is logged, and changes nothing.
Recorder: TypeAlias = Callable[[RequestRecord], None]


def report(record: RequestRecord, recorder: Recorder | None) -> None:
    """Hand a record over; a recorder that fails does not fail the request."""
    if recorder is None:
        return
    try:
        recorder(record)
    except Exception:  # noqa: BLE001 - a log is no reason to lose an answer
        _log.exception("A request to %s was not recorded", record.provider)
