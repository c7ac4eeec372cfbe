"""What became of documents that were to be stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, NotRequired

from recollect.replies._shape import Shape

if TYPE_CHECKING:
    from recollect.ingest.report import IngestReport


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
