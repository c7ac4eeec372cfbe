"""Retrieval-augmented generation that cites exact characters.

``RAGPipeline`` is the way in; ``RAGConfig`` holds its settings, ``Document`` is what it ingests and
``RetrievalOptions`` how it searches. A name's module is imported when the name is used.
"""

from typing import TYPE_CHECKING

from recollect._names import imported_on_use as _imported_on_use

if TYPE_CHECKING:
    from recollect.config import RAGConfig
    from recollect.context import ContextAssembler, HybridRetriever, RetrievalWeights
    from recollect.errors import RecollectError
    from recollect.memory import QueryPatternTracker
    from recollect.model import (
        Answer,
        Chunk,
        Citation,
        Document,
        Principal,
        RetrievalOptions,
        RetrievedContext,
        Scope,
        SearchReply,
    )
    from recollect.model.document_session import DocumentSession, SessionConfig
    from recollect.model.facts import ConsolidationReport, Fact, RecalledFact
    from recollect.model.memory import RecallOptions, Recollection, Turn
    from recollect.model.tenant import TenantQuota
    from recollect.pipeline import RAGPipeline
    from recollect.pipeline.multi_tenant import MultiTenantRAG
    from recollect.pipeline.sessions import SessionRAG
    from recollect.pipeline.temporal import TemporalRAG

__all__ = [
    "Answer",
    "Chunk",
    "Citation",
    "ConsolidationReport",
    "ContextAssembler",
    "Document",
    "DocumentSession",
    "Fact",
    "HybridRetriever",
    "MultiTenantRAG",
    "Principal",
    "QueryPatternTracker",
    "RAGConfig",
    "RAGPipeline",
    "RecallOptions",
    "RecalledFact",
    "RecollectError",
    "Recollection",
    "RetrievalOptions",
    "RetrievalWeights",
    "RetrievedContext",
    "Scope",
    "SearchReply",
    "SessionConfig",
    "SessionRAG",
    "TemporalRAG",
    "TenantQuota",
    "Turn",
]

__getattr__, __dir__ = _imported_on_use(
    __name__,
    {
        "recollect.config": ("RAGConfig",),
        "recollect.context": ("ContextAssembler", "HybridRetriever", "RetrievalWeights"),
        "recollect.errors": ("RecollectError",),
        "recollect.memory": ("QueryPatternTracker",),
        "recollect.model": (
            "Answer",
            "Chunk",
            "Citation",
            "Document",
            "Principal",
            "RetrievalOptions",
            "RetrievedContext",
            "Scope",
            "SearchReply",
        ),
        "recollect.model.document_session": ("DocumentSession", "SessionConfig"),
        "recollect.model.facts": ("ConsolidationReport", "Fact", "RecalledFact"),
        "recollect.model.memory": ("RecallOptions", "Recollection", "Turn"),
        "recollect.model.tenant": ("TenantQuota",),
        "recollect.pipeline": ("RAGPipeline",),
        "recollect.pipeline.multi_tenant": ("MultiTenantRAG",),
        "recollect.pipeline.sessions": ("SessionRAG",),
        "recollect.pipeline.temporal": ("TemporalRAG",),
    },
)
