"""``/v1/vector_stores/{id}/file_batches``: files that a collection is given together."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, model_validator
from typing_extensions import TypedDict

from recollect.errors import NotFoundError
from recollect.operations.values import Name
from recollect.server.bodies import Body
from recollect.server.dependencies import Reader, Writer
from recollect.server.openai.errors import RefusedRequestError, resource
from recollect.server.openai.file_searches import store_id, vector_store
from recollect.server.openai.files import After, Limit, Order, position
from recollect.server.openai.vector_store_files import (
    AttachedFile,
    AttributesBody,
    ChunkingStrategy,
    StatusFilter,
    VectorStoreFileListJson,
    file_json,
    listed,
)

if TYPE_CHECKING:
    from recollect.model.collection import Collection
    from recollect.model.document_record import DocumentRecord
    from recollect.model.uploaded_file import BatchedJob
    from recollect.pipeline import View

router = resource()

_MOST_FILES = 2_000
_STATUS = {"pending": "in_progress", "running": "in_progress", "succeeded": "completed"}


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


@router.get("/vector_stores/{vector_store_id:named}/file_batches/{batch}", summary="Show a batch of files")
def show(vector_store_id: Name, batch: Name, caller: Reader) -> FileBatchJson:
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


@router.get("/vector_stores/{vector_store_id:named}/file_batches/{batch}/files", summary="List the files of a batch")
def files(
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
    states = [_STATUS.get(job.status, job.status) for job in jobs]
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
