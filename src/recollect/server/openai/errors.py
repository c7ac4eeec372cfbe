"""Errors as OpenAI's API tells them, on its routes: ``{"error": {"message", "type", "param", "code"}}``."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Mapping
from itertools import takewhile
from typing import Annotated, Any

from fastapi import APIRouter, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import Field
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from typing_extensions import TypedDict

from recollect.errors import UsageError
from recollect.server.problems import Problem, free_frames, headers_of, problem_of


class ErrorJson(TypedDict):
    """What went wrong."""

    message: str
    type: str
    param: str | None
    code: str | None


class ErrorReplyJson(TypedDict):
    """What every failed request is answered with."""

    error: ErrorJson


class RefusedRequestError(UsageError):
    """What OpenAI's API can be asked, and this server does not do.

    Args:
        message: What, and what to do about it.
        param: The parameter that asks for it.
        code: For programs.
        status: HTTP's.
    """

    def __init__(self, message: str, *, param: str | None, code: str = "unsupported_value", status: int = 400) -> None:
        super().__init__(message)
        self.param = param
        self.code = code
        self.status = status


_PLACE = re.compile(r"(?!str$|int$|float$)\w+")


_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


def error_json(exc: Exception) -> tuple[int, ErrorReplyJson, Mapping[str, str]]:
    """An error as this API tells it: its status, what is said of it, and headers."""
    if isinstance(exc, RefusedRequestError):
        return exc.status, _reply(str(exc), exc.status, param=exc.param, code=exc.code), {}
    if isinstance(exc, RequestValidationError):
        return 400, _invalid(exc), {}
    if isinstance(exc, HTTPException):
        told = _reply(str(exc.detail), exc.status_code, param=None, code=f"http_{exc.status_code}")
        return exc.status_code, told, exc.headers or {}
    problem = problem_of(exc)
    # OpenAI's API has no 422: what is wrong with a request is a 400.
    status = 400 if problem["status"] == 422 else problem["status"]
    return status, _reply(_said(problem), status, param=None, code=_code(problem)), headers_of(problem)


def _said(problem: Problem) -> str:
    return f"{problem['detail']} (request {problem['request_id']})" if problem["status"] >= 500 else problem["detail"]


def _code(problem: Problem) -> str:
    if problem["status"] == 401:
        return "invalid_api_key"
    name = problem["type"].rpartition(":")[2]
    return "insufficient_quota" if name == "quota-exceeded" else name.replace("-", "_")


def _invalid(exc: RequestValidationError) -> ErrorReplyJson:
    # Where several forms are possible, the form that fits best has its mistake deepest.
    first = max(exc.errors(), key=lambda one: len(one["loc"]))
    where = [str(part) for part in first["loc"] if part not in {"body", "query", "path"}]
    # Behind the parameter's own place stands which of several forms it was compared with.
    param = ".".join(takewhile(_PLACE.fullmatch, where)) or None
    if first["type"] == "extra_forbidden":
        return _reply(f"Unknown parameter: {param!r}.", 400, param=param, code="unknown_parameter")
    if first["type"] == "missing":
        return _reply(f"Missing required parameter: {param!r}.", 400, param=param, code="missing_required_parameter")
    if first.get("ctx", {}).get("min_length") == 1:
        return _reply(f"Invalid value for {param or 'the body'}: it is empty.", 400, param=param, code="invalid_value")
    # Without what was given: it may be a secret, or very long.
    return _reply(f"Invalid value for {param or 'the body'}: {first['msg']}.", 400, param=param, code="invalid_value")


def _reply(message: str, status: int, *, param: str | None, code: str | None) -> ErrorReplyJson:
    kind = "server_error" if status >= 500 else _TYPES.get(status, "invalid_request_error")
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


class OpenAIRoute(APIRoute):
    """A route whose errors are told as OpenAI's API tells them."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """FastAPI's own, which here raises nothing."""
        handle = super().get_route_handler()

        async def handled(request: Request) -> Response:
            try:
                return await handle(request)
            except Exception as exc:  # noqa: BLE001 - whatever it is, the client reads one shape
                status, told, headers = error_json(exc)
                free_frames(exc)
                return JSONResponse(told, status_code=status, headers=dict(headers))

        return handled


def resource() -> APIRouter:
    """Routes of one resource of this door."""
    # ``default`` is every status that is not told otherwise, also FastAPI's own 422, which never comes from here.
    return APIRouter(
        tags=["openai"],
        route_class=OpenAIRoute,
        responses={"default": {"model": ErrorReplyJson, "description": "An error."}},
    )


# Parameters of OpenAI's API that say nothing here: taken, so that programs that always send them work.


#: How much chance a language model gives its answer; where none writes, there is none.
Temperature = Annotated[float | None, Field(ge=0, le=2)]


#: The answer ends there at the latest.
MostTokens = Annotated[int | None, Field(ge=1)]


_StopText = Annotated[str, Field(min_length=1, max_length=1_000)]


#: The answer ends before the first of these.
Stop = _StopText | Annotated[tuple[_StopText, ...], Field(max_length=16)] | None


#: Taken and not looked at: how answers are written is for whoever runs the server.
Ignored = Annotated[Any, Field(description="Taken and not looked at.")]


def require_unforced(tool_choice: object, *, param: str = "tool_choice") -> None:
    """Refuse requests that insist on a tool's being called: none is, and tools are otherwise not looked at.

    Raises:
        RefusedRequestError: One is insisted on.
    """
    kind = tool_choice.get("type") if isinstance(tool_choice, dict) else tool_choice
    if kind not in {None, "none", "auto", "file_search"}:
        raise RefusedRequestError(
            'Tools are not called here: documents are searched, and answered from. Use tool_choice "auto".', param=param
        )


def require_text(wanted: object, *, param: str) -> None:
    """Refuse another form of answers than text.

    Raises:
        RefusedRequestError: Another is asked for.
    """
    kind = wanted.get("type") if isinstance(wanted, dict) else None
    if kind not in {None, "text"}:
        raise RefusedRequestError(
            "Answers are text with citations: the form of the answer cannot be given.", param=param
        )
