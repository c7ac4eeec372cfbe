"""What a resource said when it was read: whoever changes it later can ask for it to be as they know it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, TypeVar

from fastapi import Header, Response
from starlette.exceptions import HTTPException

Reply = TypeVar("Reply", bound=Mapping[str, object])

IfMatch = Annotated[
    str | None,
    Header(alias="If-Match", max_length=2_000, description="`ETag` of what is changed, as it was read: 412 otherwise."),
]


def etag_of(reply: Mapping[str, object]) -> str:
    """The entity tag of a reply."""
    text = json.dumps(reply, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return f'"{hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]}"'


def tagged(response: Response, reply: Reply) -> Reply:
    """The reply, with its entity tag in the response's headers."""
    response.headers["ETag"] = etag_of(reply)
    return reply


def require_match(if_match: str | None, current: Mapping[str, object]) -> None:
    """Refuses to change what is no longer as the caller knows it.

    Raises:
        HTTPException: 412; none of the tags is that of what there is.
    """
    if if_match is None or if_match.strip() == "*":
        return
    # A weak tag never matches: what is changed must be the same to the byte (RFC 9110, 13.1.1).
    if etag_of(current) not in (tag.strip() for tag in if_match.split(",")):
        raise HTTPException(412, "It was changed since it was read: read it again, and change it then.")
