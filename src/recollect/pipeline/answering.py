"""What becomes of the passages found: an answer or a context, within budgets and by the rule of refusal."""

from __future__ import annotations

import logging
from dataclasses import asdict, replace
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

from recollect.answer.extractive import ExtractionOptions
from recollect.answer.refusal import RefusalRule
from recollect.answer.service import AnswerOptions, stream_answer_sync
from recollect.context import AssembledContext, assemble
from recollect.context.assembly import Budget
from recollect.errors import UsageError
from recollect.model import Answer, RetrievalOptions, SearchReply, TokenUsage
from recollect.model.activity import RefusalReason, outcome_of, show
from recollect.pipeline.standpoint import Standpoint, search_with_place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from recollect.answer.writing import AnswerEvent
    from recollect.config import RAGConfig
    from recollect.embedding.base import EmbeddingProvider
    from recollect.llm.base import ChatModel
    from recollect.model.collection import Collection
    from recollect.pipeline.assembly import Assembly

#: What a question yields: the passages found, then what `recollect.answer.service.stream_answer` does. `Decided` comes
#: before the passages where no language model writes.
AskEvent: TypeAlias = "SearchReply | AnswerEvent"

_log = logging.getLogger(__name__)


def answer_options(
    assembly: Assembly, place: Collection | None, options: RetrievalOptions | None = None, *, drafts: bool = False
) -> AnswerOptions:
    """The options of an answer from a collection; None: none in particular, or one that does not exist yet.

    Args:
        assembly: All parts.
        place: The collection.
        options: That passages are searched with; None: as configured.
        drafts: Whether what a model writes comes before it is checked, too.
    """
    config = assembly.config
    embedder = answering_embedder(assembly, place)
    rule = _calibrated_rule(place, embedder.model_name, reranker_of(config, options or RetrievalOptions()))
    return AnswerOptions(
        language=place.language if place else config.language,
        extraction=ExtractionOptions(rule=rule or RefusalRule(), reader=assembly.reader_for(embedder)),
        max_context_chars=config.context.max_context_length,
        max_context_tokens=config.answer.max_context_tokens or config.context.token_budget,
        count_tokens=assembly.count_tokens,
        top_k=config.answer.top_k,
        prompt=assembly.prompt(place.name if place else None),
        ask_only_if_answerable=rule is not None,
        unsupported=config.answer.unsupported,
        checker=assembly.checker_for(embedder),
        drafts=drafts,
    )


def answering_embedder(assembly: Assembly, place: Collection | None) -> EmbeddingProvider:
    """What judges single sentences: the collection's model, or where it cannot be made or there are several, any."""
    if place is None:
        return assembly.embedder
    try:
        return assembly.embedder_for(place)
    except UsageError:  # found by words alone, else the search had said so
        return assembly.embedder


def _calibrated_rule(place: Collection | None, embedding_model: str, reranker: str) -> RefusalRule | None:
    """The collection's own rule of refusal, where it was found with the embedding model and the weights of today."""
    if place is None or not place.refusal:
        return None
    changed = _changed_since(place.refusal, embedding_model, reranker)
    if changed is None:
        return RefusalRule.from_mapping(place.refusal)
    _tell_once(
        f"The refusal threshold of the collection {place.name!r} was calibrated with {changed}: the built-in "
        "rule counts until `recollect calibrate` is run again."
    )
    return None


def _changed_since(stored: Mapping[str, object], embedding_model: str, reranker: str) -> str | None:
    """What a threshold was found with that is not so today; None where it still holds."""
    if stored.get("embedding_model") != embedding_model:
        return f"the model {stored.get('embedding_model')!r}, and {embedding_model!r} is used now"
    if stored.get("reranker", reranker) != reranker:
        return f"the reranker {stored.get('reranker')!r}, and {reranker!r} is used now"
    today = asdict(RefusalRule())
    same = all(stored.get(name, value) == value for name, value in today.items() if name != "threshold")
    return None if same else "another version of the rule"


def reranker_of(config: RAGConfig, options: RetrievalOptions) -> str:
    """What orders passages: a reranker's name, of a provider's its model too."""
    named = options.rerank
    if named is None and (options.mode or config.retrieval.mode) != "hybrid":
        return "none"
    if config.reranking.provider != "none" and named in {None, "hosted"}:
        from recollect.providers.catalogue import PROVIDERS

        row = PROVIDERS[config.reranking.provider]
        return f"{row.name}/{config.reranking.model or row.default_models.get('reranking', '')}"
    name = named or config.retrieval.rerank
    return f"{name}/{config.retrieval.rerank_model}" if name == "cross_encoder" else name


@cache
def _tell_once(warning: str) -> None:
    _log.warning(warning)


def answer_stream(
    at: Standpoint, question: str, options: RetrievalOptions, *, writer: ChatModel | None, drafts: bool = False
) -> Iterator[AskEvent]:
    """What a search finds, the pieces of the answer made of it with their events, and the whole `Answer` at the end.

    Where no language model writes, the outcome comes before all of them: it is known before anything need be shown.

    Args:
        at: Who asks, and where.
        question: In plain words.
        options: How to search.
        writer: The language model that writes the answer; None: it is extracted.
        drafts: Whether what a model writes comes before it is checked, too (`Draft`).
    """
    reply, place = search_with_place(at, question, replace(options, outline=True, relevance_floor=True))
    show("ask", question=question, passages=reply.results, outcome=outcome_of(reply))
    assembly = at.assembly
    pieces = stream_answer_sync(
        question,
        reply.results,
        embedder=answering_embedder(assembly, place),
        chat_model=writer,
        options=answer_options(assembly, place, options, drafts=drafts),
    )
    if writer is None:
        yield next(pieces)
    yield reply
    for piece in pieces:
        if isinstance(piece, Answer):
            search_ms = {f"search_{stage}": ms for stage, ms in reply.timings_ms.items()}
            usage = TokenUsage.total((reply.usage, piece.usage))
            answer = replace(piece, timings_ms={**search_ms, **piece.timings_ms}, usage=usage, warnings=reply.warnings)
            if answer.refused:
                outcome = "passages" if answer.passages else "refused"
                show(f"refuse/{_why_refused(answer, reply)}", question=question, outcome=outcome)
            for observer in assembly.observers:
                observer.answered(answer)
            yield answer
        else:
            yield piece


def _why_refused(answer: Answer, reply: SearchReply) -> RefusalReason:
    if not reply.results:
        return "nothing"
    if answer.nearest is not None:
        return "identifier" if answer.nearest.missing_identifier else "threshold"
    return "unsupported" if answer.unsupported else "model"


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
    limits = at.config.context
    # Before the search, which would be counted although it is refused.
    budget = Budget(
        limits.token_budget if token_budget is None else token_budget,
        limits.max_context_length if max_context_length is None else max_context_length,
    )
    reply, place = search_with_place(at, query, replace(options, outline=True, relevance_floor=True))
    context = assemble(
        reply.results,
        token_budget=budget.tokens,
        max_context_length=budget.characters,
        count_tokens=count_tokens or at.assembly.count_tokens,
        language=place.language if place else at.config.language,
    )
    show("context", question=query, passages=[block.passage for block in context.blocks])
    return replace(context, warnings=reply.warnings, cached=reply.cached)
