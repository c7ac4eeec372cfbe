"""Retrieval-augmented generation that cites exact characters.

``RAGPipeline`` is the way in; ``RAGConfig`` holds its settings, ``Document`` is what it ingests and
``RetrievalOptions`` how it searches.
"""

from recollect.config import RAGConfig
from recollect.errors import RecollectError
from recollect.model import (
    Answer,
    Chunk,
    Citation,
    Document,
    RetrievalOptions,
    RetrievedContext,
    Scope,
    SearchReply,
)
from recollect.pipeline import RAGPipeline
from recollect.pipeline.temporal import TemporalRAG

__all__ = [
    "Answer",
    "Chunk",
    "Citation",
    "Document",
    "RAGConfig",
    "RAGPipeline",
    "RecollectError",
    "RetrievalOptions",
    "RetrievedContext",
    "Scope",
    "SearchReply",
    "TemporalRAG",
]
