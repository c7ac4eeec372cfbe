"""The public keys that an issuer of tokens publishes (JWKS): fetched when a token needs one, and kept for a while."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from recollect.errors import AuthenticationError, FetchError, IssuerError, IssuerUnavailableError
from recollect.fetching.guard import Guard, host_rules
from recollect.fetching.urls import parse_url

if TYPE_CHECKING:
    from jwt import PyJWK

    from recollect.config.server import JwtConfig
    from recollect.fetching.client import Fetcher

#: What a published key may sign with, by its kind. A shared secret (``oct``) is none that anybody publishes.
_ALGORITHMS = {("RSA", None): "RS256", ("EC", "P-256"): "ES256"}

#: So long the keys are not fetched again, whatever tokens name: neither a flood of unknown keys nor an issuer that does
#: not answer makes more requests.
RETRY_SECONDS = 10.0

#: Keys that cannot be fetched anew are used for so long; then no token is taken.
STALE_SECONDS = 3600.0

_MOST_BYTES = 256 * 1024
_TIMEOUT_SECONDS = 5.0


class PublishedKeys:
    """An issuer's keys by their id. Safe to share between threads; one of them fetches at a time.

    Args:
        url: Where they are.
        fetcher: Asks for them.
        cache_seconds: How long they are used before they are fetched anew. A token with a key that is not among them
            has them fetched at once, so that a rotation needs no wait.
        clock: Seconds that never run backwards.
    """

    def __init__(
        self, url: str, fetcher: Fetcher, *, cache_seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._url = url
        self._fetcher = fetcher
        self._cache_seconds = cache_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._keys: dict[str | None, list[PyJWK]] = {}
        self._fetched_at = self._tried_at = float("-inf")
        self._failed: FetchError | None = None

    def of(self, header: Mapping[str, Any]) -> PyJWK:
        """The key that a token's header names; of one that names none, the only one there is.

        Args:
            header: Not verified yet.

        Raises:
            AuthenticationError: There is none.
            IssuerUnavailableError: The keys cannot be fetched now, and are not known from before.
            IssuerError: There are none where they should be.
        """
        key_id = header.get("kid")
        if key_id is not None and not isinstance(key_id, str):
            raise AuthenticationError("The token's key has no name that is text.")
        self._renew(key_id)
        fitting = [key for key in self._keys.get(key_id, ()) if key.algorithm_name == header.get("alg")]
        if key_id is None:
            every = [key for keys in self._keys.values() for key in keys]
            fitting = [key for key in every if key.algorithm_name == header.get("alg")]
        if len(fitting) != 1:
            raise AuthenticationError("The token is not signed with a key that its issuer publishes.")
        return fitting[0]

    def _renew(self, key_id: str | None) -> None:
        """Fetch the keys where they are old, or do not hold the one that is looked for."""
        fresh = self._clock() - self._fetched_at < self._cache_seconds
        if fresh and (key_id is None or key_id in self._keys):
            return
        # Whoever can go on with what is known does not wait for whoever fetches.
        if not self._lock.acquire(blocking=self._is_too_old() or not fresh or key_id not in self._keys):
            return
        try:
            if self._clock() - self._tried_at < RETRY_SECONDS:
                self._require_known()
                return
            self._tried_at = self._clock()
            try:
                fetched = self._fetcher.fetch(_request(self._url), max_bytes=_MOST_BYTES)
                if self._url.startswith("https:") and fetched.url.scheme != "https":
                    raise FetchError(self._url, "redirects to a connection that anybody could change")
                self._keys = _read(fetched.body, self._url)
                self._fetched_at, self._failed = self._clock(), None
            except FetchError as exc:
                self._failed = exc
                self._require_known()
        finally:
            self._lock.release()

    def _is_too_old(self) -> bool:
        return self._clock() - self._fetched_at > max(STALE_SECONDS, self._cache_seconds)

    def _require_known(self) -> None:
        if not self._is_too_old():
            return
        failed = self._failed
        if failed is None or failed.retryable:
            wait = max(RETRY_SECONDS - (self._clock() - self._tried_at), 1.0)
            reason = "the keys that tokens are verified with cannot be fetched now"
            raise IssuerUnavailableError(self._url, reason, retry_after_seconds=wait)
        raise IssuerError(self._url, f"the keys that tokens are verified with cannot be fetched: {failed.reason}")


def published_keys(config: JwtConfig) -> PublishedKeys:
    """The keys of the configured issuer, which no other host is asked for.

    Raises:
        UsageError: A host is none.
        FetchError: The URL is none.
    """
    from recollect.fetching.client import Fetcher

    assert config.jwks_url is not None
    named = config.jwks_allowed_hosts
    hosts = named or (parse_url(config.jwks_url).authority,)
    guard = Guard(
        allow_private_addresses=bool(named), allowed_hosts=host_rules(hosts, name="rag.server.jwt.jwks_allowed_hosts")
    )
    fetcher = Fetcher(guard, max_bytes=_MOST_BYTES, timeout_seconds=_TIMEOUT_SECONDS)
    return PublishedKeys(config.jwks_url, fetcher, cache_seconds=config.jwks_cache_seconds)


def _request(url: str) -> Any:  # noqa: ANN401 - a PageRequest, whose module is imported when tokens are verified so
    from recollect.fetching.client import PageRequest

    return PageRequest(url=url, headers={"Accept": "application/jwk-set+json, application/json"})


def _read(body: bytes, url: str) -> dict[str | None, list[PyJWK]]:
    """The keys for signatures that this understands; others may stand beside them."""
    try:
        found = json.loads(body)["keys"]
        entries = [entry for entry in found if isinstance(entry, dict)]
    except (ValueError, RecursionError, KeyError, TypeError) as exc:
        raise FetchError(url, "is no set of keys (JWKS)") from exc
    keys: dict[str | None, list[PyJWK]] = {}
    for entry in entries:
        key = _key(entry)
        if key is not None:
            keys.setdefault(entry.get("kid"), []).append(key)
    if not keys:
        raise FetchError(url, "publishes no key for RS256 or ES256")
    return keys


def _key(entry: dict[str, Any]) -> PyJWK | None:
    from jwt import PyJWK, PyJWTError

    kind, curve = entry.get("kty"), entry.get("crv")
    algorithm = _ALGORITHMS.get((kind, curve)) if isinstance(kind, str) and isinstance(curve, str | None) else None
    if algorithm is None or entry.get("use", "sig") != "sig" or entry.get("alg", algorithm) != algorithm:
        return None
    if not isinstance(entry.get("kid"), str | None):
        return None
    try:
        # Whoever publishes a private key has published nothing that proves anything.
        return None if "d" in entry else PyJWK(entry, algorithm)
    except (PyJWTError, ValueError, TypeError):
        return None
