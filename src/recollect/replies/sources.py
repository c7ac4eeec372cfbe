"""Sources of documents, and how their refreshes went."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.replies._shape import Shape
from recollect.replies.ingest import IngestReportJson, ingest_report_json

if TYPE_CHECKING:
    from recollect.ingest.report import IngestReport


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
