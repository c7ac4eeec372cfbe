"""Errors as HTTP tells them: one shape, ``application/problem+json`` (RFC 9457), whatever went wrong."""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from traceback import clear_frames
from typing import Any, NotRequired, TypeAlias

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import TypeAdapter
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response
from starlette.routing import Match
from typing_extensions import TypedDict

from recollect import errors
from recollect.familiar_names import meant_argument
from recollect.server.request_context import current_request_id

logger = logging.getLogger(__name__)

_Handler: TypeAlias = Callable[[Request, Exception], Awaitable[Response]]

MEDIA_TYPE = "application/problem+json"

# What is told of errors whose words are for whoever runs the server: they name paths, addresses and providers.
_WITHHELD = "The server cannot do this at the moment. Whoever runs it finds the reason in its log, by the request id."


class FieldProblem(TypedDict):
    """What is wrong with one part of a request."""

    location: list[str | int]
    message: str


class Problem(TypedDict):
    """What went wrong; ``type`` is for programs, ``detail`` for people."""

    type: str
    title: str
    status: int
    detail: str
    request_id: str
    errors: NotRequired[list[FieldProblem]]
    retry_after_seconds: NotRequired[float]
    retryable: NotRequired[bool]
    quota: NotRequired[str]
    limit: NotRequired[int]
    used: NotRequired[int]
    kinds: NotRequired[list[str]]
    error: NotRequired[dict[str, str | None]]


@dataclass(frozen=True, slots=True)
class _Row:
    error: type[Exception]
    status: int
    name: str
    title: str
    withheld: bool = False
    when: Callable[[Any], bool] = lambda _: True
    more: Callable[[Any], Mapping[str, Any]] = lambda _: {}


def _retry(exc: errors.ProviderError | errors.FetchError | errors.RateLimitedError) -> Mapping[str, Any]:
    wait = exc.retry_after_seconds
    return {} if wait is None else {"retry_after_seconds": wait}


def _of_a_model(exc: errors.ProviderError) -> Mapping[str, Any]:
    return {"retryable": exc.retryable, **_retry(exc)}


def _quota(exc: errors.QuotaExceededError) -> Mapping[str, Any]:
    return {"quota": exc.quota, "limit": exc.limit, "used": exc.used}


#: The first that fits counts: what is derived stands before what it is derived of.
_ROWS = (
    _Row(errors.AuthenticationError, 401, "unauthenticated", "Who asks is not known"),
    _Row(errors.PersonalDataError, 422, "personal-data", "Personal data is refused", more=lambda e: {"kinds": e.kinds}),
    _Row(errors.ConfigurationError, 500, "configuration", "The server is not configured for this", withheld=True),
    _Row(errors.IdempotencyKeyReusedError, 422, "idempotency-key-reused", "The key was used for something else"),
    _Row(errors.OutOfBoundsError, 422, "not-valid", "The request is not valid"),
    _Row(errors.PluginError, 500, "plugin-failed", "A plug-in of the server failed"),
    _Row(errors.UsageError, 400, "bad-request", "The request cannot be done as it is"),
    _Row(errors.SessionExpiredError, 410, "session-expired", "The session's time is over"),
    _Row(errors.NotFoundError, 404, "not-found", "There is no such thing"),
    _Row(errors.PermissionDeniedError, 403, "forbidden", "Not allowed"),
    _Row(errors.SessionFullError, 409, "session-full", "The session is full"),
    _Row(errors.ModelChangedError, 409, "model-changed", "The embedding model was changed meanwhile"),
    _Row(errors.VersionChangedError, 412, "version-changed", "It was changed meanwhile"),
    _Row(
        errors.RequestUnderWayError,
        409,
        "under-way",
        "The same request is under way",
        more=lambda _: {"retry_after_seconds": _UNDER_WAY_SECONDS},
    ),
    _Row(errors.ConflictError, 409, "conflict", "It exists already, or was changed meanwhile"),
    _Row(errors.TenantSuspendedError, 403, "tenant-suspended", "The tenant is suspended"),
    _Row(errors.QuotaExceededError, 403, "quota-exceeded", "The quota is used up", more=_quota),
    _Row(errors.RateLimitedError, 429, "rate-limited", "Too much in too short a time", more=_retry),
    _Row(errors.ParseError, 422, "unreadable", "The file cannot be read"),
    _Row(errors.AddressRefusedError, 422, "address-refused", "That address is not contacted"),
    _Row(errors.IssuerUnavailableError, 503, "issuer-unavailable", "Who asks cannot be found out now", more=_retry),
    _Row(errors.IssuerError, 502, "issuer-failed", "Who asks cannot be found out"),
    _Row(errors.FetchError, 502, "fetch-failed", "The page cannot be fetched", more=_retry),
    _Row(errors.SourceError, 502, "source-failed", "The source cannot be read"),
    _Row(errors.StoreUnavailableError, 503, "store-unavailable", "The store cannot be reached", withheld=True),
    _Row(errors.SchemaVersionError, 503, "store-unavailable", "The store cannot be used", withheld=True),
    _Row(errors.StoreError, 500, "store-failed", "The store failed", withheld=True),
    _Row(
        errors.ProviderError,
        429,
        "model-rate-limited",
        "The model's provider limits its requests",
        withheld=True,
        when=lambda exc: exc.kind == "rate_limit",
        more=_of_a_model,
    ),
    _Row(errors.ProviderError, 502, "model-failed", "A model failed", withheld=True, more=_of_a_model),
    _Row(errors.RecollectError, 500, "failed", "It failed", withheld=True),
)

_RETRY_SECONDS = 5.0
_UNDER_WAY_SECONDS = 1.0

# What is wrong with so many parts of a request is told at most.
_FIELDS = 20

_TITLES = {
    403: "Not allowed",
    404: "There is no such thing",
    405: "Not with this method",
    411: "The length is needed",
    412: "It was changed meanwhile",
    413: "Too large",
    415: "Not in this format",
}


def status_of(error: type[Exception]) -> int:
    """The status that an error is told with."""
    return next(row.status for row in _ROWS if issubclass(error, row.error))


def title_of(status: int) -> str:
    """The kind of problem that a status tells where nothing says more."""
    return _TITLES.get(status, "The request cannot be done")


def problem(status: int, name: str, title: str, detail: str, **more: Any) -> Problem:  # noqa: ANN401 - of `Problem`
    """A problem of this request.

    Args:
        status: HTTP's.
        name: What ``type`` ends in.
        title: The kind of problem, for people; the same for all of a kind.
        detail: What happened and what to do about it.
        **more: Other members.
    """
    return {
        "type": f"urn:recollect:problem:{name}",
        "title": title,
        "status": status,
        "detail": detail,
        "request_id": current_request_id(),
        **more,  # type: ignore[typeddict-item]
    }


def problem_of(exc: Exception) -> Problem:
    """What is told of an error; what is not for the caller is logged instead."""
    if isinstance(exc, ClientDisconnect):
        # Nobody reads it: the status is nginx's for the log.
        return problem(499, "client-gone", "The client has gone", "The connection was closed before there was a reply.")
    row = next((row for row in _ROWS if isinstance(exc, row.error) and row.when(exc)), None)
    if row is None:
        logger.exception("A request failed because of a defect.", exc_info=exc)
        return problem(500, "internal", "It failed", _WITHHELD)
    if row.withheld or isinstance(exc, errors.IssuerError):
        logger.warning("A request failed: %s", exc, exc_info=exc if row.status == 500 else None)
    more = dict(row.more(exc))
    if row.status == 503:
        more.setdefault("retry_after_seconds", _RETRY_SECONDS)
    return problem(row.status, row.name, row.title, _WITHHELD if row.withheld else str(exc), **more)


def respond(told: Problem, headers: Mapping[str, str] | None = None) -> Response:
    """The response that tells a problem."""
    sent = {**(headers or {}), **headers_of(told)}
    return JSONResponse(told, status_code=told["status"], media_type=MEDIA_TYPE, headers=sent)


def headers_of(told: Problem) -> dict[str, str]:
    """The headers that a problem's response has."""
    sent = {}
    if told["status"] == 401:
        sent["WWW-Authenticate"] = 'Bearer realm="recollect"'
    wait = told.get("retry_after_seconds")
    if wait is not None:
        sent["Retry-After"] = str(max(1, math.ceil(wait)))
    if told.get("retryable") is False:
        # OpenAI's packages and others made like them repeat every 5xx, unless this forbids it.
        sent["X-Should-Retry"] = "false"
    return sent


def install(app: FastAPI) -> None:
    """Have an application tell every error like this."""

    async def raised(request: Request, exc: Exception) -> Response:
        response = respond(problem_of(exc))
        if getattr(request.state, "login_refused", False):
            request.app.state.service.authenticator.logins.cookies.clear_login(request, response)
        return response

    async def invalid(request: Request, exc: Exception) -> Response:
        assert isinstance(exc, RequestValidationError)
        # Without what was given: it may be a secret, or very long.
        found: list[FieldProblem] = [
            {"location": list(one["loc"]), "message": f"{_of_json(one['msg'])}{_meant(request, one)}"}
            for one in exc.errors()[:_FIELDS]
        ]
        first = found[0] if found else None
        where = " → ".join(str(part) for part in first["location"]) if first else "body"
        detail = _of_the_body(request, exc) or f"{where}: {first['message'] if first else 'not valid'}"
        return respond(problem(422, "not-valid", "The request is not valid", detail, errors=found))

    async def of_http(request: Request, exc: Exception) -> Response:
        assert isinstance(exc, HTTPException)
        status, detail, headers, path = exc.status_code, str(exc.detail), exc.headers, request.url.path
        more: dict[str, Any] = {}
        unknown = status == 405 or (status == 404 and detail == HTTPStatus.NOT_FOUND.phrase)
        if status == 405:
            headers = {"Allow": ", ".join(_methods(request))}
            detail = f"This address takes {headers['Allow']} alone."
        elif unknown:
            detail = "There is nothing at this address: GET /v1/openapi.json describes every one that there is."
        # The base URL of a client may be without /v1, or have it twice.
        meant = path.removeprefix("/v1") if path.startswith("/v1/v1/") else f"/v1{path}"
        misplaced = unknown and _takes(request, meant, request.method)
        if misplaced:
            detail = f"{request.method} is taken at {meant[:200]}, not here: a client's base URL ends in /v1, once."
        if status in {404, 405} and (misplaced or path.startswith("/v1/")):
            # OpenAI's clients ask for what their API has beside this: they read this member alone.
            told = f"Unknown request URL: {request.method} {path[:200]}. {detail}"
            error = {"message": told, "type": "invalid_request_error", "param": None, "code": "unknown_url"}
            more = {"error": error}
        return respond(problem(status, f"http-{status}", title_of(status), detail, **more), headers)

    app.add_exception_handler(errors.RecollectError, raised)
    app.add_exception_handler(RequestValidationError, _without_body(invalid))
    app.add_exception_handler(HTTPException, _without_body(of_http))


def _without_body(handler: _Handler) -> _Handler:
    """Free the body of a refused request at once.

    FastAPI's frame holds both the body and the error whose traceback holds the frame. The server seldom looks for such
    cycles, so that refused bodies would fill the memory.
    """

    async def handled(request: Request, exc: Exception) -> Response:
        response = await handler(request, exc)
        free_frames(exc)
        return response

    return handled


def free_frames(exc: Exception) -> None:
    """Free what the frames hold that an error has left, and those behind it."""
    for error in (exc, exc.__cause__, exc.__context__):
        if error is not None:
            clear_frames(error.__traceback__)


def _of_the_body(request: Request, exc: RequestValidationError) -> str | None:
    """What to do about a body that is no JSON at all, or not said to be; None where single parts are wrong."""
    error = next(iter(exc.errors()), None)
    if error is None:
        return None
    if error["type"] == "json_invalid":
        return f"The body is not JSON: it cannot be read from character {error['loc'][-1]} on."
    sent = request.headers.get("Content-Type", "none")
    if error["loc"] == ("body",) and "json" not in sent.lower() and error["type"] == "model_attributes_type":
        return f"The body is read as JSON with the header Content-Type: application/json; it was {sent[:100]}."
    return None


def _of_json(message: str) -> str:
    """JSON has lists, and no tuples, which is what they are read as."""
    return message.replace("Tuple", "List").replace("tuple", "list")


def _meant(request: Request, error: Mapping[str, Any]) -> str:
    """What was probably meant by a key that a body does not have."""
    body = getattr(request.scope.get("route"), "body_field", None)
    fields = {} if body is None else getattr(body.field_info.annotation, "model_fields", {})
    if error["type"] != "extra_forbidden" or len(error["loc"]) != 2:
        return ""
    meant = meant_argument(str(error["loc"][-1]), [field.alias or name for name, field in fields.items()])
    return f".{meant}" if meant else ""


def _methods(request: Request) -> list[str]:
    """What a path is for, by all routes that it has: the one that refused knows its own alone."""
    methods = ("DELETE", "GET", "HEAD", "PATCH", "POST", "PUT")
    return [method for method in methods if _takes(request, request.scope["path"], method)]


def _takes(request: Request, path: str, method: str) -> bool:
    asked = {**request.scope, "path": path, "method": "GET" if method == "HEAD" else method}
    return any(route.matches(asked)[0] is Match.FULL for route in request.app.routes)


def schemas() -> dict[str, Any]:
    """The schemas of a problem and its parts, by their names."""
    whole = TypeAdapter(Problem).json_schema(ref_template="#/components/schemas/{model}")
    return {**whole.pop("$defs"), Problem.__name__: whole}


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What a route's ``responses`` say of these statuses."""
    # A reference, and no model: FastAPI would make a validator of it for each status of each route.
    content = {MEDIA_TYPE: {"schema": {"$ref": f"#/components/schemas/{Problem.__name__}"}}}
    return {status: {"content": content, "description": "A problem."} for status in statuses}
