"""What documents say: in parts, outlined, and as they are cut."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from recollect.replies._shape import Shape

if TYPE_CHECKING:
    from recollect.model.contents import DocumentChunk, DocumentOutline, DocumentPart


class DocumentPartJson(Shape):
    """Characters of a document's text, one after the other."""

    document_id: int
    source: str
    title: str
    collection: str
    version_id: int
    characters: int
    """How long the whole text is."""
    start_offset: int
    """Where `text` begins in it."""
    end_offset: int
    """Just behind its last character."""
    text: str
    section: str | None
    """Titles of the headings that its first character stands under, joined by ` > `."""
    page: int | None
    """That it begins on, from 1; null where the format has no pages."""
    mime_type: str
    """Of what the document was read from."""


class HeadingJson(Shape):
    """A heading of a document."""

    level: int
    """1 for the outermost."""
    title: str
    start_offset: int
    end_offset: int
    """Just behind its line."""


class PageJson(Shape):
    """The characters that stand on one page."""

    number: int
    """From 1."""
    start_offset: int
    end_offset: int


class DocumentOutlineJson(Shape):
    """The headings and pages of a document."""

    document_id: int
    source: str
    title: str
    collection: str
    version_id: int
    characters: int
    """How long its text is."""
    headings: list[HeadingJson]
    """In their order; of a text that came without any, those that were found when it was cut."""
    pages: list[PageJson]
    """In their order; empty where the format has none."""


class ChunkJson(Shape):
    """A chunk that a document was cut into."""

    chunk_id: int
    position: int
    """In the document, from 0."""
    start_offset: int
    """Where it begins in the document's text, in characters."""
    end_offset: int
    """Just behind its last character."""
    text: str
    section: str | None
    """Titles of the headings that it stands under, joined by ` > `."""
    page: int | None
    """That it begins on, from 1; null where the format has no pages."""
    token_count: int
    """Of the embedding model."""
    context: str
    """What situates it in its document and is searched with it; empty where none was written."""


def document_part_json(part: DocumentPart) -> DocumentPartJson:
    """Characters of a document's text."""
    return {
        "document_id": part.document_id,
        "source": part.source,
        "title": part.title,
        "collection": part.collection,
        "version_id": part.version_id,
        "characters": part.characters,
        "start_offset": part.start_offset,
        "end_offset": part.end_offset,
        "text": part.text,
        "section": part.section,
        "page": part.page,
        "mime_type": part.mime_type,
    }


def document_outline_json(outline: DocumentOutline) -> DocumentOutlineJson:
    """The headings and pages of a document."""
    return {
        "document_id": outline.document_id,
        "source": outline.source,
        "title": outline.title,
        "collection": outline.collection,
        "version_id": outline.version_id,
        "characters": outline.characters,
        "headings": [
            {
                "level": one.level,
                "title": one.title,
                "start_offset": one.start_offset,
                "end_offset": one.end_offset,
            }
            for one in outline.headings
        ],
        "pages": [
            {"number": one.number, "start_offset": one.start_offset, "end_offset": one.end_offset}
            for one in outline.pages
        ],
    }


def chunks_json(chunks: Sequence[DocumentChunk]) -> list[ChunkJson]:
    """Chunks of a document."""
    return [
        {
            "chunk_id": one.chunk_id,
            "position": one.position,
            "start_offset": one.start_offset,
            "end_offset": one.end_offset,
            "text": one.text,
            "section": " > ".join(one.section) or None,
            "page": one.page,
            "token_count": one.token_count,
            "context": one.context,
        }
        for one in chunks
    ]
