"""``/v1/vector_stores``: collections, as OpenAI's API has them."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import Request
from pydantic import Field
from typing_extensions import TypedDict

from recollect.model import RetrievalOptions
from recollect.model.search_options import MAX_QUERY_CHARACTERS
from recollect.operations.values import Name, Text
from recollect.server.bodies import Body
from recollect.server.dependencies import Administrator, Asking, Reader
from recollect.server.openai.errors import Ignored, RefusedRequestError, resource
from recollect.server.openai.file_searches import (
    Attributes,
    FileSearchResultJson,
    RankingOptions,
    read_filters,
    result_json,
    store_id,
    vector_store,
)
from recollect.server.openai.files import After, DeletedJson, Limit, Order, PageEnds, made_from, page_ends
from recollect.server.openai.vector_store_files import AttachedFile, ChunkingStrategy

if TYPE_CHECKING:
    from recollect.model.collection import Collection, CollectionNotes
    from recollect.pipeline import View

router = resource()

Metadata = Annotated[
    dict[Annotated[Text, Field(min_length=1, max_length=64)], Annotated[Text, Field(max_length=512)]],
    Field(max_length=16),
]


class StoreExpiry(Body):
    """After how many days without use the documents of a collection are closed."""

    anchor: Literal["last_active_at"]
    days: int = Field(ge=1, le=365)


class VectorStoreBody(Body):
    """A new collection."""

    name: Name | None = Field(None, description="Unique; left out: one is made up.")
    description: Text | None = Field(None, max_length=10_000)
    file_ids: tuple[Name, ...] | None = Field((), max_length=500, description="Files that it is given.")
    chunking_strategy: ChunkingStrategy | None = Field(None, description="Of these files.")
    expires_after: StoreExpiry | None = None
    metadata: Metadata | None = None

    def attached(self) -> list[AttachedFile]:
        """Each file that it is given."""
        return [AttachedFile(file_id=one, chunking_strategy=self.chunking_strategy) for one in self.file_ids or ()]


class VectorStoreChanges(Body):
    """What is said anew of a collection; what is left out stays as it is."""

    name: Name | None = Field(None, description="The one that it has: collections are not renamed.")
    expires_after: StoreExpiry | None = Field(None, description="null: it does not expire.")
    metadata: Metadata | None = Field(None, description="All of it from now on; null: none.")


_Query = Annotated[Text, Field(max_length=MAX_QUERY_CHARACTERS)]


class VectorStoreSearchBody(Body):
    """A search in a collection."""

    query: _Query | Annotated[tuple[_Query, ...], Field(min_length=1, max_length=16)]
    filters: dict[str, Any] | None = None
    max_num_results: int | None = Field(10, ge=1, le=50)
    ranking_options: RankingOptions | None = None
    rewrite_query: Ignored = None


class FileCountsJson(TypedDict):
    """Documents by what became of them."""

    in_progress: int
    completed: int
    failed: int
    cancelled: int
    total: int


class StoreExpiryJson(TypedDict):
    """After how many days without use the documents of a collection are closed."""

    anchor: Literal["last_active_at"]
    days: int


class VectorStoreJson(TypedDict):
    """A collection; `usage_bytes` is not known."""

    id: str
    object: Literal["vector_store"]
    created_at: int
    name: str
    description: str
    usage_bytes: int
    file_counts: FileCountsJson
    status: Literal["completed", "in_progress", "expired"]
    expires_after: StoreExpiryJson | None
    expires_at: int | None
    last_active_at: int | None
    metadata: dict[str, str]


class VectorStoreListJson(PageEnds):
    """Collections."""

    data: list[VectorStoreJson]


class FoundPassageJson(TypedDict):
    """A passage, as this search tells it."""

    file_id: str
    filename: str
    score: float
    attributes: Attributes
    content: list[dict[str, str]]


class FoundPassagesJson(TypedDict):
    """Passages, best first."""

    object: Literal["vector_store.search_results.page"]
    search_query: list[str]
    data: list[FoundPassageJson]
    has_more: bool
    next_page: None


@router.get("/vector_stores", summary="List the collections as vector stores")
def vector_stores(
    caller: Reader,
    limit: Limit = 20,
    order: Order = "desc",
    after: After = None,
    before: Name | None = None,
) -> VectorStoreListJson:
    """By their age, counting what may be read of each."""
    places = sorted(caller.collections.each(), key=lambda one: one.collection_id, reverse=order == "desc")
    ids = [store_id(one) for one in places]
    start = ids.index(after) + 1 if after in ids else 0
    end = ids.index(before) if before in ids else len(ids)
    shown = places[start:end][:limit]
    data = _stores_json(caller, shown)
    return {**page_ends(data, more=len(places[start:end]) > limit), "data": data}


@router.post("/vector_stores", summary="Make a collection")
def create(body: VectorStoreBody, caller: Administrator) -> VectorStoreJson:
    """With the files that it is given, each of which a job reads."""
    uses = [one.use(param="file_ids") for one in body.attached()]
    for use in uses:
        caller.files.get(use.file_id)
    place = caller.collections.create(body.name or f"store-{secrets.token_hex(6)}", description=body.description or "")
    if body.metadata is not None or body.expires_after is not None:
        days = None if body.expires_after is None else body.expires_after.days
        caller.collections.note(place.name, metadata=body.metadata, idle_days=days)
    if uses:
        caller.view(collections=place.name).files.attach(uses)
    return _store_json(caller, place)


@router.get("/vector_stores/{vector_store_id:named}", summary="Show a collection as a vector store")
def show(vector_store_id: Name, caller: Reader) -> VectorStoreJson:
    """By its id as a vector store, or by its name."""
    return _store_json(caller, vector_store(caller, vector_store_id))


@router.post("/vector_stores/{vector_store_id:named}", summary="Say something else of a collection")
def change(vector_store_id: Name, body: VectorStoreChanges, caller: Administrator) -> VectorStoreJson:
    """Its metadata, and whether it expires when nobody uses it."""
    place = vector_store(caller, vector_store_id)
    if body.name not in {None, place.name}:
        raise RefusedRequestError("A collection keeps its name: models and keys are known by it.", param="name")
    given = body.model_fields_set
    if given & {"metadata", "expires_after"}:
        caller.collections.note(
            place.name,
            metadata=body.metadata or {} if "metadata" in given else None,
            idle_days=(0 if body.expires_after is None else body.expires_after.days)
            if "expires_after" in given
            else None,
        )
    return _store_json(caller, place)


@router.delete("/vector_stores/{vector_store_id:named}", summary="Remove a collection")
def delete(vector_store_id: Name, caller: Administrator) -> DeletedJson:
    """With everything in it, physically: it cannot be taken back."""
    place = vector_store(caller, vector_store_id)
    caller.collections.delete(place.name)
    return {"id": store_id(place), "object": "vector_store.deleted", "deleted": True}


@router.post("/vector_stores/{vector_store_id:named}/search", summary="Find passages in a collection")
async def search(
    vector_store_id: Name, body: VectorStoreSearchBody, caller: Reader, service: Asking, request: Request
) -> FoundPassagesJson:
    """Best first; of several queries, each passage by its best."""
    return await service.searches.run(request, _found, caller, vector_store_id, body)


def _found(caller: View, vector_store_id: str, body: VectorStoreSearchBody) -> FoundPassagesJson:
    view = caller.view(collections=vector_store(caller, vector_store_id).name, remotes=())
    queries = [body.query] if isinstance(body.query, str) else list(body.query)
    most = body.max_num_results or 10  # litellm sends null for what its user leaves out
    options = RetrievalOptions(
        top_k=most,
        filters=read_filters(body.filters),
        min_relevance=None if body.ranking_options is None else body.ranking_options.score_threshold,
    )
    replies = [view.search(query, options) for query in queries]
    made = made_from(view, (one.document_id for reply in replies for one in reply.results))
    found = {one.chunk_id: result_json(one, made) for reply in reversed(replies) for one in reply.results}
    best = sorted(found.values(), key=lambda one: one["score"], reverse=True)[:most]
    return {
        "object": "vector_store.search_results.page",
        "search_query": queries,
        "data": [_passage_json(one) for one in best],
        "has_more": False,
        "next_page": None,
    }


def _store_json(view: View, place: Collection) -> VectorStoreJson:
    (told,) = _stores_json(view, [place])
    return told


def _stores_json(view: View, places: Sequence[Collection]) -> list[VectorStoreJson]:
    notes, unstored = view.collections.notes(), view.files.unstored_counts()
    return [_shown(one, notes.get(one.collection_id), unstored.get(one.collection_id, (0, 0, 0))) for one in places]


def _shown(place: Collection, notes: CollectionNotes | None, unstored: tuple[int, int, int]) -> VectorStoreJson:
    (waiting, failed, cancelled), stored = unstored, place.document_count
    days = None if notes is None else notes.idle_days
    expired = notes is not None and notes.expired_at is not None
    return {
        "id": store_id(place),
        "object": "vector_store",
        "created_at": int(place.created_at.timestamp()),
        "name": place.name,
        "description": place.description,
        "usage_bytes": 0,
        "file_counts": {
            "in_progress": waiting,
            "completed": stored,
            "failed": failed,
            "cancelled": cancelled,
            "total": waiting + stored + failed + cancelled,
        },
        "status": "expired" if expired else "in_progress" if waiting else "completed",
        "expires_after": None if days is None else {"anchor": "last_active_at", "days": days},
        "expires_at": _seconds(None if notes is None else notes.expires_at),
        "last_active_at": _seconds(None if notes is None else notes.last_active_at),
        "metadata": {} if notes is None else dict(notes.metadata),
    }


def _seconds(moment: datetime | None) -> int | None:
    return None if moment is None else int(moment.timestamp())


def _passage_json(found: FileSearchResultJson) -> FoundPassageJson:
    return {
        "file_id": found["file_id"],
        "filename": found["filename"],
        "score": found["score"],
        "attributes": found["attributes"],
        "content": [{"type": "text", "text": found["text"]}],
    }
