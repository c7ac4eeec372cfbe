"""Documents as resources: listed page by page, and read part by part."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import mcp_types as types
from mcp.shared.exceptions import MCPError

from recollect.errors import NotFoundError
from recollect.model.page import cursor_at
from recollect.tools.documents import look_beside_a_conversation, shortened

if TYPE_CHECKING:
    from recollect.model.contents import DocumentEntry, DocumentPart
    from recollect.pipeline.view import View

#: Documents of a page of the listing.
PAGE = 100

#: Characters that are read at once.
PART = 50_000

_SCHEME = "recollect://documents/"
_URI = re.compile(rf"{_SCHEME}([1-9][0-9]{{0,15}})(?:\?start_offset=([0-9]{{1,9}}))?")
_CURSOR = re.compile(r"[1-9][0-9]{0,15}")

TEMPLATES = [
    types.ResourceTemplate(
        name="document",
        title="A document",
        uri_template=_SCHEME + "{document_id}",
        description=f"The text of a document, by the document_id that tools give: its first {PART:,} characters.",
    ),
    types.ResourceTemplate(
        name="document_part",
        title="A part of a document",
        uri_template=_SCHEME + "{document_id}?start_offset={start_offset}",
        description=f"{PART:,} characters of a document's text, from an offset that tools give.",
    ),
]


def list_page(view: View, cursor: str | None) -> types.ListResourcesResult:
    """A page of the documents where a view looks, by id.

    Raises:
        MCPError: The cursor is none that a page gave.
    """
    if cursor is not None and not _CURSOR.fullmatch(cursor):
        raise MCPError(code=types.INVALID_PARAMS, message="The cursor is none that an earlier page gave: leave it out.")
    begin = cursor_at(int(cursor or 0))
    found = look_beside_a_conversation(view, lambda seen: seen.contents.list(cursor=begin, limit=PAGE))
    more = None if found.next_cursor is None else str(found[-1].document_id)
    return types.ListResourcesResult(resources=[_listed(one) for one in found], next_cursor=more)


def read(view: View, uri: str, *, missing: int) -> types.ReadResourceResult:
    """A part of a document's text, and how to go on where there is more.

    Args:
        view: Who looks, and where.
        uri: Of the document.
        missing: The code of the error where there is none.

    Raises:
        MCPError: There is no such document where the view looks.
    """
    named = _URI.fullmatch(uri)
    if named is None:
        raise _missing(uri, missing)
    document_id, start = int(named[1]), int(named[2] or 0)
    try:
        part = look_beside_a_conversation(view, lambda seen: seen.contents.read(document_id, start=start, length=PART))
    except NotFoundError as exc:
        raise _missing(uri, missing) from exc
    contents: list[types.TextResourceContents | types.BlobResourceContents] = [_contents(part, uri)]
    if part.end_offset < part.characters:
        contents.append(_rest(part))
    return types.ReadResourceResult(contents=contents)


def _missing(uri: str, code: int) -> MCPError:
    message = "There is no such document that you may read. The tools list_documents and search tell which there are."
    return MCPError(code=code, message=message, data={"uri": uri[:500].encode("utf-8", "replace").decode()})


def _listed(one: DocumentEntry) -> types.Resource:
    return types.Resource(
        uri=f"{_SCHEME}{one.document_id}",
        name=shortened(one.source) or str(one.document_id),
        title=shortened(one.title),
        mime_type=_text_type(one.mime_type),
        size=one.byte_count,
        annotations=types.Annotations(last_modified=one.known_from.isoformat()),
        _meta=_meta(collection=one.collection, department=one.department, original_type=one.mime_type),
    )


def _contents(part: DocumentPart, uri: str) -> types.TextResourceContents:
    return types.TextResourceContents(
        uri=uri,
        mime_type=_text_type(part.mime_type),
        text=part.text,
        _meta=_meta(
            source=shortened(part.source),
            title=shortened(part.title),
            collection=part.collection,
            start_offset=part.start_offset,
            end_offset=part.end_offset,
            characters=part.characters,
            original_type=part.mime_type,
        ),
    )


def _rest(part: DocumentPart) -> types.TextResourceContents:
    """What says that there is more: beside the document's own text, which could say anything."""
    following = f"{_SCHEME}{part.document_id}?start_offset={part.end_offset}"
    told = (
        f"These are the characters {part.start_offset} to {part.end_offset} of {part.characters}. Go on with the "
        f"resource {following}"
    )
    return types.TextResourceContents(uri=following, mime_type="text/plain", text=told)


def _text_type(original: str) -> str:
    # What is served is the text that was read from it, with the marks of Markdown where it was written in it.
    return original if original in {"text/markdown", "text/csv"} else "text/plain"


def _meta(**values: object) -> dict[str, object]:
    return {f"recollect/{name}": value for name, value in values.items() if value is not None}
