"""What became of documents: stored, restored, refreshed, and evidence that changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NotRequired

from typing_extensions import TypedDict

from recollect.replies._shape import Shape, Timestamp, iso
from recollect.replies.retrieval import PassagePlaceJson, passage_json

if TYPE_CHECKING:
    from recollect.ingest.report import IngestReport
    from recollect.model import IngestResult, RetrievedContext
    from recollect.model.history import DocumentHistory, EvidenceDiff, MovedEvidence


class DocumentIdJson(Shape):
    """A document that was named otherwise."""

    document_id: int
    document_ids: list[int]
    """All that the name means: more than one of a source that documents with ids share, where they were asked for."""


# What became of documents, and of the evidence for a question, over time.


class EvidenceJson(PassagePlaceJson):
    """A passage that was found at a moment."""

    rank: int
    """From 1."""
    score: float
    """What the results are ordered by, best first; comparable within one search only."""
    relevance: float | None
    """How likely it answers the question, 0 to 1."""
    content: str
    chunk_id: int
    version_id: int | None
    """The version of the document that it was cut from."""


class MovedEvidenceJson(EvidenceJson):
    """A passage that is among the evidence of one moment only."""

    outranked: bool
    """Whether its version was known at the other moment as well, but others were better."""


class ChangedEvidenceJson(Shape):
    """Passages of one document, in other words."""

    before: EvidenceJson
    after: EvidenceJson


# "from" cannot be written as an attribute.
_Moments = TypedDict("_Moments", {"from": Timestamp, "to": Timestamp})


class EvidenceDiffJson(Shape, _Moments):
    """How the evidence for a question changed from one moment to another."""

    question: str
    """As asked."""
    collection: str
    """The collection searched."""
    came: list[MovedEvidenceJson]
    """Found at `to` only, best first."""
    went: list[MovedEvidenceJson]
    """Found at `from` only, best first."""
    changed: list[ChangedEvidenceJson]
    """Found at both, in other words."""
    stayed: list[EvidenceJson]
    """Found at both in the same words, as found at `to`."""


class RestoredVersionJson(Shape):
    """An old version of a document, made the newest one."""

    document_id: int
    department: str | None
    version: int
    """The one that is current now."""
    status: Literal["added", "updated", "unchanged"]
    """`unchanged` where it was the current one already."""
    chunk_count: int
    """Of the current version."""


class LifetimeJson(Shape):
    """How long a document is found."""

    document_id: int
    department: str | None
    expires_at: Timestamp | None
    """When it expires; null: never."""


def restored_version_json(written: IngestResult, *, department: str | None) -> RestoredVersionJson:
    """An old version of a document, made the newest one.

    Args:
        written: What became of it.
        department: The document's.
    """
    return {
        "document_id": written.document_id,
        "department": department,
        "version": written.version,
        "status": written.status,
        "chunk_count": written.chunk_count,
    }


def lifetime_json(document_id: int, history: DocumentHistory) -> LifetimeJson:
    """How long a document is found.

    Args:
        document_id: Which.
        history: Its own.
    """
    return {
        "document_id": document_id,
        "department": history.department,
        "expires_at": iso(history.versions[-1].expires_at),
    }


def evidence_diff_json(diff: EvidenceDiff) -> EvidenceDiffJson:
    """How the evidence for a question changed."""
    return {
        "question": diff.question,
        "collection": diff.collection,
        "from": iso(diff.from_time),
        "to": iso(diff.to_time),
        "came": _moved(diff.came),
        "went": _moved(diff.went),
        "changed": [{"before": _evidence(old), "after": _evidence(new)} for old, new in diff.changed],
        "stayed": [_evidence(one) for one in diff.stayed],
    }


def _moved(found: Sequence[MovedEvidence]) -> list[MovedEvidenceJson]:
    return [{**_evidence(one.passage), "outranked": one.outranked} for one in found]


def _evidence(passage: RetrievedContext) -> EvidenceJson:
    return {**passage_json(passage, EvidenceJson), "version_id": passage.version_id}


# What became of documents that were to be stored.


class IngestCountsJson(Shape):
    """What became of files, by number."""

    added: int
    """Documents that were not current before."""
    updated: int
    """Documents that have a new version."""
    unchanged: int
    """Documents whose bytes and settings are those of their current version."""
    removed: int
    """Documents closed because their file has disappeared."""
    failed: int
    """Files that could not be read or stored."""
    skipped: int
    """Files left aside as asked: hidden, too large, of no known type."""


class FileErrorJson(Shape):
    """A file that could not be ingested."""

    path: str
    error: str


class SkippedFileJson(Shape):
    """A file that was left aside."""

    path: str
    reason: str


class IngestReportJson(Shape):
    """What an ingest of files did."""

    documents: IngestCountsJson
    chunks: int
    """Chunks written."""
    seconds: float
    """From start to end."""
    errors: list[FileErrorJson]
    too_large: NotRequired[list[SkippedFileJson]]
    """Files larger than the limit: the first hundred."""
    closed: NotRequired[list[SkippedFileJson]]
    """Pages of a site that were closed, with the reason: the first hundred."""
    without_text: NotRequired[list[SkippedFileJson]]
    """Files of which pages hold no text that was read, and how many: the first hundred."""


def ingest_report_json(report: IngestReport) -> IngestReportJson:
    """What an ingest did; files that are too large are listed where there are any."""
    shown: IngestReportJson = {
        "documents": {
            "added": report.added,
            "updated": report.updated,
            "unchanged": report.unchanged,
            "removed": report.removed,
            "failed": report.failed,
            "skipped": report.skipped,
        },
        "chunks": report.chunks,
        "seconds": round(report.seconds, 3),
        "errors": [{"path": one.path, "error": one.error} for one in report.errors],
    }
    if report.too_large:
        shown["too_large"] = [{"path": one.path, "reason": one.error} for one in report.too_large]
    if report.closed:
        shown["closed"] = [{"path": one.path, "reason": one.error} for one in report.closed]
    if report.without_text:
        shown["without_text"] = [{"path": one.path, "reason": one.error} for one in report.without_text]
    return shown


# Sources of documents, and how their refreshes went.


class SourceRefreshJson(IngestReportJson):
    """What the refresh of a source did."""

    source: str
    """Its name."""


class SourceProblemJson(Shape):
    """A source that could not be refreshed."""

    source: str
    """Its name."""
    problem: str


def source_refresh_json(name: str, report: IngestReport) -> SourceRefreshJson:
    """What the refresh of a source did.

    Args:
        name: The source's.
        report: Of what was read.
    """
    return {"source": name, **ingest_report_json(report)}
