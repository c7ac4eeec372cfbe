"""What a turn owes to its neighbours. Pure: no I/O, no clock, no chance.

Measured on five LoCoMo conversations, see ``docs/how-to/memory.md``; neighbouring values measure alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from recollect.model.terms import TermCounts

#: How many turns before a turn are indexed with it.
REACH = 2

#: What a term counts that was said one turn earlier; two turns earlier, the square of it.
FADING = 0.6

#: The shares of the scores of the next turn and of the one behind it that a turn's own score gains.
FOLLOWING = (0.2, 0.1)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]


def faded(turns: Sequence[TermCounts]) -> tuple[Ints, Floats, float]:
    """The terms of a turn with those of the turns before it, which count the less the earlier they were said.

    An answer seldom repeats what its question named: "Last May, with my sister" is found by the words before it. This
    is BM25 over weighted fields (Robertson, Zaragoza and Taylor 2004), the earlier turns being fields.

    Args:
        turns: The turn at last, those before it in their order.

    Returns:
        Its lexemes (ascending), how often each counts, and its length.
    """
    weights = [FADING**distance for distance in range(len(turns) - 1, -1, -1)]
    together = np.concatenate([turn.lexemes for turn in turns])
    counted = np.concatenate([turn.counts * weight for turn, weight in zip(turns, weights, strict=True)])
    lexemes, places = np.unique(together, return_inverse=True)
    counts = np.bincount(places, weights=counted, minlength=len(lexemes)).astype(np.float64)
    length = sum(turn.length * weight for turn, weight in zip(turns, weights, strict=True))
    return lexemes.astype(np.int32), counts, float(length)


def mixed(own: npt.NDArray[np.float32], window: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """One vector for a turn: between its own and that of the stretch which ends with it, of unit length.

    Args:
        own: Of unit length.
        window: Of unit length.
    """
    total = own + window
    norm = float(np.linalg.norm(total))
    result: npt.NDArray[np.float32] = (total / norm if norm > 1e-6 else own).astype(np.float32)
    return result


def followed(
    scores: Mapping[int, float], places: Mapping[int, tuple[int, int]], *, shares: Sequence[float] = FOLLOWING
) -> dict[int, float]:
    """Scores to which what was said next has added its share: a good answer speaks for the turn that led to it.

    Args:
        scores: By episode id.
        places: (session, position) by episode id.
        shares: Of the score of what was said next, of what was said behind that, …

    Returns:
        New scores, the least of the given ones counting as nothing.
    """
    least = min(scores.values(), default=0.0)
    above = {places[episode_id]: score - least for episode_id, score in scores.items()}
    return {
        episode_id: score
        + sum(
            share * above.get((places[episode_id][0], places[episode_id][1] + step), 0.0)
            for step, share in enumerate(shares, start=1)
        )
        for episode_id, score in scores.items()
    }
