"""Bodies about keys."""

from __future__ import annotations

from pydantic import Field

from recollect.model.key import AccessScope
from recollect.operations.values import Name, Text
from recollect.server.schemas.base import Asker, Body


class WidgetBody(Body):
    """What a key of a widget is for, and opens alone."""

    collection: Name = Field(description="Whose documents answer.")
    origins: tuple[Name, ...] = Field(
        min_length=1, max_length=100, description="The sites that may show it: https://intranet.example.com."
    )


class KeyBody(Body):
    """A new key."""

    name: Name
    scopes: tuple[AccessScope, ...] = Field(("read",), min_length=1, description="What it opens.")
    expires: Text | None = Field(
        None, max_length=100, description="After how long it ends: 90d, 12h; left out: when the one that makes it does."
    )
    as_: Asker | None = Field(
        None,
        alias="as",
        description="As whom; left out: as whoever makes it, the owner of the store among them; of a widget: nobody.",
    )
    widget: WidgetBody | None = Field(
        None, description="For a widget on pages of other sites: the key opens it there and nothing else."
    )


class KeyRotationBody(Body):
    """Another secret for a key."""

    grace: Text = Field(
        "1d", max_length=100, description="How long the secret that it has is still taken; 0: no longer."
    )
    expires: Text | None = Field(
        None, max_length=100, description="After how long from now it ends; left out: when it would have."
    )
