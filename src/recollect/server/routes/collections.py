"""``/v1/collections``."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse

from recollect.model.collection import Collection
from recollect.model.page import cursor_at
from recollect.operations.values import Name
from recollect.replies.collections import CollectionJson, collection_json
from recollect.server.dependencies import Administrator, Asking, Reader
from recollect.server.downloads import LinesResponse
from recollect.server.etags import IfMatch, require_match, tagged
from recollect.server.pages import Paging, shown
from recollect.server.problems import documented
from recollect.server.schemas.collections import CollectionBody, CollectionChanges, CollectionPage

router = APIRouter(prefix="/collections", tags=["collections"])


@router.get("", summary="List the collections")
def collections(caller: Reader, page: Paging) -> CollectionPage:
    """By name, counting what may be read of each."""
    found, more = shown(caller.collections.list(after=page.name() or "", limit=page.asked), page)
    return {
        "collections": [collection_json(one) for one in found],
        "next_cursor": cursor_at(found[-1].name) if more else None,
    }


@router.post("", status_code=201, summary="Make a collection", responses=documented(409))
def create(body: CollectionBody, caller: Administrator) -> CollectionJson:
    """An empty one."""
    made = caller.collections.create(
        body.name,
        description=body.description,
        language=body.language,
        chunking=body.chunking,
        token_vectors=body.token_vectors,
        dimensions=body.dimensions,
    )
    return collection_json(made)


@router.get("/{name:named}", summary="Show a collection", responses=documented(404))
def show(name: Name, caller: Reader, response: Response) -> CollectionJson:
    """One of those that may be read."""
    return tagged(response, collection_json(caller.collections.get(name)))


@router.patch("/{name:named}", summary="Describe a collection", responses=documented(404, 412))
def change(
    name: Name, body: CollectionChanges, caller: Administrator, response: Response, if_match: IfMatch = None
) -> CollectionJson:
    """What is said of it; how it is cut and embedded stays as it was made."""

    def check(now: Collection) -> None:
        require_match(if_match, collection_json(now))

    return tagged(response, collection_json(caller.collections.update(name, description=body.description, check=check)))


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


@router.delete("/{name:named}", status_code=204, summary="Remove a collection", responses=documented(404))
def delete(name: Name, caller: Administrator) -> None:
    """With everything in it, physically: it cannot be taken back."""
    caller.collections.delete(name)
