"""How questions to a collection are answered: budgets, and the rule of refusal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.answer.extractive import ExtractionOptions
from recollect.answer.refusal import RefusalRule
from recollect.answer.service import AnswerOptions

if TYPE_CHECKING:
    from collections.abc import Callable

    from recollect.config import RAGConfig
    from recollect.store.collections import Collection


def answer_options(
    config: RAGConfig, place: Collection | None, model_name: str, *, count_tokens: Callable[[str], int]
) -> AnswerOptions:
    """The options of an answer from a collection; None: one that does not exist yet."""
    calibrated = place.refusal if place else None
    # A threshold means something for the model that it was found with alone.
    fits = calibrated and calibrated.get("embedding_model") == model_name
    rule = RefusalRule.from_mapping(calibrated) if calibrated and fits else RefusalRule()
    return AnswerOptions(
        language=place.language if place else config.language,
        extraction=ExtractionOptions(rule=rule),
        max_context_chars=config.context.max_context_length,
        max_context_tokens=config.context.token_budget,
        count_tokens=count_tokens,
    )
