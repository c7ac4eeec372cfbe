"""When the evidence is strong enough to answer: a rule with few parameters, chosen by measurement.

The rule is a logistic model over four features of the evidence, fitted on families of documents that the reader was
not trained on (``benchmarks/answer_rule.py``); ``docs/how-to/answers.md`` holds the figures.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from recollect.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Support:
    """How well the evidence supports an answer.

    Attributes:
        score: What the best piece is ordered by: its similarity, its words and where it stands, together.
        margin: How much better it is than the next one.
        lead: How far it is ahead of all others: the logarithm of its share of their weights, which grow exponentially
            with what they are ordered by; 0 where there are no others.
        similarity: Cosine similarity of the question and the best piece.
        alone: The log-odds that it answers, as the reader says who reads it alone; None where none was asked.
        missing_number: The question names a number or an identifier (``2027``, ``ERR-4012``) that no passage holds.
        relevance: The most relevant passage's (`recollect.model.RetrievedContext.relevance`); None where no passage has
            any.
        by_meaning: Whether the model knows the language, so that its similarity is part of the score.
    """

    score: float
    margin: float = 0.0
    lead: float = 0.0
    similarity: float = 0.0
    alone: float | None = None
    missing_number: bool = False
    relevance: float | None = None
    by_meaning: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalRule:
    """Answers where the estimated probability that the evidence answers the question reaches ``threshold``.

    The probability is the logistic function of ``bias + lead_weight * lead + similarity_weight * similarity
    + alone_weight * alone``, less ``missing_number_penalty`` where it applies; without the reader, of
    ``unread_bias + score_weight * score + margin_weight * margin``. The weights belong to the local MiniLM
    model; another embedding model has another range of similarities and wants a calibration of its own.

    Attributes:
        bias: Added to every probability's logarithm of odds; lower answers less.
        lead_weight: Weight of how far the best piece is ahead.
        similarity_weight: Weight of its similarity.
        alone_weight: Weight of what the reader says of it alone.
        unread_bias: As ``bias``, without the reader.
        score_weight: Weight of the best piece's score, without the reader.
        margin_weight: Weight of how much better it is than the next one, without the reader.
        missing_number_penalty: What a number or an identifier that no passage holds costs.
        words_weight: How steeply words decide alone, in a language that the model does not know.
        words_score: What they must reach.
        min_relevance: What the most relevant passage must reach for passages to be shown at all.
        min_alone: Or else, what the log-odds must reach that a piece answers, read alone.
        threshold: From 0 (always answers) to 1 (never does).
    """

    bias: float = -0.65
    lead_weight: float = 1.4
    similarity_weight: float = 1.6
    alone_weight: float = 0.17
    unread_bias: float = -2.6
    score_weight: float = 0.475
    margin_weight: float = 0.6
    missing_number_penalty: float = 2.0
    words_weight: float = 1.875
    words_score: float = 3.43
    min_relevance: float = 0.12
    min_alone: float = -1.0
    threshold: float = 0.55

    def __post_init__(self) -> None:
        if not 0 <= self.threshold <= 1:
            raise UsageError(f"The refusal threshold must be from 0 to 1, not {self.threshold!r}.")

    def probability(self, support: Support) -> float:
        """The estimated probability that the evidence answers the question, 0 to 1."""
        penalty = self.missing_number_penalty * support.missing_number
        if not support.by_meaning:
            odds = self.words_weight * (support.score - self.words_score)
        elif support.alone is None:
            odds = self.unread_bias + (self.score_weight * support.score + self.margin_weight * support.margin)
        else:
            odds = self.bias + self.lead_weight * support.lead + self.similarity_weight * support.similarity
            odds += self.alone_weight * support.alone
        return 1 / (1 + math.exp(-max(-50.0, min(50.0, odds - penalty))))

    @classmethod
    def from_mapping(cls, stored: Mapping[str, object]) -> RefusalRule:
        """The rule with a threshold that was kept.

        Raises:
            UsageError: The threshold is no number, or out of range.
        """
        threshold = stored.get("threshold", cls().threshold)
        if isinstance(threshold, bool) or not isinstance(threshold, int | float):
            raise UsageError(f"The stored refusal rule has threshold = {threshold!r}: run `recollect calibrate` again.")
        return cls(threshold=threshold)
