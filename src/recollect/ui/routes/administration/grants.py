"""Grants: who may do what in a collection, who may read a document, and why somebody may."""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import urlencode

from fastapi import Form, Query
from starlette.responses import Response

from recollect.errors import NotFoundError, UsageError
from recollect.model.access import CollectionAccess, DocumentPermissions, ReadingExplained
from recollect.model.arguments import did_you_mean
from recollect.model.page import cursor_at
from recollect.pipeline import View
from recollect.ui.page_route import page_router
from recollect.ui.routes.administration.asking import (
    GRANTS,
    PAGE_SIZE,
    Administering,
    Cursor,
    names,
    page_of,
    position,
    shown,
    somebody,
)
from recollect.ui.visit import Visit

router = page_router()

_Text = Annotated[str, Form(max_length=20_000)]
_Asked = Annotated[str | None, Query(max_length=2_000)]
_Number = Annotated[int, Query(ge=1, lt=2**63)]
_Change = Literal["add", "only", "deny", "remove"]


@router.get(GRANTS.path)
async def grants(
    visit: Administering, collection: _Asked = None, source: _Asked = None, cursor: Cursor = None
) -> Response:
    """Who may do what in a collection, and who may read which of its documents."""
    after = position(cursor, int) or 0
    names_, chosen = await visit.run(_chosen, visit.administration, collection)
    access: CollectionAccess | None = None
    found: list[DocumentPermissions] = []
    if chosen is not None:
        access, found = await visit.run(_of, visit.administration.view(collections=chosen), source, after)
    page, following = page_of(found, visit, lambda one: one.document_id)
    return shown(
        visit,
        GRANTS,
        "grants.html",
        collections=names_,
        chosen=chosen,
        access=access,
        documents=page,
        following=following,
        source=source or "",
    )


@router.post(f"{GRANTS.path}/collection")
async def set_collection(
    visit: Administering, collection: _Text, owners: _Text = "", readers: _Text = "", writers: _Text = ""
) -> Response:
    """Say who owns, reads and writes a collection."""
    view = visit.administration.view(collections=collection)
    await visit.run(
        lambda: view.grants.set_collection(owners=names(owners), readers=names(readers), writers=names(writers))
    )
    return _back(visit, collection)


@router.post(f"{GRANTS.path}/default")
async def change_default(
    visit: Administering, collection: _Text, who: _Text = "", change: Annotated[_Change, Form()] = "add"
) -> Response:
    """Change who may read the documents that have no permissions of their own."""
    view = visit.administration.view(collections=collection)
    await visit.run(lambda: _changed(view, change, who, default=True))
    return _back(visit, collection)


@router.get(f"{GRANTS.path}/documents/{{document_id}}")
async def document(visit: Administering, document_id: int) -> Response:
    """Who may read a document."""
    one = await visit.run(_document, visit.administration.view(collections="*"), document_id)
    return shown(visit, GRANTS, "grants_document.html", document=one)


@router.post(f"{GRANTS.path}/documents/{{document_id}}")
async def change_document(
    visit: Administering, document_id: int, who: _Text = "", change: Annotated[_Change, Form()] = "add"
) -> Response:
    """Change who may read it."""
    view = visit.administration.view(collections="*")
    await visit.run(lambda: _changed(view, change, who, documents=document_id))
    return visit.go_to(f"{GRANTS.path}/documents/{document_id}?told=changed")


@router.get(f"{GRANTS.path}/explain")
async def explain(
    visit: Administering,
    user: _Asked = None,
    roles: _Asked = None,
    department: _Asked = None,
    groups: _Asked = None,
    document: _Asked = None,
    collection: _Asked = None,
) -> Response:
    """Why somebody may read a document, or may not."""
    people = await visit.run(lambda: visit.administration.keys.users(limit=1_000))
    principal = somebody(user, roles, department, groups)
    known = next((one for one in people if one.principal.user_id == principal.user_id), None)
    said_nothing_else = not (principal.roles or principal.department or principal.groups)
    if known is not None and said_nothing_else:
        principal = known.principal
    told: ReadingExplained | None = None
    problem: str | None = None
    if document:
        view = visit.administration.view(collections=(collection or "").strip() or "*")
        named = int(document) if document.isdecimal() and len(document) < 19 else document.strip()
        try:
            told = await visit.run(view.grants.explain, named, principal)
        except (NotFoundError, UsageError) as exc:
            problem = str(exc)
    return shown(
        visit,
        GRANTS,
        "explain.html",
        principal=principal,
        known=known if said_nothing_else else None,
        document=document or "",
        collection=collection or "",
        explained=told,
        problem=problem,
        users=[one.principal.user_id or "" for one in people],
    )


def _chosen(view: View, collection: str | None) -> tuple[list[str], str | None]:
    """The collections, and the one that is shown: the one that was asked for, the configured one, or the first."""
    found = [one.name for one in view.collections.each()]
    if collection:
        if collection not in found:
            raise NotFoundError(f"There is no collection {collection[:100]!r}.{did_you_mean(collection, found)}")
        return found, collection
    configured = view.config.collection
    return found, configured if configured in found else (found[0] if found else None)


def _of(view: View, source: str | None, after: int) -> tuple[CollectionAccess, list[DocumentPermissions]]:
    listed = view.documents.list(
        source=(source or "").strip() or None, status="embedded", cursor=cursor_at(after), limit=PAGE_SIZE + 1
    )
    return view.grants.of_collection(), view.grants.of_documents([one.document_id for one in listed])


def _document(view: View, document_id: int) -> DocumentPermissions:
    found = view.grants.of_documents(view.documents.resolve([document_id]))
    if not found:
        raise NotFoundError(f"There is no document {document_id}.")
    return found[0]


def _changed(view: View, change: _Change, who: str, *, documents: int | tuple[()] = (), default: bool = False) -> int:
    tokens = names(who)
    if not tokens:
        raise UsageError("Say whom: user:NAME, role:NAME, department:NAME, group:NAME, or * for everybody.")
    if change == "deny":
        return view.grants.deny(tokens, documents=documents, default=default)
    if change == "remove":
        return view.grants.remove(tokens, documents=documents, default=default)
    return view.grants.add(tokens, documents=documents, default=default, only=change == "only")


def _back(visit: Visit, collection: str) -> Response:
    return visit.go_to(f"{GRANTS.path}?{urlencode({'collection': collection, 'told': 'changed'})}")
