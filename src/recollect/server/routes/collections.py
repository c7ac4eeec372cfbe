"""``/v1/collections``."""

from __future__ import annotations

from fastapi import APIRouter

from recollect.errors import NotFoundError
from recollect.model.collection import Collection
from recollect.pipeline import View
from recollect.replies.collections import CollectionJson, CollectionListJson, collection_json, collection_list_json
from recollect.server.dependencies import Administrator, Reader
from recollect.server.problems import documented
from recollect.server.schemas.base import Name
from recollect.server.schemas.collections import CollectionBody

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
    return collection_json(found(caller, name))


@router.delete("/{name}", status_code=204, summary="Remove a collection", responses=documented(404))
def delete(name: Name, caller: Administrator) -> None:
    """With everything in it, physically: it cannot be taken back."""
    caller.collections.delete(name)


def found(view: View, name: str) -> Collection:
    """A collection that may be read.

    Raises:
        NotFoundError: There is none of that name.
    """
    for one in view.collections.list():
        if one.name == name:
            return one
    raise NotFoundError(f"There is no collection {name!r}.")
