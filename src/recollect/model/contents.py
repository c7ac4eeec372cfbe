"""What documents say, as it is listed, outlined, read in parts and searched exactly."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from recollect.model.outline import Heading, PageSpan
from recollect.model.record import Public, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentEntry(Record):
    """A document in a listing.

    Attributes:
        source: Its URI within its origin.
        version_id: Of the version that is listed.
        byte_count: Of its text in UTF-8.
        known_from: When this version entered the knowledge base.
        event_time: When what it tells happened or was written.
        mime_type: Of what it was read from.
        id: The id that it was given (`Document.id`); None: its source identifies it.
    """

    document_id: Public[int]
    source: Public[str]
    title: Public[str]
    collection: Public[str]
    version_id: Public[int]
    department: Public[str | None]
    tags: Public[tuple[str, ...]]
    byte_count: Public[int]
    known_from: Public[datetime]
    event_time: Public[datetime | None]
    mime_type: Public[str]
    id: Public[str | None] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentOutline(Record):
    """The headings and pages of a document.

    Attributes:
        characters: How long its text is.
        headings: In order of ``start_offset``. Of a text that came without any, those that were found when it was cut.
        pages: In order of ``number``; empty where the format has none.
    """

    document_id: Public[int]
    source: Public[str]
    title: Public[str]
    collection: Public[str]
    version_id: Public[int]
    characters: Public[int]
    headings: Public[tuple[Heading, ...]]
    pages: Public[tuple[PageSpan, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentPart(Record):
    """A range of a document's text.

    Attributes:
        characters: How long the whole text is.
        start_offset: Where ``text`` begins in it.
        end_offset: Just behind its last character.
        section: Titles of the headings that its first character stands under, joined by `` > ``.
        page: That it begins on, from 1; None where the format has no pages.
        mime_type: Of what the document was read from.
    """

    document_id: Public[int]
    source: Public[str]
    title: Public[str]
    collection: Public[str]
    version_id: Public[int]
    characters: Public[int]
    start_offset: Public[int]
    end_offset: Public[int]
    text: Public[str]
    section: Public[str | None]
    page: Public[int | None]
    mime_type: Public[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentChunk(Record):
    """A chunk that a document was cut into.

    Attributes:
        position: In the document, from 0.
        start_offset: Where it begins in the document's text, in characters.
        end_offset: Just behind its last character.
        section: Titles of the headings that it stands under, joined by `` > ``.
        page: That it begins on, from 1; None where the format has no pages.
        token_count: How many tokens of the embedding model it has.
        context: What situates it in its document and is searched with it; empty where none was written.
    """

    chunk_id: Public[int]
    position: Public[int]
    start_offset: Public[int]
    end_offset: Public[int]
    text: Public[str]
    section: Public[str | None]
    page: Public[int | None]
    token_count: Public[int]
    context: Public[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactMatch(Record):
    """Where a pattern matches.

    Attributes:
        start_offset: In the document's text.
        end_offset: Just behind the last character.
        excerpt: The line that it begins on, cut to what stands near it.
        section: Titles of the headings that it stands under, joined by `` > ``.
        page: That it begins on, from 1; None where the format has no pages.
    """

    start_offset: Public[int]
    end_offset: Public[int]
    excerpt: Public[str]
    section: Public[str | None] = None
    page: Public[int | None] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedDocument(Record):
    """A document with matches.

    Attributes:
        matches: In the order of the text.
        next_offset: Where the first match begins that is not shown, as there are enough of this document; None: all
            are shown that the search came to.
    """

    document_id: Public[int]
    source: Public[str]
    title: Public[str]
    collection: Public[str]
    version_id: Public[int]
    matches: Public[tuple[ExactMatch, ...]]
    next_offset: Public[int | None] = None


#: Why an exact search ended before it had seen everything.
Stop = Literal["matches", "time", "bytes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GrepReply(Record):
    """What an exact search has to say.

    Attributes:
        documents: With matches, by their id.
        stopped: Why it ended early; None: it has seen everything.
        next_document: Where to go on: the document that it was looking at …
        next_offset: … and the character of its text; both None where it has seen everything.
        documents_searched: Documents that it looked into.
        bytes_searched: Of their texts.
    """

    documents: Public[tuple[MatchedDocument, ...]]
    stopped: Public[Stop | None]
    next_document: Public[int | None]
    next_offset: Public[int | None]
    documents_searched: Public[int]
    bytes_searched: Public[int]
