"""When the evidence is too thin to answer: a rule with few parameters, chosen by measurement.

The rule is a logistic model over a few features of the evidence. ``benchmarks/refusal.py`` fits it and measures its
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
        score: What the best sentence is ordered by: its similarity, its coverage and where it stands, together. None:
            made of the two above.
        missing_number: The question names a number that no passage holds.
        another_year: The best sentence names years, and neither it nor its section one that the question names.
        missing_identifier: The question names an identifier (``ERR-4012``) that no passage holds.
        missing_needed: The question asks for a financial measure or a fiscal year, and the best sentence does not tell
            of it, in whatever words, or is not about all that the question names.
        missing_name: How much of what the question names (``Lyon``, ``RW-400``) the best sentence is not about, though
            other passages are: neither it nor its section, title or path holds it. 0 to 1.
        unknown_name: How much of it no passage is about, 0 to 1; whoever speaks does not count.
        missing_attribute: Share of the words for what the question wants to know ("annual premium") that the best
            sentence and its section do not hold, 0 to 1.
        wrong_kind: The best sentence cannot hold the kind of answer that the question expects, a number for instance.
        asks_what_was_said: The question asks what somebody said ("according to the minutes …"); such questions have
            words of their own, and what answers them is less like them.
        relevance: The most relevant passage's (`recollect.model.RetrievedContext.relevance`); None where no passage has
            any.
        words: The score without the similarity, where that and the relevance say nothing: the model does not know the
            language. None: it may know it.
    """

    similarity: float
    coverage: float
    score: float | None = None
    missing_number: bool = False
    another_year: bool = False
    missing_identifier: bool = False
    missing_needed: bool = False
    missing_name: float = 0.0
    unknown_name: float = 0.0
    missing_attribute: float = 0.0
    wrong_kind: bool = False
    asks_what_was_said: bool = False
    relevance: float | None = None
    words: float | None = None

    @property
    def total(self) -> float:
        """The score, or what it is on average for this similarity and coverage."""
        return self.similarity + 0.55 * self.coverage + 0.25 if self.score is None else self.score


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalRule:
    """Refuses where the estimated probability that the evidence answers the question is below ``threshold``.

    The probability is the logistic function of ``bias + score_weight * score + similarity_weight * similarity +
    coverage_weight * coverage``, less a penalty for each thing that is missing. Where no passage is as relevant as
    ``min_relevance``, it is no more than the best relevance. The weights belong to the local MiniLM model; another
    embedding model has another range of similarities and wants a calibration of its own.

    Attributes:
        bias: Added to every score; lower refuses more.
        score_weight: Weight of the best sentence's score.
        similarity_weight: Weight of the similarity of the sentence closest to the question.
        coverage_weight: Weight of the share of the question's terms that the chosen sentences cover together.
        missing_number_penalty: What a number that no passage holds costs.
        another_year_penalty: What it costs that the best sentence tells of another year.
        missing_name_penalty: What names that the best sentence is not about cost, where other passages are.
        unknown_name_penalty: What names that no passage is about cost.
        missing_attribute_penalty: What it costs where the best sentence has no word for what the question wants to
            know.
        wrong_kind_penalty: What it costs that the best sentence cannot hold the expected kind of answer.
        said_bonus: Added for a question that asks what somebody said.
        words_weight: How steeply words decide alone; 0: similarity decides whatever the language.
        words_score: What they must reach.
        min_relevance: What the most relevant passage must reach for its sentences to count.
        threshold: From 0 (never refuses on weak evidence) to 1 (always refuses).
        require_identifiers: Refuse whenever the question names an identifier that no passage holds, or a measure or
            fiscal year that the best sentence does not tell of.
    """

    bias: float = -5.44
    score_weight: float = 2.0
    similarity_weight: float = 6.0
    coverage_weight: float = 1.5
    missing_number_penalty: float = 2.0
    another_year_penalty: float = 1.0
    missing_name_penalty: float = 3.0
    unknown_name_penalty: float = 3.0
    missing_attribute_penalty: float = 1.8
    wrong_kind_penalty: float = 1.0
    said_bonus: float = 1.1
    words_weight: float = 13.0
    words_score: float = 0.42
    min_relevance: float = 0.12
    threshold: float = 0.5
    require_identifiers: bool = True

    def __post_init__(self) -> None:
        if not 0 <= self.threshold <= 1:
            raise UsageError(f"The refusal threshold must be from 0 to 1, not {self.threshold!r}.")

    def probability(self, support: Support) -> float:
        """The estimated probability that the evidence answers the question, 0 to 1."""
        if support.words is None or not self.words_weight:
            return self._by_meaning(support)
        return _logistic(self.words_weight * (support.words - self.words_score) - self._wrong_numbers(support))

    def _by_meaning(self, support: Support) -> float:
        score = self.bias + self.score_weight * support.total
        score += self.similarity_weight * support.similarity + self.coverage_weight * support.coverage
        score -= self._wrong_numbers(support)
        score -= self.missing_name_penalty * support.missing_name + self.unknown_name_penalty * support.unknown_name
        score -= self.missing_attribute_penalty * support.missing_attribute
        score += self.said_bonus * support.asks_what_was_said - self.wrong_kind_penalty * support.wrong_kind
        probability = _logistic(score)
        irrelevant = support.relevance is not None and support.relevance < self.min_relevance
        return min(probability, support.relevance or 0.0) if irrelevant else probability

    def _wrong_numbers(self, support: Support) -> float:
        return self.missing_number_penalty * support.missing_number + self.another_year_penalty * support.another_year

    def refuses(self, support: Support) -> bool:
        """Whether an answer should be refused."""
        return self.lacks_what_is_needed(support) or self.probability(support) < self.threshold

    def lacks_what_is_needed(self, support: Support) -> bool:
        """Whether something that every answer must hold is missing, so that no probability counts."""
        return self.require_identifiers and (support.missing_identifier or support.missing_needed)

    def as_mapping(self) -> dict[str, float | bool]:
        """The parameters by name, to be kept as JSON."""
        return asdict(self)

    @classmethod
    def from_mapping(cls, stored: Mapping[str, object]) -> RefusalRule:
        """A rule from parameters that were kept; what is not there has its default, other keys are passed over.

        A rule that was kept before sentences had scores judges by similarity and coverage alone, as it did then: its
        threshold means nothing to the features that came later.

        Raises:
            UsageError: A parameter is no number, or out of range.
        """
        known = {field.name: stored[field.name] for field in fields(cls) if field.name in stored}
        for name, value in known.items():
            if isinstance(value, bool) != (name == "require_identifiers") or not isinstance(value, int | float):
                raise UsageError(f"The stored refusal rule has {name} = {value!r}: run `recollect calibrate` again.")
        if "similarity_weight" in known and "score_weight" not in known:
            known = dict.fromkeys(_LATER, 0.0) | known
        if "similarity_weight" in known:
            known = {"words_weight": 0.0} | known
        return cls(**known)  # type: ignore[arg-type]


def _logistic(score: float) -> float:
    return 1 / (1 + math.exp(-max(-50.0, min(50.0, score))))


#: Parameters of features that rules of the first shape did not have.
_LATER = (
    "score_weight",
    "another_year_penalty",
    "missing_name_penalty",
    "unknown_name_penalty",
    "missing_attribute_penalty",
    "wrong_kind_penalty",
    "said_bonus",
)
