"""What becomes of the passages found: an answer or a context, within budgets and by the rule of refusal."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from recollect.answer.extractive import ExtractionOptions
from recollect.answer.refusal import RefusalRule
from recollect.answer.service import AnswerOptions, stream_answer_sync
from recollect.context.budget import Budget
from recollect.model import Answer
from recollect.pipeline.search import search_with_place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from recollect.answer.writing import AnswerEvent
    from recollect.context import AssembledContext
    from recollect.model import RetrievalOptions
    from recollect.model.collection import Collection
    from recollect.pipeline.assembly import Assembly
    from recollect.pipeline.standpoint import Standpoint


def answer_options(assembly: Assembly, place: Collection | None) -> AnswerOptions:
    """The options of an answer from a collection; None: none in particular, or one that does not exist yet."""
    config = assembly.config
    calibrated = place.refusal if place else None
    # A threshold means something for the model that it was found with alone.
    fits = calibrated and calibrated.get("embedding_model") == assembly.embedder.model_name
    rule = RefusalRule.from_mapping(calibrated) if calibrated and fits else RefusalRule()
    return AnswerOptions(
        language=place.language if place else config.language,
        extraction=ExtractionOptions(rule=rule),
        max_context_chars=config.context.max_context_length,
        max_context_tokens=config.context.token_budget,
        count_tokens=assembly.count_tokens,
        unsupported=config.answer.unsupported,
    )


def answer_stream(at: Standpoint, question: str, options: RetrievalOptions) -> Iterator[AnswerEvent]:
    """The pieces of an answer from what a search finds, their events, and the whole `Answer` at the end."""
    reply, place = search_with_place(at, question, replace(options, outline=True))
    assembly = at.assembly
    for piece in stream_answer_sync(
        question,
        reply.results,
        embedder=assembly.embedder,
        chat_model=assembly.chat_model,
        options=answer_options(assembly, place),
    ):
        if isinstance(piece, Answer):
            search_ms = {f"search_{stage}": ms for stage, ms in reply.timings_ms.items()}
            yield replace(piece, timings_ms={**search_ms, **piece.timings_ms})
        else:
            yield piece


def assembled_context(
    at: Standpoint,
    query: str,
    options: RetrievalOptions,
    *,
    token_budget: int | None,
    max_context_length: int | None,
    count_tokens: Callable[[str], int] | None,
) -> AssembledContext:
    """What a language model should read of what a search finds; the arguments are those of `View.context`."""
    from recollect.context import assemble

    limits = at.config.context
    # Before the search, which would be counted although it is refused.
    budget = Budget(
        limits.token_budget if token_budget is None else token_budget,
        limits.max_context_length if max_context_length is None else max_context_length,
    )
    reply, place = search_with_place(at, query, replace(options, outline=True))
    return assemble(
        reply.results,
        token_budget=budget.tokens,
        max_context_length=budget.characters,
        count_tokens=count_tokens or at.assembly.count_tokens,
        language=place.language if place else at.config.language,
    )
