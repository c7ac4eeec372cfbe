"""Documents as they are stored, listed, and found to say the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from recollect.model.record import Public, PublicIfKnown, Record, public_as
from recollect.model.source import SourceType

if TYPE_CHECKING:
    from recollect.model.filter import Filter
    from recollect.model.principal import Permissions


DocumentStatus = Literal["pending", "embedded", "error"]
DOCUMENT_STATUSES: tuple[DocumentStatus, ...] = ("pending", "embedded", "error")


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentRecord(Record):
    """A stored document, as its current version is.

    Attributes:
        document_id: Stays the same over all versions of the document.
        source: Its URI within its origin, for instance a path relative to the ingested folder.
        origin: The source it belongs to, for instance that folder.
        version: From 1.
        language: ISO 639-1; None: not known.
        content_hash: SHA-256 of the content, in hexadecimal digits.
        known_from: When this version entered the knowledge base.
        event_time: When what it tells happened or was written.
        content: Its text; None in listings.
        status: ``embedded``; ``pending`` where a job is to store it; ``error`` where that job has failed.
        error: Why it has failed.
        source_type: Of its origin: ``directory``, ``web``, ``upload``, ``api`` or ``manual``.
        id: The id that it was given (`Document.id`); None: its source identifies it.
    """

    document_id: Public[int]
    source: Public[str]
    title: Public[str]
    collection: Public[str]
    version: Public[int]
    department: Public[str | None]
    mime_type: Public[str]
    language: Public[str | None]
    metadata: Public[Mapping[str, Any]]
    tags: Public[tuple[str, ...]]
    chunk_count: Public[int]
    content_hash: Public[str]
    known_from: Public[datetime]
    event_time: Public[datetime | None]
    origin: Public[str]
    content: str | None = None
    status: Public[DocumentStatus] = "embedded"
    error: Public[str | None] = None
    source_type: Public[SourceType] = "manual"
    id: PublicIfKnown[str | None] = None


# Documents that say the same.


@dataclass(frozen=True, slots=True)
class SameDocument(Record):
    """A document that says what another one says.

    Attributes:
        document_id: Of it.
        source: Where it came from.
        title: Of it.
        collection: Where it is.
        origin: Its folder, web domain or other source.
        likeness: The share of runs of five words that both have, of those that either has; 1: the same text.
    """

    document_id: Public[int]
    source: Public[str]
    title: Public[str]
    collection: Public[str]
    origin: Public[str]
    likeness: Public[float] = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Duplicates(Record):
    """The documents that say what one document says.

    Attributes:
        same: The same text, by id.
        near: Nearly the same, the likest first.
    """

    same: Annotated[tuple[SameDocument, ...], public_as("same_content")] = ()
    near: Annotated[tuple[SameDocument, ...], public_as("nearly_the_same")] = ()


# Lists of documents as people look through them: filtered by anything, sorted, and a page at a time.


ListingSort = Literal["newest", "oldest", "changed", "title", "longest"]
LISTING_SORTS: tuple[ListingSort, ...] = get_args(ListingSort)

#: Of a filtered list no more are counted.
MOST_COUNTED = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ListingPlace:
    """A place in a sorted list: between two pages.

    Attributes:
        key: What the list is sorted by, as it is at the entry beside the place.
        document_id: Of this entry.
        backwards: Whether the page ends here; otherwise it begins behind the entry.
        count: How many documents the first page has counted; None: more than it counts.
    """

    key: str | int | datetime
    document_id: int
    backwards: bool = False
    count: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListingQuery:
    """Which documents, and in which order; all that is given must hold.

    Attributes:
        words: Each stands in the title or in the path, in whatever case; ten at most.
        status: Only ``pending``, ``embedded`` or ``error``; None: any.
        origin: Only of this source: a folder, a domain, ``upload``.
        mime_types: Only of one of these types of files.
        changed_from: Only those whose current version is as new.
        changed_to: Only those whose current version is older.
        grant: Only those that this is granted: ``role:hr``, ``*``. For the owner of the store.
        where: In the language of filters.
        sort: By their ids (``newest``, ``oldest``), by when their current versions came, by title, or by length.
        place: Where the page begins or ends; None: it is the first one.
        limit: Documents of a page.
    """

    words: tuple[str, ...] = ()
    status: DocumentStatus | None = None
    origin: str | None = None
    mime_types: tuple[str, ...] = ()
    changed_from: datetime | None = None
    changed_to: datetime | None = None
    grant: str | None = None
    where: Filter | None = None
    sort: ListingSort = "newest"
    place: ListingPlace | None = None
    limit: int = 50

    @property
    def of_stored(self) -> bool:
        """Whether it asks for what only documents have that are stored."""
        return bool(self.mime_types or self.grant or self.where)

    @property
    def narrowed(self) -> bool:
        """Whether anything but the collections confines it."""
        return bool(self.words or self.status or self.origin or self.changed_from or self.changed_to or self.of_stored)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedDocument:
    """A document of a list.

    Attributes:
        record: The document, without its content.
        key: What the list is sorted by.
        expires_at: When it is found no longer; None: it stays.
        permissions: Who may read it; None: that is for the owner of the store to know.
        inherited: Whether these are its collection's default.
        job_id: Of what is not stored: the job that is to store it, or could not.
    """

    record: DocumentRecord
    key: str | int | datetime
    expires_at: datetime | None = None
    permissions: Permissions | None = None
    inherited: bool = True
    job_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A page of a list of documents.

    Attributes:
        documents: In their order.
        previous: Where the page before ends; None: this is the first one.
        following: Where the next page begins; None: this is the last one.
        count: How many there were in all when the first page was looked up; None: more than `MOST_COUNTED`.
    """

    documents: tuple[ListedDocument, ...]
    previous: ListingPlace | None
    following: ListingPlace | None
    count: int | None
