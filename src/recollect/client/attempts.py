"""A request that is made again where that is safe: when, how long afterwards, and what is raised in the end."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from uuid import uuid4

from recollect.client.calls.base import Call, Reply
from recollect.client.problems import error_of
from recollect.errors import (
    RateLimitedError,
    RecollectError,
    ServerError,
    ServerUnavailableError,
)

T = TypeVar("T")

#: For a reply to come, or to go on.
TIMEOUT_SECONDS = 120.0
#: How often a request is made again.
RETRIES = 4

KEY_HEADER = "Idempotency-Key"
_PROBLEM = "application/problem+json"

# Said by what stands before a server, which may be there again in a moment.
_OF_GATEWAYS = frozenset({502, 503, 504})
_BASE_SECONDS = 0.25
_MOST_SECONDS = 8.0
# Whoever has to wait longer is told so, and decides.
_LONGEST_WAIT = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How requests are made.

    Attributes:
        timeout_seconds: For a reply to come, or to go on.
        total_seconds: For a reply to be there as a whole; None: as long as it goes on.
        retries: How often one is made again, where that is safe.
        idempotency_key: Of the next write; None: each has one of its own.
        on_reply: Told each reply, with its status and headers.
        max_reply_bytes: A longer reply is refused.
    """

    timeout_seconds: float = TIMEOUT_SECONDS
    total_seconds: float | None = None
    retries: int = RETRIES
    idempotency_key: str | None = None
    on_reply: Callable[[Reply], None] | None = None
    max_reply_bytes: int = 512 * 1024 * 1024


class Attempts(Generic[T]):
    """The attempts at one request.

    A request that changes something has an idempotency key, so the server does it once however often it is sent.

    Args:
        call: What is asked.
        settings: How.
        url: Of the server.
    """

    def __init__(self, call: Call[T], settings: Settings, *, url: str) -> None:
        self._call = call
        self._settings = settings
        self._url = url
        self._left = settings.retries
        self.headers = dict(call.headers)
        if call.writes:
            self.headers[KEY_HEADER] = settings.idempotency_key or str(uuid4())

    def failed(self, exc: Exception) -> float:
        """No reply came; returns how long to wait before the next attempt.

        Raises:
            ServerUnavailableError: There is none.
        """
        if self._left <= 0:
            raise unavailable(self._url, exc) from exc
        return self._next()

    def replied(self, status: int, headers: Mapping[str, str], body: bytes) -> T:
        """What a reply gives.

        Raises:
            RecollectError: It is none that this version understands.
        """
        told = self._json(status, headers, body)
        if self._settings.on_reply is not None:
            self._settings.on_reply(Reply(status=status, headers=dict(headers), json=told))
        try:
            return self._call.read(told)
        except (KeyError, TypeError, ValueError, AttributeError) as exc:
            raise ServerError(
                f"The server at {self._url} replied with what this version does not understand "
                f"({type(exc).__name__}: {exc}): is its version of recollect another one?",
                url=self._url,
                status=status,
            ) from exc

    def refused(self, status: int, headers: Mapping[str, str], body: bytes) -> float:
        """How long to wait before the next attempt.

        Raises:
            RecollectError: What the server says is wrong; there is none.
        """
        error = refusal_of(status, headers, body, url=self._url)
        wait = self._wait(status, headers)
        if wait is None or self._left <= 0:
            raise error
        return max(self._next(), wait)

    def _wait(self, status: int, headers: Mapping[str, str]) -> float | None:
        """How long to wait at least before another attempt; None: it would be refused again."""
        told = _seconds(headers.get("retry-after"))
        if told is not None and told > _LONGEST_WAIT:
            return None
        ours = _is(headers, _PROBLEM)
        if status in {429, 503} or (status == 409 and told is not None):
            return told or 0.0
        # A problem that recollect tells with such a status is about a page or a model, and lasts.
        return 0.0 if status in _OF_GATEWAYS and not ours else None

    def _next(self) -> float:
        done = self._settings.retries - self._left
        self._left -= 1
        return random.uniform(0.5, 1.0) * min(_MOST_SECONDS, _BASE_SECONDS * 2.0**done)

    def _json(self, status: int, headers: Mapping[str, str], body: bytes) -> Any:  # noqa: ANN401 - whatever JSON holds
        if not body:
            return None
        if not _is(headers, "application/json"):
            raise strange(self._url, status, headers)
        try:
            return json.loads(body)
        except (ValueError, RecursionError) as exc:
            raise strange(self._url, status, headers) from exc


def refusal_of(status: int, headers: Mapping[str, str], body: bytes, *, url: str) -> RecollectError:
    """The error of a reply that is none of success."""
    if 300 <= status < 400:
        return ServerError(
            f"The server at {url} sends its callers elsewhere (status {status}), where a key is not taken unasked: "
            "give the address that it names as the server's.",
            url=url,
            status=status,
        )
    problem = _problem(headers, body)
    if problem is None:
        return strange(url, status, headers)
    error = error_of(problem, url=url, status=status)
    wait = _seconds(headers.get("retry-after"))
    if isinstance(error, RateLimitedError) and "retry_after_seconds" not in problem and wait is not None:
        error.retry_after_seconds = wait
    return error


def unavailable(url: str, exc: Exception) -> ServerUnavailableError:
    """The error of a server that does not reply."""
    why = str(exc) or type(exc).__name__
    return ServerUnavailableError(
        f"The server at {url} does not reply: {why}. Is it running (recollect serve), and is this its address?", url=url
    )


def too_long(url: str, most: int) -> ServerError:
    """The error of a reply without end."""
    return ServerError(f"The server at {url} replied with more than {most:,} bytes; the rest was not read.", url=url)


def unreadable(url: str, exc: Exception) -> ServerError:
    """The error of a reply that is not compressed as it says."""
    return ServerError(f"The reply of the server at {url} cannot be read: {exc}.", url=url)


def _problem(headers: Mapping[str, str], body: bytes) -> Mapping[str, Any] | None:
    if not _is(headers, _PROBLEM):
        return None
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return told if isinstance(told, dict) else None


def strange(url: str, status: int, headers: Mapping[str, str]) -> ServerError:
    """The error of a reply that is none of recollect's."""
    kind = headers.get("content-type", "no type")
    return ServerError(
        f"What answers at {url} is no server of recollect: its reply (status {status}) is {kind[:100]!r}. Check the "
        "address, and what stands between.",
        url=url,
        status=status,
    )


def _is(headers: Mapping[str, str], kind: str) -> bool:
    return headers.get("content-type", "").partition(";")[0].strip().lower() == kind


def _seconds(text: str | None) -> float | None:
    """``Retry-After`` in seconds; its other form, a date, needs clocks that agree, and is left aside."""
    return float(text) if text is not None and text.strip().isdecimal() else None
