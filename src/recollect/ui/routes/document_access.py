"""Who may read one document and why, who read it, and how that is changed by whoever may."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from fastapi import Form, Query
from starlette.responses import Response

from recollect.errors import NotFoundError, PermissionDeniedError, UsageError
from recollect.model import Principal
from recollect.server.schemas.base import Number
from recollect.ui.editions import Edition, edition_of
from recollect.ui.navigation import LIBRARY
from recollect.ui.page_route import page_router
from recollect.ui.visit import Visit, Visiting

if TYPE_CHECKING:
    from recollect.model.access import CollectionAccess, DocumentPermissions, ReadingExplained
    from recollect.model.shown import Access
    from recollect.pipeline import View

router = page_router()

_SHOWN = 50

_Asked = Annotated[str, Query(max_length=2_000)]
_Typed = Annotated[str, Form(max_length=2_000)]
_Change = Literal["add", "only", "deny", "remove"]
_Kind = Literal["user", "role", "department", "group", "everybody", "token"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Whom the explainer is asked about, as it was typed."""

    user: str = ""
    roles: str = ""
    department: str = ""
    groups: str = ""

    @property
    def principal(self) -> Principal | None:
        """Them; None: nobody was named."""
        if not any((self.user.strip(), self.roles.strip(), self.department.strip(), self.groups.strip())):
            return None
        return Principal(
            user_id=self.user.strip() or None,
            roles=_several(self.roles),
            department=self.department.strip() or None,
            groups=_several(self.groups),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What the visitor may know of who reads a document; None: they may not."""

    edition: Edition
    permissions: DocumentPermissions | None = None
    collection: CollectionAccess | None = None
    explained: ReadingExplained | None = None
    accesses: Sequence[Access] | None = None


@router.get("/documents/{document_id}/access")
async def access_page(
    visit: Visiting,
    document_id: Number,
    user: _Asked = "",
    roles: _Asked = "",
    department: _Asked = "",
    groups: _Asked = "",
    before: Annotated[int | None, Query(ge=1, le=2**63 - 1)] = None,
) -> Response:
    """Its grants, why somebody may read it, and, for administrators, who read it."""
    await visit.require("read")
    asked = Asked(user=user, roles=roles, department=department, groups=groups)
    return await _shown(visit, document_id, asked, before=before)


@router.post("/documents/{document_id}/access")
async def change_access(
    visit: Visiting,
    document_id: Number,
    change: Annotated[_Change, Form()],
    kind: Annotated[_Kind, Form()],
    who: _Typed = "",
    user: _Typed = "",
    roles: _Typed = "",
    department: _Typed = "",
    groups: _Typed = "",
) -> Response:
    """Change who may read it, as far as the visitor's view lets them; the question of the page is asked again."""
    visit.caller.rights(visit.service.rag)
    await visit.require("admin" if visit.may("admin") else "write", "ingest")
    await visit.run(_changed, visit, document_id, change, _tokens(kind, who))
    asked = Asked(user=user, roles=roles, department=department, groups=groups)
    try:
        return await _shown(visit, document_id, asked, changed=True)
    except NotFoundError:
        # Whoever takes away their own right does not see it any more.
        return visit.go_to("/library/documents")


def _tokens(kind: _Kind, who: str) -> list[str]:
    """Whom a form means: ``everybody``, a grant as it is shown (``token``), or names of one kind."""
    if kind == "everybody":
        return ["*"]
    names = [who.strip()] if kind == "token" else list(_several(who))
    if not all(names) or not names:
        raise UsageError("Say whom: the name of a user, a role, a department or a group.")
    return names if kind == "token" else [f"{kind}:{name}" for name in names]


def _changed(visit: Visit, document_id: int, change: _Change, tokens: Sequence[str]) -> None:
    edition_of(visit, document_id)
    grants = _rights(visit).grants
    match change:
        case "deny":
            grants.deny(tokens, documents=document_id)
        case "remove":
            grants.remove(tokens, documents=document_id)
        case _:
            grants.add(tokens, documents=document_id, only=change == "only")


async def _shown(
    visit: Visit, document_id: int, asked: Asked, *, before: int | None = None, changed: bool = False
) -> Response:
    told = await visit.run(_told, visit, document_id, asked.principal, before)
    assert told.edition.version is not None
    accesses = told.accesses
    more = accesses is not None and len(accesses) > _SHOWN
    return visit.page(
        "documents/access.html",
        LIBRARY,
        tab="access",
        edition=told.edition,
        title=told.edition.version.title,
        permissions=told.permissions,
        collection=told.collection,
        asked=asked,
        explained=told.explained,
        accesses=None if accesses is None else accesses[:_SHOWN],
        earlier=accesses[_SHOWN - 1].access_id if accesses is not None and more else None,
        may_change=told.permissions is not None,
        changed=changed,
    )


def _rights(visit: Visit) -> View:
    """The view that rights are shown and changed with, by the rule of ``/v1/grants``.

    Raises:
        PermissionDeniedError: The visitor's credential is not for that.
    """
    return visit.caller.rights(visit.service.rag).view(collections="*")


def _told(visit: Visit, document_id: int, principal: Principal | None, before: int | None) -> Told:
    # What the visitor may not read is not there for them, whatever else they may.
    edition = edition_of(visit, document_id)
    try:
        view = _rights(visit)
        (permissions,) = view.grants.of_documents(document_id)
    except PermissionDeniedError:
        return Told(edition=edition)
    try:
        collection = view.view(collections=permissions.collection).grants.of_collection()
    except PermissionDeniedError:
        collection = None
    explained = None
    if principal is not None:
        explained = view.grants.explain(document_id, principal)
    accesses = None
    if visit.may("admin"):
        accesses = visit.administration.audit.accesses(document=document_id, before=before, limit=_SHOWN + 1)
    return Told(edition=edition, permissions=permissions, collection=collection, explained=explained, accesses=accesses)


def _several(given: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in given.split(",") if part.strip())
