"""Where passages stand in their documents, and why they are not the last word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NotRequired

from recollect.replies._shape import Shape, Timestamp, iso

if TYPE_CHECKING:
    from recollect.model import PassageNote, RetrievedContext


class PassagePartJson(Shape):
    """Characters of a passage that stand under the same headings, on the same page."""

    start_offset: int
    """Where they begin in the document's content."""
    end_offset: int
    """Just behind the last one."""
    section: str | None
    """Titles of the headings that they stand under, joined by ` > `; null outside any section."""
    page: int | None
    """From 1; null where the format has no pages."""


class PassagePlaceJson(Shape):
    """The document of a passage, and the place in it."""

    document_id: int
    title: str
    source: str
    """The document's URI within its origin: a path, an address."""
    department: str | None
    section: str | None
    """Titles of the headings that the passage stands under, joined by ` > `; null outside any section."""
    page: int | None
    """That the passage begins on, from 1; null where the format has no pages."""
    start_offset: int
    """Where the passage begins in the document's content, in characters."""
    end_offset: int
    """Just behind its last character."""
    parts: list[PassagePartJson]
    """The passage, cut where another section or page begins."""
    id: NotRequired[str]
    """That the document was given; left out: its source identifies it."""


class PassageNoteJson(Shape):
    """Why a passage is not the last word."""

    kind: Literal["superseded", "deleted", "expired", "newer_document"]
    """What became of its version after the moment that was searched, or that a newer document exists."""
    text: str
    """The same in words."""
    at: Timestamp | None
    """When the version ended, or the date of the newer document."""
    document_id: int | None
    """The newer document."""
    source: str | None
    """Its path."""
    department: str | None
    """Its department."""


def passage_place_json(passage: RetrievedContext) -> PassagePlaceJson:
    """The document of a passage and the place in it."""
    shown: PassagePlaceJson = {
        "document_id": passage.document_id,
        "title": passage.title,
        "source": passage.source,
        "department": passage.department,
        "section": passage.section,
        "page": passage.page,
        "start_offset": passage.start_offset,
        "end_offset": passage.end_offset,
        "parts": [
            {
                "start_offset": part.start_offset,
                "end_offset": part.end_offset,
                "section": part.section,
                "page": part.page,
            }
            for part in passage.parts
        ],
    }
    if passage.id is not None:
        shown["id"] = passage.id
    return shown


def passage_notes_json(notes: Sequence[PassageNote]) -> list[PassageNoteJson]:
    """Why a passage is not the last word."""
    return [
        {
            "kind": note.kind,
            "text": note.text,
            "at": iso(note.at),
            "document_id": note.document_id,
            "source": note.source,
            "department": note.department,
        }
        for note in notes
    ]
