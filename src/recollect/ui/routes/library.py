"""The library: collections, made, described, looked at, exported and deleted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any
from urllib.parse import quote, quote_plus

from fastapi import Form, Query
from starlette.responses import Response, StreamingResponse

from recollect.errors import UsageError
from recollect.model.collection import Collection
from recollect.pipeline import View
from recollect.pipeline.library import stored_size, unstored_counts
from recollect.server.schemas.base import Name, Text
from recollect.ui.navigation import LIBRARY
from recollect.ui.page_route import page_router
from recollect.ui.visit import PAGE_HEADERS, Visit, Visiting

router = page_router()

_DESCRIPTION = 10_000

#: The collection that a page is of: names are anybody's, so none stands in a path.
Named = Annotated[Name, Query()]


def collection_path(name: str) -> str:
    """The page of a collection."""
    return f"/library/collection?name={quote_plus(name)}"


@router.get(LIBRARY.path)
async def first_page(visit: Visiting) -> Response:
    """The collections that may be read."""
    await visit.require("read")
    collections, unstored = await visit.run(_overview, visit.view)
    return visit.page("library/overview.html", LIBRARY, collections=collections, unstored=unstored)


def _overview(view: View) -> tuple[list[Collection], dict[int, tuple[int, int]]]:
    return view.collections.list(), dict(unstored_counts(view.standpoint))


@router.get("/library/new")
async def new_collection(visit: Visiting) -> Response:
    """What a new collection is called, and how it is cut."""
    await visit.require("admin")
    settings = visit.view.config
    return visit.page(
        "library/new.html",
        LIBRARY,
        strategies=visit.view.standpoint.assembly.chunkers.names(),
        configured=settings.chunking.strategy,
        language_code=settings.language,
    )


@router.post("/library/collections")
async def create(
    visit: Visiting,
    name: Annotated[Name, Form()],
    description: Annotated[Text, Form(max_length=_DESCRIPTION)] = "",
    content_language: Annotated[str, Form(max_length=20)] = "",
    strategy: Annotated[str, Form(max_length=50)] = "",
) -> Response:
    """Make a collection."""
    await visit.require("admin", "ingest")
    await visit.run(
        visit.administration.collections.create,
        name.strip(),
        description=description.strip(),
        language=content_language.strip() or None,
        chunking={"strategy": strategy} if strategy else None,
    )
    return visit.go_to(collection_path(name.strip()))


@router.get("/library/collection")
async def show(visit: Visiting, name: Named) -> Response:
    """One collection."""
    await visit.require("read")
    shown = await visit.run(_found, visit.view, name)
    return visit.page("library/collection.html", LIBRARY, **shown, at=collection_path)


def _found(view: View, name: str) -> dict[str, Any]:
    found = view.collections.get(name)
    waiting, failed = unstored_counts(view.standpoint).get(found.collection_id, (0, 0))
    notes = view.collections.notes().get(found.collection_id)
    idle_days = None if notes is None else notes.idle_days
    return {"collection": found, "waiting": waiting, "failed": failed, "idle_days": idle_days}


@router.get("/library/collection/size")
async def size(visit: Visiting, name: Named) -> Response:
    """What its documents take, which a page asks for behind everything else: every document is looked at."""
    await visit.require("read")
    taken = await visit.run(stored_size, visit.view_of(name).standpoint)
    return visit.fragment("library/size.html", size=taken)


@router.post("/library/collection/describe")
async def describe(
    visit: Visiting, name: Named, description: Annotated[Text, Form(max_length=_DESCRIPTION)] = ""
) -> Response:
    """Say something else of a collection."""
    await visit.require("admin", "ingest")
    await visit.run(visit.administration.collections.update, name, description=description.strip())
    return visit.go_to(collection_path(name))


@router.post("/library/collection/keep")
async def keep(visit: Visiting, name: Named, idle_days: Annotated[str, Form(max_length=10)] = "") -> Response:
    """Say after how many days without use its documents are closed; nothing: never."""
    await visit.require("admin", "ingest")
    given = idle_days.strip() or "0"
    if not given.isdecimal():
        raise UsageError(f"Days are a number, or nothing for never, not {given!r}.")
    await visit.run(visit.administration.collections.note, name, idle_days=int(given))
    return visit.go_to(collection_path(name))


@router.post("/library/collection/delete")
async def delete(visit: Visiting, name: Named, confirmed: Annotated[str, Form(max_length=500)] = "") -> Response:
    """Remove a collection with everything in it, where its name was typed once more."""
    await visit.require("admin", "ingest")
    if confirmed.strip() != name:
        raise UsageError(f"To delete the collection, type its name: {name}")
    await visit.run(visit.administration.collections.delete, name)
    return visit.go_to(LIBRARY.path)


@router.get("/library/collection/export")
async def export(visit: Visiting, name: Named) -> Response:
    """A collection as JSON Lines, for ``recollect import``: what may be read of it."""
    await visit.require("read")
    lines = await visit.run(_lines, visit, name)
    headers = {
        **PAGE_HEADERS,
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}.jsonl",
        "X-Content-Type-Options": "nosniff",
    }
    return StreamingResponse(lines, media_type="application/x-ndjson", headers=headers)


def _lines(visit: Visit, name: str) -> Iterator[str]:
    view = visit.view_of(name)
    view.collections.get(name)
    return (f"{line}\n" for line in view.collections.export_lines())
