"""Documents whose pictures are described are cut so that no chunk holds words of the author and words of a model."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from recollect.model import Document
from recollect.model.pictures import DESCRIBED_BY, GENERATED_BY, description_spans

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.chunking.base import ChunkingStrategy
    from recollect.model import Chunk


def chunks_of(chunker: ChunkingStrategy, document: Document) -> Sequence[Chunk]:
    """A document's chunks; those of descriptions name the model that has written them (``generated_by``).

    Args:
        chunker: Cuts.
        document: With the descriptions of its pictures, where it has any, behind its text.
    """
    spans = description_spans(document.content, document.metadata)
    if not spans:
        return chunker.chunk(document)
    begins = spans[0][0]
    own = replace(
        document,
        content=document.content[:begins],
        headings=tuple(one for one in document.headings if one.end_offset <= begins),
        pages=tuple(one for one in document.pages if one.end_offset <= begins),
    )
    chunks = list(chunker.chunk(own)) if own.content.strip() else []
    by = str(document.metadata.get(DESCRIBED_BY) or "a model")
    for start, end in spans:
        for one in chunker.chunk(Document(content=document.content[start:end], language=document.language)):
            parent = None if one.parent is None else (one.parent[0] + start, one.parent[1] + start)
            moved = replace(
                one,
                position=len(chunks),
                start_offset=one.start_offset + start,
                end_offset=one.end_offset + start,
                page=document.page_at(start),
                parent=parent,
                metadata={**one.metadata, GENERATED_BY: by},
            )
            chunks.append(moved)
    return chunks
