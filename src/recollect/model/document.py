"""A document: text with the structure that its format gave away."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.model.time import Duration


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading inside a document's content.

    Attributes:
        level: 1 for the outermost; deeper headings have larger numbers.
        title: The heading's words, without markup.
        start_offset: Character offset of the heading's first character (markup included).
        end_offset: Character offset just behind the heading's line.
    """

    level: int
    title: str
    start_offset: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class PageSpan:
    """The characters of a document's content that stand on one page (numbered from 1)."""

    number: int
    start_offset: int
    end_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """What is ingested: a text, where it came from, and what is known about it.

    Only ``content`` is required. Offsets count Unicode code points of ``content``, as Python strings do.

    Attributes:
        content: The text that is chunked, searched and quoted.
        source: Where it came from, unique within a collection: a path relative to the ingested folder, a URL,
            or any name. None: the content's hash serves, so that the same text is stored once.
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
            (`recollect.model.time.read_duration`); None: as configured. Storing it unchanged begins it anew.
        permissions: Who may read it, as `recollect.model.principal.read_permissions` takes them:
            ``("role:hr", "!group:interns")``. They replace the document's grants when it is stored; its denials stay,
            and what is denied here comes to them. None: what the document has, or the collection's default.
        file_hash: SHA-256 of the original bytes, where there was a file.
    """

    content: str
    source: str | None = None
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

    @property
    def content_hash(self) -> bytes:
        """SHA-256 of the content as UTF-8 (lone surrogates kept as they are)."""
        return hashlib.sha256(self.content.encode("utf-8", "surrogatepass")).digest()

    def section_path(self, offset: int) -> tuple[str, ...]:
        """Titles of the headings that the character at ``offset`` stands under, outermost first.

        A heading's own characters belong to its section.
        """
        last = bisect_right(self.headings, offset, key=lambda heading: heading.start_offset)
        path: list[Heading] = []
        for heading in reversed(self.headings[:last]):
            if not path or heading.level < path[-1].level:
                path.append(heading)
                if heading.level <= 1:
                    break
        return tuple(heading.title for heading in reversed(path))

    def page_at(self, offset: int) -> int | None:
        """The number of the page that the character at ``offset`` stands on, or None without pages."""
        index = bisect_right(self.pages, offset, key=lambda page: page.start_offset)
        return self.pages[index - 1].number if index else None
