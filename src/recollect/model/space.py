"""A vector space of a collection: the vectors that one model made of its chunks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, TypeAlias

SpaceStatus: TypeAlias = Literal["used", "filling", "kept", "dropping"]


@dataclass(frozen=True, slots=True)
class Space:
    """The vectors that one model, at one dimension, made of a collection's chunks.

    Attributes:
        collection_id: Whose chunks.
        space_id: Its number, never used again.
        status: ``used`` by searches and ingests; ``filling`` before that; ``kept`` after it, for the way back.
        model: As embedders tell their name.
        dimension: The length of its vectors.
        spec: How the model is made (`recollect.model.embedding_spec`); None: only its name is known.
        since: When it became so.
    """

    collection_id: int
    space_id: int
    status: SpaceStatus
    model: str
    dimension: int
    spec: Mapping[str, Any] | None
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceFill:
    """A space beside the one that a collection uses, and how far it is filled.

    Attributes:
        filled: Chunks that have a vector there.
        total: Chunks that there are, those of past versions included.
        kept_until: When a space that is kept for the way back is dropped by itself; None: when somebody drops it.
    """

    space: Space
    filled: int
    total: int
    kept_until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceReport:
    """The spaces of a collection.

    Attributes:
        collection: Its name.
        used: By its searches.
        beside: The others.
    """

    collection: str
    used: Space
    beside: tuple[SpaceFill, ...]


def kept_until(space: Space, days: int | None) -> datetime | None:
    """When a space is dropped by itself; None: never.

    Args:
        space: Beside the one that is used.
        days: For how many days a space is kept once it is no longer used; None: until somebody drops it.
    """
    return space.since + timedelta(days=days) if space.status == "kept" and days is not None else None
