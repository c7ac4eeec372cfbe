"""One document: its text with its chunks, its original's pages, its versions, and who may read it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Query
from starlette.responses import Response

from recollect.errors import NotFoundError
from recollect.server.schemas.base import Name, Number
from recollect.ui.drawn_text import DrawnText, draw
from recollect.ui.editions import PDF, Edition, edition_of
from recollect.ui.navigation import LIBRARY
from recollect.ui.page_route import page_router
from recollect.ui.visit import Visit, Visiting

if TYPE_CHECKING:
    from recollect.model.contents import DocumentOutline
    from recollect.model.document_record import DocumentRecord
    from recollect.model.history import VersionDiff
    from recollect.model.original import Original

router = page_router()

_MOST = 2**31 - 2
#: Headings shown at a time, and lines of a difference.
_HEADINGS = 200
_LINES = 2_000
#: Characters shown before what is marked.
_BEFORE = 500
#: Texts up to so many characters are compared for a page; longer ones take minutes.
_COMPARED = 2_000_000

Version = Annotated[int | None, Query(ge=1, le=_MOST)]
Session = Annotated[Name | None, Query()]
Offset = Annotated[int, Query(ge=0, le=_MOST)]
LaterOffset = Annotated[int | None, Query(ge=1, le=_MOST)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """What the page of a document's text shows."""

    edition: Edition
    record: DocumentRecord | None
    outline: DocumentOutline
    drawn: DrawnText | None


@router.get("/documents/{document_id}")
async def text_page(
    visit: Visiting,
    document_id: Number,
    version: Version = None,
    session: Session = None,
    start: Offset = 0,
    end: LaterOffset = None,
) -> Response:
    """Its text with its chunks drawn on it, its outline and what is known of it."""
    await visit.require("read")
    try:
        text = await visit.run(_text, visit, document_id, version, session, start, end)
    except NotFoundError:
        # One that a job is to store, or could not store, has no version yet.
        record = await visit.run(visit.view.documents.get, document_id)
        if record.status == "embedded":
            raise
        return visit.page("documents/unstored.html", LIBRARY, record=record)
    return visit.page(
        "documents/text.html",
        LIBRARY,
        **_framed("text", text.edition, text.outline.title, record=text.record),
        outline=text.outline,
        headings=text.outline.headings[:_HEADINGS],
        more_headings=_HEADINGS if len(text.outline.headings) > _HEADINGS else None,
        drawn=text.drawn,
        metadata=_written(text.record),
    )


@router.get("/documents/{document_id}/text")
async def text_part(
    visit: Visiting,
    document_id: Number,
    start: Offset,
    until: LaterOffset = None,
    version: Version = None,
    session: Session = None,
) -> Response:
    """The next part of its text, or the part that ends where another begins."""
    await visit.require("read")
    edition = await visit.run(edition_of, visit, document_id, version=version, session=session)
    drawn = await visit.run(draw, edition.view, document_id, start=start, until=until)
    return visit.fragment(
        "documents/part.html", edition=edition, drawn=drawn, ways=("down",) if until is None else ("up",)
    )


@router.get("/documents/{document_id}/outline")
async def outline_part(
    visit: Visiting, document_id: Number, after: Offset, version: Version = None, session: Session = None
) -> Response:
    """More of its headings."""
    await visit.require("read")
    edition = await visit.run(edition_of, visit, document_id, version=version, session=session)
    outline = await visit.run(edition.view.contents.outline, document_id)
    return visit.fragment(
        "documents/headings.html",
        edition=edition,
        headings=outline.headings[after : after + _HEADINGS],
        more_headings=after + _HEADINGS if len(outline.headings) > after + _HEADINGS else None,
    )


@router.get("/documents/{document_id}/pages")
async def original_page(
    visit: Visiting,
    document_id: Number,
    version: Version = None,
    session: Session = None,
    page: Annotated[int, Query(ge=1, le=_MOST)] = 1,
) -> Response:
    """The file that it was read from: pages of a PDF, everything else to be saved."""
    await visit.require("read")
    edition, title, file = await visit.run(_original, visit, document_id, version, session)
    return visit.page(
        "documents/pages.html",
        LIBRARY,
        **_framed("pages", edition, title),
        original=file,
        is_pdf=file is not None and file.mime_type == PDF,
        first_page=page,
    )


@router.get("/documents/{document_id}/versions")
async def versions_page(
    visit: Visiting,
    document_id: Number,
    from_: Annotated[Version, Query(alias="from")] = None,
    to: Version = None,
) -> Response:
    """Its versions, and how the text changed from one to another."""
    await visit.require("read")
    edition = await visit.run(edition_of, visit, document_id)
    compared = await visit.run(_compared, visit, edition, from_, to)
    return visit.page("documents/versions.html", LIBRARY, **_framed("versions", edition, edition.title), **compared)


def _framed(tab: str, edition: Edition, title: str, *, record: DocumentRecord | None = None) -> dict[str, Any]:
    """What every page of a document shows."""
    return {"tab": tab, "edition": edition, "record": record, "title": title}


def _text(
    visit: Visit, document_id: int, version: int | None, session: str | None, start: int, end: int | None
) -> Text:
    edition = edition_of(visit, document_id, version=version, session=session)
    outline = edition.view.contents.outline(document_id)
    current = edition.session is None and edition.is_newest and not edition.is_gone
    record = visit.view.documents.get(document_id) if current else None
    quoted = (start, end) if end is not None and start < end else None
    # What was asked for is read with some of what stands before it.
    begin = start if quoted is None else max(0, start - _BEFORE)
    drawn = draw(edition.view, document_id, start=begin, quoted=quoted) if outline.characters else None
    return Text(edition=edition, record=record, outline=outline, drawn=drawn)


def _written(record: DocumentRecord | None) -> list[tuple[str, str]]:
    """A document's metadata, each value as text."""
    given = {} if record is None else record.metadata
    return [
        (name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1))
        for name, value in given.items()
    ]


def _original(
    visit: Visit, document_id: int, version: int | None, session: str | None
) -> tuple[Edition, str, Original | None]:
    edition = edition_of(visit, document_id, version=version, session=session)
    return edition, edition.title, edition.original()


def _compared(visit: Visit, edition: Edition, first: int | None, last: int | None) -> dict[str, Any]:
    """The difference of two versions, or why there is none."""
    assert edition.history is not None
    versions = edition.history.versions
    known = [one.version for one in versions]
    last = last or known[-1]
    first = first or max((one for one in known if one < last), default=None)
    shown: dict[str, Any] = {"difference": None, "too_long": False, "first": first, "last": last, "most_lines": _LINES}
    if first is None:
        return shown
    if sum(one.character_count for one in versions if one.version in {first, last}) > _COMPARED:
        return {**shown, "too_long": True}
    difference: VersionDiff = visit.view.documents.diff(edition.document_id, from_version=first, to_version=last)
    return {**shown, "difference": difference}
