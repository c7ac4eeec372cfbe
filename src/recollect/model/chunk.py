"""A chunk: a span of a document's characters that is searched as one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

#: In a chunk's metadata, where it goes on under further headings: pairs of an offset in the document and the section.
SECTIONS = "sections"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A span of a document: ``content[start_offset:end_offset] == text``, always.

    Attributes:
        text: The span's characters.
        position: 0 for the document's first chunk, then without gaps.
        start_offset: Offset of the first character in the document's content.
        end_offset: Offset just behind the last character.
        section: Titles of the headings it stands under, outermost first.
        page: The page its first character stands on, from 1; None without pages.
        token_count: Its length in the chunker's tokens.
        parent: The larger span ``(start_offset, end_offset)`` that is returned in its place
            (small-to-big retrieval); None: the chunk itself.
        metadata: Facts about this chunk alone.
        context: A sentence that situates it in its document, indexed with it and never shown as its text; empty: none.
        context_by: The model and the prompt that were asked for it, where a chunk is to be stored with it.
    """

    text: str
    position: int
    start_offset: int
    end_offset: int
    section: tuple[str, ...] = ()
    page: int | None = None
    token_count: int = 0
    parent: tuple[int, int] | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    context: str = ""
    context_by: str | None = None
