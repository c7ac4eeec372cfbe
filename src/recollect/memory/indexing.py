"""Turns to what is stored of them: one vector, and weighed terms, of each with the turns before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from recollect.memory.scoring import REACH, faded, mixed
from recollect.store.memory import PreparedTurn

if TYPE_CHECKING:
    from recollect.embedding.base import EmbeddingProvider, Vectors
    from recollect.model.memory import Turn
    from recollect.retrieval.turns import TurnTerms

# Not the locale's: what is indexed today must be found from any machine.
_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)


class TurnIndexer:
    """Prepares turns for the store. Safe to share between threads.

    Args:
        embedder: Of documents and questions alike.
        lexicon: Counts and weighs words.
    """

    def __init__(self, embedder: EmbeddingProvider, lexicon: TurnTerms) -> None:
        self._embedder = embedder
        self._lexicon = lexicon

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
        counts = self._lexicon.count([dated(turn) for turn in together])
        vectors = self._vectors(together, first=len(lead))
        prepared = []
        for index, turn in enumerate(turns):
            at = len(lead) + index
            lexemes, occurrences, length = faded(counts[max(0, at - REACH) : at + 1])
            lexemes, weights = self._lexicon.turn_weights(lexemes, occurrences, length=length)
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
        known = dict(zip(texts, self._embedder.embed_documents(texts), strict=True))
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
