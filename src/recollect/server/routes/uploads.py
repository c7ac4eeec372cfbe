"""``/v1/collections/{name}/files``: files that are sent, and stored by jobs."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.exceptions import RequestValidationError
from pydantic import TypeAdapter, ValidationError
from starlette.concurrency import run_in_threadpool

from recollect.model.original import Original
from recollect.operations.values import Name
from recollect.pipeline import View
from recollect.server.dependencies import Writer
from recollect.server.forms import Form, form_of, received_form
from recollect.server.problems import documented
from recollect.server.routes.documents import there
from recollect.server.schemas.documents import UploadedJobs, UploadFields

router = APIRouter(tags=["documents"])

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
