"""A vector space of a collection: the vectors that one model made of its chunks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, TypeAlias

from recollect.model.record import Public, Record, public_as

SpaceStatus: TypeAlias = Literal["used", "filling", "kept", "dropping"]


@dataclass(frozen=True, slots=True)
class Space(Record):
    """The vectors that one model, at one dimension, made of a collection's chunks.

    Attributes:
        space_id: Its number, never used again.
        model: As embedders tell their name.
        dimension: The length of its vectors.
        status: ``used`` by searches and ingests; ``filling`` before that; ``kept`` after it, for the way back.
        since: When it became so.
        collection_id: Whose chunks.
        spec: How the model is made (`recollect.model.embedding_spec`); None: only its name is known.
    """

    space_id: Annotated[int, public_as("space")]
    model: Public[str]
    dimension: Annotated[int, public_as("dimensions")]
    status: Public[SpaceStatus]
    since: Public[datetime]
    collection_id: int = 0
    spec: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceFill(Space):
    """A space beside the one that a collection uses, and how far it is filled.

    Attributes:
        filled: Chunks that have a vector there.
        total: Chunks that there are, those of past versions included.
        kept_until: When a space that is kept for the way back is dropped by itself; None: when somebody drops it.
    """

    filled: Public[int]
    total: Public[int]
    kept_until: Public[datetime | None] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceReport(Record):
    """The spaces of a collection.

    Attributes:
        collection: Its name.
        used: By its searches.
        beside: The others.
    """

    collection: Public[str]
    used: Public[Space]
    beside: Public[tuple[SpaceFill, ...]]


def kept_until(space: Space, days: int | None) -> datetime | None:
    """When a space is dropped by itself; None: never.

    Args:
        space: Beside the one that is used.
        days: For how many days a space is kept once it is no longer used; None: until somebody drops it.
    """
    return space.since + timedelta(days=days) if space.status == "kept" and days is not None else None
