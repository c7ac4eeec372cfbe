"""The whole of recollect behind one object."""

from recollect.pipeline.rag import RAGPipeline
from recollect.pipeline.status import PipelineStatus

__all__ = ["PipelineStatus", "RAGPipeline"]
