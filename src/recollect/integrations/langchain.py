"""A retriever for LangChain: `pip install 'recollect-rag[langchain]'`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from pydantic import InstanceOf

from recollect.integrations._passages import in_thread, metadata, missing, passages
from recollect.model import RetrievalOptions, RetrievedContext
from recollect.pipeline.view import View

try:
    from langchain_core.callbacks.manager import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
except ImportError as exc:
    raise ImportError(missing("langchain-core", "langchain")) from exc


class RecollectRetriever(BaseRetriever):
    """Finds passages of a view for LangChain: a `Runnable` from a question to documents.

    Each document's ``id`` is its chunk's, and its metadata tells where it stands (``source``, ``document_id``,
    ``start_offset``, ``end_offset``, ``section``, ``page``, …), how it was rated (``score``, ``relevance``) and why it
    is not the last word (``notes``), beside the metadata of its source.

    Attributes:
        view: Whose knowledge, who asks, when and where; a `recollect.RAGPipeline` is one.
        options: How to search; None: the configured defaults.
        top_k: How many passages; None: as the options say. ``invoke(question, top_k=3)`` wins over it.
        filters: Only passages of documents that pass this filter (`recollect.model.filter`); a call's come on top.

    Example:
        >>> from recollect import RAGPipeline
        >>> from recollect.integrations.langchain import RecollectRetriever
        >>> with RAGPipeline() as rag:  # doctest: +SKIP
        ...     RecollectRetriever(view=rag, top_k=3).invoke("How long is annual leave?")
    """

    view: InstanceOf[View]
    options: InstanceOf[RetrievalOptions] | None = None
    top_k: int | None = None
    filters: dict[str, Any] | None = None

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002 - the framework's
        top_k: int | None = None,
        filters: Mapping[str, Any] | None = None,
    ) -> list[Document]:
        return _documents(self._find(query, top_k, filters))

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,  # noqa: ARG002 - the framework's
        top_k: int | None = None,
        filters: Mapping[str, Any] | None = None,
    ) -> list[Document]:
        return _documents(await in_thread(partial(self._find, query, top_k, filters)))

    def _find(self, query: str, top_k: int | None, filters: Mapping[str, Any] | None) -> Sequence[RetrievedContext]:
        several = [one for one in (self.filters, filters) if one]
        return passages(
            self.view,
            query,
            options=self.options,
            top_k=self.top_k if top_k is None else top_k,
            filters={"and": several} if several else None,
        )


def _documents(found: Sequence[RetrievedContext]) -> list[Document]:
    return [
        Document(id=str(one.chunk_id), page_content=one.content, metadata={**metadata(one), "score": one.score})
        for one in found
    ]
