"""The whole of recollect behind one object, and the views of it."""

from recollect.model.status import PipelineStatus
from recollect.pipeline.rag import RAGPipeline
from recollect.pipeline.view import View

__all__ = ["PipelineStatus", "RAGPipeline", "View"]
