"""Bodies about documents."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field
from typing_extensions import TypedDict

from recollect.errors import FetchError, UsageError
from recollect.fetching.crawl import CrawlPlan
from recollect.fetching.urls import parse_url
from recollect.model import Document
from recollect.model.job import Job
from recollect.model.time import read_time
from recollect.operations.values import Name, Text
from recollect.server.schemas.base import Body

# A text that is sent as JSON; the limit of the body comes first. Longer ones are files.
_MAX_CHARACTERS = 100_000_000
_MAX_TAGS = 1_000


class DocumentBody(Body):
    """A text to be stored; the fields are those of `Document`."""

    content: Text = Field(max_length=_MAX_CHARACTERS, description="What is cut, searched and quoted.")
    source: Name | None = Field(
        None,
        description="Where it came from. Without an `id` it identifies the document within the collection. Left out: "
        "the id, or the text's hash, so that one text is stored once.",
    )
    id: Name | None = Field(
        None,
        description="Identifies the document within the collection, whatever its source is: several may share a "
        "source, such as the turns of a chat.",
    )
    title: Text | None = Field(None, max_length=10_000)
    metadata: dict[str, Any] = Field(default_factory=dict)
    tags: tuple[Name, ...] = Field((), max_length=_MAX_TAGS)
    department: Name | None = None
    language: Name | None = Field(None, description="ISO 639-1; left out: the collection's.")
    event_time: Text | None = Field(None, max_length=100, description="When it happened or was written: ISO 8601.")
    event_end: Text | None = Field(None, max_length=100, description="When that ended.")
    ttl: Text | None = Field(
        None, max_length=100, description="How long it is found, for instance 30d; never: without end."
    )
    permissions: tuple[Name, ...] | None = Field(
        None,
        max_length=_MAX_TAGS,
        description="Who may read it: role:hr, user:ann; left out: as the collection says.",
    )
    force: bool = Field(False, description="Store it anew even if it is unchanged.")

    def document(self) -> Document:
        """As the library takes it.

        Raises:
            UsageError: A time is none.
        """
        return Document(
            content=self.content,
            source=self.source,
            id=self.id,
            title=self.title,
            metadata=self.metadata,
            tags=self.tags,
            department=self.department,
            language=self.language,
            event_time=None if self.event_time is None else read_time(self.event_time, name="event_time"),
            event_end=None if self.event_end is None else read_time(self.event_end, name="event_end"),
            ttl=self.ttl,
            permissions=self.permissions,
        )


class DescriptionBody(Body):
    """What is said of a document; what is left out stays as it is."""

    title: Text | None = Field(None, min_length=1, max_length=10_000)
    metadata: dict[str, Any] | None = Field(None, description="All of it from now on.")
    tags: tuple[Name, ...] | None = Field(None, max_length=_MAX_TAGS, description="All of them from now on.")
    department: Name | None = None


def _of_the_web(url: str) -> str:
    try:
        return str(parse_url(url))
    except FetchError as exc:
        raise ValueError(exc.reason) from exc


class UrlBody(Body):
    """A page of the web to be stored, or the pages of a site; the fields are the options of `recollect ingest URL`."""

    url: Annotated[Text, AfterValidator(_of_the_web)] = Field(min_length=1, max_length=10_000)
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] | None = None
    headers: dict[str, Text] = Field(default_factory=dict, max_length=100, description="Sent with it, shown to nobody.")
    data: Text | None = Field(None, max_length=1_000_000, description="Sent as the request's body.")
    chunk_size: int | None = Field(None, ge=1, le=1_000_000)
    chunk_overlap: int | None = Field(None, ge=0, le=1_000_000)
    tag: tuple[Name, ...] = Field((), max_length=_MAX_TAGS)
    grant: tuple[Name, ...] | None = Field(None, max_length=_MAX_TAGS, description="Who may read the pages.")
    force: bool = False
    crawl: bool = Field(False, description="Store the pages that it leads to within its site too.")
    depth: int | None = Field(None, ge=0, le=1_000)
    max_pages: int | None = Field(None, ge=1, le=1_000_000)
    below: Text | None = Field(None, max_length=10_000)
    sitemaps: bool = False
    delay: float | None = Field(None, ge=0, le=3_600)

    def plan(self) -> CrawlPlan | None:
        """How far links are followed; None: not at all.

        Raises:
            UsageError: Options of a crawl are given without one.
        """
        said = {
            "depth": self.depth,
            "max_pages": self.max_pages,
            "below": self.below,
            "delay_seconds": self.delay,
            "sitemaps": self.sitemaps or None,
        }
        chosen: dict[str, Any] = {name: value for name, value in said.items() if value is not None}
        if not self.crawl:
            if chosen:
                raise UsageError("depth, max_pages, below, sitemaps and delay are of a crawl: add crawl.")
            return None
        return CrawlPlan(**{"depth": 2, **chosen}).checked()


class UploadFields(Body):
    """What is said of files beside them; the names are those of the options of `recollect ingest`."""

    tag: tuple[Name, ...] = Field((), max_length=_MAX_TAGS, description="Given to every document.")
    grant: tuple[Name, ...] | None = Field(None, max_length=_MAX_TAGS, description="Who may read them.")
    department: Name | None = Field(None, description="Of files that name none themselves.")
    force: bool = Field(False, description="Store them anew even if they are unchanged.")
    folders: bool = Field(
        False, description="Call documents by the paths that the files were sent with, and not by the last parts alone."
    )


class UploadedJobs(TypedDict):
    """The jobs of files that were sent, one a file, in their order."""

    jobs: list[Job]


class ErasureBody(Body):
    """Why a document is erased."""

    reason: Text | None = Field(None, max_length=10_000, description="For the receipt.")
    scrub: bool = Field(False, description="Take it out of the database's files too; for the store's owner.")


class RereadBody(Body):
    """How an original is read anew."""

    force: bool = Field(False, description="Store it anew even if nothing is different.")


class RestoreBody(Body):
    """Which version is the newest again."""

    version: int = Field(ge=1, le=2**31 - 1, description="From 1.")


class LifetimeBody(Body):
    """How long a document is found."""

    ttl: Name | None = Field(description="From now on, such as 12h or 30d; null or never: for ever.")
