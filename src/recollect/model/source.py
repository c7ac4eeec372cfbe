"""A source of documents, and how it is refreshed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, TypeAlias

from recollect.model.record import Public, Record, public

#: The source of documents that are given by hand.
MANUAL_SOURCE = "manual"

#: Who puts documents there: a caller, an upload, a crawl, a connector, a folder.
SourceType: TypeAlias = Literal["manual", "upload", "web", "api", "directory"]

#: ``new``: never refreshed; ``fresh``: read to its end the last time; None: nothing refreshes it.
SourceState: TypeAlias = Literal["new", "refreshing", "fresh", "error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRecord(Record):
    """Where documents of a collection come from.

    Attributes:
        name: In its collection: a folder's path, a domain, a location, or a name given by hand.
        type: Who puts documents there.
        collection: By name.
        connector: What reads it; None: documents are put there.
        location: What the connector reads.
        settings: The connector's; secrets are names of variables.
        interval_seconds: How often it is refreshed; None: when somebody asks.
        state: How its last refresh went; None: it has none.
        problem: Why it failed, in words.
        began_at: When its last refresh began.
        refreshed_at: When it was last read to its end.
        documents: How many of its documents are current.
        failed: How many of its items could not be stored.
        metadata: Given to every document that does not have the key itself.
    """

    # In the order of the store's columns.
    source_id: int = 0
    name: Public[str]
    type: Public[SourceType]
    collection: Public[str]
    connector: Public[str | None]
    location: Public[str | None]
    settings: Public[Mapping[str, Any]]
    interval_seconds: Public[float | None]
    state: Public[SourceState | None]
    problem: Public[str | None]
    began_at: Public[datetime | None]
    refreshed_at: Public[datetime | None]
    documents: Public[int]
    failed: Public[int]
    metadata: Public[Mapping[str, Any]] = field(default_factory=dict)

    @property
    @public
    def due_at(self) -> datetime | None:
        """When it is refreshed next; None: when somebody asks."""
        if self.interval_seconds is None or self.began_at is None:
            return None
        return self.began_at + timedelta(seconds=self.interval_seconds)


def told_apart(roots: Collection[str]) -> dict[str, str]:
    """Return for each root the last parts of its name that no other one ends with, by the root's name."""
    parts = {root: root.strip("/").split("/") for root in roots}
    told: dict[str, str] = {}
    for root, own in parts.items():
        others = [other for name, other in parts.items() if name != root]
        enough = (n for n in range(1, len(own)) if all(other[-n:] != own[-n:] for other in others))
        told[root] = "/".join(own[-next(enough, len(own)) :])
    return told


def ends(names: Iterable[str]) -> list[str]:
    """Return what may be the path within a root, of names that may begin with the root's."""
    split = [name.split("/") for name in names]
    return list(dict.fromkeys("/".join(parts[n:]) for parts in split for n in range(1, len(parts))))
