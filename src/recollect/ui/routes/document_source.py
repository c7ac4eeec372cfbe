"""Where a quote stands: the panel beside an answer, and the file that it was read from."""

from __future__ import annotations

from typing import Annotated

from fastapi import Header, Query
from starlette.responses import Response

from recollect.errors import NotFoundError
from recollect.model.original import Original
from recollect.model.time import read_time
from recollect.server.originals import original_reply
from recollect.server.schemas.base import Moment, Name, Number
from recollect.ui.editions import PDF, Edition, edition_of
from recollect.ui.navigation import LIBRARY
from recollect.ui.page_route import page_router
from recollect.ui.quotes import Quote, quote_of
from recollect.ui.visit import Visit, Visiting

router = page_router()

_MOST = 2**31 - 2

Version = Annotated[int | None, Query(ge=1, le=_MOST)]
Session = Annotated[Name | None, Query()]
Offset = Annotated[int, Query(ge=0, le=_MOST)]


@router.get("/documents/{document_id}/source")
async def source(
    visit: Visiting,
    document_id: Number,
    start: Offset,
    end: Offset,
    version: Version = None,
    session: Session = None,
    as_of: Annotated[Moment | None, Query()] = None,
) -> Response:
    """The text around a quote with the quote marked, or the pages that it stands on: a panel, or a page of its own.

    Of a version by its number, or of the one that was known at a moment.
    """
    await visit.require("read")
    known_at = None if as_of is None else read_time(as_of, name="as_of")

    def found() -> tuple[Edition, Quote, Original | None]:
        return _found(edition_of(visit, document_id, version=version, session=session, known_at=known_at), start, end)

    edition, quote, pdf = await visit.run(found)
    if visit.is_fragment:
        return visit.fragment("documents/source.html", edition=edition, quote=quote, pdf=pdf)
    return visit.page("documents/source_page.html", LIBRARY, edition=edition, quote=quote, pdf=pdf)


@router.get("/documents/{document_id}/original")
async def original(
    visit: Visiting,
    document_id: Number,
    version: Version = None,
    session: Session = None,
    wanted: Annotated[str | None, Header(alias="Range", max_length=200)] = None,
    if_none_match: Annotated[str | None, Header(max_length=2_000)] = None,
    if_range: Annotated[str | None, Header(max_length=200)] = None,
) -> Response:
    """The file that a version was read from, to be saved; ranges of it for whoever draws its pages."""
    limits, read = visit.service.limits, (document_id, version, session)
    if wanted is not None and limits.goes_on(visit.caller, read):
        visit.caller.require("read")
    else:
        await visit.require("read")
    found = await visit.run(_file, visit, document_id, version, session)
    limits.begin_read(visit.caller, read)
    response = original_reply(found, wanted=wanted, if_none_match=if_none_match, if_range=if_range)
    # Should a browser show it in spite of all: alone, and without running anything.
    response.headers["Content-Security-Policy"] = "sandbox; default-src 'none'"
    response.headers["Cache-Control"] = "private, no-cache"
    return response


def _found(edition: Edition, start: int, end: int) -> tuple[Edition, Quote, Original | None]:
    quote = quote_of(edition.view, edition.document_id, start=start, end=end)
    file = edition.original() if quote.part.mime_type == PDF and quote.pages else None
    return edition, quote, file if file is not None and file.mime_type == PDF else None


def _file(visit: Visit, document_id: int, version: int | None, session: str | None) -> Original:
    found = edition_of(visit, document_id, version=version, session=session).original()
    if found is None:
        raise NotFoundError(f"The original of document {document_id} was not kept.")
    return found
