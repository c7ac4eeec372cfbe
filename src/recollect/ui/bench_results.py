"""Two replies to the same query beside each other: which passages both found, where, and with which scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recollect.model import RetrievedContext, SearchReply

_BINS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A passage of one side.

    Attributes:
        passage: As it was found.
        other_rank: Its rank on the other side; None: it is not there.
    """

    passage: RetrievedContext
    other_rank: int | None

    @property
    def moved(self) -> int:
        """How many ranks better than on the other side; 0 where it is not there."""
        return 0 if self.other_rank is None else self.other_rank - self.passage.rank


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two replies.

    Attributes:
        replies: Of both sides.
        results: Of both sides.
        shared: Passages that both have.
    """

    replies: tuple[SearchReply, SearchReply]
    results: tuple[tuple[Compared, ...], tuple[Compared, ...]]
    shared: int

    @property
    def scores(self) -> list[tuple[int, tuple[float | None, float | None]]]:
        """By rank, the scores of both sides."""
        return [
            (rank, (_score(self.replies[0].results, rank), _score(self.replies[1].results, rank)))
            for rank in range(1, max(len(reply.results) for reply in self.replies) + 1)
        ]

    @property
    def relevances(self) -> list[tuple[float, tuple[int, int]]]:
        """How many passages of both sides lie in each tenth of relevance, by where the tenth begins."""
        counted = [_counted(reply.results) for reply in self.replies]
        return [(one / _BINS, (counted[0][one], counted[1][one])) for one in range(_BINS)]

    @property
    def has_relevance(self) -> bool:
        """Whether relevance is known of any."""
        return any(one.relevance is not None for reply in self.replies for one in reply.results)

    @property
    def stages(self) -> list[tuple[str, tuple[float | None, float | None]]]:
        """The milliseconds of each stage of both sides."""
        names = dict.fromkeys(name for reply in self.replies for name in reply.timings_ms)
        first, second = (reply.timings_ms for reply in self.replies)
        return [(name, (first.get(name), second.get(name))) for name in names]


def compared(first: SearchReply, second: SearchReply) -> Comparison:
    """Two replies beside each other; a passage is the same where it is the same chunk."""
    ranks = [{one.chunk_id: one.rank for one in reply.results} for reply in (first, second)]

    def beside(reply: SearchReply, other: dict[int, int]) -> tuple[Compared, ...]:
        return tuple(Compared(passage=one, other_rank=other.get(one.chunk_id)) for one in reply.results)

    return Comparison(
        replies=(first, second),
        results=(beside(first, ranks[1]), beside(second, ranks[0])),
        shared=len(ranks[0].keys() & ranks[1].keys()),
    )


def _score(results: Sequence[RetrievedContext], rank: int) -> float | None:
    return results[rank - 1].score if rank <= len(results) else None


def _counted(results: Sequence[RetrievedContext]) -> list[int]:
    counts = [0] * _BINS
    for one in results:
        if one.relevance is not None:
            counts[min(_BINS - 1, int(one.relevance * _BINS))] += 1
    return counts
