"""Logins of browsers: who is logged in, since when, and how long."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from recollect.model.key import AccessScope
from recollect.model.principal import Principal
from recollect.model.record import Public, Record

#: By what somebody was known who logged in: an API key, or an issuer's word (OpenID Connect).
LoginMethod = Literal["key", "oidc"]

LoginStatus = Literal["active", "expired", "revoked", "ended"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Login(Record):
    """A browser that is logged in, or was; without its cookie, which nobody knows but the browser.

    Attributes:
        tenant_id: Whose knowledge it opens.
        login_id: Its public name: it stands in lists and in the audit.
        method: How its user was known: by an API key, or by an issuer's word (OpenID Connect).
        key_id: The API key that it was made with; None: an issuer vouched for the user.
        scopes: What it opens.
        principal: As whom; None: as the owner of the tenant's store.
        created_at: Since when.
        last_used_at: When it was used last, to the minute.
        idle_until: When it ends, where it is not used again.
        expires_at: When it ends at the latest, however much it is used.
        key_expires_at: When its key ends; None: that does not, or there is none.
        ended_at: When it was logged out or revoked; None: it was not.
        status: Whether it is taken now: ``active``; ``expired``: its time is over, or it was not used for too long;
            ``revoked``: its key is not taken any more; ``ended``: it was logged out, or an administrator ended it.
    """

    tenant_id: Public[int]
    login_id: Public[str]
    method: Public[LoginMethod]
    key_id: Public[str | None]
    scopes: Public[tuple[AccessScope, ...]]
    principal: Public[Principal | None]
    created_at: Public[datetime]
    last_used_at: Public[datetime]
    idle_until: Public[datetime]
    expires_at: Public[datetime]
    key_expires_at: datetime | None = None
    ended_at: Public[datetime | None]
    status: Public[LoginStatus]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewLogin:
    """A login that was just made.

    Attributes:
        login: What is kept of it.
        secret: What the browser's cookie holds. It is shown here alone, and not by ``repr``.
    """

    login: Login
    secret: str = field(repr=False)
