"""Bodies and replies about keys, and about whoever asks."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from recollect.model.key import AccessScope
from recollect.replies._shape import Shape, Timestamp
from recollect.replies.keys import KeyJson, PrincipalJson
from recollect.server.schemas.base import Asker, Body, Name, Text


class KeyBody(Body):
    """A new key."""

    name: Name
    scopes: tuple[AccessScope, ...] = Field(("read",), min_length=1, description="What it opens.")
    expires: Text | None = Field(
        None, max_length=100, description="After how long it ends: 90d, 12h; left out: when the one that makes it does."
    )
    as_: Asker | None = Field(
        None, alias="as", description="As whom; left out: as whoever makes it, the owner of the store among them."
    )


class KeyRotationBody(Body):
    """Another secret for a key."""

    grace: Text = Field(
        "1d", max_length=100, description="How long the secret that it has is still taken; 0: no longer."
    )
    expires: Text | None = Field(
        None, max_length=100, description="After how long from now it ends; left out: when it would have."
    )


class KeyPage(Shape):
    """Keys, newest first."""

    keys: list[KeyJson]
    next_cursor: str | None
    """Where the next page begins; null: there is none."""


class CredentialJson(Shape):
    """What somebody is known by."""

    kind: Literal["key", "jwt", "local"]
    """An API key, a token of an issuer, or nothing, on this machine."""
    id: str
    """The key's public id, or the token's user."""
    expires_at: Timestamp | None


class CallerTenantJson(Shape):
    """Whose knowledge."""

    tenant_id: int
    name: str


class MeJson(Shape):
    """Who asks, and what they may."""

    tenant: CallerTenantJson
    principal: PrincipalJson | None
    """As whom; null: as the owner of the tenant's store."""
    scopes: list[AccessScope]
    """What the credential opens."""
    credential: CredentialJson
