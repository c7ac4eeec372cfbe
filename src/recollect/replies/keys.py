"""Keys of the server: what is kept of them, and the one reply that holds a secret."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from recollect.model.key import AccessScope, KeyStatus
from recollect.replies._shape import Shape, Timestamp, iso

if TYPE_CHECKING:
    from recollect.model import Principal
    from recollect.model.key import ApiKey, NewApiKey


class PrincipalJson(Shape):
    """As whom something is asked."""

    user_id: str | None
    """The user; null: nobody in particular."""
    roles: list[str]
    department: str | None
    groups: list[str]


class WidgetJson(Shape):
    """What a key of a widget is for, and opens alone."""

    collection: str
    """Whose documents answer."""
    origins: list[str]
    """The sites that may show it."""


class KeyJson(Shape):
    """A key, without its secret."""

    key_id: str
    """Its public name."""
    tenant_id: int
    """Whose knowledge it opens."""
    name: str
    """What it is for."""
    scopes: list[AccessScope]
    """What it opens."""
    principal: PrincipalJson | None
    """As whom; null: as the owner of the tenant's store."""
    status: KeyStatus
    """Whether it is taken now."""
    created_by: str
    """Who made it."""
    created_at: Timestamp
    expires_at: Timestamp | None
    """From when on it is refused; null: never."""
    rotated_at: Timestamp | None
    """When it last got another secret."""
    previous_until: Timestamp | None
    """How long the secret before that is still taken; null: it is not."""
    revoked_at: Timestamp | None
    last_used_at: Timestamp | None
    """When it was presented last, to the minute."""
    widget: WidgetJson | None
    """The widget on pages of other sites that it opens alone; null: it is no such key."""


class KeyReply(Shape):
    """A key."""

    key: KeyJson


class NewKeyReply(Shape):
    """A key that was just made or rotated."""

    key: KeyJson
    secret: str
    """The key as it is presented. It is not shown again."""


class KeyListJson(Shape):
    """Keys, newest first."""

    keys: list[KeyJson]
    next_before: str | None
    """Where the next page begins; null: there is none."""


def principal_json(principal: Principal | None) -> PrincipalJson | None:
    """As whom something is asked."""
    if principal is None:
        return None
    return {
        "user_id": principal.user_id,
        "roles": list(principal.roles),
        "department": principal.department,
        "groups": list(principal.groups),
    }


def key_json(key: ApiKey) -> KeyJson:
    """A key."""
    return {
        "key_id": key.key_id,
        "tenant_id": key.tenant_id,
        "name": key.name,
        "scopes": list(key.scopes),
        "principal": principal_json(key.principal),
        "status": key.status,
        "created_by": key.created_by,
        "created_at": iso(key.created_at),
        "expires_at": iso(key.expires_at),
        "rotated_at": iso(key.rotated_at),
        "previous_until": iso(key.previous_until),
        "revoked_at": iso(key.revoked_at),
        "last_used_at": iso(key.last_used_at),
        "widget": None
        if key.widget is None
        else {"collection": key.widget.collection, "origins": list(key.widget.origins)},
    }


def key_reply(key: ApiKey) -> KeyReply:
    """A key that was asked for or revoked."""
    return {"key": key_json(key)}


def new_key_reply(made: NewApiKey) -> NewKeyReply:
    """A key with its secret, this once."""
    return {"key": key_json(made.key), "secret": made.secret}


def key_list_json(keys: Sequence[ApiKey], *, more: bool) -> KeyListJson:
    """A page of keys, newest first.

    Args:
        keys: Of the page.
        more: Whether another page follows.
    """
    return {"keys": [key_json(key) for key in keys], "next_before": keys[-1].key_id if keys and more else None}
