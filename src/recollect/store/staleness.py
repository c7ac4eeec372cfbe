"""What became of versions, and which other documents of its edition group a document has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from recollect.model import Scope
from recollect.model.collection import Collection
from recollect.store.database import Database, rows
from recollect.store.sql import queries

_SQL = queries("staleness")

#: A larger group is a series (minutes, reports, logs), in which no member takes the place of another.
LARGEST_GROUP = 6


@dataclass(frozen=True, slots=True)
class VersionEnd:
    """How a version ended.

    Attributes:
        at: When.
        expired: Whether its time was over.
        replaced: Whether the next version took its place then.
    """

    at: datetime
    expired: bool
    replaced: bool


@dataclass(frozen=True, slots=True)
class Sibling:
    """Another document of an edition group.

    Attributes:
        source: Its path.
        event_time: Of its version.
        text: Of its chunk that is nearest to the passage it was looked up for.
        department: Of its version.
    """

    document_id: int
    source: str
    event_time: datetime | None
    text: str
    department: str | None


class StalenessRepository:
    """Looks up what makes a passage stale.

    Args:
        database: The store's connections.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def endings(self, scope: Scope, version_ids: Sequence[int]) -> dict[int, VersionEnd]:
        """Of given versions, those that are known no longer, and how they ended."""
        params = {"tenant_id": scope.tenant_id, "version_ids": list(version_ids)}
        with self._database.single_reads(scope) as connection:
            found = rows(connection, _SQL["endings"], params)
        return {
            row[0]: VersionEnd(row[1], expired=row[2], replaced=row[3] is not None and row[3] <= row[1])
            for row in found
        }

    def siblings(self, scope: Scope, collection: Collection, passages: Mapping[int, int]) -> dict[int, list[Sibling]]:
        """Other documents of the same edition groups, as of the scope's moment, that its principal may read.

        Args:
            scope: Whose, and as of when.
            collection: Where.
            passages: The document id of each passage's chunk id.

        Returns:
            By chunk id; a group of more than `LARGEST_GROUP` others has none.
        """
        params = {
            "tenant_id": scope.tenant_id,
            "space_id": collection.space_id,
            "as_of": scope.as_of,
            "access_ids": None if collection.access_ids is None else list(collection.access_ids),
            "chunk_ids": list(passages),
            "document_ids": list(passages.values()),
            "limit": LARGEST_GROUP,
        }
        with self._database.single_reads(scope) as connection:
            found = rows(connection, _SQL["siblings"], params)
        siblings: dict[int, list[Sibling]] = {}
        for chunk_id, *values in found:
            siblings.setdefault(chunk_id, []).append(Sibling(*values))
        return siblings
