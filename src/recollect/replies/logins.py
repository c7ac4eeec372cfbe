"""Logins of browsers, without their cookies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from recollect.model.key import AccessScope
from recollect.model.login import LoginMethod, LoginStatus
from recollect.replies._shape import Shape, Timestamp, iso
from recollect.replies.keys import PrincipalJson, principal_json

if TYPE_CHECKING:
    from recollect.model.login import Login


class LoginJson(Shape):
    """A browser that is logged in, or was."""

    login_id: str
    """Its public name."""
    tenant_id: int
    """Whose knowledge it opens."""
    method: LoginMethod
    """How its user was known: by an API key, or by an issuer's word (OpenID Connect)."""
    key_id: str | None
    """The key that it was made with."""
    scopes: list[AccessScope]
    """What it opens."""
    principal: PrincipalJson | None
    """As whom; null: as the owner of the tenant's store."""
    status: LoginStatus
    """Whether it is taken now."""
    created_at: Timestamp
    last_used_at: Timestamp
    """When it was used last, to the minute."""
    idle_until: Timestamp
    """When it ends, where it is not used again."""
    expires_at: Timestamp
    """When it ends at the latest."""
    ended_at: Timestamp | None
    """When it was logged out or revoked."""


class LoginReply(Shape):
    """A login."""

    login: LoginJson


class LoginsEndedReply(Shape):
    """How many logins were ended."""

    ended: int


class LoginListJson(Shape):
    """Logins, newest first."""

    logins: list[LoginJson]
    next_before: str | None
    """Where the next page begins; null: there is none."""


def login_json(login: Login) -> LoginJson:
    """A login."""
    return {
        "login_id": login.login_id,
        "tenant_id": login.tenant_id,
        "method": login.method,
        "key_id": login.key_id,
        "scopes": list(login.scopes),
        "principal": principal_json(login.principal),
        "status": login.status,
        "created_at": iso(login.created_at),
        "last_used_at": iso(login.last_used_at),
        "idle_until": iso(login.idle_until),
        "expires_at": iso(login.expires_at),
        "ended_at": iso(login.ended_at),
    }


def login_reply(login: Login) -> LoginReply:
    """A login that was asked for or ended."""
    return {"login": login_json(login)}


def login_list_json(logins: Sequence[Login], *, more: bool) -> LoginListJson:
    """A page of logins, newest first.

    Args:
        logins: Of the page.
        more: Whether another page follows.
    """
    return {
        "logins": [login_json(login) for login in logins],
        "next_before": logins[-1].login_id if logins and more else None,
    }
