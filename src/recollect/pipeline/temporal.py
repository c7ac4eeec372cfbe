"""Searches and answers by time: what was known when, of events of when."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from recollect.config import RAGConfig
from recollect.errors import UsageError
from recollect.model import Answer, Document, Principal, RetrievalOptions, RetrievedContext, SearchReply
from recollect.model.arguments import checked
from recollect.model.time import Duration, Moment, read_duration, read_time
from recollect.pipeline.owned import OwnedPipeline
from recollect.pipeline.rag import RAGPipeline
from recollect.pipeline.standpoint import EVERY_COLLECTION

if TYPE_CHECKING:
    from typing import Unpack

    from recollect.model import IngestResult
    from recollect.model.history import EvidenceDiff
    from recollect.model.keywords import SearchKeywords
    from recollect.pipeline.view import View


@checked
class TemporalRAG(OwnedPipeline):
    """A `RAGPipeline` seen by time. A context manager, safe to share between threads.

    Two times are kept of everything: when it happened (`Document.event_time` to `Document.event_end`), and when the
    store knew it. Times are given as `recollect.model.time.read_time` takes them: without a zone they are UTC.

    Args:
        pipeline: The pipeline, or the settings of one that this object opens and closes; None: the default settings.
        collection: Where to search and to store; None: the configured collection.
        tenant_id: Whose knowledge; None: the default tenant's.
        principal: Who asks, and stores: what they may not read does not exist for them; None: the owner of the store.

    Example:
        >>> from recollect import TemporalRAG
        >>> with TemporalRAG() as rag:  # doctest: +SKIP
        ...     rag.search("travel policy", as_of="2025-03-01")
        ...     rag.find_recent_discoveries("incidents", discovery_window="7d", event_age="3mo")
    """

    def __init__(
        self,
        pipeline: RAGPipeline | RAGConfig | None = None,
        *,
        collection: str | None = None,
        tenant_id: int | None = None,
        principal: Principal | None = None,
    ) -> None:
        super().__init__(pipeline)
        self._view = self.pipeline.view(collections=collection, tenant=tenant_id, principal=principal)

    def ingest(
        self,
        document: Document | str,
        *,
        event_time: Moment | None = None,
        event_end: Moment | None = None,
        ttl: Duration | None = None,
    ) -> IngestResult:
        """Store a document, as `View.ingest` does.

        Args:
            document: The document, or its text.
            event_time: When it happened, or began to; None: as the document says.
            event_end: When that ended, for what is no instant; None: as the document says.
            ttl: How long it is found; None: as the document says, or else as configured. Tags that preserve win.

        Raises:
            UsageError: A time or a duration is none, or the document holds no text.
        """
        given = Document(content=document) if isinstance(document, str) else document
        timed = replace(
            given,
            event_time=given.event_time if event_time is None else read_time(event_time, name="event_time"),
            event_end=given.event_end if event_end is None else read_time(event_end, name="event_end"),
            ttl=given.ttl if ttl is None else ttl,
        )
        return self._view.ingest(timed)

    def search(
        self,
        query: str,
        options: RetrievalOptions | None = None,
        *,
        as_of: Moment | None = None,
        **keywords: Unpack[SearchKeywords],
    ) -> SearchReply:
        """Find the passages that answer a query, by time.

        Args:
            query: In plain words.
            options: How to search otherwise; None: the configured defaults.
            as_of: Search what was known at this time, with the versions of then; None: now.
            **keywords: Options by name, which win over ``options``: ``event_window="30d"``, ``event_time_range`` or
                ``ingestion_time_range``, for instance.

        Raises:
            UsageError: The query, an option or a time is not valid.
            NotFoundError: There is no such collection.
        """
        return self._view.view(as_of=as_of).search(query, options, **keywords)

    def ask(
        self,
        question: str,
        options: RetrievalOptions | None = None,
        *,
        as_of: Moment | None = None,
        **keywords: Unpack[SearchKeywords],
    ) -> Answer:
        """Answer a question from what was known at a time, with citations, or refuse; the arguments are `search`'s."""
        return self._view.view(as_of=as_of).ask(question, options, **keywords)

    def find_recent_discoveries(
        self,
        topic: str,
        discovery_window: Duration = "7d",
        event_age: Duration = "90d",
        *,
        as_of: Moment | None = None,
        options: RetrievalOptions | None = None,
    ) -> list[RetrievedContext]:
        """What was learnt lately about things long past, best first.

        Args:
            topic: In plain words.
            discovery_window: The version found became known within this time before ``as_of``.
            event_age: What it tells happened, or began, at least this long before ``as_of``. Documents without an event
                time are not found.
            as_of: The moment that both count back from; None: now.
            options: How to search otherwise; None: the configured defaults.

        Raises:
            UsageError: The topic, a duration or a time is not valid, or the options confine the same times.
        """
        moment = datetime.now(UTC) if as_of is None else read_time(as_of, name="as_of")
        window = read_duration(discovery_window, name="discovery_window")
        age = read_duration(event_age, name="event_age")
        try:
            learnt, happened = (moment - window, None), (None, moment - age)
        except OverflowError as exc:
            raise UsageError(f"{moment} is too early: no calendar goes back so far.") from exc
        known = None if as_of is None else moment
        given = options or RetrievalOptions()
        if given.event_time_range is not None or given.ingestion_time_range is not None:
            raise UsageError("The discovery window and the events' age are the ranges: leave them out of the options.")
        reply = self.search(topic, given, as_of=known, event_time_range=happened, ingestion_time_range=learnt)
        return list(reply.results)

    def diff(
        self,
        question: str,
        from_time: Moment,
        to_time: Moment | None = None,
        *,
        options: RetrievalOptions | None = None,
    ) -> EvidenceDiff:
        """How the evidence for a question changed between two moments; see `Documents.diff_evidence`."""
        return self._view.documents.diff_evidence(question, from_time=from_time, to_time=to_time, options=options)

    def cleanup_expired(self) -> int:
        """Close every document of the tenant whose time is over; returns how many."""
        return self._view.maintenance.close_expired()


def known_span(view: View) -> tuple[datetime, datetime] | None:
    """When what a view's principal may read in its collections first became known, and when it last changed.

    Returns:
        Both moments; None where there is nothing.
    """
    at = view.standpoint
    scope = replace(at.scope, as_of=None)
    places = at.store.collections.list_all(scope)
    seen = [one.collection_id for one in places if EVERY_COLLECTION in at.names or one.name in at.names]
    return at.store.history.span(scope, seen) if seen else None
