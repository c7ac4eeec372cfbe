"""``/v1/collections/{name}/documents`` and ``/v1/documents/{id}``: documents as records, put in and taken out."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from starlette.responses import Response

from recollect.model import IngestResult
from recollect.model.document_record import DocumentRecord
from recollect.model.duplicates import SameDocument
from recollect.model.history import ErasureReceipt
from recollect.model.job import Job
from recollect.model.page import Page
from recollect.operations.values import Name, Number, Text
from recollect.pipeline import View
from recollect.replies.documents import DocumentIdJson
from recollect.replies.history import LifetimeJson, RestoredVersionJson, lifetime_json, restored_version_json
from recollect.server.dependencies import DocumentReader, DocumentWriter, Reader, Writer
from recollect.server.etags import IfMatch, IfNoneMatch, required_version, unchanged, version_tag
from recollect.server.pages import PageCursor, PageLimit
from recollect.server.problems import documented
from recollect.server.schemas.documents import (
    DescriptionBody,
    DocumentBody,
    ErasureBody,
    LifetimeBody,
    RereadBody,
    RestoreBody,
    UrlBody,
)

router = APIRouter(tags=["documents"], responses=documented(404))

_NOT_MODIFIED: dict[int | str, dict[str, Any]] = {304: {"description": "It has not changed since."}}


@router.get("/collections/{name:named}/documents", summary="List the documents of a collection")
def documents(
    name: Name,
    caller: Reader,
    status: Annotated[
        Literal["pending", "embedded", "error"] | None,
        Query(description="Only those that are stored, that a job is to store, or that it could not."),
    ] = None,
    source: Annotated[
        Name | None, Query(description="Only this one, or those of this folder, domain or other origin.")
    ] = None,
    department: Annotated[Name | None, Query()] = None,
    tag: Annotated[tuple[Name, ...], Query(description="Only those with all of these.")] = (),
    sort: Annotated[Literal["oldest", "newest"], Query(description="By their ids.")] = "oldest",
    cursor: PageCursor = None,
    limit: PageLimit = 100,
) -> Page[DocumentRecord]:
    """As `recollect documents list --json`, page by page."""
    return caller.view(collections=name).documents.list(
        status=status,
        source=source,
        department=department,
        tags=tag,
        newest_first=sort == "newest",
        cursor=cursor,
        limit=limit,
    )


@router.post(
    "/collections/{name:named}/documents", status_code=201, summary="Store a text", responses=documented(409, 502)
)
def add(name: Name, body: DocumentBody, caller: Writer, response: Response) -> IngestResult:
    """A document of the same source becomes a new version; an equal one is left alone. It is findable at once."""
    written = there(caller, name).ingest(body.document(), force=body.force)
    response.headers["Location"] = f"/v1/documents/{written.document_id}"
    return written


@router.post(
    "/collections/{name:named}/urls", status_code=202, summary="Store a page of the web", responses=documented(502)
)
def add_url(name: Name, body: UrlBody, caller: Writer, response: Response) -> Job:
    """As `recollect ingest URL --background`: a worker fetches it; the job says what became of it."""
    job = there(caller, name).ingest_url(
        body.url,
        method=body.method or ("GET" if body.data is None else "POST"),
        headers=body.headers,
        body=body.data,
        chunk_size=body.chunk_size,
        chunk_overlap=body.chunk_overlap,
        tags=body.tag,
        permissions=body.grant,
        force=body.force,
        crawl=body.plan(),
        wait=False,
    )
    response.headers["Location"] = f"/v1/jobs/{job.job_id}"
    return job


@router.get("/documents", summary="Find a document by its source")
def named(
    caller: Reader,
    source: Annotated[
        Text, Query(min_length=1, max_length=10_000, description="Its source, the id that it was given, or its number.")
    ],
    collection: Annotated[
        tuple[Name, ...], Query(description="The collections; * means all; left out: the configured one.")
    ] = (),
    several: Annotated[
        bool, Query(description="Reply with every document of a source that documents with ids share, not with a 400.")
    ] = False,
) -> DocumentIdJson:
    """One that may be read. A closed one has its name still, where no other has it."""
    found = caller.view(collections=collection or None).documents.resolve([source], each_one=not several)
    return {"document_id": found[0], "document_ids": found}


@router.get(
    "/documents/{document_id}", summary="Show a document", response_model=DocumentRecord, responses=_NOT_MODIFIED
)
def show(
    document_id: Number, caller: DocumentReader, response: Response, if_none_match: IfNoneMatch = None
) -> DocumentRecord | Response:
    """Without its text, which is its content. Its `ETag` is its version."""
    record = caller.documents.get(document_id)
    tag = version_tag(record)
    if unchanged(tag, if_none_match):
        return Response(status_code=304, headers={"ETag": tag})
    response.headers["ETag"] = tag
    return record


@router.put("/documents/{document_id}", summary="Describe a document", responses=documented(409, 412))
def describe(
    document_id: Number, body: DescriptionBody, caller: DocumentWriter, response: Response, if_match: IfMatch = None
) -> IngestResult:
    """Title, metadata, tags and department: a new version with the same text."""
    written = caller.documents.update(
        document_id,
        title=body.title,
        metadata=body.metadata,
        tags=body.tags,
        department=body.department,
        if_version=_required(caller, document_id, if_match),
    )
    response.headers["ETag"] = f'"{written.version}"'
    return written


@router.delete("/documents/{document_id}", status_code=204, summary="Close a document", responses=documented(412))
def close(document_id: Number, caller: DocumentWriter, if_match: IfMatch = None) -> None:
    """Searches of the present find it no longer; its history stays. To remove it for good, erase it."""
    caller.documents.delete([document_id], if_version=_required(caller, document_id, if_match))


@router.post("/documents/{document_id}/erase", summary="Erase a document")
def erase(document_id: Number, body: ErasureBody, caller: DocumentWriter) -> ErasureReceipt:
    """With every version, physically: it cannot be taken back. The receipt proves it and holds none of the content."""
    return caller.documents.erase([document_id], reason=body.reason, scrub=body.scrub)


@router.post("/documents/{document_id}/reingest", summary="Read an original anew", responses=documented(502))
def reingest(document_id: Number, body: RereadBody, caller: DocumentWriter) -> IngestResult:
    """The kept original, as files are read, cut and embedded now: a new version where anything is different."""
    return caller.documents.reread(document_id, force=body.force)


@router.post("/documents/{document_id}/restore", summary="Restore a version")
def restore(document_id: Number, body: RestoreBody, caller: DocumentWriter) -> RestoredVersionJson:
    """What it said becomes the newest version. Department, tags and grants stay as they are."""
    department = caller.documents.history(document_id).department
    return restored_version_json(caller.documents.restore(document_id, body.version), department=department)


@router.put("/documents/{document_id}/ttl", summary="Decide how long a document is found")
def set_ttl(document_id: Number, body: LifetimeBody, caller: DocumentWriter) -> LifetimeJson:
    """From now on; then it is closed as though it were deleted, and its history stays."""
    caller.documents.set_ttl(document_id, body.ttl)
    history = caller.documents.history(document_id)
    return lifetime_json(document_id, history)


@router.get("/duplicates", summary="List documents that have the same text")
def duplicates(caller: Reader, cursor: PageCursor = None, limit: PageLimit = 100) -> Page[tuple[SameDocument, ...]]:
    """Group by group, in all collections, as far as they may be read."""
    return caller.documents.list_duplicates(cursor=cursor, limit=limit)


def _required(caller: View, document_id: int, if_match: str | None) -> int | None:
    return None if if_match is None else required_version(caller.documents.get(document_id), if_match)


def there(caller: View, name: str) -> View:
    """The view of a collection that documents are stored in: one that there is, or the configured one.

    A name that is misspelt makes no collection: that is for whoever administers the tenant.

    Raises:
        NotFoundError: There is none of that name.
    """
    if name != caller.config.collection:
        caller.collections.get(name)
    return caller.view(collections=name)
