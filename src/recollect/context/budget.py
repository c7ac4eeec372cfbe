"""Room for text: tokens by any counter, characters, or both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from recollect.errors import UsageError
from recollect.llm.base import estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# No tokenizer's vocabulary has words of this length.
_LONGEST_PLAUSIBLE = 64


def counter_of(token_spans: Callable[[str], Sequence[tuple[int, int]]]) -> Callable[[str], int]:
    """A counter from a tokenizer that tells where its tokens stand.

    What a tokenizer takes for one token though it is very long (an encoded file, a text without spaces in an unknown
    script) counts as a quarter of its bytes: other models do not swallow it whole.

    Args:
        token_spans: From a text to the characters that each of its tokens covers.
    """

    def count(text: str) -> int:
        return sum(
            1 if end - start <= _LONGEST_PLAUSIBLE else estimate_tokens(text[start:end])
            for start, end in token_spans(text)
        )

    return count


@dataclass(frozen=True, slots=True)
class Budget:
    """What a text may cost.

    Attributes:
        tokens: The most tokens; None: any number.
        characters: The most characters; None: any number.
        count_tokens: Counts the tokens of a text. It need be neither additive nor monotone: whole texts are counted.

    Raises:
        UsageError: A limit is less than 1.
    """

    tokens: int | None
    characters: int | None = None
    count_tokens: Callable[[str], int] = estimate_tokens

    def __post_init__(self) -> None:
        for name, limit in (("token_budget", self.tokens), ("max_context_length", self.characters)):
            if limit is not None and limit < 1:
                message = f"{name} must be at least 1, not {limit!r}"
                raise UsageError(message)

    def fits(self, text: str) -> bool:
        """Whether a text keeps within both limits."""
        if self.characters is not None and len(text) > self.characters:
            return False
        return self.tokens is None or self.count_tokens(text) <= self.tokens


def most(limit: int, fits: Callable[[int], bool]) -> int:
    """The greatest number up to a limit that fits, 0 if 1 does not.

    It doubles before it halves, so that the texts tried are never much longer than the one found. Where ``fits`` is
    not monotone, some number that fits is found, not always the greatest.

    Args:
        limit: The greatest number that makes sense.
        fits: Asked for numbers from 1 to ``limit``.
    """
    good, step = 0, 1
    while good < limit and fits(min(step, limit)):
        good, step = min(step, limit), step * 2
    bad = min(step, limit + 1)
    while bad - good > 1:
        middle = (good + bad) // 2
        if fits(middle):
            good = middle
        else:
            bad = middle
    return good
