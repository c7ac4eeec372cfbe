"""Vector spaces of a collection: the one that is used, and those beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from recollect.model.space import SpaceStatus
from recollect.replies._shape import Shape, Timestamp, iso

if TYPE_CHECKING:
    from recollect.model.space import Space, SpaceFill, SpaceReport


class SpaceJson(Shape):
    """The vectors that one model made of a collection's chunks."""

    space: int
    """Its number, never used again."""
    model: str
    dimensions: int
    """The length of its vectors."""
    status: SpaceStatus
    """`filling` before searches use it, `kept` after that, for the way back."""
    since: Timestamp
    """When it became so."""


class SpaceFillJson(SpaceJson):
    """A space beside the one that is used, and how far it is filled."""

    filled: int
    """Chunks that have a vector there."""
    total: int
    """Chunks that there are, those of past versions included."""
    kept_until: Timestamp | None
    """When one that is kept is dropped by itself; null: when somebody drops it."""


class SpacesJson(Shape):
    """The spaces of a collection."""

    collection: str
    used: SpaceJson
    beside: list[SpaceFillJson]


class DroppedSpacesJson(Shape):
    """Spaces that were removed."""

    collection: str
    dropped: list[SpaceJson]


def space_json(space: Space) -> SpaceJson:
    """A space."""
    return {
        "space": space.space_id,
        "model": space.model,
        "dimensions": space.dimension,
        "status": space.status,
        "since": iso(space.since),
    }


def space_fill_json(fill: SpaceFill) -> SpaceFillJson:
    """A space beside the one that is used."""
    return {
        **space_json(fill.space),
        "filled": fill.filled,
        "total": fill.total,
        "kept_until": iso(fill.kept_until),
    }


def spaces_json(report: SpaceReport) -> SpacesJson:
    """The spaces of a collection."""
    return {
        "collection": report.collection,
        "used": space_json(report.used),
        "beside": [space_fill_json(one) for one in report.beside],
    }


def dropped_spaces_json(collection: str, dropped: Sequence[Space]) -> DroppedSpacesJson:
    """Spaces of a collection that were removed."""
    return {"collection": collection, "dropped": [space_json(one) for one in dropped]}
