"""The HTTP server as an ASGI application: its parts put together, and nothing else."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import BaseRoute, compile_path
from starlette.types import ASGIApp, Lifespan, Message, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from recollect.errors import ConfigurationError
from recollect.installation import install_command, version
from recollect.pipeline.threads import Threads
from recollect.server import openai, problems
from recollect.server.admission import AdmissionControl, Idempotency, Service
from recollect.server.authentication import Authenticator
from recollect.server.forms import takes_files
from recollect.server.limits import Limits
from recollect.server.login import routes as login_routes
from recollect.server.mcp.http import Door
from recollect.server.metrics import Metrics
from recollect.server.request_context import RequestContext, template_of
from recollect.server.requests import LOOPBACK_NAMES, NamedPaths, OriginCheck, is_loopback
from recollect.server.routes import RESOURCES, about, assistant, retrieval
from recollect.server.searches import Searches
from recollect.server.sse import KeptStreams

if TYPE_CHECKING:
    from recollect.config import ServerConfig
    from recollect.pipeline import RAGPipeline
    from recollect.server.tracing import Tracing


DESCRIPTION = """\
Documents in, cited answers out. Whose knowledge is searched, and as whom, comes from the credential of each request.

Errors are `application/problem+json`; lists are read page by page with `cursor`; what changes something takes an
`Idempotency-Key`.
"""


# Shorter responses gain nothing from compression; a higher level than this costs more time than it saves.
_COMPRESSED_BYTES = 1_000
_COMPRESSION = 4


def create_app(rag: RAGPipeline) -> FastAPI:
    """The application that serves a store. Whoever opened the store closes it, after the application has ended.

    Args:
        rag: The open store, with its settings.

    Example:
        >>> from recollect import RAGPipeline
        >>> from recollect.server import create_app
        >>> with RAGPipeline() as rag:  # doctest: +SKIP
        ...     app = create_app(rag)
    """
    settings = rag.config.server
    metrics = Metrics(rag)
    authenticator = Authenticator(rag, observe=metrics.credential_not_taken)
    streams = Threads(settings.max_streams, name="recollect-stream")
    searches = Searches(rag.config)
    assembly = rag.standpoint.assembly
    activity = assembly.activity
    limits = Limits(rag, settings.limits, refused=lambda tenant, kind: activity.count(tenant, "limit", kind))
    mcp = Door(rag, authenticator, limits)
    kept = KeptStreams()
    tracing = _tracing(settings)
    watching = (metrics, activity) if tracing is None else (metrics, activity, tracing)
    assembly.observers = (*assembly.observers, *watching)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        try:
            async with mcp.open():
                yield
        finally:
            await kept.close()
            await searches.close()
            await streams.close()
            assembly.observers = tuple(one for one in assembly.observers if one not in watching)

    app = _Application(lifespan=lifespan)
    app.state.service = Service(
        rag=rag,
        authenticator=authenticator,
        limits=limits,
        idempotency=Idempotency(rag),
        searches=searches,
        streams=streams,
        metrics=metrics,
        kept=kept,
    )
    problems.install(app)
    app.router.routes.extend(mcp.routes)
    _surround(app, settings, metrics)
    if tracing is not None:
        app.add_middleware(tracing.around)
    return app


def openapi_document() -> dict[str, Any]:
    """What ``GET /v1/openapi.json`` replies (OpenAPI 3.1): it is the same for every store."""
    return _Application().openapi()


# What FastAPI calls a generic record: of something, or of several of something each time.
_GENERIC = re.compile(r"(?P<record>[A-Za-z]+)_(?:tuple_)?(?P<holds>[A-Za-z]+)_+")
_GENERIC_REFERENCE = re.compile(f'"#/components/schemas/{_GENERIC.pattern}"')


class _Application(FastAPI):
    """Has every route, and describes the shape of errors, which routes name by a reference, and what leads where."""

    def __init__(self, lifespan: Lifespan[Any] | None = None) -> None:
        super().__init__(
            title="recollect",
            version=version(),
            description=DESCRIPTION,
            lifespan=lifespan,
            openapi_url="/v1/openapi.json",
            docs_url=None,  # its page loads scripts from elsewhere
            redoc_url=None,
        )
        self.router.routes.extend((retrieval.direct, *_routes()))

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            document = super().openapi()
            document["components"]["schemas"] |= problems.schemas()
            document = self.openapi_schema = _tidied(document)
            add_links(document)
        assert self.openapi_schema is not None, "FastAPI keeps what it has made"
        return self.openapi_schema


def _tidied(document: dict[str, Any]) -> dict[str, Any]:
    """The document, with names of schemas that can be read, and without schemas that nothing refers to.

    A generic record is called by what it holds, `JobPage`, where FastAPI has `Page_Job_`: generators of clients name
    their classes so. Nothing refers to the schemas of fields of records that are not public.
    """
    schemas, text = document["components"]["schemas"], json.dumps(document)
    kept = {name: schema for name, schema in schemas.items() if f'"#/components/schemas/{name}"' in text}
    document["components"]["schemas"] = kept
    for name, generic in [(name, found) for name in kept if (found := _GENERIC.fullmatch(name))]:
        schema = kept.pop(name)
        schema["title"] = generic["holds"] + generic["record"]
        schema["description"] = schema["description"].partition("\n\nAttributes:")[0]
        kept[schema["title"]] = schema
    text = json.dumps(document)
    text = _GENERIC_REFERENCE.sub(lambda found: f'"#/components/schemas/{found["holds"]}{found["record"]}"', text)
    tidied: dict[str, Any] = json.loads(text)
    return tidied


@cache
def _routes() -> tuple[BaseRoute, ...]:
    """Every route; what is made of their types takes a second, so it is made once a process.

    No router is included in one that is included: with each request FastAPI asks each of those for its routes anew.
    """
    router, documented = APIRouter(), problems.documented(400, 401, 403, 422, 429, 500, 503)
    for resource in RESOURCES:
        router.include_router(resource, prefix="/v1", responses=documented)
    for resource in openai.RESOURCES:
        router.include_router(resource, prefix="/v1")
    for resource in (login_routes.router, assistant.router, about.router):
        router.include_router(resource)
    return tuple(router.routes)


@cache
def _receiving() -> tuple[re.Pattern[str], ...]:
    """The paths of routes that take files."""
    routes = [route for resource in (*RESOURCES, *openai.RESOURCES) for route in resource.routes]
    return tuple(
        compile_path(f"/v1{route.path}")[0] for route in routes if isinstance(route, APIRoute) and takes_files(route)
    )


def _tracing(settings: ServerConfig) -> Tracing | None:
    """What makes traces, where they are wanted; nothing of it is imported otherwise."""
    if not settings.traces:
        return None
    if importlib.util.find_spec("opentelemetry") is None:
        raise ConfigurationError(f"rag.server.traces needs one more package: {install_command('otel')}")
    from recollect.server.tracing import Tracing

    return Tracing(template_of)


def _surround(app: FastAPI, settings: ServerConfig, metrics: Metrics) -> None:
    """What every request passes before it comes to a route, the outermost last."""
    receiving = _receiving()

    def limit_of(scope: Scope) -> int:
        takes = scope["method"] == "POST" and any(path.match(scope["path"]) for path in receiving)
        return settings.max_upload_bytes if takes else settings.max_body_bytes

    def refused(status: int, name: str, detail: str) -> ASGIApp:
        return problems.respond(problems.problem(status, name, problems.title_of(status), detail))

    app.add_middleware(Heads)
    app.add_middleware(AdmissionControl, service=app.state.service)
    app.add_middleware(BodyLimit, limit_of=limit_of, refuse=lambda why: refused(413, "too-large", why))
    app.add_middleware(GZipMiddleware, minimum_size=_COMPRESSED_BYTES, compresslevel=_COMPRESSION)
    public = None if settings.public_url is None else urlsplit(settings.public_url).netloc.lower()
    app.add_middleware(
        OriginCheck,
        hosts=_names(settings),
        public=public,
        allowed=frozenset(settings.allow_origins),
        refuse=lambda why: refused(403, "foreign-origin", why),
    )
    app.add_middleware(metrics.counting_streams)
    app.add_middleware(
        NamedPaths, refuse=refused(400, "invalid-request", "The path holds a character that no name has (U+FDD0).")
    )
    app.add_middleware(
        RequestContext,
        on_error=lambda exc: problems.respond(problems.problem_of(exc)),
        observe=metrics.request,
    )
    if settings.trusted_proxies:
        # Outermost: where a request came from, and how, is known to everything within.
        app.add_middleware(ProxyHeadersMiddleware, trusted_hosts=list(settings.trusted_proxies))


def _names(settings: ServerConfig) -> frozenset[str] | None:
    """The names that requests may come under; None: any, because each must bring a credential."""
    if settings.allowed_hosts:
        return frozenset(name.lower() for name in settings.allowed_hosts) | LOOPBACK_NAMES
    return LOOPBACK_NAMES if is_loopback(settings.host) else None


# HEAD works wherever GET does: the same status and headers, without the body.


class Heads:
    """Answers HEAD as GET, without the body. The reply is complete then, which ends a stream as if the client left.

    Args:
        app: What answers.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return

        async def send_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                await send(message)
                await send({"type": "http.response.body", "body": b""})

        await self._app({**scope, "method": "GET"}, receive, send_headers)


# Bounds on the length of a request's body, and on the number of JSON values in it.


#: The most values in a JSON body. A parsed value takes a hundred times its text, and each invalid one an error.
MOST_VALUES = 100_000


def _separators(text: bytes) -> int:
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def has_too_many_values(body: bytes) -> bool:
    """Return whether a JSON text has more than `MOST_VALUES` values, without parsing it."""
    if _separators(body) <= MOST_VALUES:
        return False
    # Texts have commas, too: only those outside strings count.
    bare = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    return bare.count(b'"') > 4 * MOST_VALUES or sum(map(_separators, bare.split(b'"')[::2])) > MOST_VALUES


class BodyLimit:
    """Refuses bodies that are too long, by what they say of themselves and by what comes, or have too many values.

    FastAPI's own limit stands outside of everything and answers in plain text, without a request's id.

    Args:
        app: What answers.
        limit_of: The bytes that a request may have at most.
        refuse: Makes the response, given the reason.
    """

    def __init__(self, app: ASGIApp, *, limit_of: Callable[[Scope], int], refuse: Callable[[str], ASGIApp]) -> None:
        self._app = app
        self._limit_of = limit_of
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit = self._limit_of(scope)
        why = f"The body is longer than the {limit:,} bytes that are taken here."
        told = Headers(scope=scope).get("content-length", "0")
        if told.isdecimal() and int(told) > limit:
            await self._refuse(why)(scope, receive, send)
            return
        read = 0
        kind = Headers(scope=scope).get("content-type", "").partition(";")[0].strip().lower()
        # A body of no stated kind may be read as JSON.
        held: list[bytes] | None = [] if not kind or kind.endswith(("/json", "+json")) else None

        async def counted() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > limit:
                raise HTTPException(413, why)
            if held is not None:
                held.append(message.get("body", b""))
                if not message.get("more_body", False) and has_too_many_values(b"".join(held)):
                    raise HTTPException(
                        413, f"The body has more than {MOST_VALUES:,} JSON values. Send them in several requests."
                    )
            return message

        await self._app(scope, counted, send)


# Links of the OpenAPI document: what a reply tells is what the paths of other operations ask for.
#
# A program that reads the document follows what it has made: from the collection to its documents, to their contents,
# to their end.


_METHODS = ("get", "post", "put", "patch", "delete")
_PARAMETER = re.compile(r"\{([^}]+)\}")

#: By an operation: where its reply, or its request, tells what paths call by these names.
TOLD: dict[str, Mapping[str, str]] = {
    "POST /v1/collections": {"name": "$response.body#/name", "vector_store_id": "$response.body#/name"},
    "GET /v1/collections": {"name": "$response.body#/items/0/name"},
    "POST /v1/collections/{name}/documents": {
        "name": "$request.path.name",
        "document_id": "$response.body#/document_id",
        "vector_store_id": "$request.path.name",
        "file": "$response.body#/document_id",
    },
    "GET /v1/collections/{name}/documents": {"document_id": "$response.body#/items/0/document_id"},
    "GET /v1/documents": {"document_id": "$response.body#/document_id"},
    "POST /v1/collections/{name}/spaces": {"name": "$request.path.name", "job_id": "$response.body#/job_id"},
    "POST /v1/collections/{name}/spaces/rollback": {"job_id": "$response.body#/job_id"},
    "POST /v1/collections/{name}/contexts": {"job_id": "$response.body#/job_id"},
    "POST /v1/sources/refresh": {"job_id": "$response.body#/job_id"},
    "POST /v1/collections/{name}/files": {"job_id": "$response.body#/jobs/0/job_id"},
    "POST /v1/collections/{name}/urls": {"job_id": "$response.body#/job_id"},
    "POST /v1/search": {"document_id": "$response.body#/results/0/document_id"},
    "GET /v1/jobs": {"job_id": "$response.body#/items/0/job_id"},
    "POST /v1/sessions": {"session": "$response.body#/session"},
    "POST /v1/sessions/{session}/turns": {"session": "$response.body#/session"},
    "POST /v1/chat": {"session": "$request.body#/session"},
    "POST /v1/ask": {"stream": "$response.header.Recollect-Stream"},
    "GET /v1/sessions": {"session": "$response.body#/sessions/0/session"},
    "GET /v1/facts": {"fact_id": "$response.body#/items/0/fact"},
    "POST /v1/tenants": {"tenant": "$response.body#/name"},
    "GET /v1/tenants": {"tenant": "$response.body#/items/0/name"},
    "POST /v1/keys": {"key_id": "$response.body#/key/key_id"},
    "GET /v1/keys": {"key_id": "$response.body#/items/0/key_id"},
    "GET /v1/logins": {"login_id": "$response.body#/items/0/login_id"},
    "POST /v1/vector_stores": {"vector_store_id": "$response.body#/id", "name": "$response.body#/name"},
    "GET /v1/vector_stores": {"vector_store_id": "$response.body#/data/0/id"},
    "GET /v1/vector_stores/{vector_store_id}/files": {
        "vector_store_id": "$request.path.vector_store_id",
        "file": "$response.body#/data/0/id",
    },
    "POST /v1/vector_stores/{vector_store_id}/file_batches": {
        "vector_store_id": "$request.path.vector_store_id",
        "batch": "$response.body#/id",
    },
    "GET /v1/files": {"file": "$response.body#/data/0/id"},
    "GET /v1/models": {"model": "$response.body#/data/0/id"},
}


def add_links(document: Mapping[str, Any]) -> None:
    """Have the document's replies say which operations go on with what they tell."""
    operations = dict(_operations(document))
    for source, told in TOLD.items():
        if source not in operations:
            continue
        links = {
            target["operationId"]: {
                "operationId": target["operationId"],
                "parameters": {name: told[name] for name in sorted(asked_for(name_of))},
            }
            for name_of, target in operations.items()
            if name_of != source and asked_for(name_of) and asked_for(name_of) <= told.keys()
        }
        responses = operations[source]["responses"]
        responses[next(status for status in responses if status.startswith("2"))]["links"] = links


def asked_for(operation: str) -> set[str]:
    """The parameters of an operation's path."""
    return set(_PARAMETER.findall(operation))


def _operations(document: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method in _METHODS:
            if method in methods:
                yield f"{method.upper()} {path}", methods[method]
