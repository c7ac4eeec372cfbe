"""Contexts of documents, conversations and facts, each searched by a view."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from inspect import signature
from typing import TYPE_CHECKING, Any

from recollect import context
from recollect.model.time import read_time
from recollect.pipeline.feedback import adapted_weights
from recollect.pipeline.search import recall, recall_facts, search
from recollect.pipeline.standpoint import Standpoint

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.context import RetrievalWeights
    from recollect.model import Principal, RetrievalOptions, RetrievedContext
    from recollect.model.facts import RecalledFact
    from recollect.model.memory import RecallOptions, Recollection


class HybridRetriever(context.HybridRetriever):  # noqa: D101 - the same, of views
    __doc__ = context.HybridRetriever.__doc__
    __signature__ = signature(context.HybridRetriever)

    def __init__(self, documents: object, memory: object, **options: Any) -> None:  # noqa: ANN401
        super().__init__(_searched(documents), _searched(memory), **options)


class ContextAssembler(context.ContextAssembler):  # noqa: D101 - the same, of views
    __doc__ = context.ContextAssembler.__doc__
    __signature__ = signature(context.ContextAssembler)

    def __init__(
        self,
        documents: object = None,
        memory: object = None,
        **options: Any,  # noqa: ANN401
    ) -> None:
        super().__init__(_searched(documents), _searched(memory), **options)


def settings(
    at: Standpoint, *, weights: RetrievalWeights | None, count_tokens: Callable[[str], int] | None
) -> dict[str, Any]:
    """What contexts of a view are made with; the arguments are those of `ConversationMemory.retriever`."""
    config, assembly = at.config, at.assembly

    def note_shown(episode_ids: Sequence[int]) -> None:
        assembly.query_patterns.record(at.everything, episode_ids)

    return {
        "weights": weights,
        "user": at.user,
        "facts": config.memory.facts,
        "count_tokens": count_tokens or assembly.count_tokens,
        "language": config.language,
        "on_shown": note_shown,
        "adapt": partial(adapted_weights, at) if config.memory.adaptive_weights else None,
    }


def _searched(searched: Any) -> Any:  # noqa: ANN401 - a view, where it stands, or what searches in its place
    at = getattr(searched, "standpoint", searched)
    return _Searched(at) if isinstance(at, Standpoint) else searched


class _Searched:
    """A view as contexts search it: the conversation and the moment come with each question."""

    def __init__(self, at: Standpoint) -> None:
        self._at = at

    def retrieve(
        self,
        query: str,
        options: RetrievalOptions | None = None,
        *,
        collection: str | None = None,
        tenant_id: int | None = None,
        as_of: datetime | None = None,
        principal: Principal | None = None,
    ) -> list[RetrievedContext]:
        """The passages of the collections that answer a query."""
        names = None if collection is None else (collection,)
        at = self._refined(collections=names, tenant=tenant_id, as_of=as_of, principal=principal)
        return list(search(replace(at, session=None), query, options or at.default_options()).results)

    def recall(
        self,
        query: str,
        options: RecallOptions | None = None,
        *,
        session: str | None = None,
        user: str | None = None,
        tenant_id: int | None = None,
        as_of: datetime | None = None,
        principal: Principal | None = None,
    ) -> list[Recollection]:
        """The turns that answer a question."""
        at = self._refined(user=user, tenant=tenant_id, as_of=as_of, principal=principal)
        return recall(replace(at, session=session), query, options)

    def recall_facts(
        self,
        query: str,
        options: RecallOptions | None = None,
        *,
        session: str | None = None,
        user: str | None = None,
        tenant_id: int | None = None,
        as_of: datetime | None = None,
        principal: Principal | None = None,
    ) -> list[RecalledFact]:
        """The facts that answer a question."""
        at = self._refined(user=user, tenant=tenant_id, as_of=as_of, principal=principal)
        return recall_facts(replace(at, session=session), query, options)

    def _refined(self, **given: Any) -> Standpoint:  # noqa: ANN401
        if given["as_of"] is not None:
            given["as_of"] = read_time(given["as_of"], name="as_of")
        return replace(self._at, **{name: value for name, value in given.items() if value is not None})
