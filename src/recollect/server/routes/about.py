"""The server itself: whether it lives, what it has done, and what it can be asked."""

from __future__ import annotations

from html import escape
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request, Security
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, Response
from typing_extensions import TypedDict

from recollect.installation import version
from recollect.server.caller import Caller
from recollect.server.dependencies import Asking, asking
from recollect.server.problems import documented

router = APIRouter(tags=["health"])


class Health(TypedDict):
    """That it is well."""

    status: Literal["ok"]


@router.get("/healthz", summary="Whether the process answers")
async def healthz() -> Health:
    """Says nothing of the database: a server that waits for its database is not helped by being started anew."""
    return {"status": "ok"}


@router.get("/readyz", summary="Whether requests can be answered", responses=documented(503))
async def readyz(service: Asking) -> Health:
    """Asks the database for one row."""
    await run_in_threadpool(service.rag.store.database.ping)
    return {"status": "ok"}


# `/metrics`, for Prometheus.


_METRICS: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Figures."},
    **documented(401, 403),
}


@router.get("/metrics", summary="What the server has done, for Prometheus", response_class=Response, responses=_METRICS)
async def metrics(
    request: Request, service: Asking, _: Annotated[Caller, Security(asking, scopes=["operator"])]
) -> Response:
    """Of all tenants together, so for whoever looks after them all: it needs the scope `operator`."""
    body, media_type = await run_in_threadpool(service.metrics.exposition, request.headers.get("accept"))
    return Response(body, headers={"Content-Type": media_type})


# The description of the API where people and programs look for it: `/openapi.json` and `/docs`.


@router.get("/openapi.json", include_in_schema=False)
def openapi(request: Request) -> dict[str, Any]:
    """What ``GET /v1/openapi.json`` replies."""
    document: dict[str, Any] = request.app.openapi()
    return document


@router.get("/docs", include_in_schema=False)
def docs(request: Request) -> HTMLResponse:
    """Every operation in a list. Nothing is loaded from elsewhere, so there is no form to try them out."""
    by_tag: dict[str, list[str]] = {}
    for path, operations in request.app.openapi()["paths"].items():
        for method, operation in operations.items():
            row = f"<tr><td>{method.upper()}<td><code>{escape(path)}</code><td>{escape(operation.get('summary', ''))}"
            by_tag.setdefault(operation.get("tags", ["other"])[0], []).append(row)
    tables = "".join(f"<h2>{escape(tag)}</h2><table>{''.join(rows)}</table>" for tag, rows in by_tag.items())
    page = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>recollect API</title>'
        f"<h1>recollect {version()}</h1>"
        f'<p>The whole description: <a href="openapi.json">OpenAPI 3.1</a>.</p>{tables}</html>'
    )
    return HTMLResponse(page, headers={"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'"})
