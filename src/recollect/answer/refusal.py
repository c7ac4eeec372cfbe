"""When the evidence is too thin to answer: a rule with few parameters, chosen by measurement.

The rule is a logistic model over three features of the evidence. ``benchmarks/refusal.py`` fits it and measures its
errors on question sets that it was not fitted on; ``docs/how-to/answers.md`` holds the figures.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields

from recollect.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Support:
    """How well the evidence supports an answer.

    Attributes:
        similarity: Cosine similarity of the question and the sentence closest to it, -1 to 1.
        coverage: Share of the question's terms, weighted by rarity, that the chosen sentences hold, 0 to 1.
        missing_number: The question names a number that no passage holds.
        missing_identifier: The question names an identifier (``ERR-4012``) that no passage holds.
        relevance: The most relevant passage's (`recollect.model.RetrievedContext.relevance`); None where no passage has
            any.
    """

    similarity: float
    coverage: float
    missing_number: bool = False
    missing_identifier: bool = False
    relevance: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalRule:
    """Refuses where the estimated probability that the evidence answers the question is below ``threshold``.

    The probability is the logistic function of ``bias + similarity_weight * similarity + coverage_weight * coverage``,
    less ``missing_number_penalty`` where the question names a number that no passage holds. Where no passage is as
    relevant as ``min_relevance``, it is no more than the best relevance. The weights belong to the
    local MiniLM model; another embedding model has another range of similarities and wants a calibration of its own.

    Attributes:
        bias: Added to every score; lower refuses more.
        similarity_weight: Weight of the best sentence's similarity.
        coverage_weight: Weight of the covered share of the question's terms.
        missing_number_penalty: What a number that no passage holds costs.
        min_relevance: What the most relevant passage must reach for its sentences to count.
        threshold: From 0 (never refuses on weak evidence) to 1 (always refuses).
        require_identifiers: Refuse whenever the question names an identifier that no passage holds.
    """

    bias: float = -4.6
    similarity_weight: float = 8.5
    coverage_weight: float = 1.2
    missing_number_penalty: float = 2.0
    min_relevance: float = 0.12
    threshold: float = 0.5
    require_identifiers: bool = True

    def __post_init__(self) -> None:
        if not 0 <= self.threshold <= 1:
            raise UsageError(f"The refusal threshold must be from 0 to 1, not {self.threshold!r}.")

    def probability(self, support: Support) -> float:
        """The estimated probability that the evidence answers the question, 0 to 1."""
        score = self.bias + self.similarity_weight * support.similarity + self.coverage_weight * support.coverage
        if support.missing_number:
            score -= self.missing_number_penalty
        probability = 1 / (1 + math.exp(-max(-50.0, min(50.0, score))))
        irrelevant = support.relevance is not None and support.relevance < self.min_relevance
        return min(probability, support.relevance or 0.0) if irrelevant else probability

    def refuses(self, support: Support) -> bool:
        """Whether an answer should be refused."""
        if self.require_identifiers and support.missing_identifier:
            return True
        return self.probability(support) < self.threshold

    def as_mapping(self) -> dict[str, float | bool]:
        """The parameters by name, to be kept as JSON."""
        return asdict(self)

    @classmethod
    def from_mapping(cls, stored: Mapping[str, object]) -> RefusalRule:
        """A rule from parameters that were kept; what is not there has its default, other keys are passed over.

        Raises:
            UsageError: A parameter is no number, or out of range.
        """
        known = {field.name: stored[field.name] for field in fields(cls) if field.name in stored}
        for name, value in known.items():
            if isinstance(value, bool) != (name == "require_identifiers") or not isinstance(value, int | float):
                raise UsageError(f"The stored refusal rule has {name} = {value!r}: run `recollect calibrate` again.")
        return cls(**known)  # type: ignore[arg-type]
