"""``/v1/collections``."""

from __future__ import annotations

from fastapi import APIRouter

from recollect.replies.collections import CollectionJson, CollectionListJson, collection_json, collection_list_json
from recollect.server.dependencies import Administrator, Reader
from recollect.server.problems import documented
from recollect.server.schemas.base import Name
from recollect.server.schemas.collections import CollectionBody, CollectionChanges

router = APIRouter(prefix="/collections", tags=["collections"])


@router.get("", summary="List the collections")
def collections(caller: Reader) -> CollectionListJson:
    """By name, counting what may be read of each."""
    return collection_list_json(caller.collections.list())


@router.post("", status_code=201, summary="Make a collection", responses=documented(409))
def create(body: CollectionBody, caller: Administrator) -> CollectionJson:
    """An empty one."""
    made = caller.collections.create(
        body.name,
        description=body.description,
        language=body.language,
        chunking=body.chunking,
        token_vectors=body.token_vectors,
    )
    return collection_json(made)


@router.get("/{name}", summary="Show a collection", responses=documented(404))
def show(name: Name, caller: Reader) -> CollectionJson:
    """One of those that may be read."""
    return collection_json(caller.collections.get(name))


@router.patch("/{name}", summary="Describe a collection", responses=documented(404))
def change(name: Name, body: CollectionChanges, caller: Administrator) -> CollectionJson:
    """What is said of it; how it is cut and embedded stays as it was made."""
    return collection_json(caller.collections.update(name, description=body.description))


@router.delete("/{name}", status_code=204, summary="Remove a collection", responses=documented(404))
def delete(name: Name, caller: Administrator) -> None:
    """With everything in it, physically: it cannot be taken back."""
    caller.collections.delete(name)
