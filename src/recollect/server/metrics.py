"""What the server has done, as Prometheus reads it; each application has a registry of its own.

The values of labels are templates of routes, names of the code and of the configuration: never a path, a query or a
tenant. Callers can choose some of these names, such as the models of collections, so each label has a bound.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterator
from threading import Lock
from typing import TYPE_CHECKING, TypeVar, cast

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from recollect.errors import RecollectError
from recollect.jobs.tasks import task_kinds
from recollect.pipeline.assembly import Observer
from recollect.store.job_queue import JobQueue, Workload

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from recollect.model import Answer, SearchReply
    from recollect.model.requests import RequestRecord
    from recollect.pipeline import RAGPipeline
    from recollect.retrieval.resident.collections import ResidentUsage
    from recollect.store.replica import Replica

logger = logging.getLogger(__name__)

_Metric = TypeVar("_Metric", Counter, Histogram)

# From a search that the cache answers to an answer that a model writes.
_REQUEST_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_STAGE_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

#: So long the database is not asked about jobs again, however often somebody reads the metrics.
WORKLOAD_SECONDS = 5.0

# A label keeps its first values; all further ones are counted as ``other``. There are about 200 routes.
_MOST_VALUES = 64
_MOST_ROUTES = 512
_OTHER = "other"
_EVENTS = b"text/event-stream"


class Metrics(Observer):
    """Counts what an application does, and what its store waits for. Safe to share between threads.

    Args:
        rag: The open store that is served.
    """

    def __init__(self, rag: RAGPipeline) -> None:
        self.registry = registry = CollectorRegistry(auto_describe=True)
        self._values: dict[str, set[str]] = {}
        self._known: dict[tuple[object, ...], Counter | Histogram] = {}
        self._lock = Lock()
        self._requests = Histogram(
            "recollect_http_request_seconds",
            "Time from a request to the end of its response, by the route's template.",
            ("method", "route", "status"),
            buckets=_REQUEST_BUCKETS,
            registry=registry,
        )
        self._not_taken = Counter(
            "recollect_credentials_not_taken",
            "Credentials that were not taken, by kind; throttled: there were too many from there, or of that key.",
            ("kind", "throttled"),
            registry=registry,
        )
        self._streams = Gauge("recollect_streams_open", "Responses that are sent as events now.", registry=registry)
        self._searches = Counter(
            "recollect_searches", "Searches, those of answers included.", ("mode", "cached"), registry=registry
        )
        self._search_stages = _stages("search", "mode", registry)
        self._answers = Counter(
            "recollect_answers",
            "Questions that were asked, by what became of them: an answer, passages in its place, or none.",
            ("mode", "outcome"),
            registry=registry,
        )
        self._answer_stages = _stages("answer", "mode", registry)
        model = ("kind", "provider", "model")
        self._model_requests = Counter(
            "recollect_model_requests",
            "Requests to providers of models, their repetitions not counted; error is empty where one succeeded.",
            (*model, "error"),
            registry=registry,
        )
        self._model_seconds = Histogram(
            "recollect_model_request_seconds",
            "Time of requests to providers, repetitions and pauses included.",
            model,
            buckets=_REQUEST_BUCKETS,
            registry=registry,
        )
        self._model_tokens = Counter(
            "recollect_model_tokens", "Tokens sent and written.", (*model, "direction"), registry=registry
        )
        ProcessCollector(registry=registry)
        registry.register(_StoreFigures(rag))

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request; `recollect.server.request_context.RequestContext` tells of each."""
        method = method if method in _METHODS else _OTHER
        self._series(self._requests, method=method, route=route, status=str(status)).observe(seconds)

    def credential_not_taken(self, kind: str, throttled: bool) -> None:
        """Count a credential that was not taken."""
        self._series(self._not_taken, kind=kind, throttled=_yes(throttled)).inc()

    def searched(self, reply: SearchReply) -> None:
        """Count a search, and the time of its stages."""
        self._series(self._searches, mode=reply.mode, cached=_yes(reply.cached)).inc()
        if not reply.cached:
            for stage, milliseconds in reply.timings_ms.items():
                self._series(self._search_stages, mode=reply.mode, stage=stage).observe(milliseconds / 1000)

    def answered(self, answer: Answer) -> None:
        """Count an answer, and the time of its stages; those of its search are counted as a search's."""
        mode = "extractive" if answer.model is None else "generated"
        self._series(self._answers, mode=mode, outcome=answer.outcome).inc()
        for stage, milliseconds in answer.timings_ms.items():
            if not stage.startswith("search_"):
                self._series(self._answer_stages, mode=mode, stage=stage).observe(milliseconds / 1000)

    def requested(self, record: RequestRecord) -> None:
        """Count a request to a model."""
        # Both in one: as labels of their own, their bounds would multiply.
        named = self._bounded("model", f"{record.provider}/{record.model}")
        provider, model = (_OTHER, _OTHER) if named == _OTHER else (record.provider, record.model)
        which = {"kind": record.kind, "provider": provider, "model": model}
        self._model_requests.labels(**which, error=self._bounded("error", record.error or "")).inc()
        self._model_seconds.labels(**which).observe(record.milliseconds / 1000)
        self._model_tokens.labels(**which, direction="input").inc(record.input_tokens)
        self._model_tokens.labels(**which, direction="output").inc(record.output_tokens)

    def exposition(self, accept: str | None) -> tuple[bytes, str]:
        """Everything, in the format that a reader takes best, with its media type. Asks the database."""
        encode, media_type = choose_encoder(accept or "")
        return encode(self.registry), media_type

    def counting_streams(self, app: ASGIApp) -> ASGIApp:
        """An application around another that counts the responses of events that are being sent."""

        async def count(scope: Scope, receive: Receive, send: Send) -> None:
            begun = False

            async def tell(message: Message) -> None:
                nonlocal begun
                if message["type"] == "http.response.start" and not begun and _sends_events(message):
                    begun = True
                    self._streams.inc()
                await send(message)

            try:
                await app(scope, receive, tell)
            finally:
                if begun:
                    self._streams.dec()

        return count

    def _series(self, metric: _Metric, **labels: str) -> _Metric:
        """The series of a metric with these labels, each within its bound."""
        key = (metric, *labels.values())
        known = self._known.get(key)
        if known is None:
            bounded = {label: self._bounded(label, value) for label, value in labels.items()}
            known = metric.labels(**bounded)
            if bounded == labels:  # others are without number
                self._known[key] = known
        return cast("_Metric", known)

    def _bounded(self, label: str, value: str) -> str:
        """A label's value, or ``other`` where it has as many values as it may have."""
        with self._lock:
            known = self._values.setdefault(label, set())
            if value not in known and len(known) >= (_MOST_ROUTES if label == "route" else _MOST_VALUES):
                return _OTHER
            known.add(value)
            return value


class _StoreFigures(Collector):
    """What is known at the moment that somebody asks: the pool, the caches, and the jobs of the database."""

    def __init__(self, rag: RAGPipeline) -> None:
        self._rag = rag
        self._lock = Lock()
        self._workload: list[Workload] = []
        self._read_at: float | None = None
        self._reached = True

    def describe(self) -> Collection[Metric]:
        """Nothing beforehand: the database is not asked when the application is made."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Everything."""
        yield from self._of_process()
        yield from self._of_jobs()

    def _of_process(self) -> Iterator[Metric]:
        usage = self._rag.store.database.usage()
        connections = GaugeMetricFamily(
            "recollect_database_connections", "Connections of this process to the database.", labels=("state",)
        )
        connections.add_metric(("used",), usage.used)
        connections.add_metric(("idle",), usage.idle)
        yield connections
        yield GaugeMetricFamily(
            "recollect_database_connection_waits", "Callers who wait for a connection now.", value=usage.waiting
        )
        replica = self._rag.store.replica
        if replica is not None:
            yield from _of_replica(replica)
        assembly = self._rag.standpoint.assembly
        if assembly.held is not None:
            yield from _of_memory(assembly.held.usage())
        counts = assembly.searcher.cache_counts
        lookups = CounterMetricFamily(
            "recollect_result_cache_lookups", "Searches that the cache of replies was asked for.", labels=("result",)
        )
        lookups.add_metric(("hit",), counts.hits)
        lookups.add_metric(("miss",), counts.misses)
        yield lookups
        yield GaugeMetricFamily("recollect_result_cache_entries", "Replies that are kept.", value=counts.entries)

    def _of_jobs(self) -> Iterator[Metric]:
        workload = self._current()
        yield GaugeMetricFamily(
            "recollect_database_up", "Whether the database could be asked just now.", value=float(self._reached)
        )
        if not self._reached:
            return
        kinds = task_kinds()
        counted: dict[tuple[str, str], int] = {}
        for one in workload:
            key = (one.kind if one.kind in kinds else _OTHER, one.status)
            counted[key] = counted.get(key, 0) + one.jobs
        jobs = GaugeMetricFamily(
            "recollect_jobs", "Jobs of all tenants that the store keeps.", labels=("kind", "status")
        )
        for key, number in sorted(counted.items()):
            jobs.add_metric(key, number)
        yield jobs
        yield GaugeMetricFamily(
            "recollect_queue_age_seconds",
            "How long the job that has waited longest could have been run; 0: none waits.",
            value=max((one.waited_seconds for one in workload), default=0.0),
        )

    def _current(self) -> list[Workload]:
        with self._lock:
            now = time.monotonic()
            if self._read_at is None or now - self._read_at >= WORKLOAD_SECONDS:
                try:
                    self._workload, self._reached = JobQueue(self._rag.store.database).workload(), True
                except RecollectError as exc:
                    # What this process knows of itself is worth most when the database is away.
                    logger.warning("The jobs cannot be counted: %s", exc)
                    self._reached = False
                self._read_at = now
            return self._workload


def _of_memory(usage: ResidentUsage) -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "recollect_resident_collections", "Collections that this process holds in memory.", value=usage.collections
    )
    yield GaugeMetricFamily("recollect_resident_chunks", "Chunks of these.", value=usage.chunks)
    yield GaugeMetricFamily("recollect_resident_bytes", "Memory that they take.", value=usage.bytes)
    yield GaugeMetricFamily("recollect_resident_budget_bytes", "Memory that they may take.", value=usage.budget)
    lookups = CounterMetricFamily(
        "recollect_resident_lookups", "Collections searched, by where candidates were found.", labels=("where",)
    )
    lookups.add_metric(("memory",), usage.answered)
    lookups.add_metric(("database",), usage.missed)
    yield lookups
    yield CounterMetricFamily(
        "recollect_resident_dropped", "Copies that did not say what the database says.", value=usage.dropped
    )


def _of_replica(replica: Replica) -> Iterator[Metric]:
    reads = CounterMetricFamily(
        "recollect_replica_reads",
        "Searches and reads of texts by where they were done: on the replica, or on the primary because it was behind, "
        "away, or failed meanwhile.",
        labels=("outcome",),
    )
    for outcome, count in replica.counts.items():
        reads.add_metric((outcome,), count)
    yield reads
    status = replica.status()
    yield GaugeMetricFamily(
        "recollect_replica_up", "Whether the replica is read from.", value=float(status.problem is None)
    )
    if status.behind_bytes is not None:
        yield GaugeMetricFamily(
            "recollect_replica_behind_bytes",
            "What the replica has not replayed of the primary's write-ahead log.",
            value=status.behind_bytes,
        )


def _stages(what: str, label: str, registry: CollectorRegistry) -> Histogram:
    return Histogram(
        f"recollect_{what}_stage_seconds",
        f"Time of the stages of each {what} that was computed; total is all of it.",
        (label, "stage"),
        buckets=_STAGE_BUCKETS,
        registry=registry,
    )


def _yes(value: bool) -> str:
    return "true" if value else "false"


def _sends_events(message: Message) -> bool:
    return any(
        name.lower() == b"content-type" and value.startswith(_EVENTS) for name, value in message.get("headers", ())
    )
