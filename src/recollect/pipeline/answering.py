"""What becomes of the passages found: an answer or a context, within budgets and by the rule of refusal."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from recollect.answer.extractive import ExtractionOptions
from recollect.answer.refusal import RefusalRule
from recollect.answer.service import AnswerOptions, stream_answer_sync
from recollect.model import Answer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from recollect.config import RAGConfig
    from recollect.context import AssembledContext
    from recollect.model import SearchReply
    from recollect.pipeline.parts import Parts
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


def answer_stream(
    parts: Parts, config: RAGConfig, question: str, reply: SearchReply, place: Collection | None
) -> Iterator[str | Answer]:
    """The pieces of an answer from what a search found, and the whole `Answer` at the end.

    Args:
        parts: Of the pipeline.
        config: Its settings.
        question: In plain words.
        reply: What the search found.
        place: The collection whose language and rule of refusal count; None: one that does not exist yet.
    """
    options = answer_options(config, place, parts.embedder.model_name, count_tokens=parts.count_tokens)
    for piece in stream_answer_sync(
        question, reply.results, embedder=parts.embedder, chat_model=parts.chat_model, options=options
    ):
        if isinstance(piece, Answer):
            search_ms = {f"search_{stage}": ms for stage, ms in reply.timings_ms.items()}
            yield replace(piece, timings_ms={**search_ms, **piece.timings_ms})
        else:
            yield piece


def assembled_context(
    parts: Parts,
    config: RAGConfig,
    reply: SearchReply,
    place: Collection | None,
    *,
    token_budget: int | None,
    max_context_length: int | None,
    count_tokens: Callable[[str], int] | None,
) -> AssembledContext:
    """What a language model should read of what a search found; the limits are those of `RAGPipeline.context`."""
    from recollect.context import assemble

    limits = config.context
    return assemble(
        reply.results,
        token_budget=limits.token_budget if token_budget is None else token_budget,
        max_context_length=limits.max_context_length if max_context_length is None else max_context_length,
        count_tokens=count_tokens or parts.count_tokens,
        language=place.language if place else config.language,
    )
