"""The past: which parts of a history a search of a moment looks into, and what makes a passage stale.

What was known at a moment and is not any more lies in closed-row segments, by the time when it was closed
(`recollect.store.history`). Segments that the moment meets in many rows are searched through their indexes, as
what is current still; the few rows elsewhere are compared one by one, by their versions.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg.rows import TupleRow

from recollect.model import Scope
from recollect.model.collection import Collection
from recollect.store.database import Repository, rows
from recollect.store.sql import queries

_SQL = queries("past")


#: Up to so many chunks of a part are compared one by one: about what an index takes to find none among many others.
FEW_CHUNKS = 5_000


#: What no segment holds yet is compared one by one, up to so many chunks.
MOST_CHUNKS = 60_000


# Below this share of a segment's rows an index goes through too many others; the estimate is good to a sixty-fourth.
_FEW = 1 / 32


@dataclass(frozen=True, slots=True)
class PastParts:
    """Where to look for what was known at a moment; the parts have no row in common.

    Attributes:
        current: Whether to go through the indexes of current rows.
        starts: The closed-row segments to search through their indexes: closed at these moments or later …
        ends: … and before these; PostgreSQL's own way of writing them.
        version_ids: Versions beside these parts, whose chunks are compared one by one.
    """

    current: bool
    starts: list[str]
    ends: list[str]
    version_ids: list[int]

    def __bool__(self) -> bool:
        return bool(self.current or self.starts or self.version_ids)

    @property
    def indexed(self) -> bool:
        """Whether an approximate index takes part."""
        return self.current or bool(self.starts)


@dataclass(frozen=True, slots=True)
class _Part:
    start: str
    end: str
    chunks: float
    segment: bool


class PastRepository(Repository):
    """Plans searches of the past."""

    def plan(self, scope: Scope, collection: Collection) -> PastParts | None:
        """The parts in which everything lies that was known in a collection at the scope's moment.

        Returns:
            None where the versions of then have to be looked up instead: expired ones are among them, or too much was
            closed since the last segment was made.
        """
        if scope.as_of is None:
            return None
        params: dict[str, Any] = {
            "tenant_id": scope.tenant_id,
            "collection_id": collection.collection_id,
            "as_of": scope.as_of,
        }
        with self._database.single_reads(scope) as connection:
            found = rows(connection, _SQL["segments"], params)
            if found[0][0]:
                return None
            through, beside = _divided(found, scope.as_of.timestamp())
            params |= {
                "few": _versions(collection, FEW_CHUNKS),
                "starts": [part.start for part in beside],
                "ends": [part.end for part in beside],
                "limits": [_versions(collection, FEW_CHUNKS if part.segment else MOST_CHUNKS) for part in beside],
            }
            known = rows(connection, _SQL["known_then"], params, prepare=False)
        return _planned(known, through, beside, params["few"], params["limits"])


def _divided(found: Sequence[TupleRow], moment: float) -> tuple[list[_Part], list[_Part]]:
    """Segments to search through their indexes, and the rest of the closed rows, part by part."""
    segments = [row[1:] for row in found if row[1] is not None]
    through: list[_Part] = []
    beside: list[_Part] = []
    for start, end, chunks, begins, ends, reaches in segments:
        # The first of `begins` is never later than what begins first: closing what has expired lowers it.
        if not reaches or not begins or begins[0] > moment:
            continue
        share = (bisect_right(begins, moment) - bisect_right(ends, moment)) / len(begins)
        part = _Part(start, end, share * chunks, segment=True)
        (through if share >= _FEW and part.chunks > FEW_CHUNKS else beside).append(part)
    last = segments[-1][1] if segments else "-infinity"
    return through, [*beside, _Part(last, "infinity", 0.0, segment=False)]


def _planned(
    known: Sequence[TupleRow], through: list[_Part], beside: list[_Part], few: int, limits: Sequence[int]
) -> PastParts | None:
    by_part: dict[int, list[int]] = {}
    for number, version_id, _ in known:
        by_part.setdefault(number, []).append(version_id)
    current = len(by_part.get(0, ())) > few
    version_ids = [] if current else by_part.get(0, [])
    through = list(through)
    for number, (part, limit) in enumerate(zip(beside, limits, strict=True), 1):
        own = by_part.get(number, [])
        if len(own) <= limit:
            version_ids = version_ids + own
        elif part.segment:
            through.append(part)
        else:
            return None
    return PastParts(current, [part.start for part in through], [part.end for part in through], sorted(version_ids))


def _versions(collection: Collection, chunks: int) -> int:
    """How many versions have so many chunks, by the collection's average."""
    if not collection.chunk_count or not collection.document_count:
        return chunks
    return max(1, chunks * collection.document_count // collection.chunk_count)


# What became of versions, and which other documents of its edition group a document has.


_STALENESS = queries("staleness")


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


class StalenessRepository(Repository):
    """Looks up what makes a passage stale."""

    def endings(self, scope: Scope, version_ids: Sequence[int]) -> dict[int, VersionEnd]:
        """Of given versions, those that are known no longer, and how they ended."""
        params = {"tenant_id": scope.tenant_id, "version_ids": list(version_ids)}
        found = self._database.read(scope, _STALENESS["endings"], params)
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
        found = self._database.read(scope, _STALENESS["siblings"], params)
        siblings: dict[int, list[Sibling]] = {}
        for chunk_id, *values in found:
            siblings.setdefault(chunk_id, []).append(Sibling(*values))
        return siblings
