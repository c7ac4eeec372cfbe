"""When the evidence is too thin to answer: a rule with few parameters, chosen by measurement.

The rule is a logistic model over three features of the best evidence. ``benchmarks/refusal.py`` fits it and measures
its errors on question sets that it was not fitted on; ``docs/how-to/answers.md`` holds the figures.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Support:
    """How well the evidence supports an answer.

    Attributes:
        sentence_similarity: Cosine similarity of the question and the sentence closest to it.
        passage_similarity: Cosine similarity of the question and the passage closest to it; where the search did not
            compute any, the sentence's.
        coverage: Share of the question's content terms, weighted by rarity, that the chosen evidence holds, 0 to 1.
        missing_identifier: The question names an identifier (``ERR-4012``) that no passage holds.
    """

    sentence_similarity: float
    passage_similarity: float
    coverage: float
    missing_identifier: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalRule:
    """Refuses where the estimated probability that the evidence answers the question is below ``threshold``.

    The probability is the logistic function of ``bias + sentence_weight * sentence_similarity + passage_weight *
    passage_similarity + coverage_weight * coverage``.

    Attributes:
        bias: Added to every score; lower refuses more.
        sentence_weight: Weight of the best sentence's similarity.
        passage_weight: Weight of the best passage's similarity.
        coverage_weight: Weight of the covered share of the question's terms.
        threshold: 0 never refuses on weak evidence, 1 always does.
        require_identifiers: Refuse whenever the question names an identifier that no passage holds.
    """

    bias: float = -6.0
    sentence_weight: float = 5.0
    passage_weight: float = 2.0
    coverage_weight: float = 4.0
    threshold: float = 0.5
    require_identifiers: bool = True

    def probability(self, support: Support) -> float:
        """The estimated probability that the evidence answers the question, 0 to 1."""
        score = (
            self.bias
            + self.sentence_weight * support.sentence_similarity
            + self.passage_weight * support.passage_similarity
            + self.coverage_weight * support.coverage
        )
        return 1 / (1 + math.exp(-max(-50.0, min(50.0, score))))

    def refuses(self, support: Support) -> bool:
        """Whether an answer should be refused."""
        if self.require_identifiers and support.missing_identifier:
            return True
        return self.probability(support) < self.threshold
