"""A document as it is given to a store, the chunks that it is cut into, and when it expires."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from recollect.familiar_names import suggesting
from recollect.model.outline import Heading, PageSpan, page_at, section_path
from recollect.model.record import Public, Record
from recollect.model.time import Duration, read_lifetime

if TYPE_CHECKING:
    from recollect.model.original import Original


@suggesting
@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """What is ingested: a text, where it came from, and what is known about it.

    Only ``content`` is required. Offsets count Unicode code points of ``content``, as Python strings do.

    Attributes:
        content: The text that is chunked, searched and quoted.
        source: Where it came from: a path relative to the ingested folder, a URL, or any name. Without an id it
            identifies the document within its collection. None: the id serves, or else the content's hash, so that the
            same text is stored once.
        id: Identifies it within its collection, whatever its source is: several documents may share a source, such as
            the turns of a chat, and one that is stored again under another source is updated. None: the source
            identifies it.
        title: Shown beside results; None: the first heading or the source's name.
        metadata: JSON-serialisable facts, filterable by equality.
        tags: Labels, filterable.
        department: The part of the organisation it belongs to.
        mime_type: Of the original file.
        language: ISO 639-1 code; None: the collection's language.
        headings: In order of ``start_offset``.
        pages: In order of ``number``; empty where the format has no pages.
        event_time: When it happened or was written, or began to; without a zone: UTC.
        event_end: When that ended, for what is no instant; not before ``event_time``.
        ttl: How long this version is found after it was stored, for instance ``"30d"``
            (`recollect.model.time.read_duration`); ``"never"``: without end; None: as configured. Storing it
            unchanged begins it anew.
        permissions: Who may read it, as `recollect.model.principal.read_permissions` takes them:
            ``("role:hr", "!group:interns")``. They replace the document's grants when it is stored; its denials stay,
            and what is denied here comes to them. None: what the document has, or the collection's default.
        file_hash: SHA-256 of the original bytes, where there was a file.
        original: The file itself, to be kept with the document; None: it is not.
        attachments: Of a message. Each is stored as a document of its own, under the message's source and its own
            (``mail.eml/2-offer.pdf``), with the message's tags, department, time to live and rights, and goes with it.
    """

    content: str
    source: str | None = None
    id: str | None = None
    title: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    department: str | None = None
    mime_type: str = "text/plain"
    language: str | None = None
    headings: tuple[Heading, ...] = ()
    pages: tuple[PageSpan, ...] = ()
    event_time: datetime | None = None
    event_end: datetime | None = None
    ttl: Duration | None = None
    permissions: tuple[str, ...] | None = None
    file_hash: bytes | None = None
    original: Original | None = field(default=None, repr=False, compare=False)
    attachments: tuple[Document, ...] = field(default=(), repr=False)

    @property
    def content_hash(self) -> bytes:
        """SHA-256 of the content as UTF-8 (lone surrogates kept as they are)."""
        return hashlib.sha256(self.content.encode("utf-8", "surrogatepass")).digest()

    def section_path(self, offset: int) -> tuple[str, ...]:
        """Titles of the headings that the character at ``offset`` stands under, outermost first.

        A heading's own characters belong to its section.
        """
        return section_path(self.headings, offset)

    def page_at(self, offset: int) -> int | None:
        """The number of the page that the character at ``offset`` stands on, or None without pages."""
        return page_at(self.pages, offset)


@dataclass(frozen=True, slots=True)
class IngestResult(Record):
    """What became of one document that was to be stored.

    Attributes:
        document_id: Stays the same over all versions of the document.
        version: Its current version, from 1.
        status: ``added`` where it was not current before; ``unchanged`` where it is stored already, as it is.
        chunk_count: Of the current version.
    """

    document_id: Public[int]
    version: Public[int]
    status: Public[Literal["added", "updated", "unchanged"]]
    chunk_count: Public[int]


# A chunk: a span of a document's characters that is searched as one.


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


# How a document's metadata tells of the descriptions of its pictures, which stand behind its text.


#: In a document's metadata: of how many pictures it has a description, the last paragraphs of its content.
DESCRIBED = "pictures_described"
#: In a document's metadata: whose the descriptions are, as ``provider/model``.
DESCRIBED_BY = "pictures_described_by"
#: In a chunk's metadata: the model that has written it.
GENERATED_BY = "generated_by"
#: Of so many pictures of a document, a description is asked for at most.
MOST_PICTURES = 30

_BEGINS = re.compile(r"\[Picture(?: on page \d{1,9})?, described by [^\n\]]*\] ")


def description_spans(content: str, metadata: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Where the descriptions of pictures stand at the end of a content, in order; none where there are none.

    Args:
        content: Of a document.
        metadata: Of the same.
    """
    count = metadata.get(DESCRIBED)
    if not isinstance(count, int) or isinstance(count, bool) or not 0 < count <= MOST_PICTURES:
        return []
    spans: list[tuple[int, int]] = []
    end = len(content)
    for _ in range(count):
        at = content.rfind("\n\n", 0, end)
        start = at + 2 if at >= 0 else 0
        if not _BEGINS.match(content, start, end):
            return []
        spans.insert(0, (start, end))
        end = max(at, 0)
    return spans


# How long documents are kept.


#: Documents that carry one of these never expire, whatever their time to live.
PRESERVE_TAGS = ("critical", "compliance", "legal")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiryPolicy:
    """When documents expire that are stored from now on.

    Attributes:
        default_ttl: Time to live of documents that bring none of their own; None: they are kept.
        preserve_tags: Documents that carry one of these, in whatever case, never expire.
    """

    default_ttl: timedelta | None = None
    preserve_tags: tuple[str, ...] = PRESERVE_TAGS

    def lifetime(self, document: Document) -> timedelta | None:
        """How long a version of a document is kept after it became known; None: for ever.

        Raises:
            UsageError: The document's ``ttl`` is no length of time.
        """
        kept = {tag.casefold() for tag in self.preserve_tags}
        if any(tag.casefold() in kept for tag in document.tags):
            return None
        if document.ttl is None:
            return self.default_ttl
        return read_lifetime(document.ttl, name=f"The ttl of {document.source!r}")
