"""What memory needs of lexical analysis; `recollect.retrieval.turns.TurnTerms` is one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from recollect.model.terms import TermCounts

Floats = npt.NDArray[np.float64]
Weights = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int32]


class TurnLexicon(Protocol):
    """Counts, weighs and scores words of one tenant's conversations. Safe to share between threads."""

    def count(self, texts: Sequence[str]) -> list[TermCounts]:
        """The terms of each text, counted."""
        ...

    def question(self, text: str) -> dict[int, int]:
        """How often each lexeme occurs in a question."""
        ...

    def question_weights(
        self, counts: Mapping[int, int], *, frequencies: Mapping[int, int], turns: int
    ) -> dict[int, float]:
        """What each lexeme of a question weighs among so many turns; those that no turn holds are left out."""
        ...

    def turn_weights(self, lexemes: Ints, counts: Floats, *, length: float) -> tuple[Ints, Weights]:
        """The lexemes and weights that are stored of a turn."""
        ...

    def scores(
        self,
        question: Mapping[int, float],
        *,
        lengths: Floats,
        counts: Ints,
        lexemes: Ints,
        stored: Weights,
        average_length: float,
    ) -> Floats:
        """The scores of turns by their stored weights, under today's average length."""
        ...
