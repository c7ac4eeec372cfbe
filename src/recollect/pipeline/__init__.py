"""The whole of recollect behind one object, and the views of it."""

from recollect.model.status import PipelineStatus
from recollect.pipeline.view import RAGPipeline, View

__all__ = ["PipelineStatus", "RAGPipeline", "View"]
