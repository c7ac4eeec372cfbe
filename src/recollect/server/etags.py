"""What a resource said when it was read: whoever changes it later can ask for it to be as they know it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, TypeVar

from fastapi import Header, Response
from starlette.exceptions import HTTPException

from recollect.errors import VersionChangedError
from recollect.model.record import Record, json_of

if TYPE_CHECKING:
    from recollect.model.document_record import DocumentRecord

_TAG = re.compile(r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"')

Reply = TypeVar("Reply", bound=Mapping[str, object] | Record)

IfMatch = Annotated[
    str | None,
    Header(alias="If-Match", max_length=2_000, description="`ETag` of what is changed, as it was read: 412 otherwise."),
]

IfNoneMatch = Annotated[
    str | None,
    Header(alias="If-None-Match", max_length=2_000, description="`ETag`: what has not changed is not sent again: 304."),
]


def etag_of(reply: Mapping[str, object] | Record) -> str:
    """The entity tag of a reply."""
    told = json_of(reply) if isinstance(reply, Record) else reply
    text = json.dumps(told, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return f'"{hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]}"'


def tagged(response: Response, reply: Reply) -> Reply:
    """The reply, with its entity tag in the response's headers."""
    response.headers["ETag"] = etag_of(reply)
    return reply


def require_match(if_match: str | None, current: Mapping[str, object] | Record) -> None:
    """Refuses to change what is no longer as the caller knows it.

    Raises:
        HTTPException: 412; none of the tags is that of what there is.
    """
    if if_match is None or if_match.strip() == "*":
        return
    # A weak tag never matches: what is changed must be the same to the byte (RFC 9110, 13.1.1).
    if etag_of(current) not in (tag.strip() for tag in if_match.split(",")):
        raise HTTPException(412, "It was changed since it was read: read it again, and change it then.")


def version_tag(record: DocumentRecord) -> str:
    """The tag of a document as it is: its version, and where none is stored yet, how far it is."""
    return f'"{record.version}"' if record.status == "embedded" else f'"{record.version}-{record.status}"'


def unchanged(tag: str, if_none_match: str | None) -> bool:
    """Whether a client has what a tag is of already."""
    if if_none_match is None:
        return False
    given = if_none_match.strip()
    return given == "*" or tag in {one.removeprefix("W/") for one in _TAG.findall(given)}


def required_version(record: DocumentRecord, if_match: str | None) -> int | None:
    """The version that must still be current when a document is changed; None: whichever is.

    Raises:
        VersionChangedError: It is not one of those that the client names.
    """
    if if_match is None:
        return None
    given = if_match.strip()
    # A weak tag says that two are alike, not that they are the same: it never matches here.
    if given != "*" and version_tag(record) not in _TAG.findall(given):
        raise VersionChangedError(
            f"The document {record.document_id} is at version {record.version}, not at what If-Match names ({given}): "
            "read it again."
        )
    return record.version
