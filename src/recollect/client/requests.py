"""Requests as the HTTP library takes them, made again where that is safe, and the errors of what is refused."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import urlsplit
from uuid import uuid4

import httpx2

from recollect import errors
from recollect.client.calls.base import Call, Reply
from recollect.client.place import UNCHANGED
from recollect.errors import (
    RateLimitedError,
    RecollectError,
    ServerError,
    ServerUnavailableError,
    UsageError,
)

if TYPE_CHECKING:
    import ssl


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


# Requests as the HTTP library takes them.


#: Connections that are kept open for the next requests, and all of them.
LIMITS = httpx2.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=30.0)
_CONNECT_SECONDS = 10.0


def trusted() -> ssl.SSLContext:
    """What servers are verified by; read once a process, because the system's certificates take 20 ms."""
    return _trusted(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@cache
def _trusted(file: str | None, folder: str | None) -> ssl.SSLContext:  # noqa: ARG001 - what the context is made of
    return httpx2.create_ssl_context()


def request_of(url: str, call: Call[Any], headers: Mapping[str, str], settings: Settings) -> dict[str, Any]:
    """One request.

    Args:
        url: Of the server.
        call: What is asked.
        headers: Beside those of every request.
        settings: How long it may take.
    """
    patience = max(settings.timeout_seconds, call.patience_seconds)
    return {
        "method": call.method,
        "url": url + call.path,
        "params": {name: _text(value) for name, value in call.query.items() if value is not None},
        "headers": {**headers, **_kind(call)},
        # In ASCII: what is no text, such as a lone surrogate, is for the server to refuse.
        "content": call.lines if call.body is None else json.dumps(dict(call.body)).encode(),
        "timeout": httpx2.Timeout(patience, connect=min(_CONNECT_SECONDS, patience)),
    }


def _kind(call: Call[Any]) -> Mapping[str, str]:
    if call.body is not None:
        return {"Content-Type": "application/json"}
    return {} if call.lines is None else {"Content-Type": "application/jsonl"}


def _text(value: Any) -> Any:  # noqa: ANN401 - what a query holds
    return str(value).lower() if isinstance(value, bool) else value


# What a server says of an error becomes the error that the library raises for the same fault.


_PREFIX = "urn:recollect:problem:"

#: The error of each problem, by what its ``type`` ends in. Those that are told without a reason are not among them.
ERRORS: Mapping[str, type[errors.RecollectError]] = {
    "unauthenticated": errors.AuthenticationError,
    "personal-data": errors.PersonalDataError,
    "configuration": errors.ConfigurationError,
    "idempotency-key-reused": errors.IdempotencyKeyReusedError,
    "bad-request": errors.UsageError,
    "not-valid": errors.UsageError,
    "too-large": errors.UsageError,
    "no-such-range": errors.UsageError,
    "session-expired": errors.SessionExpiredError,
    "not-found": errors.NotFoundError,
    "forbidden": errors.PermissionDeniedError,
    "foreign-origin": errors.PermissionDeniedError,
    "session-full": errors.SessionFullError,
    "model-changed": errors.ModelChangedError,
    "version-changed": errors.VersionChangedError,
    "under-way": errors.RequestUnderWayError,
    "conflict": errors.ConflictError,
    "tenant-suspended": errors.TenantSuspendedError,
    "quota-exceeded": errors.QuotaExceededError,
    "rate-limited": errors.RateLimitedError,
    "unreadable": errors.ParseError,
    "address-refused": errors.AddressRefusedError,
    "fetch-failed": errors.FetchError,
    "issuer-unavailable": errors.IssuerUnavailableError,
    "issuer-failed": errors.IssuerError,
    "source-failed": errors.SourceError,
    "store-unavailable": errors.StoreUnavailableError,
    "store-failed": errors.StoreError,
    "model-failed": errors.ProviderError,
    "model-rate-limited": errors.ProviderError,
    "plugin-failed": errors.PluginError,
}


# Problems that HTTP itself has, by their status.
_BY_STATUS: Mapping[int, type[errors.RecollectError]] = {
    400: errors.UsageError,
    401: errors.AuthenticationError,
    403: errors.PermissionDeniedError,
    409: errors.ConflictError,
    411: errors.UsageError,
    412: errors.VersionChangedError,
    413: errors.UsageError,
    415: errors.UsageError,
    422: errors.UsageError,
}


# What errors say beside their message where a server tells nothing of it.
_ATTRIBUTES: Mapping[type[errors.RecollectError], Mapping[str, Any]] = {
    errors.AuthenticationError: {"missing": False},
    errors.PersonalDataError: {"kinds": ()},
    errors.QuotaExceededError: {"quota": None, "limit": None, "used": None, "name": None},
    errors.RateLimitedError: {"retry_after_seconds": 1.0},
    errors.ParseError: {"path": "", "reason": ""},
    errors.FetchError: {"url": "", "reason": "", "status": None, "retryable": False, "retry_after_seconds": None},
    errors.SourceError: {"location": "", "reason": "", "retryable": False},
    errors.ProviderError: {
        "provider": "server",
        "model": None,
        "status": None,
        "retryable": False,
        "kind": None,
        "retry_after_seconds": None,
    },
}


def error_of(problem: Mapping[str, Any], *, url: str, status: int) -> errors.RecollectError:
    """The error that a problem tells.

    Args:
        problem: As the server sent it.
        url: Of the server.
        status: Of the reply.
    """
    name = str(problem.get("type", "")).removeprefix(_PREFIX)
    message = str(problem.get("detail") or problem.get("title") or f"The server replied with the status {status}.")
    kind = ERRORS.get(name) or (None if name in {"failed", "internal"} else _BY_STATUS.get(status))
    error = errors.ServerError(message, url=url, status=status) if kind is None else _made(kind, message, problem)
    request_id = problem.get("request_id")
    error.request_id = request_id if isinstance(request_id, str) and request_id else None
    return error


def error_of_kind(kind: type[errors.RecollectError], message: str, **attributes: object) -> errors.RecollectError:
    """An error with a message that was written elsewhere, and what is known of its attributes."""
    return _made(kind, message, attributes)


def _made(kind: type[errors.RecollectError], message: str, problem: Mapping[str, Any]) -> errors.RecollectError:
    # Not by their constructors, which write a message: the server has written it.
    error = kind.__new__(kind)
    Exception.__init__(error, message)
    known = next((known for one, known in _ATTRIBUTES.items() if issubclass(kind, one)), {})
    for name, otherwise in known.items():
        told = problem.get(name)
        value = otherwise if told is None or name == "status" else told
        setattr(error, name, tuple(value) if isinstance(otherwise, tuple) else value)
    return error


def headers_of(url: str, key: str | None, *, allow_insecure: bool) -> tuple[str, dict[str, str]]:
    """The address of a server, and what every request to it says.

    Raises:
        UsageError: The address or the key is none, or the key would go over plain HTTP to another machine.
    """
    key = checked_key(key)
    headers = {"Accept": "application/json", "Accept-Encoding": "gzip", "User-Agent": "recollect"}
    if key is not None:
        headers["Authorization"] = f"Bearer {key}"
    return checked_address(url, key=key, allow_insecure=allow_insecure), headers


def opened_settings(*, timeout_seconds: float, retries: int) -> Settings:
    """How requests are made.

    Raises:
        UsageError: A number is out of range.
    """
    return refined_settings(Settings(), timeout_seconds=timeout_seconds, retries=retries)


def refined_settings(settings: Settings, **given: Any) -> Settings:  # noqa: ANN401 - of each its own
    """Settings with what is given.

    Raises:
        UsageError: A number is out of range.
    """
    refined = replace(settings, **{name: value for name, value in given.items() if value is not UNCHANGED})
    if not 0 < refined.timeout_seconds <= 86_400:
        raise UsageError(f"timeout_seconds must be more than 0 and at most a day, not {refined.timeout_seconds!r}.")
    if not 0 <= refined.retries <= 100:
        raise UsageError(f"retries must be 0 to 100, not {refined.retries!r}.")
    return refined


def checked_address(url: str, *, key: str | None, allow_insecure: bool) -> str:
    """The address without what is not needed of it.

    Raises:
        UsageError: It is none, or a key would go there for everybody on the way to read.
    """
    try:
        parts = urlsplit(url.strip())
        host, _ = parts.hostname, parts.port
    except ValueError as exc:
        raise UsageError(
            f"{_shown(url)!r} is no address of a server: give one such as https://knowledge.example.org."
        ) from exc
    if parts.scheme not in {"http", "https"} or not host:
        raise _no_address(url)
    if parts.username is not None or parts.password is not None:
        raise UsageError("The address of a server holds no credentials: give the key as key.")
    if parts.query or parts.fragment:
        raise UsageError(f"{_shown(url)!r}: the address of a server has neither ? nor #.")
    if key is not None and parts.scheme == "http" and not is_loopback(host) and not allow_insecure:
        raise UsageError(
            f"A key is not sent to {host!r} over plain HTTP, where everybody on the way can read it: use https, or say "
            "allow_insecure where the way is safe."
        )
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def checked_key(key: str | None) -> str | None:
    """A key as a header takes it.

    Raises:
        UsageError: It is none that a header takes; the message repeats nothing of it.
    """
    if key is None:
        return None
    text = key.strip()
    if not text or not text.isascii() or not text.isprintable() or " " in text:
        raise UsageError("The key is none: it is one word, as recollect keys create prints it.")
    return text


def _no_address(url: str) -> UsageError:
    return UsageError(f"{_shown(url)!r} is no address of a server: give one such as https://knowledge.example.org.")


def _shown(url: str) -> str:
    # A password may stand before an @.
    return url.strip().rpartition("@")[2][:200]
