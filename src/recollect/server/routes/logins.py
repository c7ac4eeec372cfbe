"""``/v1/logins``: who is logged in with a browser."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from recollect.model.page import cursor_at
from recollect.operations.values import Name
from recollect.replies.logins import LoginReply, LoginsEndedReply, login_json, login_reply
from recollect.server.dependencies import Administrator, Asking
from recollect.server.pages import Paging, shown
from recollect.server.problems import documented
from recollect.server.schemas.logins import LoginPageJson

router = APIRouter(tags=["people and rights"])

_User = Annotated[Name | None, Query(description="Only logins of this user; left out: of everybody.")]


@router.get("/logins", summary="List the browsers that are logged in")
def logins(view: Administrator, page: Paging, user: _User = None) -> LoginPageJson:
    """Newest first, those that have ended in the last month among them."""
    found, more = shown(view.logins.list(user=user, before=page.name(), limit=page.asked), page)
    return {
        "logins": [login_json(one) for one in found],
        "next_cursor": cursor_at(found[-1].login_id) if more else None,
    }


@router.delete("/logins", summary="Log out every browser of a user, or of everybody")
def revoke_all(view: Administrator, service: Asking, user: _User = None) -> LoginsEndedReply:
    """Other processes notice within five seconds. Whoever has a key, or is known to the issuer, may log in again."""
    ended = view.logins.revoke_all(user=user)
    service.authenticator.logins.forget()
    return {"ended": ended}


@router.get("/logins/{login_id}", summary="Show a login", responses=documented(404))
def show(login_id: Name, view: Administrator) -> LoginReply:
    """What is kept of it: nothing of its cookie."""
    return login_reply(view.logins.get(login_id))


@router.delete("/logins/{login_id}", summary="Log a browser out", responses=documented(404))
def revoke(login_id: Name, view: Administrator, service: Asking) -> LoginReply:
    """Other processes notice within five seconds."""
    revoked = view.logins.revoke(login_id)
    service.authenticator.logins.forget()
    return login_reply(revoked)
