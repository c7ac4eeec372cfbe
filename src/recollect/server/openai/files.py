"""``/v1/files``: documents, as OpenAI's API has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal
from urllib.parse import quote

from fastapi import Query
from starlette.responses import Response, StreamingResponse
from typing_extensions import TypedDict

from recollect.errors import NotFoundError
from recollect.server.dependencies import Reader, Writer
from recollect.server.openai.citations import file_id
from recollect.server.openai.errors import RefusedRequestError, resource
from recollect.server.schemas.base import Name

if TYPE_CHECKING:
    from recollect.pipeline import View
    from recollect.store.documents import DocumentRecord, DocumentStatus

router = resource()

_HIGHEST = 2**63 - 1

#: Entries of a page.
Limit = Annotated[int, Query(ge=1, le=1_000)]
#: By age; documents are listed in this order alone.
Order = Annotated[Literal["asc"], Query(alias="order", description="The oldest first.")]

_STATUS: dict[str, Literal["uploaded", "processed", "error"]] = {
    "embedded": "processed",
    "pending": "uploaded",
    "error": "error",
}


class FileJson(TypedDict):
    """A document; `bytes` counts its text, where that was read."""

    id: str
    object: Literal["file"]
    bytes: int
    created_at: int
    filename: str
    purpose: Literal["user_data"]
    status: Literal["uploaded", "processed", "error"]
    status_details: str | None
    expires_at: None


class FileListJson(TypedDict):
    """Documents."""

    object: Literal["list"]
    data: list[FileJson]
    first_id: str | None
    last_id: str | None
    has_more: bool


class DeletedJson(TypedDict):
    """That something is there no longer."""

    id: str
    object: str
    deleted: bool


@router.get("/files", summary="List the documents of all collections")
def files(
    caller: Reader,
    limit: Limit = 100,
    _: Order = "asc",
    after: Name | None = None,
    purpose: Annotated[Name | None, Query(description="Only of this purpose; documents have `user_data`.")] = None,
) -> FileListJson:
    """By their ids."""
    views = [caller.view(collections=place.name) for place in caller.collections.list()]
    if purpose not in {None, "user_data"}:
        views = []
    found, more = page_of(views, limit=limit, after=after)
    data = [_file_json(one) for one in found]
    return {
        "object": "list",
        "data": data,
        "first_id": data[0]["id"] if data else None,
        "last_id": data[-1]["id"] if data else None,
        "has_more": more,
    }


@router.get("/files/{file}", summary="Show a document")
def show(file: Name, caller: Reader) -> FileJson:
    """One that may be read."""
    return _file_json(document(caller, file))


@router.get(
    "/files/{file}/content",
    summary="Download a document",
    response_class=Response,
    responses={200: {"content": {"application/octet-stream": {}}, "description": "The file, or the document's text."}},
)
def content(file: Name, caller: Reader) -> Response:
    """The file as it came, where it was kept, and otherwise the text that was read from it."""
    record = document(caller, file)
    # Whatever it is, a browser is to keep it rather than show it.
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(record.source.rpartition('/')[2])}"}
    try:
        original = caller.view(collections="*").contents.original(record.document_id)
    except NotFoundError:
        return Response((record.content or "").encode(), media_type="application/octet-stream", headers=headers)
    return StreamingResponse(original.opened(), media_type="application/octet-stream", headers=headers)


@router.delete("/files/{file}", summary="Close a document")
def delete(file: Name, caller: Writer) -> DeletedJson:
    """Searches of the present find it no longer; its history stays."""
    found = document(caller, file)
    caller.documents.delete([found.document_id])
    return {"id": file_id(found.document_id), "object": "file", "deleted": True}


def document(view: View, file: str) -> DocumentRecord:
    """The document that a file's id means.

    Raises:
        RefusedRequestError: There is none that may be read.
    """
    number = _number(file)
    if number is not None:
        try:
            return view.documents.get(number)
        except NotFoundError:
            pass
    raise RefusedRequestError(f"No such File object: {file[:200]}", param="id", code="file_not_found", status=404)


def page_of(
    views: Sequence[View], *, limit: int, after: str | None, status: DocumentStatus | None = None
) -> tuple[list[DocumentRecord], bool]:
    """A page of the documents of several collections, and whether others follow.

    Args:
        views: Of one collection each.
        limit: Documents at most.
        after: The id of the last file of the page before.
        status: Only these.

    Raises:
        RefusedRequestError: ``after`` is no file's id.
    """
    number = 0 if after is None else _number(after)
    if number is None:
        raise RefusedRequestError("after is the id of a file.", param="after", code="invalid_value")
    found = [record for view in views for record in view.documents.list(status=status, after=number, limit=limit + 1)]
    found.sort(key=lambda record: record.document_id)
    return found[:limit], len(found) > limit


def _number(file: str) -> int | None:
    digits = file.removeprefix("file-")
    number = int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 20 else 0
    return number if 0 < number <= _HIGHEST else None


def _file_json(record: DocumentRecord) -> FileJson:
    return {
        "id": file_id(record.document_id),
        "object": "file",
        "bytes": len((record.content or "").encode()),
        "created_at": int(record.known_from.timestamp()),
        "filename": record.source,
        "purpose": "user_data",
        "status": _STATUS[record.status],
        "status_details": record.error,
        "expires_at": None,
    }
