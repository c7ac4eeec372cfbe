"""What an evaluation found, in the form that ``recollect eval --json`` prints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryTimes:
    """Milliseconds per query: the median and the 95th percentile."""

    p50: float
    p95: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BeirReport:
    """The outcome of a BEIR data set.

    Attributes:
        metrics: ``nDCG@10``, ``R@100``, ``RR@10``, ``AP``.
        queries: How many were run.
        documents: How many were ingested.
        seconds: Wall time of ingest and queries together.
        query_ms: Time per query.
    """

    metrics: Mapping[str, float]
    queries: int
    documents: int
    seconds: float
    query_ms: QueryTimes

    def as_json(self) -> dict[str, object]:
        """Plain values for ``json.dumps``."""
        return {
            "metrics": dict(self.metrics),
            "queries": self.queries,
            "documents": self.documents,
            "seconds": round(self.seconds, 3),
            "query_ms": {"p50": round(self.query_ms.p50, 3), "p95": round(self.query_ms.p95, 3)},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanReport:
    """The outcome of a span data set.

    Attributes:
        metrics: ``recall``, ``precision``, ``iou``.
        budget_chars: How many characters could be shown per question; None where ``passages`` limited them.
        passages: How many passages were shown per question; None where ``budget_chars`` limited them.
        questions: How many were asked.
    """

    metrics: Mapping[str, float]
    budget_chars: int | None
    passages: int | None
    questions: int

    def as_json(self) -> dict[str, object]:
        """Plain values for ``json.dumps``; ``passages`` is there only where it was the limit."""
        values: dict[str, object] = {
            "metrics": dict(self.metrics),
            "budget_chars": self.budget_chars,
            "questions": self.questions,
        }
        if self.passages is not None:
            values["passages"] = self.passages
        return values
