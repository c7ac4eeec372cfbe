"""What a copy of a collection holds at one revision. It never changes: a search keeps the one that it began with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from cachetools import LRUCache

from recollect.retrieval.resident.kernels import Floats, Mask, Rows
from recollect.retrieval.resident.segment import Segment, joined

if TYPE_CHECKING:
    from recollect.store.filters import MatchingVersions
    from recollect.store.resident import Contents, TermCounts

#: So many chunks that a filter leaves are all compared by their stored vectors, so that none is missed.
EXACT_CHUNKS = 20_000

# What filters and rights leave is kept, of those asked for last, in this share of what the part itself takes.
_MASKS_SHARE = 8

# So many arrays of scores wait for the next search.
_SCRATCHES = 4


@dataclass(frozen=True, slots=True, eq=False)
class Eligible:
    """Which rows of a part a search may find.

    Attributes:
        mask: A byte a row; None: all of them.
        embedded: The same of those that have a vector, in the order of the codes.
        count: How many have one.
        rows: Those, where they are few enough to be compared one by one.
    """

    mask: Mask | None
    embedded: Mask | None
    count: int
    rows: Rows | None


class Part:
    """A segment with what is known of its rows at a revision.

    Attributes:
        segment: The rows.
        alive: A byte a row: 0 of those that are gone; None: none is.
        dead: How many are gone.
    """

    def __init__(self, segment: Segment, alive: Mask | None = None) -> None:
        self.segment = segment
        self.alive = alive
        self.dead = 0 if alive is None else len(segment) - int(alive.sum())
        self._room = segment.nbytes // _MASKS_SHARE
        self._eligible: LRUCache[object, tuple[object, Eligible]] = LRUCache(self._room, getsizeof=_size)
        self._scratch: list[Floats] = []
        self._lock = Lock()

    def eligible(self, versions: MatchingVersions | None, access_ids: tuple[int, ...] | None) -> Eligible:
        """What a filter and a caller's rights leave."""
        key = (None if versions is None else id(versions), access_ids)
        with self._lock:
            kept = self._eligible.get(key)
        if kept is not None:
            return kept[1]
        # With the filter's result, so that no other has its id meanwhile.
        made = versions, self._made(versions, access_ids)
        if _size(made) <= self._room:
            with self._lock:
                self._eligible[key] = made
        return made[1]

    def _made(self, versions: MatchingVersions | None, access_ids: tuple[int, ...] | None) -> Eligible:
        segment = self.segment
        mask = None if self.alive is None else self.alive != 0
        for own, allowed in (
            (segment.version_ids, None if versions is None else versions.version_ids),
            (segment.access_ids, access_ids),
        ):
            if allowed is not None:
                passes = np.isin(own, np.array(allowed, dtype=own.dtype))
                mask = passes if mask is None else mask & passes
        there = segment.embedded != 0
        embedded = there if mask is None else mask & there
        count = int(embedded.sum())
        everything = count == len(segment)
        rows = np.flatnonzero(embedded).astype(np.int32) if count <= EXACT_CHUNKS else None
        return Eligible(
            None if mask is None else mask.view(np.uint8),
            None if everything else segment.lists.in_order(embedded).view(np.uint8),
            count,
            rows,
        )

    def scratch(self) -> Floats:
        """Zeros, one a row, that nobody else uses until `give_back`."""
        try:
            return self._scratch.pop()
        except IndexError:
            return np.zeros(len(self.segment), dtype=np.float32)

    def give_back(self, scratch: Floats) -> None:
        """The array, zeros again, may be used by others."""
        if len(self._scratch) < _SCRATCHES:
            self._scratch.append(scratch)

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return self.segment.nbytes + self._room + _SCRATCHES * 4 * len(self.segment)


@dataclass(frozen=True, slots=True, eq=False)
class Generation:
    """A copy of a collection at a revision.

    Attributes:
        revision: Of the collection.
        revision_id: Of it too, and of no other state of any collection.
        space_id: The vector space that the collection used then.
        reference_length: The average length that stored weights were computed with.
        term_counts: Its statistics.
        base: Most of its chunks.
        tail: Those that came after the base was made.
        erased: Whether the base holds rows of versions that were erased.
    """

    revision: int
    revision_id: str
    space_id: int
    reference_length: float
    term_counts: TermCounts
    base: Part
    tail: Part | None = None
    erased: bool = False
    parts: Sequence[Part] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", [part for part in (self.base, self.tail) if part is not None])

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        counts = self.term_counts.lexemes.nbytes + self.term_counts.frequencies.nbytes
        return counts + sum(part.nbytes for part in self.parts)

    @property
    def chunks(self) -> int:
        """How many it holds."""
        return sum(len(part.segment) - part.dead for part in self.parts)

    @property
    def behind(self) -> int:
        """How many chunks stand beside the base, or in it although they are gone."""
        return self.base.dead + (0 if self.tail is None else len(self.tail.segment))

    def changed(
        self,
        version_ids: Sequence[int],
        contents: Contents,
        *,
        revision: int,
        revision_id: str,
        term_counts: TermCounts,
        erased: bool,
    ) -> Generation:
        """The next one.

        Args:
            version_ids: The versions that changed.
            contents: What they hold now.
            revision: Of the collection, now.
            revision_id: Of it, too.
            term_counts: Now.
            erased: Whether some of the versions are erased.
        """
        segment = self.base.segment
        changed = np.array(version_ids, dtype=np.int64)
        alive = self.base.alive
        gone = segment.rows_of(changed)
        if len(gone):
            alive = np.ones(len(segment), dtype=np.uint8) if alive is None else alive.copy()
            alive[gone] = 0
        dimension = segment.vectors.shape[1]
        fresh = Segment.of(contents, dimension=dimension, reference_length=self.reference_length)
        parts = [(fresh, _all(fresh))]
        if self.tail is not None:
            stays = ~np.isin(self.tail.segment.version_ids, changed)
            parts.insert(0, (self.tail.segment, stays))
        tail = joined(parts) if len(parts) > 1 else fresh
        return replace(
            self,
            revision=revision,
            revision_id=revision_id,
            term_counts=term_counts,
            base=self.base if not len(gone) else Part(segment, alive),
            tail=Part(tail) if len(tail) else None,
            erased=self.erased or (erased and bool(len(gone))),
        )

    def compacted(self) -> Generation:
        """The same with everything in the base, and nothing else."""
        if not self.behind:
            return self
        parts = [(part.segment, _all(part.segment) if part.alive is None else part.alive != 0) for part in self.parts]
        return replace(self, base=Part(joined(parts)), tail=None, erased=False)


def _size(kept: tuple[object, Eligible]) -> int:
    arrays = kept[1].mask, kept[1].embedded, kept[1].rows
    return 1 + sum(one.nbytes for one in arrays if one is not None)


def _all(segment: Segment) -> npt.NDArray[Any]:
    return np.ones(len(segment), dtype=np.bool_)
