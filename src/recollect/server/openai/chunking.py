"""How OpenAI's API says that a file is cut, and what is said of it beside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator
from typing_extensions import TypedDict

from recollect.model.uploaded_file import FileUse
from recollect.operations.values import Name, Text
from recollect.pipeline.uploading import CUT
from recollect.server.bodies import Body
from recollect.server.openai.file_ids import required_number
from recollect.server.openai.file_searches import Attributes


class ChunkSizesBody(Body):
    """Sizes in tokens."""

    max_chunk_size_tokens: int = Field(ge=100, le=4_096)
    chunk_overlap_tokens: int = Field(ge=0)

    @model_validator(mode="after")
    def _at_most_half(self) -> ChunkSizesBody:
        if self.chunk_overlap_tokens * 2 > self.max_chunk_size_tokens:
            raise ValueError("chunk_overlap_tokens must not exceed half of max_chunk_size_tokens")
        return self


class AutomaticChunking(Body):
    """As the collection cuts its documents."""

    type: Literal["auto"]


class StaticChunking(Body):
    """As the collection cuts, with other sizes."""

    type: Literal["static"]
    static: ChunkSizesBody


#: How a file is cut.
ChunkingStrategy = Annotated[AutomaticChunking | StaticChunking, Field(discriminator="type")]

#: Of a document, beside what the file says of itself: its metadata, and `department`.
AttributesBody = Annotated[
    dict[Annotated[Text, Field(min_length=1, max_length=64)], Annotated[Text, Field(max_length=512)] | bool | float],
    Field(max_length=16),
]


class AttachedFile(Body):
    """A file that becomes a document of a collection."""

    file_id: Name
    attributes: AttributesBody | None = None
    chunking_strategy: ChunkingStrategy | None = None

    def use(self, *, param: str = "file_id") -> FileUse:
        """What the collection is to make of it.

        Raises:
            RefusedRequestError: There is no such file.
        """
        static = self.chunking_strategy.static if isinstance(self.chunking_strategy, StaticChunking) else None
        metadata, department = said(self.attributes)
        return FileUse(
            file_id=required_number(self.file_id, param=param),
            metadata=metadata,
            department=department,
            chunk_tokens=None if static is None else static.max_chunk_size_tokens,
            overlap_tokens=None if static is None else static.chunk_overlap_tokens,
        )


class ChunkSizesJson(TypedDict):
    """Sizes in tokens."""

    max_chunk_size_tokens: int
    chunk_overlap_tokens: int


class StaticChunkingJson(TypedDict):
    """Cut with sizes of its own."""

    type: Literal["static"]
    static: ChunkSizesJson


class OtherChunkingJson(TypedDict):
    """Cut as the collection cuts."""

    type: Literal["other"]


#: How a file was cut.
ChunkingStrategyJson = StaticChunkingJson | OtherChunkingJson


def chunking_json(metadata: Mapping[str, Any]) -> ChunkingStrategyJson:
    """How a document was cut, by its metadata."""
    match metadata.get(CUT):
        case {"chunk_tokens": int(size), "overlap_tokens": int(overlap)}:
            return {"type": "static", "static": {"max_chunk_size_tokens": size, "chunk_overlap_tokens": overlap}}
    return {"type": "other"}


def said(attributes: Attributes | None) -> tuple[Mapping[str, Any], str | None]:
    """Attributes as metadata and the department of a document."""
    metadata = dict(attributes or {})
    department = metadata.pop("department", None)
    return metadata, None if department is None else str(department)
