"""Bodies about sources of documents."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from recollect.operations.values import Name, Text
from recollect.pipeline import View
from recollect.server.schemas.base import Body

_MAX_CHARACTERS = 10_000


class _OfCollection(Body):
    """Whose sources."""

    collection: Name | None = Field(None, description="The collection; left out: the configured one.")

    def of(self, view: View) -> View:
        """The view of the collection."""
        return view.view(collections=self.collection)


class SourceBody(_OfCollection):
    """A place outside that is to be read; the fields are the options of `recollect sources add`."""

    location: Text = Field(
        min_length=1,
        max_length=_MAX_CHARACTERS,
        description="s3://BUCKET/PREFIX, imaps://USER@HOST, a repository, a site, or a folder of the server's machine "
        "by its whole path.",
    )
    connector: Name | None = Field(None, description="What reads it; left out: what the location looks like.")
    name: Text | None = Field(
        None, min_length=1, max_length=_MAX_CHARACTERS, description="What it is called; left out: the location."
    )
    settings: dict[str, Any] = Field(
        default_factory=dict, max_length=100, description="The connector's. Credentials: env:NAME, of the server."
    )
    every: Text | None = Field(
        None, max_length=100, description="How often a worker refreshes it: 15m, 6h, 1d; left out: when it is asked."
    )
    metadata: dict[str, Any] = Field(
        default_factory=dict,
        max_length=100,
        description="Given to every document of the source that does not have the key itself.",
    )


class RefreshBody(_OfCollection):
    """A source that is to be read anew."""

    source: Text = Field(min_length=1, max_length=_MAX_CHARACTERS, description="By its name.")
    confirm_removals: bool = Field(False, description="Close what has gone, however much it is.")
    anew: bool = Field(False, description="Look at every item, not only at what changed since the last time.")
