"""``/v1/vector_stores``: collections, as OpenAI's API has them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import Query
from pydantic import Field
from typing_extensions import TypedDict

from recollect.errors import NotFoundError
from recollect.server.dependencies import Administrator, Reader, Writer
from recollect.server.openai.citations import file_id
from recollect.server.openai.errors import RefusedRequestError, resource
from recollect.server.openai.file_searches import (
    Attributes,
    FileSearchResultJson,
    RankingOptions,
    attributes_of,
    read_filters,
    result_json,
    store_id,
    vector_store,
)
from recollect.server.openai.files import DeletedJson, Limit, Order, document, page_of
from recollect.server.openai.parameters import Ignored
from recollect.server.schemas.base import Body, Name, Text
from recollect.store.documents import DocumentRecord, DocumentStatus

if TYPE_CHECKING:
    from recollect.model.collection import Collection
    from recollect.pipeline import View

router = resource()

_STATUS: dict[DocumentStatus, Literal["in_progress", "completed", "failed"]] = {
    "embedded": "completed",
    "pending": "in_progress",
    "error": "failed",
}


class VectorStoreBody(Body):
    """A new collection."""

    name: Name
    description: Text | None = Field(None, max_length=10_000)
    chunking_strategy: dict[str, Any] | None = None
    file_ids: tuple[str, ...] | None = None
    expires_after: dict[str, Any] | None = None
    metadata: dict[str, str] | None = None

    def require_possible(self) -> None:
        """Refuse what a collection has not.

        Raises:
            RefusedRequestError: It is asked for.
        """
        if (self.chunking_strategy or {"type": "auto"}).get("type") != "auto":
            raise RefusedRequestError(
                "Documents are cut as configured here; POST /v1/collections takes chunking.", param="chunking_strategy"
            )
        for param in ("file_ids", "expires_after", "metadata"):
            if getattr(self, param):
                raise RefusedRequestError(f"Collections have no {param}: leave it out.", param=param)


class VectorStoreSearchBody(Body):
    """A search in a collection."""

    query: Text | Annotated[tuple[Text, ...], Field(min_length=1, max_length=16)] = Field(max_length=100_000)
    filters: dict[str, Any] | None = None
    max_num_results: int = Field(10, ge=1, le=50)
    ranking_options: RankingOptions | None = None
    rewrite_query: Ignored = None


class FileCountsJson(TypedDict):
    """Documents by what became of them."""

    in_progress: int
    completed: int
    failed: int
    cancelled: int
    total: int


class VectorStoreJson(TypedDict):
    """A collection; `usage_bytes` is not known."""

    id: str
    object: Literal["vector_store"]
    created_at: int
    name: str
    description: str
    usage_bytes: int
    file_counts: FileCountsJson
    status: Literal["completed"]
    expires_after: None
    expires_at: None
    last_active_at: None
    metadata: dict[str, str]


class VectorStoreListJson(TypedDict):
    """Collections."""

    object: Literal["list"]
    data: list[VectorStoreJson]
    first_id: str | None
    last_id: str | None
    has_more: bool


class LastErrorJson(TypedDict):
    """Why a document is not stored."""

    code: Literal["server_error"]
    message: str


class VectorStoreFileJson(TypedDict):
    """A document of a collection."""

    id: str
    object: Literal["vector_store.file"]
    created_at: int
    vector_store_id: str
    filename: str
    status: Literal["in_progress", "completed", "failed"]
    last_error: LastErrorJson | None
    usage_bytes: int
    attributes: Attributes


class VectorStoreFileListJson(TypedDict):
    """Documents of a collection."""

    object: Literal["list"]
    data: list[VectorStoreFileJson]
    first_id: str | None
    last_id: str | None
    has_more: bool


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


class TextPartJson(TypedDict):
    """The text of a document."""

    type: Literal["text"]
    text: str


class TextPageJson(TypedDict):
    """The text of a document."""

    object: Literal["vector_store.file_content.page"]
    data: list[TextPartJson]
    has_more: bool
    next_page: None


@router.get("/vector_stores", summary="List the collections as vector stores")
def vector_stores(
    caller: Reader,
    limit: Limit = 20,
    order: Annotated[Literal["asc", "desc"], Query(description="The oldest first, or the newest.")] = "desc",
    after: Name | None = None,
    before: Name | None = None,
) -> VectorStoreListJson:
    """By their age, counting what may be read of each."""
    places = sorted(caller.collections.list(), key=lambda one: one.collection_id, reverse=order == "desc")
    ids = [store_id(one) for one in places]
    start = ids.index(after) + 1 if after in ids else 0
    end = ids.index(before) if before in ids else len(ids)
    shown = places[start:end][:limit]
    return {
        "object": "list",
        "data": [_store_json(one) for one in shown],
        "first_id": store_id(shown[0]) if shown else None,
        "last_id": store_id(shown[-1]) if shown else None,
        "has_more": len(places[start:end]) > limit,
    }


@router.post("/vector_stores", summary="Make a collection")
def create(body: VectorStoreBody, caller: Administrator) -> VectorStoreJson:
    """An empty one."""
    body.require_possible()
    return _store_json(caller.collections.create(body.name, description=body.description or ""))


@router.get("/vector_stores/{vector_store_id}", summary="Show a collection as a vector store")
def show(vector_store_id: Name, caller: Reader) -> VectorStoreJson:
    """By its id as a vector store, or by its name."""
    return _store_json(vector_store(caller, vector_store_id))


@router.delete("/vector_stores/{vector_store_id}", summary="Remove a collection")
def delete(vector_store_id: Name, caller: Administrator) -> DeletedJson:
    """With everything in it, physically: it cannot be taken back."""
    place = vector_store(caller, vector_store_id)
    caller.collections.delete(place.name)
    return {"id": store_id(place), "object": "vector_store.deleted", "deleted": True}


@router.post("/vector_stores/{vector_store_id}/search", summary="Find passages in a collection")
def search(vector_store_id: Name, body: VectorStoreSearchBody, caller: Reader) -> FoundPassagesJson:
    """Best first; of several queries, each passage by its best."""
    view = caller.view(collections=vector_store(caller, vector_store_id).name)
    queries = [body.query] if isinstance(body.query, str) else list(body.query)
    options = replace(
        view.default_options(),
        top_k=body.max_num_results,
        filters=read_filters(body.filters),
        min_relevance=None if body.ranking_options is None else body.ranking_options.score_threshold,
    )
    replies = [view.search(query, options) for query in queries]
    found = {one.chunk_id: result_json(one) for reply in reversed(replies) for one in reply.results}
    best = sorted(found.values(), key=lambda one: one["score"], reverse=True)[: body.max_num_results]
    return {
        "object": "vector_store.search_results.page",
        "search_query": queries,
        "data": [_passage_json(one) for one in best],
        "has_more": False,
        "next_page": None,
    }


@router.get("/vector_stores/{vector_store_id}/files", summary="List the documents of a collection")
def files(
    vector_store_id: Name,
    caller: Reader,
    limit: Limit = 20,
    _: Order = "asc",
    after: Name | None = None,
    filter: Annotated[
        Literal["in_progress", "completed", "failed", "cancelled"] | None, Query(description="Only these.")
    ] = None,
) -> VectorStoreFileListJson:
    """By their ids."""
    place = vector_store(caller, vector_store_id)
    status = next((ours for ours, theirs in _STATUS.items() if theirs == filter), None)
    found, more = (
        ([], False)
        if filter == "cancelled"
        else page_of([caller.view(collections=place.name)], limit=limit, after=after, status=status)
    )
    data = [_file_json(one, place) for one in found]
    return {
        "object": "list",
        "data": data,
        "first_id": data[0]["id"] if data else None,
        "last_id": data[-1]["id"] if data else None,
        "has_more": more,
    }


@router.get("/vector_stores/{vector_store_id}/files/{file}", summary="Show a document of a collection")
def file(vector_store_id: Name, file: Name, caller: Reader) -> VectorStoreFileJson:
    """One that is there."""
    place = vector_store(caller, vector_store_id)
    return _file_json(_within(caller, place, file), place)


@router.get("/vector_stores/{vector_store_id}/files/{file}/content", summary="Read a document of a collection")
def content(vector_store_id: Name, file: Name, caller: Reader) -> TextPageJson:
    """Its whole text, as it was read from the file."""
    found = _within(caller, vector_store(caller, vector_store_id), file)
    return {
        "object": "vector_store.file_content.page",
        "data": [{"type": "text", "text": found.content or ""}],
        "has_more": False,
        "next_page": None,
    }


@router.delete("/vector_stores/{vector_store_id}/files/{file}", summary="Close a document of a collection")
def remove(vector_store_id: Name, file: Name, caller: Writer) -> DeletedJson:
    """Searches of the present find it no longer; its history stays."""
    found = _within(caller, vector_store(caller, vector_store_id), file)
    caller.documents.delete([found.document_id])
    return {"id": file_id(found.document_id), "object": "vector_store.file.deleted", "deleted": True}


def _within(view: View, place: Collection, file: str) -> DocumentRecord:
    found = document(view, file)
    if found.collection != place.name:
        raise NotFoundError(f"No such file: {file!r} is not in {place.name!r}.")
    return found


def _store_json(place: Collection) -> VectorStoreJson:
    count = place.document_count
    return {
        "id": store_id(place),
        "object": "vector_store",
        "created_at": int(place.created_at.timestamp()),
        "name": place.name,
        "description": place.description,
        "usage_bytes": 0,
        "file_counts": {"in_progress": 0, "completed": count, "failed": 0, "cancelled": 0, "total": count},
        "status": "completed",
        "expires_after": None,
        "expires_at": None,
        "last_active_at": None,
        "metadata": {},
    }


def _file_json(record: DocumentRecord, place: Collection) -> VectorStoreFileJson:
    return {
        "id": file_id(record.document_id),
        "object": "vector_store.file",
        "created_at": int(record.known_from.timestamp()),
        "vector_store_id": store_id(place),
        "filename": record.source,
        "status": _STATUS[record.status],
        "last_error": None if record.error is None else {"code": "server_error", "message": record.error},
        "usage_bytes": len((record.content or "").encode()),
        "attributes": attributes_of(record.metadata, record.department),
    }


def _passage_json(found: FileSearchResultJson) -> FoundPassageJson:
    return {
        "file_id": found["file_id"],
        "filename": found["filename"],
        "score": found["score"],
        "attributes": found["attributes"],
        "content": [{"type": "text", "text": found["text"]}],
    }
