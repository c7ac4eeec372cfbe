"""People: the keys and logins that name them, what roles open, and who is granted what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import Form, Query
from starlette.responses import Response

from recollect.errors import NotFoundError, UsageError
from recollect.model import Principal
from recollect.model.access import DocumentPermissions, ReadingExplained
from recollect.model.arguments import did_you_mean
from recollect.model.key import ACCESS_SCOPES
from recollect.pipeline import View
from recollect.ui.routes.administration.asking import (
    GRANTS,
    KEYS,
    LOGINS,
    PAGE_SIZE,
    PEOPLE,
    Cursor,
    shown,
)
from recollect.ui.visit import Administering, Visit, link, names, page_router, somebody

# Keys: made, shown once, given another secret, revoked.

router = page_router()


_Text = Annotated[str, Form(max_length=2_000)]


@router.get(KEYS.path)
async def keys(visit: Administering, cursor: Cursor = None) -> Response:
    """Newest first."""
    begin = cursor or None
    page = await visit.run(lambda: visit.administration.keys.list(cursor=begin, limit=PAGE_SIZE))
    return shown(visit, KEYS, "keys.html", keys=page, next_cursor=page.next_cursor)


@router.get(f"{KEYS.path}/new")
async def new(visit: Administering) -> Response:
    """The form of a new key."""
    return shown(visit, KEYS, "key_new.html", scopes=_scopes(visit))


@router.post(KEYS.path)
async def create(
    visit: Administering,
    name: _Text = "",
    scopes: Annotated[list[str] | None, Form()] = None,
    expires: _Text = "",
    whose: _Text = "owner",
    user: _Text = "",
    roles: _Text = "",
    department: _Text = "",
    groups: _Text = "",
) -> Response:
    """Make a key; the reply is the one page that shows its secret."""
    who: Principal | None = None
    if whose == "person":
        who = somebody(user, roles, department, groups)
    # As the caller, whom no key of theirs goes beyond.
    view, maker = visit.caller.view(visit.service.rag), visit.caller.maker
    made = await visit.run(
        lambda: view.keys.create(name, scopes=scopes or (), principal=who, expires=expires.strip() or None, maker=maker)
    )
    return shown(visit, KEYS, "key_made.html", made=made, rotated=False, address="")


@router.get(f"{KEYS.path}/widget")
async def new_widget(visit: Administering) -> Response:
    """The form of a key for a widget."""
    found = await visit.run(visit.administration.collections.list)
    return shown(visit, KEYS, "key_widget.html", collections=[one.name for one in found])


@router.post(f"{KEYS.path}/widget")
async def create_widget(
    visit: Administering, name: _Text = "", collection: _Text = "", origins: _Text = "", expires: _Text = ""
) -> Response:
    """Make a key for a widget; the reply shows it, with what its pages embed."""
    made = await visit.run(
        lambda: visit.administration.keys.create_widget(
            name,
            collection=collection,
            origins=names(origins),
            expires=expires.strip() or None,
            maker=visit.caller.maker,
        )
    )
    address = visit.service.authenticator.logins.cookies.base(visit.request)
    return shown(visit, KEYS, "key_made.html", made=made, rotated=False, address=address)


@router.get(f"{KEYS.path}/{{key_id}}")
async def key(visit: Administering, key_id: str) -> Response:
    """What is kept of one."""
    found = await visit.run(lambda: visit.administration.keys.get(key_id))
    return shown(visit, KEYS, "key.html", key=found)


@router.post(f"{KEYS.path}/{{key_id}}/rotate")
async def rotate(visit: Administering, key_id: str, grace: _Text = "1d", expires: _Text = "") -> Response:
    """Give it another secret; the reply is the one page that shows it."""
    view, maker = visit.caller.view(visit.service.rag), visit.caller.maker
    rotated = await visit.run(
        lambda: view.keys.rotate(
            key_id, grace=0 if grace.strip() in {"", "0"} else grace, expires=expires.strip() or None, maker=maker
        )
    )
    visit.service.authenticator.forget()
    return shown(visit, KEYS, "key_made.html", made=rotated, rotated=True, address="")


@router.post(f"{KEYS.path}/{{key_id}}/revoke")
async def revoke(visit: Administering, key_id: str) -> Response:
    """Refuse it from now on."""
    await visit.run(lambda: visit.administration.keys.revoke(key_id))
    visit.service.authenticator.forget()
    return visit.go_to(f"{KEYS.path}/{key_id}?told=revoked")


def _scopes(visit: Visit) -> list[str]:
    return [scope for scope in ACCESS_SCOPES if visit.may(scope)]


@router.get(PEOPLE.path)
async def people(visit: Administering, cursor: Cursor = None) -> Response:
    """By name."""
    page = await visit.run(lambda: visit.administration.keys.users(cursor=cursor or None, limit=PAGE_SIZE))
    config = visit.service.rag.config
    return shown(
        visit,
        PEOPLE,
        "people.html",
        people=page,
        next_cursor=page.next_cursor,
        access=config.access,
        role_scopes=config.server.jwt.role_scopes,
        tokens_taken=config.server.jwt.configured or config.server.login.oidc.configured,
    )


# Browsers that are logged in: listed and logged out.


@router.get(LOGINS.path)
async def logins(
    visit: Administering, user: Annotated[str | None, Query(max_length=500)] = None, cursor: Cursor = None
) -> Response:
    """Newest first, those that have ended in the last month among them."""
    wanted, begin = (user or "").strip() or None, cursor or None
    page = await visit.run(lambda: visit.administration.logins.list(user=wanted, cursor=begin, limit=PAGE_SIZE))
    return shown(visit, LOGINS, "logins.html", logins=page, next_cursor=page.next_cursor, user=wanted or "")


@router.post(f"{LOGINS.path}/{{login_id}}/end")
async def end(visit: Administering, login_id: str) -> Response:
    """Log a browser out."""
    await visit.run(lambda: visit.administration.logins.revoke(login_id))
    visit.service.authenticator.logins.forget()
    return visit.go_to(f"{LOGINS.path}?told=ended")


@router.post(f"{LOGINS.path}/end")
async def end_all(visit: Administering, user: Annotated[str, Form(max_length=500)] = "") -> Response:
    """Log out every browser of a user, or of everybody."""
    await visit.run(lambda: visit.administration.logins.revoke_all(user=user.strip() or None))
    visit.service.authenticator.logins.forget()
    return visit.go_to(f"{LOGINS.path}?told=ended")


# Grants: who may do what in a collection, who may read a document, and why somebody may.


_Listed = Annotated[str, Form(max_length=20_000)]


_Asked = Annotated[str | None, Query(max_length=2_000)]


_Number = Annotated[int, Query(ge=1, lt=2**63)]


#: What is done with who may read: ``only`` puts them in the place of all others.
Change = Literal["add", "only", "deny", "remove"]


@router.get(GRANTS.path)
async def grants(
    visit: Administering, collection: _Asked = None, source: _Asked = None, cursor: Cursor = None
) -> Response:
    """Who may do what in a collection, and who may read which of its documents."""
    collections, chosen = await visit.run(_chosen, visit.administration, collection)
    found: dict[str, Any] = {"access": None, "documents": (), "next_cursor": None}
    if chosen is not None:
        found = await visit.run(_of, visit.administration.view(collections=chosen), source, cursor or None)
    return shown(visit, GRANTS, "grants.html", collections=collections, chosen=chosen, source=source or "", **found)


@router.post(f"{GRANTS.path}/collection")
async def set_collection(
    visit: Administering, collection: _Listed, owners: _Listed = "", readers: _Listed = "", writers: _Listed = ""
) -> Response:
    """Say who owns, reads and writes a collection."""
    view = visit.administration.view(collections=collection)
    await visit.run(
        lambda: view.grants.set_collection(owners=names(owners), readers=names(readers), writers=names(writers))
    )
    return _back(visit, collection)


@router.post(f"{GRANTS.path}/default")
async def change_default(
    visit: Administering, collection: _Listed, who: _Listed = "", change: Annotated[Change, Form()] = "add"
) -> Response:
    """Change who may read the documents that have no permissions of their own."""
    view = visit.administration.view(collections=collection)
    await visit.run(lambda: change_readers(view, change, names(who), default=True))
    return _back(visit, collection)


@router.get(f"{GRANTS.path}/documents/{{document_id}}")
async def document(visit: Administering, document_id: int) -> Response:
    """Who may read a document."""
    one = await visit.run(_document, visit.administration.view(collections="*"), document_id)
    return shown(visit, GRANTS, "grants_document.html", document=one)


@router.post(f"{GRANTS.path}/documents/{{document_id}}")
async def change_document(
    visit: Administering, document_id: int, who: _Listed = "", change: Annotated[Change, Form()] = "add"
) -> Response:
    """Change who may read it."""
    view = visit.administration.view(collections="*")
    await visit.run(lambda: change_readers(view, change, names(who), documents=document_id))
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


def _of(view: View, source: str | None, cursor: str | None) -> dict[str, Any]:
    listed = view.documents.list(
        source=(source or "").strip() or None, status="embedded", cursor=cursor, limit=PAGE_SIZE
    )
    documents = view.grants.of_documents([one.document_id for one in listed])
    return {"access": view.grants.of_collection(), "documents": documents, "next_cursor": listed.next_cursor}


def _document(view: View, document_id: int) -> DocumentPermissions:
    found = view.grants.of_documents(view.documents.resolve([document_id]))
    if not found:
        raise NotFoundError(f"There is no document {document_id}.")
    return found[0]


def change_readers(
    view: View, change: Change, tokens: Sequence[str], *, documents: int | tuple[()] = (), default: bool = False
) -> None:
    """Change who may read a document, or those of a collection that have no permissions of their own.

    Raises:
        UsageError: Nobody is named.
    """
    if not tokens:
        raise UsageError("Say whom: user:NAME, role:NAME, department:NAME, group:NAME, or * for everybody.")
    if change in {"add", "only"}:
        view.grants.add(tokens, documents=documents, default=default, only=change == "only")
    else:
        (view.grants.deny if change == "deny" else view.grants.remove)(tokens, documents=documents, default=default)


def _back(visit: Visit, collection: str) -> Response:
    return visit.go_to(link(GRANTS.path, collection=collection, told="changed"))
