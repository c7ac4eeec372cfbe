"""``/v1/grants``: who may read documents, and who may do what in a collection.

Administrators see and change all of it; whoever may write, what is theirs (`Caller.rights`).
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from recollect.model.access import CollectionAccess, GrantsReply
from recollect.operations.values import Name
from recollect.server.dependencies import EITHER_SCOPE, Granter
from recollect.server.etags import IfMatch, require_match, tagged
from recollect.server.problems import documented
from recollect.server.schemas.administration import CollectionRights, GrantChange

router = APIRouter(prefix="/grants", tags=["people and rights"], responses=documented(404))


@router.get("", summary="Who may do what in a collection", openapi_extra=EITHER_SCOPE)
def collection(
    caller: Granter,
    response: Response,
    collection: Annotated[Name | None, Query(description="The collection; left out: the configured one.")] = None,
) -> CollectionAccess:
    """Its owners, readers and writers, and who may read documents that have no permissions of their own."""
    return tagged(response, caller.view(collections=collection).grants.of_collection())


@router.get("/documents", summary="Who may read documents", openapi_extra=EITHER_SCOPE)
def documents(
    caller: Granter,
    document: Annotated[list[Name], Query(min_length=1, max_length=1_000, description="By id or by source.")],
    collection: Annotated[
        Name | None, Query(description="Their collection; * means any; left out: the configured one.")
    ] = None,
) -> GrantsReply:
    """Of each document what it is granted and denied, and whether that is the collection's default."""
    view = caller.view(collections=collection)
    return GrantsReply(documents=tuple(view.grants.of_documents(view.documents.resolve(document))))


@router.post("", summary="Change who may read documents", openapi_extra=EITHER_SCOPE)
def change(body: GrantChange, caller: Granter) -> GrantsReply:
    """It counts from the next search on.

    The reply shows the documents that were named, or the collection whose default was changed, as they are now.
    """
    view = body.of(caller)
    target = body.target(view)
    match body.change:
        case "add":
            changed = view.grants.add(body.who, only=body.only, **target)
        case "remove":
            changed = view.grants.remove(body.who, **target)
        case "deny":
            changed = view.grants.deny(body.who, **target)
    now = view.view(principal=None).grants
    if "documents" in target:
        return GrantsReply(changed=changed, documents=tuple(now.of_documents(target["documents"])))
    return GrantsReply(changed=changed, collection=now.of_collection() if "default" in target else None)


@router.patch(
    "",
    summary="Say who owns, reads and writes a collection",
    responses=documented(412),
    openapi_extra=EITHER_SCOPE,
)
def set_collection(
    body: CollectionRights, caller: Granter, response: Response, if_match: IfMatch = None
) -> CollectionAccess:
    """What is given replaces what was; the rest stays."""
    view = body.of(caller)

    def check(before: CollectionAccess) -> None:
        require_match(if_match, before)

    view.grants.set_collection(owners=body.owner, readers=body.reader, writers=body.writer, check=check)
    return tagged(response, caller.view(collections=body.collection).grants.of_collection())
