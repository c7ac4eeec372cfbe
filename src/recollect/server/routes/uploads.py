"""``/v1/collections/{name}/files`` and ``…/import``: files that are sent, and documents as JSON Lines."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from tempfile import SpooledTemporaryFile
from typing import IO, Annotated, cast

from fastapi import APIRouter, Query, Request
from fastapi.exceptions import RequestValidationError
from pydantic import Field, TypeAdapter, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from typing_extensions import TypedDict

from recollect.ingest.records import records_of
from recollect.ingest.report import IngestReport
from recollect.model.job import Job
from recollect.model.original import Original
from recollect.operations.values import Name, Text
from recollect.pipeline import View
from recollect.pipeline.ingesting import store_records
from recollect.server.bodies import Body
from recollect.server.dependencies import Writer
from recollect.server.forms import LINES, Form, form_of, received_form
from recollect.server.problems import documented
from recollect.server.routes.documents import there

_NAME = TypeAdapter(Name).json_schema()


_FORM = form_of(
    {
        "file": {
            "type": "array",
            "items": {"type": "string", "minLength": 1, "contentMediaType": "application/octet-stream"},
            "minItems": 1,
            "maxItems": 100,
        },
        "tag": {"type": "array", "items": _NAME, "maxItems": 1_000},
        "grant": {"type": "array", "items": _NAME, "maxItems": 1_000},
        "department": _NAME,
        "force": {"type": "boolean"},
        "folders": {"type": "boolean"},
    },
    required=["file"],
    others=False,
)


# `/v1/collections/{name}/import`: documents as JSON Lines, with their chunks and vectors where they are given.


# In memory of what is sent; what is longer is in a file without a name, which goes with the process.
_IN_MEMORY_BYTES = 1 << 20


# What a line is parsed to takes many times its length.
_MOST_OF_A_LINE = 128 << 20


_HIGHEST = 2**53


_BODY = {"requestBody": {"required": True, "content": {LINES: {"schema": {"type": "string"}}}}}


_MAX_TAGS = 1_000


class UploadFields(Body):
    """What is said of files beside them; the names are those of the options of `recollect ingest`."""

    tag: tuple[Name, ...] = Field((), max_length=_MAX_TAGS, description="Given to every document.")
    grant: tuple[Name, ...] | None = Field(None, max_length=_MAX_TAGS, description="Who may read them.")
    department: Name | None = Field(None, description="Of files that name none themselves.")
    force: bool = Field(False, description="Store them anew even if they are unchanged.")
    folders: bool = Field(
        False, description="Call documents by the paths that the files were sent with, and not by the last parts alone."
    )


class UploadedJobs(TypedDict):
    """The jobs of files that were sent, one a file, in their order."""

    jobs: list[Job]


router = APIRouter(tags=["documents"])


@router.post(
    "/collections/{name:named}/files",
    status_code=202,
    summary="Store files",
    responses=documented(404, 413, 415),
    openapi_extra=_FORM,
)
async def upload(name: Name, request: Request, caller: Writer) -> UploadedJobs:
    """Any number of parts `file`, each a job; what this has answered is not lost. The jobs say what became of them.

    Beside the files: `tag` and `grant` (repeat them), `department`, `force`, `folders`.
    """
    return await receive_files(request, caller, name)


async def receive_files(request: Request, view: View, collection: str) -> UploadedJobs:
    """Take the files that a request sends, and ask for a job for each.

    Args:
        request: A form, as of `upload`.
        view: Of whoever sends them.
        collection: Where they go.
    """
    place = await run_in_threadpool(there, view, collection)
    async with received_form(request) as form:
        fields = _fields(form)
        return await run_in_threadpool(_ask, place, form, fields)


def _ask(view: View, form: Form, fields: UploadFields) -> UploadedJobs:
    files = [
        Original.of_open_file(
            one.file, name=one.filename or "", mime_type=one.content_type or "application/octet-stream"
        )
        for one in form.files
    ]
    jobs = view.jobs.upload(
        files,
        tags=fields.tag,
        permissions=fields.grant,
        department=fields.department,
        force=fields.force,
        folders=fields.folders,
    )
    return {"jobs": list(jobs)}


def _fields(form: Form) -> UploadFields:
    lists = {"tag", "grant"}
    said = {name: values if name in lists else values[-1] for name, values in form.fields.items()}
    try:
        return UploadFields.model_validate(said)
    except ValidationError as exc:
        told = [{**one, "loc": ("body", *one["loc"])} for one in exc.errors()]
        raise RequestValidationError(told) from exc


@router.post(
    "/collections/{name:named}/import",
    summary="Import documents",
    responses=documented(404, 409, 413, 415, 502),
    openapi_extra=_BODY,
)
async def import_lines(
    name: Name,
    request: Request,
    caller: Writer,
    force: Annotated[bool, Query(description="Store every document anew, changed or not.")] = False,
    file: Annotated[
        Text, Query(min_length=1, max_length=10_000, description="What the report calls the lines.")
    ] = "import",
    first_line: Annotated[int, Query(ge=1, le=_HIGHEST, description="The number of the first one there.")] = 1,
) -> IngestReport:
    """As `recollect import --json`: one document, or one chunk, a line; replies when all of them are stored.

    A line that cannot be read is an error of the report and stops no other. A long file is sent in parts.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != LINES:
        raise HTTPException(415, f"Send JSON Lines, as {LINES}.")
    place = await run_in_threadpool(there, caller, name)
    async with _received(request) as lines:
        return await run_in_threadpool(_stored, place, lines, file, first_line, force)


def _stored(view: View, lines: IO[bytes], named: str, first_line: int, force: bool) -> IngestReport:
    records = records_of(lines, most=_MOST_OF_A_LINE, first=first_line)
    return store_records(view.standpoint, records, named=named, force=force)


@asynccontextmanager
async def _received(request: Request) -> AsyncIterator[IO[bytes]]:
    """What a request sends, once all of it has come; gone at the end of the block."""
    with SpooledTemporaryFile(_IN_MEMORY_BYTES) as kept:
        try:
            async for part in request.stream():
                await run_in_threadpool(kept.write, part)
        except ClientDisconnect as exc:
            raise HTTPException(400, "The import broke off: nothing of it was stored.") from exc
        kept.seek(0)
        yield cast("IO[bytes]", kept)
