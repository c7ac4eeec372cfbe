"""`MultiTenantRAG`, `SessionRAG` and `TemporalRAG`: shells over a pipeline and its views."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, Unpack

from recollect.config import RAGConfig
from recollect.errors import ConfigurationError, UsageError
from recollect.model import (
    Answer,
    Document,
    IngestResult,
    Principal,
    RetrievalOptions,
    RetrievedContext,
    Scope,
    SearchReply,
)
from recollect.model.arguments import checked
from recollect.model.document_session import DocumentSession, SessionConfig
from recollect.model.scope import Guest, Target
from recollect.model.search_options import SearchKeywords, refined
from recollect.model.time import Duration, Moment, read_duration, read_time
from recollect.pipeline.standpoint import EVERY_COLLECTION, Standpoint
from recollect.pipeline.view import RAGPipeline, View

if TYPE_CHECKING:
    from recollect.ingest.report import IngestReport, ProgressCallback
    from recollect.model.document_record import DocumentRecord
    from recollect.model.history import EvidenceDiff
    from recollect.model.page import Page
    from recollect.model.tenant import Tenant, TenantIdentity, TenantQuota


# What the objects for one way of working have in common: a pipeline of somebody else's, or one of their own.


class OwnedPipeline:
    """A context manager over a pipeline.

    Args:
        pipeline: The pipeline, which its owner closes, or the settings of one that this object opens and closes; None:
            the default settings.
    """

    def __init__(self, pipeline: RAGPipeline | RAGConfig | None) -> None:
        self._owns = not isinstance(pipeline, RAGPipeline)
        self.pipeline = pipeline if isinstance(pipeline, RAGPipeline) else RAGPipeline(pipeline)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the pipeline, where this object opened it."""
        if self._owns:
            self.pipeline.close()


#: The group that a tenant is of, to the permissions of another tenant's documents.
READER_GROUP = "tenant:{}"


@checked
class MultiTenantRAG(OwnedPipeline):
    """A `RAGPipeline` for many tenants. A context manager, safe to share between threads.

    However it is configured, no statement sees the rows of two tenants. ``[rag.multi_tenant]`` decides the rest: with
    ``isolation_level = "strict"`` (the default) it works only where the database itself keeps tenants apart, and a
    tenant finds nothing but its own; with ``"shared"`` it also finds what other tenants share with it
    (`Collections.share`).

    Args:
        config: The settings, or the pipeline to work with, which its owner closes; None: the default settings.

    Example:
        >>> from recollect import Document, MultiTenantRAG
        >>> with MultiTenantRAG() as rag:  # doctest: +SKIP
        ...     rag.create_tenant("acme")
        ...     rag.ingest("acme", Document(content="Annual leave is 30 days.", source="leave.txt"))
        ...     rag.search("acme", "How long is annual leave?").results
    """

    def __init__(self, config: RAGConfig | RAGPipeline | None = None) -> None:
        super().__init__(config)
        self._settings = self.pipeline.config.multi_tenant
        self._guarded = self._settings.isolation_level == "shared"

    def create_tenant(self, name: str, *, quota: TenantQuota | None = None) -> Tenant:
        """Make a tenant; see `Tenants.create`, and the other methods there."""
        return self.pipeline.tenants.create(name, quota=quota)

    def ingest(
        self,
        tenant_id: int | str,
        document: Document | str,
        *,
        collection: str | None = None,
        force: bool = False,
        principal: Principal | None = None,
    ) -> IngestResult:
        """Store a document of a tenant, as `View.ingest` does.

        Args:
            tenant_id: By number or name.
            document: The document, or its text.
            collection: Another one than the tenant's own, made where it is missing; None: its own.
            force: Store it anew even if it is unchanged.
            principal: Who of the tenant stores it; None: the tenant itself.

        Raises:
            NotFoundError: There is no such tenant.
            TenantSuspendedError: It is suspended.
            QuotaExceededError: It would have more than it may.
            ConfigurationError: Isolation is strict, and the database does not keep tenants apart.
        """
        return self._view(self._tenant(tenant_id), collection, principal).ingest(document, force=force)

    def search(
        self,
        tenant_id: int | str,
        query: str,
        options: RetrievalOptions | None = None,
        *,
        collection: str | None = None,
        principal: Principal | None = None,
        **keywords: Unpack[SearchKeywords],
    ) -> SearchReply:
        """Find the passages that answer a query in a tenant's knowledge; the rest is as in `ingest` and `View.search`.

        Without a ``collection`` they are of the tenant's own, which is empty rather than missing, and with the
        isolation level ``shared`` of those that other tenants share with it: then each passage names its collection,
        another tenant's as ``tenant/collection``.
        """
        tenant = self._tenant(tenant_id)
        view = self._view(tenant, collection, principal)
        if collection is not None:
            return view.search(query, options, **keywords)
        own, shared = view.standpoint.collection, tuple(_shared_with(view.standpoint, tenant))
        target = Target(collections=(own,), optional=frozenset({own}), shared=shared)
        searcher = view.standpoint.assembly.searcher
        return searcher.search(view.scope, query, refined(RetrievalOptions, options, keywords), target)

    def ask(
        self,
        tenant_id: int | str,
        question: str,
        options: RetrievalOptions | None = None,
        *,
        collection: str | None = None,
        principal: Principal | None = None,
        **keywords: Unpack[SearchKeywords],
    ) -> Answer:
        """Answer a question from a tenant's own collection, cited, or show passages; see `search` and `View.ask`."""
        return self._view(self._tenant(tenant_id), collection, principal).ask(question, options, **keywords)

    def collection_of(self, tenant_id: int | str) -> str:
        """The name of a tenant's own collection, by ``collection_prefix`` and ``per_tenant_collections``.

        Raises:
            NotFoundError: There is no such tenant.
        """
        return self._own(self._tenant(tenant_id))

    def _tenant(self, tenant_id: int | str) -> TenantIdentity:
        if not self._guarded:
            isolation = self.pipeline.tenants.isolation()
            if not isolation.in_force:
                raise ConfigurationError(
                    f"Tenants are to be kept apart strictly, but row-level security does not bind the database role "
                    f"{isolation.role!r}. Let the program work as a role that owns nothing (docs/how-to/tenants.md has "
                    'the grants), or set isolation_level = "shared" in [rag.multi_tenant].'
                )
            self._guarded = True
        return self.pipeline.store.tenants.identity(tenant_id)

    def _own(self, tenant: TenantIdentity) -> str:
        if not self._settings.per_tenant_collections:
            return self.pipeline.config.collection
        return f"{self._settings.collection_prefix}{tenant.name}"

    def _view(self, tenant: TenantIdentity, collection: str | None, principal: Principal | None) -> View:
        name = self._own(tenant) if collection is None else collection
        return self.pipeline.view(tenant=tenant.tenant_id, collections=name, principal=principal)


def _shared_with(at: Standpoint, tenant: TenantIdentity) -> Iterator[Guest]:
    """The collections that other tenants let this one read, as far as they are granted to it."""
    if at.config.multi_tenant.isolation_level != "shared":
        return
    reader = Principal(groups=(READER_GROUP.format(tenant.name),))
    for one in at.store.shares.shared_with(at.scope):
        if one.active:
            scope = Scope(tenant_id=one.tenant_id, principal=reader)
            yield Guest(scope=scope, collection=one.collection, label=f"{one.tenant_name}/{one.collection}")


# Sessions with documents of their own behind one object, each named by its id.


@checked
class SessionRAG(OwnedPipeline):
    """Sessions with documents of their own, beside the collections of a `RAGPipeline`. Safe to share between threads.

    What `View.sessions` does, and the view of each session. What is put into a session is found in that session alone,
    and is gone with it.

    Args:
        pipeline: The pipeline, or the settings of one that this object opens and closes; None: the default settings.
        tenant_id: Whose sessions; None: the default tenant's.
        principal: Who begins and reads them, where permissions are enforced: they alone see what they have begun.
            None: an unrestricted caller, such as a server that keeps the ids of its users' sessions apart itself.

    Example:
        >>> from recollect import SessionConfig, SessionRAG
        >>> with SessionRAG() as rag:  # doctest: +SKIP
        ...     rag.create_session("upload-17", SessionConfig(ttl="2h", max_documents=20))
        ...     rag.ingest_to_session("upload-17", "The offer is valid until Friday.")
        ...     rag.search_session("upload-17", "How long is the offer valid?")
        ...     rag.end_session("upload-17")
    """

    def __init__(
        self,
        pipeline: RAGPipeline | RAGConfig | None = None,
        *,
        tenant_id: int | None = None,
        principal: Principal | None = None,
    ) -> None:
        super().__init__(pipeline)
        self._view = self.pipeline.view(tenant=tenant_id, principal=principal)

    def create_session(self, session_id: str, config: SessionConfig | None = None) -> DocumentSession:
        """Begin a session; see `Sessions.create`."""
        return self._view.sessions.create(session_id, config)

    def default_config(self) -> SessionConfig:
        """The configured life of a session (``[rag.session]``)."""
        return self._view.sessions.default_config()

    def get_session(self, session_id: str) -> DocumentSession:
        """A session, expired or not; see `Sessions.get`."""
        return self._view.sessions.get(session_id)

    def list_sessions(self, *, limit: int = 100, offset: int = 0) -> list[DocumentSession]:
        """Sessions, those first that expire first; see `Sessions.list`."""
        return self._view.sessions.list(limit=limit, offset=offset)

    def renew_session(self, session_id: str) -> DocumentSession:
        """Begin the time of a session anew; see `Sessions.renew`."""
        return self._view.sessions.renew(session_id)

    def end_session(self, session_id: str) -> int:
        """Remove a session with all its documents, and say how many those were; see `Sessions.end`."""
        return self._view.sessions.end(session_id)

    def cleanup_expired(self) -> int:
        """Remove every session of the tenant whose time is over, with its documents; returns how many."""
        return self._view.sessions.end_expired()

    def ingest_to_session(self, session_id: str, document: Document | str, *, force: bool = False) -> IngestResult:
        """Store a document that only this session finds; see `View.ingest`."""
        return self.session(session_id).ingest(document, force=force)

    def ingest_many_to_session(
        self, session_id: str, documents: Iterable[Document | str], *, force: bool = False
    ) -> list[IngestResult]:
        """Store documents in batches that are transactions; where there is no room, those before stay stored."""
        return self.session(session_id).ingest(documents, force=force)

    def ingest_paths_to_session(
        self,
        session_id: str,
        paths: Sequence[Path | str],
        *,
        force: bool = False,
        follow_links: bool | None = None,
        tags: Sequence[str] = (),
        on_progress: ProgressCallback | None = None,
    ) -> IngestReport:
        """Store files and folders that only this session finds; see `View.ingest`."""
        return self.session(session_id).ingest_files(
            paths, force=force, follow_links=follow_links, tags=tags, on_progress=on_progress
        )

    def session_documents(
        self, session_id: str, *, cursor: str | None = None, limit: int = 100
    ) -> Page[DocumentRecord]:
        """The documents of a session by id, without their contents; see `Documents.list`."""
        return self.session(session_id).documents.list(cursor=cursor, limit=limit)

    def search_session(
        self,
        session_id: str,
        query: str,
        options: RetrievalOptions | None = None,
        *,
        collections: Sequence[str] | str = (),
        as_of: Moment | None = None,
        **keywords: Unpack[SearchKeywords],
    ) -> SearchReply:
        """Find the passages that answer a query, of a session's documents or of ``collections`` too; see `View.search`.

        The reply's ``collection`` is ``session:`` and the id, then the collections; where there are any, each passage
        names its own. Replies are not kept for equal searches.
        """
        return self.session(session_id, collections=collections).view(as_of=as_of).search(query, options, **keywords)

    def ask_session(
        self,
        session_id: str,
        question: str,
        options: RetrievalOptions | None = None,
        *,
        collections: Sequence[str] | str = (),
        as_of: Moment | None = None,
        **keywords: Unpack[SearchKeywords],
    ) -> Answer:
        """Answer a question from what `search_session` finds, cited, or show passages; see `View.ask`."""
        return self.session(session_id, collections=collections).view(as_of=as_of).ask(question, options, **keywords)

    def session(self, session_id: str, *, collections: Sequence[str] | str = ()) -> View:
        """The view of one session, alone or with collections."""
        return self._view.view(session=session_id, collections=collections or None)


# Searches and answers by time: what was known when, of events of when.


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
        """Answer a question from what was known at a time, cited, or show passages; the arguments are `search`'s."""
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
