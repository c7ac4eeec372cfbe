"""Turns to what is stored of them: one vector, and weighed terms, of each with the turns before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from recollect.model.terms import TermCounts
from recollect.store.memory import PreparedTurn

if TYPE_CHECKING:
    from recollect.embedding.base import EmbeddingProvider, Vectors
    from recollect.model.memory import Turn
    from recollect.retrieval.indexing import TurnTerms
    from recollect.retrieval.relevance import RelevanceMeters


# What a turn owes to its neighbours. Pure: no I/O, no clock, no chance.
#
# Measured on five LoCoMo conversations, see ``docs/how-to/memory.md``; neighbouring values measure alike.


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


# The embedding models of conversations: each session keeps the one that it began with.


class SessionEmbedders(Protocol):
    """Gives embedding models. Safe to share between threads."""

    @property
    def configured(self) -> EmbeddingProvider:
        """The model of new sessions."""
        ...

    @property
    def meters(self) -> RelevanceMeters:
        """Their scales of similarities."""
        ...

    def of_session(self, model: str) -> EmbeddingProvider:
        """The model of sessions that there are, by its name.

        Raises:
            UsageError: It cannot be made here.
        """
        ...


# Not the locale's: what is indexed today must be found from any machine.
_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)


@dataclass(eq=False)
class TurnIndexer:
    """Prepares turns for the store. Safe to share between threads.

    Args:
        embedder: Of documents and questions alike.
        lexicon: Counts and weighs words.
    """

    embedder: EmbeddingProvider
    lexicon: TurnTerms

    def prepare(self, before: Sequence[Turn], turns: Sequence[Turn]) -> list[PreparedTurn]:
        """Embed and analyse turns.

        Args:
            before: The turns that they follow, as many as there are up to `REACH`, oldest first.
            turns: In their order.

        Raises:
            ProviderError: The embedding model failed.
        """
        if not turns:
            return []
        lead = list(before)[-REACH:]
        together = [*lead, *turns]
        counts = self.lexicon.count([dated(turn) for turn in together])
        vectors = self._vectors(together, first=len(lead))
        prepared = []
        for index, turn in enumerate(turns):
            at = len(lead) + index
            lexemes, occurrences, length = faded(counts[max(0, at - REACH) : at + 1])
            lexemes, weights = self.lexicon.turn_weights(lexemes, occurrences, length=length)
            prepared.append(
                PreparedTurn(
                    turn=turn,
                    embedding=vectors[index],
                    length=length,
                    lexemes=lexemes,
                    weights=weights,
                    own_lexemes=counts[at].lexemes,
                )
            )
        return prepared

    def _vectors(self, turns: Sequence[Turn], *, first: int) -> list[Vectors]:
        """A vector for each turn from ``first`` on."""
        said = [named(turn) for turn in turns]
        windows = ["\n".join(said[max(0, at - REACH) : at + 1]) for at in range(first, len(said))]
        # A turn that begins its session is its own window: it need not be computed twice.
        texts = list(dict.fromkeys([*said[first:], *windows]))
        known = dict(zip(texts, self.embedder.embed_documents(texts), strict=True))
        return [
            mixed(np.asarray(known[own], np.float32), np.asarray(known[window], np.float32))
            for own, window in zip(said[first:], windows, strict=True)
        ]


def named(turn: Turn) -> str:
    """A turn as it is embedded: who said it, and what."""
    return f"{turn.role}: {turn.content}"


def dated(turn: Turn) -> str:
    """A turn as its words are counted: with the day on which it was said, which questions may name."""
    if turn.at is None:
        return named(turn)
    return f"{named(turn)}\n{turn.at.day} {_MONTHS[turn.at.month - 1]} {turn.at.year}"
