"""How a provider is reached: address, key, patience, what HTTP clients need, and what the errors of SDKs mean."""

from __future__ import annotations

import contextlib
import email.utils
import json
import logging
import math
import os
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal, NoReturn, TypeAlias
from urllib.parse import urlsplit

from recollect.errors import ConfigurationError, ProviderError, UsageError
from recollect.privacy.credentials import without_secrets

DEFAULT_TIMEOUT_SECONDS = 60.0


class Secret:
    """A key that shows itself to nobody who does not ask by name.

    Unlike pydantic's ``SecretStr`` it cannot be pickled: a dump of an object that holds one would hold the key.

    Example:
        >>> Secret("sk-1")
        Secret('***')
    """

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def __repr__(self) -> str:
        return "Secret('***')"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __reduce__(self) -> NoReturn:
        raise UsageError("A key is not written out: make the model anew where it is needed.")

    def __deepcopy__(self, memo: object) -> Secret:
        return self

    def get_secret_value(self) -> str:
        """The key itself."""
        return self._value


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """How a provider is reached.

    Attributes:
        api_key: None: the provider's variable in the environment, for its own address only.
        base_url: Another address than the provider's own.
        region: Of a cloud that has several.
        timeout_seconds: The longest wait for an answer, or for the next piece of a stream.
        max_retries: How often a request that may succeed later is repeated.
        backoff_seconds: The pause before the first repetition; it doubles with each, with jitter.
        max_backoff_seconds: The longest pause. A provider that asks for a longer one is not asked again.
        parallel: Requests of one call that are under way at once.
        batch_size: Texts of a request at most; None: the provider's limit.
        batch_tokens: Tokens of a request at most, estimated; None: the provider's limit.
        breaker_failures: After so many failures in a row requests are refused at once for a while.
        breaker_seconds: How long.
        input_price: Of a million tokens that are sent, in any currency; None: unknown.
        output_price: Of a million tokens that are written.
        search_price: Of a thousand searches, of providers that bill reranking by them.

    Raises:
        ConfigurationError: A value is out of range.
    """

    api_key: Secret | None = None
    base_url: str | None = None
    region: str | None = None
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    max_retries: int = 3
    backoff_seconds: float = 0.5
    max_backoff_seconds: float = 30.0
    parallel: int = 4
    batch_size: int | None = None
    batch_tokens: int | None = None
    breaker_failures: int = 8
    breaker_seconds: float = 30.0
    input_price: float | None = None
    output_price: float | None = None
    search_price: float | None = None

    def __post_init__(self) -> None:
        for name in ("timeout_seconds", "backoff_seconds", "max_backoff_seconds", "breaker_seconds"):
            if not getattr(self, name) > 0:
                raise ConfigurationError(f"{name} must be above 0, not {getattr(self, name)!r}.")
        for name, least in (("max_retries", 0), ("parallel", 1), ("breaker_failures", 1)):
            if getattr(self, name) < least:
                raise ConfigurationError(f"{name} must be {least} or more, not {getattr(self, name)!r}.")
        for name in ("batch_size", "batch_tokens"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigurationError(f"{name} must be 1 or more, not {value!r}.")
        if self.base_url is not None and urlsplit(self.base_url).scheme not in {"http", "https"}:
            raise ConfigurationError(f"base_url must begin with http:// or https://, not {self.shown_url!r}.")

    @property
    def key(self) -> str | None:
        """The key itself, for an SDK."""
        return None if self.api_key is None else self.api_key.get_secret_value()

    @property
    def shown_url(self) -> str | None:
        """The address without what may be secret in it: user, password, query."""
        if self.base_url is None:
            return None
        parts = urlsplit(self.base_url)
        return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()

    def cleaned(self, text: str) -> str:
        """The text with the key, the address's password, its query, and everything that looks like a key masked."""
        for secret in self._secrets():
            text = text.replace(secret, "***")
        return without_secrets(text)

    def _secrets(self) -> list[str]:
        found = [self.key or ""]
        if self.base_url is not None:
            parts = urlsplit(self.base_url)
            found += [parts.password or "", parts.query]
        # What is short would mask ordinary words.
        return sorted({secret for secret in found if len(secret) >= _SHORTEST_SECRET}, key=len, reverse=True)

    def __repr__(self) -> str:
        return f"Connection(base_url={self.shown_url!r}, api_key={'***' if self.api_key else None})"


_SHORTEST_SECRET = 4


# What providers' files need of HTTP clients: closing them, one TLS context for all, keys kept out of SDKs' logs.


def close_client(backend: object) -> None:
    """Close the SDK's client that a backend keeps as ``_client``, if there is one; the next request makes another."""
    client = vars(backend).pop("_client", None)
    with contextlib.suppress(Exception):
        if hasattr(client, "close"):
            client.close()
        elif client is not None:  # Cohere's closes as a context only
            client.__exit__(None, None, None)


@cache
def tls_context() -> ssl.SSLContext:
    """What clients verify servers by: reading the certificates takes longer than all else that makes a client."""
    if os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR"):
        return ssl.create_default_context()
    import certifi

    return ssl.create_default_context(cafile=certifi.where())


class _Masking(logging.Filter):
    """Masks the keys of connections in whatever a logger is given."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._connections: dict[object, Connection] = {}

    def add(self, connection: Connection) -> None:
        with self._lock:
            self._connections[connection.api_key, connection.base_url] = connection

    def filter(self, record: logging.LogRecord) -> bool:
        with self._lock:
            connections = list(self._connections.values())
        message = record.getMessage()
        for connection in connections:
            message = connection.cleaned(message)
        record.msg, record.args = message, None
        return True


@cache
def _masking(logger: str) -> _Masking:
    masking = _Masking()
    logging.getLogger(logger).addFilter(masking)
    return masking


def mask_in_logs(logger: str, connection: Connection) -> None:
    """Keep a connection's secrets out of an SDK's own log, where a server's message may repeat them.

    Args:
        logger: The name of the logger that the SDK writes to: filters do not hold for those below it.
        connection: Whose secrets.
    """
    _masking(logger).add(connection)


# What an SDK raises, as one of a few kinds of failure; nothing of the SDK's own exception is kept.
#
# An SDK's exception can hold the request with its headers, and so the key. It is therefore read here and dropped: it
# is no cause, no context and no local variable of the error that callers see.


FaultKind: TypeAlias = Literal[
    "authentication",
    "content_filter",
    "empty",
    "incomplete",
    "invalid_request",
    "malformed",
    "not_found",
    "rate_limit",
    "refused",
    "server",
    "timeout",
    "unknown",
    "unreachable",
]

_RETRYABLE_STATUSES = frozenset({408, 409, 425, 429})
_LONGEST_DETAIL = 500
# Jobs and clients wait that long at most, whatever a server asks for.
_LONGEST_PAUSE_SECONDS = 86_400.0
# What HTTP libraries and SDKs call the failures of a connection; each has its own classes.
_CONNECTION_WORDS: tuple[str, ...] = (
    "ConnectionError",
    "ConnectError",
    "TransportError",
    "ProtocolError",
    "IncompleteRead",
)


_CONNECTION_WORDS += ("ClientPayloadError", "ChunkedEncodingError", "StreamError", "ClientConnectionError")


class Fault(Exception):  # noqa: N818 - it is translated before anybody outside this package sees it
    """A failure of a request, before it is put into words.

    Args:
        kind: Which.
        detail: In a few words, what was seen: of the server's message, or of the reply.
        retryable: Whether the same request may succeed later.
        status: The HTTP status, where there was one.
        retry_after_seconds: After how long the server wants to be asked again.
    """

    def __init__(
        self,
        kind: FaultKind,
        detail: str = "",
        *,
        retryable: bool = False,
        status: int | None = None,
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(kind, detail)
        self.kind: FaultKind = kind
        self.detail = detail
        self.retryable = retryable
        self.status = status
        self.retry_after_seconds = retry_after_seconds

    def in_the_stream(self) -> Fault:
        """The same, of a stream that had begun: what its error's name would have been as a status was none."""
        self.status = None
        return self

    @property
    def of_the_server(self) -> bool:
        """Whether it says that the server is broken or gone, rather than that this request is wrong."""
        return self.kind in {"server", "timeout", "unreachable"}


def status_fault(status: int, detail: str, headers: Mapping[str, str] | None = None) -> Fault:
    """The fault that an HTTP status tells of.

    Args:
        status: 400 or more.
        detail: The server's message.
        headers: Of the response.
    """
    kinds: dict[int, FaultKind] = {401: "authentication", 403: "authentication", 404: "not_found", 429: "rate_limit"}
    kind: FaultKind = kinds.get(status, "server" if status >= 500 else "invalid_request")
    retryable = status in _RETRYABLE_STATUSES or status >= 500
    return Fault(
        kind,
        detail,
        retryable=retryable,
        status=status,
        retry_after_seconds=retry_after(headers or {}) if retryable else None,
    )


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that a response asks to wait: ``Retry-After`` as seconds or as a date, or ``retry-after-ms``."""
    given = {str(name).lower(): str(value).strip() for name, value in headers.items()}
    milliseconds = _number(given.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    text = given.get("retry-after")
    seconds = _number(text)
    if seconds is not None or text is None:
        return seconds
    try:
        pause = email.utils.parsedate_to_datetime(text).timestamp() - time.time()
    except (TypeError, ValueError, OverflowError):
        return None
    return min(max(0.0, pause), _LONGEST_PAUSE_SECONDS)


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return min(number, _LONGEST_PAUSE_SECONDS) if math.isfinite(number) and number >= 0 else None


def fault_of(exc: BaseException) -> Fault:
    """What any exception of a request means, whichever SDK raised it: SDKs differ in names, not in shape."""
    chain = list(_chain(exc))
    for one in chain:
        if isinstance(one, Fault):
            return one
    for one in chain:
        status = _status(one)
        if status is not None and status >= 400:
            return status_fault(status, _message(one), next(filter(None, map(_headers, chain)), None))
    if any(isinstance(one, ConnectionError) for one in chain):  # whatever an HTTP library has made of it
        return Fault("unreachable", _message(chain[-1]), retryable=True)
    if any(isinstance(one, TimeoutError) or _named(one, ("Timeout",)) for one in chain):
        return Fault("timeout", retryable=True)
    if any(_named(one, _CONNECTION_WORDS) for one in chain):
        return Fault("unreachable", _message(chain[-1]), retryable=True)
    decoding = next((one for one in chain if isinstance(one, json.JSONDecodeError)), None)
    if decoding is not None:
        # A page comes again, what was cut on its way may come whole.
        page = str(decoding.doc).lstrip().startswith("<")
        return Fault("malformed", "it sent a page" if page else "what it sent is no JSON", retryable=not page)
    if isinstance(exc, ValueError | TypeError | KeyError | AttributeError | IndexError):
        # These say where code of the SDK or of ours failed: the log at debug level has it.
        return Fault("malformed", "what it sent lacks a field, or has a value of another type")
    return Fault("unknown", _message(exc) or type(exc).__name__)


def _chain(exc: BaseException | None) -> Iterator[BaseException]:
    """An exception and what led to it, outermost first."""
    seen: set[int] = set()
    while exc is not None and id(exc) not in seen:
        seen.add(id(exc))
        yield exc
        exc = exc.__cause__ or exc.__context__


def _named(exc: BaseException, words: tuple[str, ...]) -> bool:
    return any(word in base.__name__ for base in type(exc).__mro__ for word in words)


def _status(exc: BaseException) -> int | None:
    """The HTTP status that an exception carries: each SDK has its own place for it."""
    response = getattr(exc, "response", None)
    if isinstance(response, dict):  # botocore
        return _whole(response.get("ResponseMetadata", {}).get("HTTPStatusCode"))
    for owner, name in ((exc, "status_code"), (exc, "http_status"), (response, "status_code"), (exc, "code")):
        status = _whole(getattr(owner, name, None))
        if status is not None:
            return status
    return None


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 100 <= value < 600 else None


def _headers(exc: BaseException) -> Mapping[str, str]:
    response = getattr(exc, "response", None)
    if isinstance(response, dict):
        found = response.get("ResponseMetadata", {}).get("HTTPHeaders")
    else:
        found = getattr(response, "headers", None) or getattr(exc, "headers", None)
    return found if isinstance(found, Mapping) else {}


def _message(exc: BaseException) -> str:
    text = getattr(exc, "message", None)
    return " ".join(str(text if isinstance(text, str) and text else exc).split())


def provider_error(fault: Fault, *, provider: str, model: str, connection: Connection) -> ProviderError:
    """The fault in words for the person who reads them, with every secret masked."""
    address = connection.shown_url or f"{provider}'s service"
    advice = _ADVICE.get(fault.kind, "").format(
        address=address, model=model, seconds=f"{connection.timeout_seconds:g}", wait=_pause(fault)
    )
    where = f"HTTP {fault.status}: " if fault.status is not None else ""
    # Masked before it is cut, or half a key could be left.
    detail = connection.cleaned(fault.detail)
    detail = detail if len(detail) <= _LONGEST_DETAIL else f"{detail[:_LONGEST_DETAIL]}…"
    said = f". {detail}" if advice and detail else detail
    return ProviderError(
        connection.cleaned(f"{provider} ({model}): {where}{advice}{said}"),
        provider=provider,
        model=model,
        status=fault.status,
        retryable=fault.retryable,
        kind=fault.kind,
        retry_after_seconds=fault.retry_after_seconds,
    )


def _pause(fault: Fault) -> str:
    return f"{math.ceil(fault.retry_after_seconds or 0)} s"


_ADVICE: dict[FaultKind, str] = {
    "authentication": "check the API key and what it may use",
    "content_filter": "the provider's content filter stopped the answer; rephrase the question",
    "incomplete": "the stream ended before the answer was complete; ask again",
    "invalid_request": "the server refused the request",
    "malformed": "{address} did not answer as such an endpoint does; check the base URL, and that {model!r} is a model "
    "for this",
    "not_found": "check the model name {model!r} and the base URL {address!r}",
    "rate_limit": "the rate limit or quota is used up; wait, or check the plan",
    "refused": "{address} failed too often in a row and is left alone for {wait}; check that it works",
    "server": "the server failed; try again later",
    "timeout": "no answer from {address} within {seconds} s; raise the timeout or try a smaller model",
    "unknown": "the request failed",
    "unreachable": "cannot reach {address}, or the connection broke; check the address and that the server runs",
}
