"""Which terms a chunk must hold to score above a threshold, as conditions that an inverted index answers."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence

#: More conditions cost the index more than they spare in chunks that need not be scored.
MAX_CONDITIONS = 8


def necessary_terms(
    terms: Sequence[int], bounds: Mapping[int, float], threshold: float, *, limit: int = MAX_CONDITIONS
) -> list[tuple[int, ...]]:
    """Conditions that every chunk meets whose score exceeds a threshold.

    A set of terms is such a condition where the others together cannot lift a chunk above the threshold: then a chunk
    above it holds at least one of the set (MaxScore; Turtle and Flood 1995). Several sets that overlap little say more:
    a chunk must hold a term of each, hence several terms (as in WAND; Broder et al. 2003).

    Args:
        terms: All that a chunk can score by, rarest first.
        bounds: The most that each of them can add.
        threshold: Chunks that score this or less are of no interest.
        limit: How many conditions at most.

    Returns:
        The conditions, the rarest terms in the first; none at all where no chunk can exceed the threshold.

    Example:
        >>> necessary_terms([1, 2, 3], {1: 3.0, 2: 3.0, 3: 3.0}, 5.0)
        [(1, 2), (2, 3), (1, 3)]
    """
    first = _condition(terms, bounds, threshold)
    if not first:
        return []
    found = [first]
    # Without one or two of the terms of a condition that is known already, another one must do.
    without: deque[tuple[int, ...]] = deque((term,) for term in first)
    tried = set(without)
    while without and len(found) < limit:
        left_out = without.popleft()
        condition = _condition([term for term in terms if term not in left_out], bounds, threshold, beside=left_out)
        if condition is None or condition in found:
            continue
        found.append(condition)
        if len(left_out) == 1:
            pairs = [(left_out[0], term) for term in condition]
            fresh = [pair for pair in pairs if pair not in tried and pair[::-1] not in tried]
            tried.update(fresh)
            without.extend(fresh)
    return found


def narrowing_terms(frequencies: Mapping[int, int], *, chunks: int, budget: int) -> list[tuple[int, ...]]:
    """Conditions that about as many chunks meet as a budget allows, where too many hold the rarest term alone.

    They hold the rarest term, and of what is left of the terms some as well: as many, the rarest first, as are expected
    to stay within the budget. Chunks that score well hold several of a query's terms, so that little is lost; how much
    may be lost, the bound on what a chunk outside a condition can score tells. Terms are taken to occur independently
    of one another. They do not, mostly they occur together: more chunks remain than are expected.

    Args:
        frequencies: How many chunks hold each term.
        chunks: Of the collection.
        budget: How many chunks are to meet all conditions.

    Returns:
        The conditions; none where the rarest term stays within the budget by itself.

    Example:
        >>> narrowing_terms({1: 500, 2: 1_000, 3: 4_000}, chunks=10_000, budget=100)
        [(1,), (2,)]
        >>> narrowing_terms({1: 500, 2: 1_000, 3: 4_000}, chunks=10_000, budget=240)
        [(1,), (2, 3)]
    """
    rarest_first = deque(sorted((frequency, term) for term, frequency in frequencies.items()))
    if not rarest_first or rarest_first[0][0] <= budget:
        return []
    frequency, rarest = rarest_first.popleft()
    expected = float(frequency)
    conditions: list[tuple[int, ...]] = [(rarest,)]
    while rarest_first and expected > budget:
        taken: list[int] = []
        without = 1.0
        while rarest_first and (
            not taken or expected * (1 - without * _share_without(rarest_first[0][0], chunks)) <= budget
        ):
            frequency, term = rarest_first.popleft()
            without *= _share_without(frequency, chunks)
            taken.append(term)
        conditions.append(tuple(taken))
        expected *= 1 - without
    return conditions


def _share_without(frequency: int, chunks: int) -> float:
    return 1 - min(frequency / chunks, 1.0)


def _condition(
    terms: Sequence[int], bounds: Mapping[int, float], threshold: float, *, beside: tuple[int, ...] = ()
) -> tuple[int, ...] | None:
    """The first of the terms without which the rest, and those beside, reach the threshold at most; None: no such."""
    for taken in range(len(terms) + 1):
        rest = math.fsum(bounds[term] for term in (*terms[taken:], *beside))
        if rest <= threshold:
            return tuple(terms[:taken])
    return None
