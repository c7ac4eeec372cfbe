"""``/v1/files``: files that are sent to be attached to vector stores, and documents, as OpenAI's API has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import Query, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ConfigDict, Field, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse
from typing_extensions import TypedDict

from recollect.errors import NotFoundError
from recollect.model.original import Original
from recollect.model.page import cursor_at
from recollect.model.uploaded_file import file_of_source
from recollect.operations.values import Name
from recollect.server.bodies import Body
from recollect.server.dependencies import Reader, Writer
from recollect.server.downloads import saved_as
from recollect.server.forms import Form, form_of, received_form
from recollect.server.openai.errors import RefusedRequestError, resource

if TYPE_CHECKING:
    from collections.abc import Iterable

    from recollect.model.document_record import DocumentRecord, DocumentStatus
    from recollect.model.uploaded_file import UploadedFile
    from recollect.pipeline import View


# Lists as OpenAI's API has them: pages whose first and last entries are named.


class PageEnds(TypedDict):
    """What a page says of itself beside its entries."""

    object: Literal["list"]
    first_id: str | None
    last_id: str | None
    has_more: bool


def page_ends(data: Sequence[Any], *, more: bool) -> PageEnds:
    """The same of some entries, which have an ``id``.

    Args:
        data: Of the page.
        more: Whether others follow.
    """
    return {
        "object": "list",
        "first_id": data[0]["id"] if data else None,
        "last_id": data[-1]["id"] if data else None,
        "has_more": more,
    }


router = resource()


#: Entries of a page.
Limit = Annotated[int, Query(ge=1, le=10_000)]


#: By age.
Order = Annotated[Literal["asc", "desc"], Query(description="The oldest first, or the newest.")]


#: The last entry of the page before.
After = Annotated[Name | None, Query(description="The id of the last one of the page before.")]


#: What a document is a file for, that nobody has sent as one.
_OF_DOCUMENTS = "user_data"


_TYPE = "application/octet-stream"


_STATUS: dict[str, Literal["uploaded", "processed", "error"]] = {
    "embedded": "processed",
    "pending": "uploaded",
    "error": "error",
}


class FileExpiry(Body):
    """How long a file is kept."""

    anchor: Literal["created_at"]
    seconds: int = Field(ge=3_600, le=2_592_000)


class FileFields(Body):
    """What is said of a file beside it."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    purpose: Literal["assistants", "user_data"] = Field(description="Files are kept here to be searched.")
    expires_after: FileExpiry | None = None


class FileJson(TypedDict):
    """A file; of a document that was not sent as one, `bytes` counts its text, where that was read."""

    id: str
    object: Literal["file"]
    bytes: int
    created_at: int
    filename: str
    purpose: str
    status: Literal["uploaded", "processed", "error"]
    status_details: str | None
    expires_at: int | None


class FileListJson(PageEnds):
    """Files."""

    data: list[FileJson]


class DeletedJson(TypedDict):
    """That something is there no longer."""

    id: str
    object: str
    deleted: bool


_FORM = form_of(
    {
        "file": {"type": "string", "contentMediaType": _TYPE},
        "purpose": {"type": "string", "enum": ["assistants", "user_data"]},
        "expires_after[anchor]": {"type": "string", "const": "created_at"},
        "expires_after[seconds]": {"type": "integer", "minimum": 3_600, "maximum": 2_592_000},
    },
    required=["file", "purpose"],
)


@router.get("/files", summary="List files")
def files(
    caller: Reader,
    limit: Limit = 100,
    order: Order = "desc",
    after: After = None,
    purpose: Annotated[Name | None, Query(description="Only of this purpose; documents have `user_data`.")] = None,
) -> FileListJson:
    """Those that you have sent, and the documents of all collections that came another way."""
    newest_first, behind = order == "desc", position(after)
    sent = caller.files.list(purpose=purpose, newest_first=newest_first, after=behind, limit=limit + 1)
    views = [caller.view(collections=place.name) for place in caller.collections.each()]
    if purpose not in {None, _OF_DOCUMENTS}:
        views = []
    stored = page_of(views, limit=limit, after=behind, newest_first=newest_first, sent=False)
    found = sorted(
        [*((one.file_id, _sent_json(one)) for one in sent), *((one.document_id, _file_json(one)) for one in stored)],
        key=lambda pair: pair[0],
        reverse=newest_first,
    )
    data = [one for _, one in found[:limit]]
    return {**page_ends(data, more=len(found) > limit), "data": data}


@router.post("/files", summary="Send a file", openapi_extra=_FORM)
async def upload(request: Request, caller: Writer) -> FileJson:
    """It is kept, and found by no search until it is attached to a vector store."""
    async with received_form(request) as form:
        return await run_in_threadpool(_kept, caller, form)


def _kept(view: View, form: Form) -> FileJson:
    if len(form.files) != 1:
        raise RefusedRequestError("Send one file, as the part file.", param="file", code="missing_required_parameter")
    fields = _fields(form)
    (part,) = form.files
    file = Original.of_open_file(part.file, name=part.filename or "", mime_type=part.content_type or _TYPE)
    expires = fields.expires_after
    return _sent_json(view.files.add(file, purpose=fields.purpose, ttl=None if expires is None else expires.seconds))


def _fields(form: Form) -> FileFields:
    said: dict[str, Any] = {name: values[-1] for name, values in form.fields.items()}
    nested = {name[14:-1]: said.pop(name) for name in list(said) if name.startswith("expires_after[")}
    try:
        return FileFields.model_validate(said | ({"expires_after": nested} if nested else {}))
    except ValidationError as exc:
        raise RequestValidationError([{**one, "loc": ("body", *one["loc"])} for one in exc.errors()]) from exc


@router.get("/files/{file}", summary="Show a file")
def show(file: Name, caller: Reader) -> FileJson:
    """One that you have sent, or a document that may be read."""
    sent = sent_by(caller, file)
    return _file_json(document(caller, file)) if sent is None else _sent_json(sent)


@router.get(
    "/files/{file}/content",
    summary="Download a file",
    response_class=Response,
    responses={200: {"content": {_TYPE: {}}, "description": "The file, or the document's text."}},
)
def content(file: Name, caller: Reader) -> Response:
    """As it came, where that was kept, and otherwise the text that was read from it."""
    sent = sent_by(caller, file)
    if sent is not None:
        return _download(sent.name, caller.files.read(sent.file_id))
    record = document(caller, file)
    name = record.source.rpartition("/")[2]
    try:
        return _download(name, caller.view(collections="*").contents.original(record.document_id))
    except NotFoundError:
        return Response((record.content or "").encode(), media_type=_TYPE, headers=saved_as(name))


def _download(name: str, original: Original) -> Response:
    return StreamingResponse(original.opened(), media_type=_TYPE, headers=saved_as(name))


@router.delete("/files/{file}", summary="Delete a file")
def delete(file: Name, caller: Writer) -> DeletedJson:
    """With what vector stores made of it: searches of the present find it no longer, the history of documents stays."""
    sent = sent_by(caller, file)
    if sent is not None:
        caller.files.delete(sent.file_id)
        return {"id": sent.source, "object": "file", "deleted": True}
    found = document(caller, file)
    caller.view(collections=found.collection).documents.delete([found.document_id])
    return {"id": id_of(found), "object": "file", "deleted": True}


def sent_by(view: View, file: str) -> UploadedFile | None:
    """The file of an id that whoever asks has sent; None: there is none."""
    number = number_of(file)
    try:
        return None if number is None else view.files.get(number)
    except NotFoundError:
        return None


def position(after: str | None) -> int:
    """The number behind which a page begins; 0: it is the first.

    Raises:
        RefusedRequestError: That is no file's id.
    """
    number = 0 if after is None else number_of(after)
    if number is None:
        raise RefusedRequestError("after is the id of a file.", param="after", code="invalid_value")
    return number


def _sent_json(sent: UploadedFile) -> FileJson:
    return {
        "id": sent.source,
        "object": "file",
        "bytes": sent.byte_count,
        "created_at": int(sent.created_at.timestamp()),
        "filename": sent.name,
        "purpose": sent.purpose,
        "status": "processed",
        "status_details": None,
        "expires_at": None if sent.expires_at is None else int(sent.expires_at.timestamp()),
    }


def _file_json(record: DocumentRecord) -> FileJson:
    return {
        "id": id_of(record),
        "object": "file",
        "bytes": len((record.content or "").encode()),
        "created_at": int(record.known_from.timestamp()),
        "filename": record.source,
        "purpose": _OF_DOCUMENTS,
        "status": _STATUS[record.status],
        "status_details": record.error,
        "expires_at": None,
    }


# What OpenAI's API calls files: those that were sent to it, and the documents of collections.


_HIGHEST = 2**63 - 1


# Documents that are looked up at once, of which some may be left out.
_FEWEST = 100


#: Of documents that were made from files that were sent, these files.
Made = Mapping[int, int]


def file_id(document_id: int, made: Made) -> str:
    """What a document is called by this API: the file that it was made from, or a file of its own number."""
    return f"file-{made.get(document_id, document_id)}"


def id_of(record: DocumentRecord) -> str:
    """What a document is called by this API."""
    sent = sent_file(record)
    return f"file-{record.document_id if sent is None else sent}"


def sent_file(record: DocumentRecord) -> int | None:
    """The file that a document was made from; None: it came another way."""
    return file_of_source(record.origin) if record.source_type == "upload" else None


def made_from(view: View, document_ids: Iterable[int]) -> Made:
    """The files that documents were made from, whenever the view is of."""
    wanted = sorted(set(document_ids))
    return view.view(as_of=None).files.files_of(wanted) if wanted else {}


def number_of(file: str) -> int | None:
    """The number of a file's id; None: it is none."""
    digits = file.removeprefix("file-")
    number = int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 20 else 0
    return number if 0 < number <= _HIGHEST else None


def required_number(file: str, *, param: str) -> int:
    """The number of a file's id.

    Raises:
        RefusedRequestError: It is none, so there is no such file.
    """
    number = number_of(file)
    if number is None:
        raise no_file(file, param=param)
    return number


def no_file(file: str, *, param: str = "id") -> RefusedRequestError:
    """What is said of a file that there is not, or that may not be read."""
    return RefusedRequestError(f"No such File object: {file[:200]}", param=param, code="file_not_found", status=404)


def document(view: View, file: str, *, collection: str | None = None) -> DocumentRecord:
    """The document that a file's id means.

    Args:
        view: Of whoever asks.
        file: Its id; of a file that was sent, any of the documents made from it.
        collection: Where the document is; None: anywhere.

    Raises:
        RefusedRequestError: There is none that may be read.
    """
    number = number_of(file)
    made = {} if number is None else view.files.documents(number)
    view = view.view(collections=collection or "*")
    numbers = [one for place, one in made.items() if collection in {None, place}]
    for wanted in [*numbers, *([] if number is None or made else [number])]:
        try:
            return view.documents.get(wanted)
        except NotFoundError:
            continue
    raise no_file(file)


def page_of(
    views: Sequence[View],
    *,
    limit: int,
    after: int,
    newest_first: bool = False,
    status: DocumentStatus | None = None,
    sent: bool = True,
) -> list[DocumentRecord]:
    """A page of the documents of several collections, and one more where others follow.

    Args:
        views: Of one collection each.
        limit: Documents at most.
        after: The number of the last document of the page before; 0: the first page.
        newest_first: The largest numbers first.
        status: Only these.
        sent: Also those that were made from files that were sent.
    """
    found: list[DocumentRecord] = []
    for view in views:
        found += _some(view, limit + 1, after, newest_first=newest_first, status=status, sent=sent)
    return sorted(found, key=lambda record: record.document_id, reverse=newest_first)[: limit + 1]


def _some(
    view: View, wanted: int, after: int, *, newest_first: bool, status: DocumentStatus | None, sent: bool
) -> list[DocumentRecord]:
    found: list[DocumentRecord] = []
    many, cursor = max(wanted, _FEWEST), cursor_at(after) if after else None
    while len(found) < wanted:
        page = view.documents.list(status=status, newest_first=newest_first, cursor=cursor, limit=many)
        found += [record for record in page if sent or sent_file(record) is None]
        cursor = page.next_cursor
        if cursor is None:
            break
    return found[:wanted]
