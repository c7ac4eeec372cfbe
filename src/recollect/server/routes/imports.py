"""``/v1/collections/{name}/import``: documents as JSON Lines, with their chunks and vectors where they are given."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from tempfile import SpooledTemporaryFile
from typing import IO, Annotated, cast

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from recollect.ingest.records import records_of
from recollect.operations.values import Name, Text
from recollect.pipeline import View
from recollect.pipeline.ingesting import store_records
from recollect.replies.ingest import IngestReportJson, ingest_report_json
from recollect.server.dependencies import Writer
from recollect.server.forms import LINES
from recollect.server.problems import documented
from recollect.server.routes.documents import there

router = APIRouter(tags=["documents"])

# In memory of what is sent; what is longer is in a file without a name, which goes with the process.
_IN_MEMORY_BYTES = 1 << 20
# What a line is parsed to takes many times its length.
_MOST_OF_A_LINE = 128 << 20
_HIGHEST = 2**53

_BODY = {"requestBody": {"required": True, "content": {LINES: {"schema": {"type": "string"}}}}}


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
) -> IngestReportJson:
    """As `recollect import --json`: one document, or one chunk, a line; replies when all of them are stored.

    A line that cannot be read is an error of the report and stops no other. A long file is sent in parts.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != LINES:
        raise HTTPException(415, f"Send JSON Lines, as {LINES}.")
    place = await run_in_threadpool(there, caller, name)
    async with _received(request) as lines:
        return await run_in_threadpool(_stored, place, lines, file, first_line, force)


def _stored(view: View, lines: IO[bytes], named: str, first_line: int, force: bool) -> IngestReportJson:
    records = records_of(lines, most=_MOST_OF_A_LINE, first=first_line)
    return ingest_report_json(store_records(view.standpoint, records, named=named, force=force))


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
