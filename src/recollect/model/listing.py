"""Lists of documents as people look through them: filtered by anything, sorted, and a page at a time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from recollect.model.document_record import DocumentRecord, DocumentStatus
    from recollect.model.filter import Filter
    from recollect.model.principal import Permissions

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
