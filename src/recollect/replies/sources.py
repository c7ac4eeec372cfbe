"""Sources of documents, and how their refreshes went."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NotRequired

from recollect.model.source import SourceState, SourceType
from recollect.replies._shape import Shape, Timestamp, iso
from recollect.replies.ingest import IngestReportJson, ingest_report_json

if TYPE_CHECKING:
    from recollect.ingest.report import IngestReport
    from recollect.model.source import SourceRecord


class SourceJson(Shape):
    """Where documents of a collection come from."""

    name: str
    """In its collection: a folder's path, a domain, a location, or a name given by hand."""
    type: SourceType
    """Who puts documents there."""
    collection: str
    connector: str | None
    """What reads it; null: documents are put there."""
    location: str | None
    """What the connector reads."""
    settings: dict[str, Any]
    """The connector's; secrets are names of variables."""
    interval_seconds: float | None
    """How often it is refreshed; null: when somebody asks."""
    state: SourceState | None
    """How its last refresh went; null: it has none."""
    problem: str | None
    """Why it failed, in words."""
    refreshed_at: Timestamp | None
    """When it was last read to its end."""
    due_at: Timestamp | None
    """When it is refreshed next; null: when somebody asks."""
    documents: int
    """How many of its documents are current."""
    failed: int
    """How many of its items could not be stored."""
    metadata: dict[str, Any]
    """Given to every document that does not have the key itself."""


class SourceListJson(Shape):
    """Sources of documents, by name."""

    sources: list[SourceJson]


class RemovedSourceJson(Shape):
    """A source that is read no longer."""

    removed: str
    """Its name."""
    closed: NotRequired[int]
    """Documents that were closed; of a source whose documents were not erased."""
    erased: NotRequired[int]
    """Documents that were erased."""


class SourceRefreshJson(IngestReportJson):
    """What the refresh of a source did."""

    source: str
    """Its name."""


class SourceProblemJson(Shape):
    """A source that could not be refreshed."""

    source: str
    """Its name."""
    problem: str


def source_json(record: SourceRecord) -> SourceJson:
    """A source of documents."""
    return {
        "name": record.name,
        "type": record.type,
        "collection": record.collection,
        "connector": record.connector,
        "location": record.location,
        "settings": dict(record.settings),
        "interval_seconds": record.interval_seconds,
        "state": record.state,
        "problem": record.problem,
        "refreshed_at": iso(record.refreshed_at),
        "due_at": iso(record.due_at),
        "documents": record.documents,
        "failed": record.failed,
        "metadata": dict(record.metadata),
    }


def source_list_json(found: Sequence[SourceRecord]) -> SourceListJson:
    """Sources of documents."""
    return {"sources": [source_json(record) for record in found]}


def removed_source_json(name: str, done: int, *, erased: bool) -> RemovedSourceJson:
    """A source that is read no longer.

    Args:
        name: Its own.
        done: How many documents were closed, or erased.
        erased: Which of both.
    """
    return {"removed": name, "erased": done} if erased else {"removed": name, "closed": done}


def source_refresh_json(name: str, report: IngestReport) -> SourceRefreshJson:
    """What the refresh of a source did.

    Args:
        name: The source's.
        report: Of what was read.
    """
    return {"source": name, **ingest_report_json(report)}
