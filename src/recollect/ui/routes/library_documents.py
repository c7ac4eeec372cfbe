"""The library's documents: listed, filtered, chosen, and changed together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Literal

from fastapi import Form
from pydantic import Field
from starlette.responses import Response

from recollect.errors import NotFoundError, RecollectError
from recollect.model import RetrievalOptions
from recollect.model.collection import Collection
from recollect.model.listing import LISTING_SORTS, MOST_COUNTED, Listing, ListingQuery
from recollect.pipeline import View
from recollect.pipeline.library import filter_choices, list_documents
from recollect.server.schemas.base import Name
from recollect.ui.library_query import ORIGINS, PATH, STATUSES, DocumentsAddress
from recollect.ui.navigation import LIBRARY
from recollect.ui.page_route import page_router
from recollect.ui.visit import Visit, Visiting

router = page_router()

_MOST_CHOSEN = 200

_Chosen = Annotated[list[Annotated[int, Field(ge=1, le=2**63 - 1)]], Form(max_length=_MOST_CHOSEN)]


@router.get(PATH)
async def documents(visit: Visiting) -> Response:
    """A page of the list that the address says."""
    await visit.require("read")
    address = DocumentsAddress.read(visit.request.query_params)
    query = address.query()
    view = _view(visit, address)
    listing, collections, hints = await visit.run(_looked_up, view, visit.view, query, address)
    return visit.page(
        "library/documents.html",
        LIBRARY,
        address=address,
        listing=listing,
        collections=collections,
        hints=hints,
        statuses=STATUSES,
        origins=ORIGINS,
        sorts=LISTING_SORTS,
        most=MOST_COUNTED,
        previous=None if listing.previous is None else visit.base + address.at(listing.previous),
        following=None if listing.following is None else visit.base + address.at(listing.following),
    )


def _view(visit: Visit, address: DocumentsAddress) -> View:
    return visit.view_of(address.collection) if address.collection else visit.view


def _looked_up(
    view: View, everywhere: View, query: ListingQuery, address: DocumentsAddress
) -> tuple[Listing, list[Collection], list[str]]:
    listing = list_documents(view.standpoint, query)
    hints: list[str] = []
    if not listing.documents and (address.department or address.tag or address.key):
        options = RetrievalOptions(
            department=(address.department,) if address.department else (),
            tags=tuple(address.tags),
            metadata_filters={address.key.partition(".")[0]: address.value} if address.key else {},
        )
        hints = view.documents.filter_hints(options)
    return listing, everywhere.collections.list(), hints


@router.get("/library/documents/choices")
async def choices(visit: Visiting) -> Response:
    """What documents can be filtered by, asked for by whoever is about to choose."""
    await visit.require("read")
    address = DocumentsAddress.read(visit.request.query_params)
    found = await visit.run(filter_choices, _view(visit, address).standpoint)
    return visit.fragment("library/choices.html", choices=found)


@router.post("/library/documents/change")
async def change(
    visit: Visiting,
    action: Annotated[Literal["delete", "tag", "untag", "retry"], Form()],
    document: _Chosen,
    tag: Annotated[Name | None, Form()] = None,
    job: _Chosen = [],  # noqa: B006 - FastAPI copies it
) -> Response:
    """Do something with the documents that were chosen; each is done or says why it was not."""
    await visit.require("write", "ingest")
    view = visit.view
    address = DocumentsAddress.read(visit.request.query_params)
    act: Callable[[int], object]
    match action:
        case "delete":
            act = lambda number: view.documents.delete([number])  # noqa: E731 - one of several
        case "retry":
            act, document = view.jobs.retry, job
        case _:
            act = _tagger(view, tag, add=action == "tag")
    done, problems = await visit.run(_each, act, document)
    return visit.fragment("library/changed.html", action=action, done=done, problems=problems, back=address.path())


def _tagger(view: View, tag: str | None, *, add: bool) -> Callable[[int], object]:
    words = [word.strip() for word in (tag or "").split(",") if word.strip()]

    def change(number: int) -> None:
        found = view.documents.get(number)
        kept = [one for one in found.tags if one not in words]
        view.documents.update(number, tags=[*found.tags, *(w for w in words if w not in found.tags)] if add else kept)

    return change


def _each(act: Callable[[int], object], numbers: Sequence[int]) -> tuple[int, list[str]]:
    """How many were done, and why others were not."""
    done, problems = 0, list[str]()
    for number in dict.fromkeys(numbers):
        try:
            act(number)
        except NotFoundError as exc:
            problems.append(str(exc))
        except RecollectError as exc:
            problems.append(f"{number}: {exc}")
        else:
            done += 1
    return done, problems
