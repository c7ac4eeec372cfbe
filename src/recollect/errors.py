"""Every error that recollect raises.

::

    RecollectError
    ├── UsageError            the caller must change something
    │   ├── OutOfBoundsError            a number or text is too small, too large or too long
    │   ├── IdempotencyKeyReusedError   something else was asked with it
    │   ├── PluginError             a chunker, reranker, … of the caller's own failed
    │   └── ConfigurationError
    ├── NotFoundError         a collection, document or file that does not exist
    │   └── SessionExpiredError     a session whose time is over
    ├── AuthenticationError   nobody is known by what was presented
    ├── PermissionDeniedError the caller may see it, but not change it
    ├── ConflictError         what should be created exists already
    │   ├── SessionFullError        a session has no room for another document
    │   ├── ModelChangedError       a collection's embedding model was changed meanwhile
    │   ├── VersionChangedError     a document is not at the version any more that was to be changed
    │   └── RequestUnderWayError    the same request is being answered already
    ├── TenantSuspendedError  the tenant can neither be searched nor written to
    ├── QuotaExceededError    a tenant may not store that much (quota, limit, used)
    ├── RateLimitedError      too much was asked for in too short a time (retry_after_seconds)
    ├── ParseError            a file that cannot be read (path, reason)
    ├── FetchError            a page that cannot be fetched (url, reason, status, retryable)
    │   └── AddressRefusedError     its address is not one that may be contacted
    ├── SourceError           a bucket, repository or the like that cannot be listed or read (location, retryable)
    ├── ServerError           a server that does not reply as one of recollect does (url, status)
    │   ├── ServerUnavailableError  it cannot be reached, or did not reply
    │   └── StreamBrokenError       events broke off, and cannot be gone on with (received)
    ├── StoreError            the database
    │   ├── StoreUnavailableError   it cannot be started or reached
    │   ├── SchemaVersionError      it was written by a newer recollect, or before the first release
    │   ├── StoreCorruptError       it is inconsistent
    │   └── IsolationError          it has several tenants, and the database does not keep them apart
    └── ProviderError         an embedding, reranking or language model
        └── ModelUnavailableError   its weights cannot be fetched or loaded

Messages are written for the person who reads them: what happened, and what to do about it.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence


class RecollectError(Exception):
    """The root of every error raised on purpose by recollect.

    Attributes:
        request_id: Of an error that a server told (`recollect.Client`): its log has more under this id. None: no server
            told it.
    """

    request_id: str | None = None


class UsageError(RecollectError):
    """An argument or option is wrong; the message names it and says what is allowed."""


class OutOfBoundsError(UsageError):
    """A number or the length of a text lies outside its bounds; the message names it and says what is allowed."""


class PersonalDataError(UsageError):
    """What should be stored holds personal data, and the tenant's policy refuses that; nothing of it was stored.

    Attributes:
        kinds: What was found, for instance ``email``; never what it says.
    """

    def __init__(self, message: str, *, kinds: tuple[str, ...]) -> None:
        super().__init__(message)
        self.kinds = kinds


class ConfigurationError(UsageError):
    """A setting is unknown or invalid."""


class PluginError(UsageError):
    """A chunker, reranker, retriever or connector that is not recollect's own failed, or gave what makes no sense."""


class IdempotencyKeyReusedError(UsageError):
    """An idempotency key was used for another request before."""


class NotFoundError(RecollectError):
    """What was named does not exist in the caller's scope."""


class SessionExpiredError(NotFoundError):
    """The time of a session is over: it can be neither searched nor written."""


class AuthenticationError(RecollectError):
    """A credential is missing, is none, or is not taken any more; the message repeats nothing of it.

    Attributes:
        missing: Whether none was presented.
    """

    def __init__(self, message: str, *, missing: bool = False) -> None:
        super().__init__(message)
        self.missing = missing


class PermissionDeniedError(RecollectError):
    """The caller may see what was named, but not change it; what they may not see is a `NotFoundError`."""


class ConflictError(RecollectError):
    """What should be created exists already."""


class SessionFullError(ConflictError):
    """A session has no room for another document."""


class ModelChangedError(ConflictError):
    """A collection's embedding model was changed while something was computed with the one before."""


class VersionChangedError(ConflictError):
    """A document was to be changed as of one version, and is at another by now, or is deleted; nothing was changed."""


class RequestUnderWayError(ConflictError):
    """A request with the same idempotency key is being answered; ask again in a moment for its reply."""


class TenantSuspendedError(RecollectError):
    """The tenant can neither be searched nor written to until it is resumed."""


class QuotaExceededError(RecollectError):
    """What should be stored is more than the tenant may have; nothing of that batch was stored.

    Attributes:
        quota: ``documents``, ``chunks`` or ``bytes``.
        limit: How many of them are allowed.
        used: How many there would have been.
        name: Of the tenant.
    """

    def __init__(self, *, quota: str, limit: int, used: int, name: str) -> None:
        super().__init__(
            f"The tenant {name!r} may have {limit:,} {quota}; with these it would have {used:,}. Delete some, or raise "
            f"the quota: recollect tenants set-quota {shlex.quote(name)} --max-{quota} {used}"
        )
        self.quota = quota
        self.limit = limit
        self.used = used
        self.name = name


class RateLimitedError(RecollectError):
    """Too much was asked for in too short a time; nothing of it was done.

    Attributes:
        retry_after_seconds: After how long the same request may be taken.
    """

    def __init__(self, message: str, *, retry_after_seconds: float) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class ParseError(RecollectError):
    """A file cannot be read as a document.

    Attributes:
        path: The file, as the caller named it.
        reason: Why, in words for a person.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class FetchError(RecollectError):
    """A page cannot be fetched, or is none that can be read.

    Attributes:
        url: As it was asked for, without credentials.
        reason: Why, in words for a person.
        status: The HTTP status, where there was one.
        retryable: Whether the same request may succeed later.
        retry_after_seconds: After how long the server wants to be asked again, where it says so.
    """

    def __init__(
        self,
        url: str,
        reason: str,
        *,
        status: int | None = None,
        retryable: bool = False,
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(f"{url}: {reason}")
        self.url = url
        self.reason = reason
        self.status = status
        self.retryable = retryable
        self.retry_after_seconds = retry_after_seconds

    @property
    def gone(self) -> bool:
        """Whether the server says that there is no such page (any more)."""
        return self.status in {404, 410}


class AddressRefusedError(FetchError):
    """What would be contacted is not the web: a private network, this machine, a cloud's metadata, another service."""


class IssuerError(FetchError):
    """The issuer that vouches for users does not answer as it has to; whoever runs the server has to look into it."""


class IssuerUnavailableError(IssuerError):
    """The issuer that vouches for users cannot be asked now: nobody is let in on its word, and nobody called wrong."""

    def __init__(self, url: str, reason: str, *, retry_after_seconds: float | None = None) -> None:
        super().__init__(url, reason, retryable=True, retry_after_seconds=retry_after_seconds)


class SourceError(RecollectError):
    """A source of documents outside cannot be listed or read; what was stored of it stays as it is.

    Attributes:
        location: Which.
        reason: Why, in words for a person.
        retryable: Whether it may succeed later, without anybody changing anything.
    """

    def __init__(self, location: str, reason: str, *, retryable: bool) -> None:
        super().__init__(f"The source {location!r} cannot be read: {reason}.")
        self.location = location
        self.reason = reason
        self.retryable = retryable


class ServerError(RecollectError):
    """A server replied with what is no reply of recollect's, or failed without a reason that concerns the caller.

    Attributes:
        url: Of the server.
        status: The HTTP status, where there was one.
    """

    def __init__(self, message: str, *, url: str, status: int | None = None) -> None:
        super().__init__(message)
        self.url = url
        self.status = status


class ServerUnavailableError(ServerError):
    """A server cannot be reached, or its reply did not come."""


class StreamBrokenError(ServerError):
    """A stream of events broke off, and what is missing of it cannot be had any more.

    Attributes:
        received: What came before: the pieces of an answer, for instance, in their order.
    """

    def __init__(self, message: str, *, url: str, received: Sequence[object] = ()) -> None:
        super().__init__(message, url=url)
        self.received = tuple(received)


class StoreError(RecollectError):
    """The database refused or failed an operation."""


class StoreUnavailableError(StoreError):
    """The database cannot be started or reached; the message says which and what to do."""


class StoreFullError(StoreUnavailableError):
    """There is no room left on the store's disk. What was acknowledged is safe."""


class SchemaVersionError(StoreError):
    """The store's schema is newer than this version of recollect knows, or from before the first release."""


class StoreCorruptError(StoreError):
    """The store's contents contradict each other."""


class IsolationError(StoreError):
    """The database does not keep tenants apart, and there are several, or would be."""


class ProviderError(RecollectError):
    """An embedding, reranking or language model failed.

    Attributes:
        provider: For instance ``"openai"`` or ``"local"``.
        model: The model that was asked.
        status: The HTTP status, where there was one.
        retryable: Whether the same call may succeed later.
        kind: What went wrong, in a word for counting: ``"rate_limit"``, ``"timeout"``, …; None where nothing says.
        retry_after_seconds: After how long the provider wants to be asked again, where it says so.
    """

    def __init__(
        self,
        message: str,
        *,
        provider: str,
        model: str | None = None,
        status: int | None = None,
        retryable: bool = False,
        kind: str | None = None,
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(message)
        self.provider = provider
        self.model = model
        self.status = status
        self.retryable = retryable
        self.kind = kind
        self.retry_after_seconds = retry_after_seconds


class ModelUnavailableError(ProviderError):
    """A model's weights cannot be fetched, verified or loaded."""
