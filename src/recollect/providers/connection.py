"""How a provider is reached: address, key, patience, and what HTTP clients need."""

from __future__ import annotations

import contextlib
import logging
import os
import ssl
import threading
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import urlsplit

from recollect.errors import ConfigurationError, UsageError
from recollect.privacy.credentials import without_secrets

if TYPE_CHECKING:
    pass


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
