"""``/v1/vector_stores/{id}/files`` and ``file_batches``: the documents of a collection, and the files given to it."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import Query
from pydantic import Field, model_validator
from typing_extensions import TypedDict

from recollect.errors import ConflictError, NotFoundError
from recollect.model.uploaded_file import FileUse
from recollect.operations.values import Name, Text
from recollect.pipeline.uploading import CUT
from recollect.server.bodies import Body
from recollect.server.dependencies import Reader, Writer
from recollect.server.openai.errors import RefusedRequestError, resource
from recollect.server.openai.file_searches import Attributes, attributes_of, store_id, vector_store
from recollect.server.openai.files import (
    After,
    DeletedJson,
    Limit,
    Order,
    PageEnds,
    document,
    id_of,
    page_ends,
    page_of,
    position,
    required_number,
)

if TYPE_CHECKING:
    from recollect.model.collection import Collection
    from recollect.model.document_record import DocumentRecord, DocumentStatus
    from recollect.model.uploaded_file import BatchedJob
    from recollect.pipeline import View


router = resource()


FileStatus = Literal["in_progress", "completed", "failed"]


#: Only files of this status.
StatusFilter = Annotated[
    Literal["in_progress", "completed", "failed", "cancelled"] | None,
    Query(alias="filter", description="Only these; what was cancelled counts as failed."),
]


_STATUS: dict[DocumentStatus, FileStatus] = {"embedded": "completed", "pending": "in_progress", "error": "failed"}


class AttributesChange(Body):
    """What is said of a document, in place of what was said before."""

    attributes: AttributesBody | None


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
    status: FileStatus
    last_error: LastErrorJson | None
    usage_bytes: int
    attributes: Attributes
    chunking_strategy: ChunkingStrategyJson


class VectorStoreFileListJson(PageEnds):
    """Documents of a collection."""

    data: list[VectorStoreFileJson]


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


@router.get("/vector_stores/{vector_store_id:named}/files", summary="List the documents of a collection")
def files(
    vector_store_id: Name,
    caller: Reader,
    limit: Limit = 20,
    order: Order = "desc",
    after: After = None,
    status: StatusFilter = None,
) -> VectorStoreFileListJson:
    """By their ids."""
    place = vector_store(caller, vector_store_id)
    behind = _position(caller, after, place)
    found = (
        []
        if status == "cancelled"
        else page_of(
            [caller.view(collections=place.name)],
            limit=limit,
            after=behind,
            newest_first=order == "desc",
            status=next((ours for ours, theirs in _STATUS.items() if theirs == status), None),
        )
    )
    return listed(found, place, limit=limit)


def listed(found: list[DocumentRecord], place: Collection, *, limit: int) -> VectorStoreFileListJson:
    """A page of files; ``found`` holds one more than are shown where others follow."""
    data = [file_json(one, place) for one in found[:limit]]
    return {**page_ends(data, more=len(found) > limit), "data": data}


@router.post("/vector_stores/{vector_store_id:named}/files", summary="Make a file a document of a collection")
def attach(vector_store_id: Name, body: AttachedFile, caller: Writer) -> VectorStoreFileJson:
    """It is read by a job: `in_progress` until it is found by searches. `attributes` are the document's metadata."""
    place = vector_store(caller, vector_store_id)
    view = caller.view(collections=place.name)
    view.files.attach([body.use()])
    return file_json(document(view, body.file_id, collection=place.name), place)


@router.get("/vector_stores/{vector_store_id:named}/files/{file}", summary="Show a document of a collection")
def show(vector_store_id: Name, file: Name, caller: Reader) -> VectorStoreFileJson:
    """One that is there."""
    place = vector_store(caller, vector_store_id)
    return file_json(document(caller, file, collection=place.name), place)


@router.post("/vector_stores/{vector_store_id:named}/files/{file}", summary="Say something else of a document")
def change(vector_store_id: Name, file: Name, body: AttributesChange, caller: Writer) -> VectorStoreFileJson:
    """Its `attributes` take the place of those that it had; what is no attribute of its metadata stays."""
    place = vector_store(caller, vector_store_id)
    found = document(caller, file, collection=place.name)
    if found.status != "embedded":
        raise ConflictError("The file is not stored yet: wait until its status is completed.")
    metadata, department = said(body.attributes)
    shown = attributes_of(found.metadata, None)
    kept = {name: value for name, value in found.metadata.items() if name not in shown}
    caller.view(collections=place.name).documents.update(
        found.document_id, metadata={**kept, **metadata}, department=department
    )
    return file_json(document(caller, file, collection=place.name), place)


@router.get("/vector_stores/{vector_store_id:named}/files/{file}/content", summary="Read a document of a collection")
def content(vector_store_id: Name, file: Name, caller: Reader) -> TextPageJson:
    """Its whole text, as it was read from the file."""
    found = document(caller, file, collection=vector_store(caller, vector_store_id).name)
    return {
        "object": "vector_store.file_content.page",
        "data": [{"type": "text", "text": found.content or ""}],
        "has_more": False,
        "next_page": None,
    }


@router.delete("/vector_stores/{vector_store_id:named}/files/{file}", summary="Take a document out of a collection")
def remove(vector_store_id: Name, file: Name, caller: Writer) -> DeletedJson:
    """Searches of the present find it no longer; its history stays, and so does the file that it was made from."""
    place = vector_store(caller, vector_store_id)
    found = document(caller, file, collection=place.name)
    caller.view(collections=place.name).files.detach(found.document_id)
    return {"id": id_of(found), "object": "vector_store.file.deleted", "deleted": True}


def file_json(record: DocumentRecord, place: Collection) -> VectorStoreFileJson:
    """A document of a collection."""
    return {
        "id": id_of(record),
        "object": "vector_store.file",
        "created_at": int(record.known_from.timestamp()),
        "vector_store_id": store_id(place),
        "filename": record.source,
        "status": _STATUS[record.status],
        "last_error": None if record.error is None else {"code": "server_error", "message": record.error},
        "usage_bytes": len((record.content or "").encode()),
        "attributes": attributes_of(record.metadata, record.department),
        "chunking_strategy": chunking_json(record.metadata),
    }


def _position(view: View, after: str | None, place: Collection) -> int:
    """Behind which document a page begins: files are listed in the order in which the collection was given them."""
    number = position(after)
    return view.files.documents(number).get(place.name, number) if number else 0


# How OpenAI's API says that a file is cut, and what is said of it beside.


class ChunkSizesBody(Body):
    """Sizes in tokens."""

    max_chunk_size_tokens: int = Field(ge=100, le=4_096)
    chunk_overlap_tokens: int = Field(ge=0)

    @model_validator(mode="after")
    def _at_most_half(self) -> ChunkSizesBody:
        if self.chunk_overlap_tokens * 2 > self.max_chunk_size_tokens:
            raise ValueError("chunk_overlap_tokens must not exceed half of max_chunk_size_tokens")
        return self


class AutomaticChunking(Body):
    """As the collection cuts its documents."""

    type: Literal["auto"]


class StaticChunking(Body):
    """As the collection cuts, with other sizes."""

    type: Literal["static"]
    static: ChunkSizesBody


#: How a file is cut.
ChunkingStrategy = Annotated[AutomaticChunking | StaticChunking, Field(discriminator="type")]


#: Of a document, beside what the file says of itself: its metadata, and `department`.
AttributesBody = Annotated[
    dict[Annotated[Text, Field(min_length=1, max_length=64)], Annotated[Text, Field(max_length=512)] | bool | float],
    Field(max_length=16),
]


class AttachedFile(Body):
    """A file that becomes a document of a collection."""

    file_id: Name
    attributes: AttributesBody | None = None
    chunking_strategy: ChunkingStrategy | None = None

    def use(self, *, param: str = "file_id") -> FileUse:
        """What the collection is to make of it.

        Raises:
            RefusedRequestError: There is no such file.
        """
        static = self.chunking_strategy.static if isinstance(self.chunking_strategy, StaticChunking) else None
        metadata, department = said(self.attributes)
        return FileUse(
            file_id=required_number(self.file_id, param=param),
            metadata=metadata,
            department=department,
            chunk_tokens=None if static is None else static.max_chunk_size_tokens,
            overlap_tokens=None if static is None else static.chunk_overlap_tokens,
        )


class ChunkSizesJson(TypedDict):
    """Sizes in tokens."""

    max_chunk_size_tokens: int
    chunk_overlap_tokens: int


class StaticChunkingJson(TypedDict):
    """Cut with sizes of its own."""

    type: Literal["static"]
    static: ChunkSizesJson


class OtherChunkingJson(TypedDict):
    """Cut as the collection cuts."""

    type: Literal["other"]


#: How a file was cut.
ChunkingStrategyJson = StaticChunkingJson | OtherChunkingJson


def chunking_json(metadata: Mapping[str, Any]) -> ChunkingStrategyJson:
    """How a document was cut, by its metadata."""
    match metadata.get(CUT):
        case {"chunk_tokens": int(size), "overlap_tokens": int(overlap)}:
            return {"type": "static", "static": {"max_chunk_size_tokens": size, "chunk_overlap_tokens": overlap}}
    return {"type": "other"}


def said(attributes: Attributes | None) -> tuple[Mapping[str, Any], str | None]:
    """Attributes as metadata and the department of a document."""
    metadata = dict(attributes or {})
    department = metadata.pop("department", None)
    return metadata, None if department is None else str(department)


# `/v1/vector_stores/{id}/file_batches`: files that a collection is given together.


_MOST_FILES = 2_000


_JOB_STATUS = {"pending": "in_progress", "running": "in_progress", "succeeded": "completed"}


class BatchBody(Body):
    """Files that become documents of a collection."""

    file_ids: Annotated[tuple[Name, ...], Field(min_length=1, max_length=_MOST_FILES)] | None = None
    files: Annotated[tuple[AttachedFile, ...], Field(min_length=1, max_length=_MOST_FILES)] | None = None
    attributes: AttributesBody | None = None
    chunking_strategy: ChunkingStrategy | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> BatchBody:
        if (self.file_ids is None) == (self.files is None):
            raise ValueError("give file_ids or files")
        return self

    def attached(self) -> Sequence[AttachedFile]:
        """Each file, with what is said of it."""
        if self.files is not None:
            return self.files
        shared = {"attributes": self.attributes, "chunking_strategy": self.chunking_strategy}
        return [AttachedFile.model_validate({"file_id": one, **shared}) for one in self.file_ids or ()]


class BatchCountsJson(TypedDict):
    """Files by what became of them."""

    in_progress: int
    completed: int
    failed: int
    cancelled: int
    total: int


class FileBatchJson(TypedDict):
    """Files that a collection was given together."""

    id: str
    object: Literal["vector_store.files_batch"]
    created_at: int
    vector_store_id: str
    status: Literal["in_progress", "completed", "cancelled", "failed"]
    file_counts: BatchCountsJson


@router.post("/vector_stores/{vector_store_id:named}/file_batches", summary="Make files documents of a collection")
def create(vector_store_id: Name, body: BatchBody, caller: Writer) -> FileBatchJson:
    """All or none of them are asked for; each is read by a job."""
    place = vector_store(caller, vector_store_id)
    view, name = caller.view(collections=place.name), f"vsfb_{secrets.token_hex(16)}"
    view.files.attach([one.use() for one in body.attached()], batch=name)
    return _batch_json(name, view.files.batch(name), place)


@router.get("/vector_stores/{vector_store_id:named}/file_batches/{batch}", summary="Show a batch of files", name="show")
def show_batch(vector_store_id: Name, batch: Name, caller: Reader) -> FileBatchJson:
    """How many are stored, wait or failed; known for as long as their jobs are."""
    place = vector_store(caller, vector_store_id)
    return _batch_json(batch, _jobs(caller, batch, place), place)


@router.post("/vector_stores/{vector_store_id:named}/file_batches/{batch}/cancel", summary="Cancel a batch of files")
def cancel(vector_store_id: Name, batch: Name, caller: Writer) -> FileBatchJson:
    """What is stored stays."""
    place = vector_store(caller, vector_store_id)
    for job in _jobs(caller, batch, place):
        caller.jobs.cancel(job.job_id)
    return _batch_json(batch, _jobs(caller, batch, place), place)


@router.get(
    "/vector_stores/{vector_store_id:named}/file_batches/{batch}/files",
    summary="List the files of a batch",
    name="files",
)
def batch_files(
    vector_store_id: Name,
    batch: Name,
    caller: Reader,
    limit: Limit = 20,
    order: Order = "desc",
    after: After = None,
    status: StatusFilter = None,
) -> VectorStoreFileListJson:
    """Those that are there still, by their ids."""
    place = vector_store(caller, vector_store_id)
    numbers = sorted({job.document_id for job in _jobs(caller, batch, place) if job.document_id is not None})
    if order == "desc":
        numbers.reverse()
    if after is not None:
        number = position(after)
        last = caller.files.documents(number).get(place.name, number)
        numbers = [one for one in numbers if (one < last if order == "desc" else one > last)]
    found: list[DocumentRecord] = []
    view = caller.view(collections=place.name)
    for number in numbers:
        record = _record(view, number)
        if record is not None and status in {None, file_json(record, place)["status"]}:
            found.append(record)
        if len(found) > limit:
            break
    return listed(found, place, limit=limit)


def _jobs(view: View, batch: str, place: Collection) -> Sequence[BatchedJob]:
    try:
        jobs = [job for job in view.files.batch(batch) if job.collection == place.name]
    except NotFoundError:
        jobs = []
    if not jobs:
        raise RefusedRequestError(
            f"No such batch of files: {batch[:200]}", param="batch_id", code="batch_not_found", status=404
        )
    return jobs


def _record(view: View, document_id: int) -> DocumentRecord | None:
    try:
        return view.documents.get(document_id)
    except NotFoundError:
        return None


def _batch_json(name: str, jobs: Sequence[BatchedJob], place: Collection) -> FileBatchJson:
    states = [_JOB_STATUS.get(job.status, job.status) for job in jobs]
    counts: BatchCountsJson = {
        "in_progress": states.count("in_progress"),
        "completed": states.count("completed"),
        "failed": states.count("failed"),
        "cancelled": states.count("cancelled"),
        "total": len(states),
    }
    status: Literal["in_progress", "completed", "cancelled", "failed"] = "completed"
    if counts["in_progress"]:
        status = "in_progress"
    elif counts["cancelled"]:
        status = "cancelled"
    elif counts["failed"] == counts["total"]:
        status = "failed"
    return {
        "id": name,
        "object": "vector_store.files_batch",
        "created_at": int(jobs[0].created_at.timestamp()),
        "vector_store_id": store_id(place),
        "status": status,
        "file_counts": counts,
    }
