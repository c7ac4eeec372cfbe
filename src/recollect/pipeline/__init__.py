"""The whole of recollect behind one object."""

from recollect.pipeline.rag import PipelineStatus, RAGPipeline

__all__ = ["PipelineStatus", "RAGPipeline"]
