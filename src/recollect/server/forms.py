"""Files that a form sends: written to disk as they come, and gone from there when the request has ended."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from fastapi import Request
from fastapi.routing import APIRoute
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect

_MAX_FILES = 100
_MAX_FIELDS = 1_000
_MAX_FIELD_BYTES = 64 * 1024


_MEDIA_TYPE = "multipart/form-data"

#: JSON Lines.
LINES = "application/jsonl"


def form_of(properties: Mapping[str, Any], *, required: Sequence[str], others: bool = True) -> dict[str, Any]:
    """What a route says of the form that it takes, for its document; files may be as long as uploads may be.

    Args:
        properties: The parts, by name.
        required: Those that are not left out.
        others: Whether parts of other names are taken, and not looked at.
    """
    schema: dict[str, Any] = {"type": "object", "required": list(required), "properties": dict(properties)}
    if not others:
        schema["additionalProperties"] = False
    return {"requestBody": {"required": True, "content": {_MEDIA_TYPE: {"schema": schema}}}}


def takes_files(route: APIRoute) -> bool:
    """Whether a route takes a form, or a file as it is, which may be as long as uploads may be."""
    taken = (route.openapi_extra or {}).get("requestBody", {}).get("content", {})
    return _MEDIA_TYPE in taken or LINES in taken


@dataclass(frozen=True, slots=True)
class Form:
    """What a form sent.

    Attributes:
        files: In their order; they are closed when the request has ended.
        fields: The others, by name.
    """

    files: tuple[UploadFile, ...]
    fields: dict[str, list[str]]


class _Parser(MultiPartParser):
    # In memory of each file; what is longer is in a file without a name, which goes with the process.
    spool_max_size = 64 * 1024
    complete = False

    def on_end(self) -> None:
        self.complete = True

    def close(self) -> None:
        """Close every file, those too that did not come to their end."""
        for file in self._files_to_close_on_error:
            file.close()


@asynccontextmanager
async def received_form(request: Request) -> AsyncIterator[Form]:
    """What a request's form sends, once all of it has come.

    Raises:
        HTTPException: It is none (400, 415), or its sender went away.
    """
    if not request.headers.get("content-type", "").lower().startswith(_MEDIA_TYPE):
        raise HTTPException(415, f"Send files as {_MEDIA_TYPE}.")
    parser = _Parser(
        request.headers,
        request.stream(),
        max_files=_MAX_FILES,
        max_fields=_MAX_FIELDS,
        max_part_size=_MAX_FIELD_BYTES,
    )
    try:
        form = await _parsed(parser)
        yield _sorted(form)
    finally:
        parser.close()


async def _parsed(parser: _Parser) -> FormData:
    try:
        form = await parser.parse()
        if not parser.complete:
            raise MultiPartException("it ends in the middle")
    except MultiPartException as exc:
        raise HTTPException(400, f"The form cannot be read: {exc.message}") from exc
    except ClientDisconnect as exc:
        raise HTTPException(400, "The upload broke off: nothing of it was stored.") from exc
    return form


def _sorted(form: FormData) -> Form:
    fields: dict[str, list[str]] = {}
    files: list[UploadFile] = []
    for name, value in form.multi_items():
        if isinstance(value, UploadFile):
            files.append(value)
        else:
            fields.setdefault(name, []).append(value)
    return Form(tuple(files), fields)
