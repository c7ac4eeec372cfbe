"""What language models took."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from operator import add

from recollect.model.record import Public, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenUsage(Record):
    """What an answer took of language models; adds up.

    What embedding and reranking models are asked is not in it: ``recollect requests`` lists every request by its kind.

    Attributes:
        input_tokens: Of all prompts.
        output_tokens: Of all that the model wrote.
        requests: How often it was asked.
        estimated: Whether the model's server did not tell, and the numbers are counted here.
    """

    input_tokens: Public[int]
    output_tokens: Public[int]
    requests: Public[int] = 1
    estimated: Public[bool] = False

    def __add__(self, other: TokenUsage) -> TokenUsage:
        """What both took together."""
        return TokenUsage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            requests=self.requests + other.requests,
            estimated=self.estimated or other.estimated,
        )

    @staticmethod
    def total(usages: Iterable[TokenUsage | None]) -> TokenUsage | None:
        """What several requests took together; None where none was made."""
        made = [usage for usage in usages if usage is not None]
        return reduce(add, made) if made else None
