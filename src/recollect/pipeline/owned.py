"""What the objects for one way of working have in common: a pipeline of somebody else's, or one of their own."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Self

from recollect.pipeline.rag import RAGPipeline

if TYPE_CHECKING:
    from recollect.config import RAGConfig


class OwnedPipeline:
    """A context manager over a pipeline.

    Args:
        pipeline: The pipeline, which its owner closes, or the settings of one that this object opens and closes; None:
            the default settings.
    """

    def __init__(self, pipeline: RAGPipeline | RAGConfig | None) -> None:
        self._owns = not isinstance(pipeline, RAGPipeline)
        self.pipeline = pipeline if isinstance(pipeline, RAGPipeline) else RAGPipeline(pipeline)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the pipeline, where this object opened it."""
        if self._owns:
            self.pipeline.close()
