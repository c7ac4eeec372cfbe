"""``/v1/collections``."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse

from recollect.model.collection import Collection
from recollect.operations.collections import CollectionOperations
from recollect.operations.values import Name
from recollect.server.bound import bind
from recollect.server.dependencies import Administrator, Asking, Reader
from recollect.server.downloads import LinesResponse
from recollect.server.etags import IfMatch, require_match, tagged
from recollect.server.problems import documented
from recollect.server.schemas.collections import CollectionChanges

router = APIRouter(prefix="/collections", tags=["collections"])
bind(router, CollectionOperations, lambda view: view.collections)


@router.patch("/{name:named}", summary="Describe a collection", responses=documented(404, 412))
def change(
    name: Name, body: CollectionChanges, caller: Administrator, response: Response, if_match: IfMatch = None
) -> Collection:
    """What is said of it; how it is cut and embedded stays as it was made."""

    def check(now: Collection) -> None:
        require_match(if_match, now)

    return tagged(response, caller.collections.update(name, description=body.description, check=check))


@router.get(
    "/{name:named}/export",
    summary="Export a collection",
    response_class=StreamingResponse,
    responses={200: {"content": {"application/jsonl": {"schema": {"type": "string"}}}}, **documented(404)},
)
async def export(
    name: Name,
    caller: Reader,
    service: Asking,
    request: Request,
    originals: Annotated[
        bool, Query(description="With the files that documents were read from, up to 64 MiB each.")
    ] = False,
) -> StreamingResponse:
    """As JSON Lines: its current documents with their chunks and vectors, as far as they may be read."""

    def made() -> StreamingResponse:
        return LinesResponse(caller.view(collections=name).collections.export_lines(originals=originals))

    return await service.searches.run_long(request, made)
