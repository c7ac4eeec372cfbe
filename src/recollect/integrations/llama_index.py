"""A retriever for LlamaIndex: `pip install 'recollect-rag[llama-index]'`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from recollect.errors import UsageError
from recollect.integrations._passages import PLACE_KEYS, condition, in_thread, joined, metadata, missing, passages
from recollect.model import RetrievalOptions, RetrievedContext
from recollect.pipeline.view import View

try:
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.callbacks.base import CallbackManager
    from llama_index.core.schema import NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode
    from llama_index.core.vector_stores.types import FilterOperator, MetadataFilters
except ImportError as exc:
    raise ImportError(missing("llama-index-core", "llama-index")) from exc


class RecollectRetriever(BaseRetriever):
    """Finds passages of a view for LlamaIndex.

    Each node's id is its chunk's; ``start_char_idx`` and ``end_char_idx`` are its offsets in its source, whose id the
    relationship ``SOURCE`` has. The metadata is what LangChain's retriever gives (`recollect.integrations.langchain`),
    without the score; what only programs need of it is not shown to language and embedding models.

    Args:
        view: Whose knowledge, who asks, when and where; a `recollect.RAGPipeline` is one.
        options: How to search; None: the configured defaults.
        similarity_top_k: How many passages; None: as the options say.
        filters: LlamaIndex's filters on metadata, or one in recollect's language (`recollect.model.filter`).
        callback_manager: The framework's.
        verbose: The framework's.

    Raises:
        UsageError: A filter has an operator that recollect does not know.

    Example:
        >>> from recollect import RAGPipeline
        >>> from recollect.integrations.llama_index import RecollectRetriever
        >>> with RAGPipeline() as rag:  # doctest: +SKIP
        ...     RecollectRetriever(rag, similarity_top_k=3).retrieve("How long is annual leave?")
    """

    def __init__(
        self,
        view: View,
        *,
        options: RetrievalOptions | None = None,
        similarity_top_k: int | None = None,
        filters: MetadataFilters | Mapping[str, Any] | None = None,
        callback_manager: CallbackManager | None = None,
        verbose: bool = False,
    ) -> None:
        self._view = view
        self._options = options
        self._top_k = similarity_top_k
        self._filters = _own(filters) if isinstance(filters, MetadataFilters) else filters
        super().__init__(callback_manager=callback_manager, verbose=verbose)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return _nodes(self._find(query_bundle))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return _nodes(await in_thread(partial(self._find, query_bundle)))

    def _find(self, query: QueryBundle) -> Sequence[RetrievedContext]:
        return passages(self._view, query.query_str, options=self._options, top_k=self._top_k, filters=self._filters)


def _nodes(found: Sequence[RetrievedContext]) -> list[NodeWithScore]:
    return [
        NodeWithScore(
            node=TextNode(
                id_=str(one.chunk_id),
                text=one.content,
                metadata=metadata(one),
                start_char_idx=one.start_offset,
                end_char_idx=one.end_offset,
                excluded_llm_metadata_keys=list(PLACE_KEYS),
                excluded_embed_metadata_keys=list(PLACE_KEYS),
                relationships={
                    NodeRelationship.SOURCE: RelatedNodeInfo(
                        node_id=str(one.document_id), metadata={"source": one.source}
                    )
                },
            ),
            score=one.score,
        )
        for one in found
    ]


def _own(filters: MetadataFilters) -> dict[str, Any]:
    parts: list[dict[str, Any]] = []
    for one in filters.filters:
        if isinstance(one, MetadataFilters):
            parts.append(_own(one))
            continue
        operator = FilterOperator(one.operator)
        values = one.value if isinstance(one.value, list) else [one.value]
        match operator:
            case FilterOperator.ANY | FilterOperator.ALL:
                how = "or" if operator is FilterOperator.ANY else "and"
                parts.append(joined(how, [condition(one.key, "contains", value) for value in values]))
            case FilterOperator.IS_EMPTY:
                parts.append(condition(one.key, "==", None))
            case _:
                parts.append(condition(one.key, operator.value, one.value))
    if not parts:
        raise UsageError("The filters are empty: leave them out.")
    return joined(filters.condition.value if filters.condition else "and", parts)
