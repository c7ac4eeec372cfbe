"""Contexts of documents, conversations and facts: searched through views at the same time, then put together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from recollect.context import HybridContext, RetrievalWeights, estimate_tokens, hybrid_context
from recollect.context.hybrid import STRATEGIES, Adapt, ContextStrategy, Strategy, passages_for
from recollect.errors import NotFoundError, UsageError
from recollect.model import Principal, RetrievalOptions, RetrievedContext
from recollect.model.arguments import checked
from recollect.model.memory import RecallMode, RecallOptions
from recollect.model.time import read_time
from recollect.pipeline.feedback import adapted_weights
from recollect.pipeline.standpoint import Standpoint, recall, recall_facts, search

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.retrieval.relevance import SimilarityScale

_Answer = TypeVar("_Answer")
_Retriever = TypeVar("_Retriever", bound="HybridRetriever")


@checked
class HybridRetriever:
    """Searches documents and memory at the same time. Safe to share between threads.

    Args:
        documents: The view whose documents are searched, or anything with ``retrieve(query, options)``: a
            `recollect.Client`, a retriever of your own. None: there are none.
        memory: The view whose conversations are searched, and the facts drawn from them; None: there are none.
        weights: What each weighs; None: `RetrievalWeights.memory_focused`. Facts are memory.
        mode: How all are searched; None: documents as configured, memory by words and meaning.
        facts: Whether facts are searched as well; ``"first"``: and fill memory's share before turns do.
        collection: Of the documents; None: the view's.
        user: Whose conversations are searched beside the session that is named; None: the view's.
        tenant_id: Whose knowledge; None: the views'.
        principal: Who asks: what the principal may not read does not exist; None: as the views have it.
        count_tokens: Counts tokens as the model does that will read the context.
        language: ISO 639-1, of the words that both are reranked by.
        on_shown: Told which episodes a context shows, which then count as retrieved; None: every candidate does.
        adapt: Says what feedback makes of the weights in a session; None: they stay.
        min_relevance: Of documents' passages, 0 to 1; None: as configured.

    Example:
        >>> from recollect import RAGPipeline
        >>> with RAGPipeline() as rag:  # doctest: +SKIP
        ...     HybridRetriever(rag, rag).retrieve_hybrid("What did we decide?", "chat-1", 2_000).text
    """

    def __init__(
        self,
        documents: object = None,
        memory: object = None,
        *,
        weights: RetrievalWeights | None = None,
        mode: RecallMode | None = None,
        facts: bool | Literal["first"] = True,
        collection: str | None = None,
        user: str | None = None,
        tenant_id: int | None = None,
        principal: Principal | None = None,
        count_tokens: Callable[[str], int] = estimate_tokens,
        language: str = "en",
        on_shown: Callable[[Sequence[int]], None] | None = None,
        adapt: Adapt | None = None,
        min_relevance: float | None = None,
    ) -> None:
        whose = {"tenant": tenant_id, "principal": principal}
        names = None if collection is None else (collection,)
        # A session's conversation is memory's; documents of its own are not searched beside the collections.
        given = {"collections": names, **whose}
        self._documents = None if documents is None else _searched(documents, **given)
        self._memory = None if memory is None else _refined(memory, user=user, **whose)
        self._weights = weights
        self._mode = mode
        self._facts = facts
        self._user = user
        self._count_tokens = count_tokens
        self._language = language
        self._on_shown = on_shown
        self._adapt = adapt
        self._min_relevance = min_relevance

    def retrieve_hybrid(
        self,
        query: str,
        session_id: str | None = None,
        token_budget: int = 2_000,
        *,
        as_of: datetime | None = None,
    ) -> HybridContext:
        """The passages of documents and of conversations that answer a query, within one budget.

        How they share it is `recollect.context.hybrid_context`'s matter: each side has its part of the budget first,
        and what one leaves is the other's.

        Args:
            query: In plain words.
            session_id: The conversation at hand; one that has not begun yet is empty. None: the view's, or else the
                user's, or all.
            token_budget: Tokens at most, headers included; never exceeded.
            as_of: What was known at this time; None: now.

        Raises:
            UsageError: The query is empty, or the budget less than 1.
        """
        return self._found(query, STRATEGIES["hybrid"], session_id, token_budget, as_of)

    def _found(
        self, query: str, made_of: Strategy, session: str | None, token_budget: int, as_of: datetime | None
    ) -> HybridContext:
        limit, mode = passages_for(token_budget), made_of.mode or self._mode
        memory = self._memory if made_of.memory else None
        known = memory if self._facts and made_of.facts else None
        if session is None and memory is not None:
            session = memory.session
        weights = (self._weights if made_of.documents and made_of.memory else None) or made_of.weights
        adaptation = None if self._adapt is None else self._adapt(weights, session)
        # Of the candidates, only what is shown in the end counts as retrieved.
        recalled = RecallOptions(top_k=limit, mode=mode or "hybrid", counted=self._on_shown is None)
        searched = RetrievalOptions(
            top_k=limit, mode=mode, min_relevance=self._min_relevance, relevance_floor=True, outline=True
        )
        with ThreadPoolExecutor(2, thread_name_prefix="recollect-memory") as executor:
            turns = executor.submit(lambda: self._asked(memory, session, as_of, lambda at: recall(at, query, recalled)))
            facts = executor.submit(
                lambda: self._asked(known, session, as_of, lambda at: recall_facts(at, query, recalled))
            )
            documents, warnings, cached = _retrieved(
                self._documents if made_of.documents else None, query, searched, as_of
            )
        found = hybrid_context(
            query,
            documents=documents,
            turns=turns.result(),
            facts=facts.result(),
            weights=weights if adaptation is None else adaptation.weights,
            token_budget=token_budget,
            facts_first="first" in (self._facts, made_of.facts),
            count_tokens=self._count_tokens,
            language=self._language,
            scales=self._scale,
        )
        if self._on_shown is not None:
            shown = [one.recollection for one in found.passages if one.recollection is not None]
            self._on_shown([recollection.episode.episode_id for recollection in shown])
        return replace(found, adaptation=adaptation, context=replace(found.context, warnings=warnings, cached=cached))

    def _scale(self, model: str) -> SimilarityScale | None:
        """Where an embedding model's similarities lie; each side may be of a program's own models."""
        sides = (side for side in (self._documents, self._memory) if isinstance(side, Standpoint))
        scales = (side.assembly.embedders.meters.scale(model) for side in sides)
        return next((scale for scale in scales if scale is not None), None)

    def _asked(
        self,
        memory: Standpoint | None,
        session: str | None,
        as_of: datetime | None,
        ask: Callable[[Standpoint], list[_Answer]],
    ) -> list[_Answer]:
        if memory is None:
            return []
        at = replace(_refined(memory, as_of=as_of), session=session)
        try:
            return ask(at)
        except NotFoundError:  # a conversation that begins with this question
            return [] if self._user is None else ask(replace(at, session=None))


@checked
class ContextAssembler(HybridRetriever):
    """Assembles contexts of documents, of memory, or of both. Safe to share between threads.

    The arguments are those of `HybridRetriever`; without ``weights``, `RetrievalWeights.rag_focused` counts for
    ``rag``, and `RetrievalWeights.memory_focused` otherwise. ``mode`` counts where the strategy leaves it open.
    """

    def assemble(
        self,
        query: str,
        strategy: ContextStrategy = "hybrid",
        token_budget: int = 2_000,
        session_id: str | None = None,
        *,
        as_of: datetime | None = None,
    ) -> HybridContext:
        """What a language model should read to answer a query.

        Args:
            query: In plain words.
            strategy: ``rag``: documents and memory (conversations and the facts drawn from them), documents first
                unless the weights say otherwise, and memory alone where there are no documents; ``documents``:
                documents alone; ``episodic``: conversations alone; ``hybrid``: documents and memory, memory first;
                ``semantic``: the same by meaning alone, facts before turns; ``bm25``: the same by words alone.
            token_budget: Tokens at most, headers included; never exceeded.
            session_id: The conversation at hand; one that has not begun yet is empty. None: the view's, or else the
                user's, or all.
            as_of: What was known at this time; None: now.

        Raises:
            UsageError: The query is empty, the strategy unknown, or the budget less than 1.
            NotFoundError: There is no such collection.
        """
        if strategy not in tuple(STRATEGIES):  # whatever it is, it need not be hashable
            raise UsageError(f"strategy must be one of {', '.join(STRATEGIES)}, not {strategy!r}.")
        if not query.strip():
            raise UsageError("The query is empty: say what to look for.")
        found = self._found(query, STRATEGIES[strategy], session_id, token_budget, as_of)
        from_documents = any(passage.kind == "document" for passage in found.passages)
        used: ContextStrategy = "episodic" if strategy == "rag" and not from_documents else strategy
        return replace(found, strategy=strategy, used=used)


def of_view(
    kind: type[_Retriever],
    at: Standpoint,
    *,
    weights: RetrievalWeights | None,
    count_tokens: Callable[[str], int] | None,
    min_relevance: float | None = None,
) -> _Retriever:
    """What makes contexts of a view; the arguments are those of `ConversationMemory.retriever`."""
    config, assembly = at.config, at.assembly
    return kind(
        at,
        at,
        weights=weights,
        user=at.user,
        facts=config.memory.facts,
        count_tokens=count_tokens or assembly.count_tokens,
        language=config.language,
        on_shown=lambda episode_ids: assembly.query_patterns.record(at.everything, episode_ids),
        adapt=partial(adapted_weights, at) if config.memory.adaptive_weights else None,
        min_relevance=min_relevance,
    )


def _retrieved(
    documents: Any,  # noqa: ANN401 - a standpoint, or a retriever that is none of this store's
    query: str,
    options: RetrievalOptions,
    as_of: datetime | None,
) -> tuple[Sequence[RetrievedContext], tuple[str, ...], bool]:
    """What was found of documents, what is missing of it, and whether the cache answered."""
    if documents is None:
        return [], (), False
    if not isinstance(documents, Standpoint):
        from recollect.pipeline.federation import passages_of

        return passages_of(documents, query, options, as_of), (), False
    reply = search(replace(_refined(documents, as_of=as_of), session=None), query, options)
    return reply.results, reply.warnings, reply.cached


def _searched(documents: Any, **given: Any) -> Any:  # noqa: ANN401
    """Where documents are searched: a standpoint, or a retriever that is none of this store's."""
    if isinstance(documents, Standpoint) or isinstance(getattr(documents, "standpoint", None), Standpoint):
        return _refined(documents, **given)
    if not callable(getattr(documents, "retrieve", None)):
        raise UsageError(
            f"documents is a view, a Client, or anything with retrieve(query, options), not {type(documents).__name__}."
        )
    named = [name for name, value in given.items() if value is not None]
    if named:
        raise UsageError(
            f"{', '.join(named)} is for a view of this store: refine what is searched before, client.view(…)."
        )
    return documents


def _refined(searched: Any, **given: Any) -> Standpoint:  # noqa: ANN401
    at = searched if isinstance(searched, Standpoint) else searched.standpoint
    if given.get("as_of") is not None:
        given["as_of"] = read_time(given["as_of"], name="as_of")
    return replace(at, **{name: value for name, value in given.items() if value is not None})
