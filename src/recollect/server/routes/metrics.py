"""``/metrics``, for Prometheus."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Request, Security
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from recollect.server.caller import Caller
from recollect.server.dependencies import Asking, asking
from recollect.server.problems import documented

router = APIRouter(tags=["health"], responses=documented(401, 403))

_TEXT: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Figures."}
}


@router.get("/metrics", summary="What the server has done, for Prometheus", response_class=Response, responses=_TEXT)
async def metrics(
    request: Request, service: Asking, _: Annotated[Caller, Security(asking, scopes=["operator"])]
) -> Response:
    """Of all tenants together, so for whoever looks after them all: it needs the scope `operator`."""
    body, media_type = await run_in_threadpool(service.metrics.exposition, request.headers.get("accept"))
    return Response(body, headers={"Content-Type": media_type})
