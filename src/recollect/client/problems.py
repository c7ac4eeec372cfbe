"""What a server says of an error becomes the error that the library raises for the same fault."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recollect import errors

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
