"""Views for asyncio programs: the same methods, each of which runs in a thread and is awaited."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, assert_type, cast

from recollect.errors import UsageError
from recollect.operations.awaited import (
    AsyncAuditOperations,
    AsyncCollectionOperations,
    AsyncFactOperations,
    AsyncFeedbackOperations,
    AsyncJobOperations,
    AsyncKeyOperations,
    AsyncLoginOperations,
    AsyncMaintenanceOperations,
    AsyncRequestOperations,
    AsyncSourceOperations,
    AsyncTenantOperations,
)
from recollect.operations.declaring import bind
from recollect.pipeline.audit import Audit
from recollect.pipeline.collections import Collections
from recollect.pipeline.contents import Contents
from recollect.pipeline.documents import Documents
from recollect.pipeline.feedback import Feedback
from recollect.pipeline.files import Files
from recollect.pipeline.grants import Grants
from recollect.pipeline.jobs import Jobs
from recollect.pipeline.keys import Keys
from recollect.pipeline.maintenance import Maintenance
from recollect.pipeline.memory import ConversationMemory, Facts
from recollect.pipeline.sessions import Sessions
from recollect.pipeline.sources import Sources
from recollect.pipeline.spaces import Spaces
from recollect.pipeline.tenants import Tenants
from recollect.pipeline.threads import Threads, streamed, threaded
from recollect.pipeline.view import RAGPipeline, View

if TYPE_CHECKING:
    from pathlib import Path

    from recollect.config import RAGConfig
    from recollect.ingest.report import IngestReport
    from recollect.model import Answer, IngestResult, RetrievalOptions, SearchReply
    from recollect.model.document_record import DocumentRecord
    from recollect.model.page import Page

P = ParamSpec("P")
R = TypeVar("R")


class _AsyncGroup:
    """The methods of a group, each in a thread.

    Args:
        inner: The group.
        threads: Where they run.
    """

    def __init__(self, inner: Any, threads: Threads) -> None:  # noqa: ANN401 - each class names its own
        self._inner = inner
        self._threads = threads

    def __init_subclass__(cls) -> None:
        bind(cls, lambda declared: threaded(attrgetter(declared.name)))


class AsyncAudit(_AsyncGroup, AsyncAuditOperations, AsyncRequestOperations):
    """`Audit`, awaited."""

    export = streamed(Audit.export)
    verify_accesses = threaded(Audit.verify_accesses)


class AsyncCollections(_AsyncGroup, AsyncCollectionOperations):
    """`Collections`, awaited."""

    ensure = threaded(Collections.ensure)
    update = threaded(Collections.update)
    note = threaded(Collections.note)
    notes = threaded(Collections.notes)
    import_file = threaded(Collections.import_file)
    export_lines = streamed(Collections.export_lines)
    share = threaded(Collections.share)
    unshare = threaded(Collections.unshare)
    shared = threaded(Collections.shared)


class AsyncContents(_AsyncGroup):
    """`Contents`, awaited."""

    outline = threaded(Contents.outline)
    read = threaded(Contents.read)
    chunks = threaded(Contents.chunks)
    original = threaded(Contents.original)
    grep = threaded(Contents.grep)
    each_chunk = streamed(Contents.each_chunk)
    download = streamed(Contents.download)
    list = threaded(Contents.list)


class AsyncConversationMemory(_AsyncGroup):
    """`ConversationMemory`, awaited. What makes contexts of it is used in `AsyncView.in_thread`."""

    assemble = threaded(ConversationMemory.assemble)
    get = threaded(ConversationMemory.get)
    turns = threaded(ConversationMemory.turns)
    delete = threaded(ConversationMemory.delete)
    forget = threaded(ConversationMemory.forget)
    latest = threaded(ConversationMemory.latest)
    rename = threaded(ConversationMemory.rename)
    overview = threaded(ConversationMemory.overview)
    each_turn = streamed(ConversationMemory.each_turn)
    list = threaded(ConversationMemory.list)


class AsyncDocuments(_AsyncGroup):
    """`Documents`, awaited."""

    get = threaded(Documents.get)
    resolve = threaded(Documents.resolve)
    filter_hints = threaded(Documents.filter_hints)
    history = threaded(Documents.history)
    diff = threaded(Documents.diff)
    diff_evidence = threaded(Documents.diff_evidence)
    restore = threaded(Documents.restore)
    duplicates = threaded(Documents.duplicates)
    list_duplicates = threaded(Documents.list_duplicates)
    reread = threaded(Documents.reread)
    update = threaded(Documents.update)
    set_ttl = threaded(Documents.set_ttl)
    delete = threaded(Documents.delete)
    erase = threaded(Documents.erase)
    each = streamed(Documents.each)
    list = threaded(Documents.list)


class AsyncFacts(_AsyncGroup, AsyncFactOperations):
    """`Facts`, awaited."""

    search = threaded(Facts.search)


class AsyncFeedback(_AsyncGroup, AsyncFeedbackOperations):
    """`Feedback`, awaited."""

    give = threaded(Feedback.give)
    weights = threaded(Feedback.weights)


class AsyncFiles(_AsyncGroup):
    """`Files`, awaited."""

    add = threaded(Files.add)
    get = threaded(Files.get)
    read = threaded(Files.read)
    attach = threaded(Files.attach)
    batch = threaded(Files.batch)
    documents = threaded(Files.documents)
    files_of = threaded(Files.files_of)
    unstored_counts = threaded(Files.unstored_counts)
    detach = threaded(Files.detach)
    delete = threaded(Files.delete)
    list = threaded(Files.list)


class AsyncGrants(_AsyncGroup):
    """`Grants`, awaited."""

    add = threaded(Grants.add)
    deny = threaded(Grants.deny)
    remove = threaded(Grants.remove)
    of_documents = threaded(Grants.of_documents)
    explain = threaded(Grants.explain)
    of_collection = threaded(Grants.of_collection)
    set_collection = threaded(Grants.set_collection)


class AsyncJobs(_AsyncGroup, AsyncJobOperations):
    """`Jobs`, awaited."""

    contextualise = threaded(Jobs.contextualise)
    reembed = threaded(Jobs.reembed)
    ingest = threaded(Jobs.ingest)
    upload = threaded(Jobs.upload)
    refresh = threaded(Jobs.refresh)
    rollback = threaded(Jobs.rollback)
    wait = threaded(Jobs.wait)
    events = streamed(Jobs.events)


class AsyncKeys(_AsyncGroup, AsyncKeyOperations):
    """`Keys`, awaited."""

    create = threaded(Keys.create)
    create_widget = threaded(Keys.create_widget)
    rotate = threaded(Keys.rotate)
    authenticate = threaded(Keys.authenticate)
    users = threaded(Keys.users)


class AsyncLogins(_AsyncGroup, AsyncLoginOperations):
    """`Logins`, awaited."""


class AsyncMaintenance(_AsyncGroup, AsyncMaintenanceOperations):
    """`Maintenance`, awaited."""

    check = threaded(Maintenance.check)
    estimate_contexts = threaded(Maintenance.estimate_contexts)
    write_contexts = threaded(Maintenance.write_contexts)
    verify = threaded(Maintenance.verify)
    scrub = threaded(Maintenance.scrub)
    close_expired = threaded(Maintenance.close_expired)


class AsyncSessions(_AsyncGroup):
    """`Sessions`, awaited."""

    create = threaded(Sessions.create)
    default_config = threaded(Sessions.default_config)
    documents = threaded(Sessions.documents)
    get = threaded(Sessions.get)
    renew = threaded(Sessions.renew)
    end = threaded(Sessions.end)
    end_expired = threaded(Sessions.end_expired)
    list = threaded(Sessions.list)


class AsyncSources(_AsyncGroup, AsyncSourceOperations):
    """`Sources`, awaited."""

    add = threaded(Sources.add)
    get = threaded(Sources.get)
    refresh = threaded(Sources.refresh)
    refresh_all = threaded(Sources.refresh_all)
    watch = streamed(Sources.watch)


class AsyncSpaces(_AsyncGroup):
    """`Spaces`, awaited."""

    reembed = threaded(Spaces.reembed)
    reembedded = threaded(Spaces.reembedded)
    rollback = threaded(Spaces.rollback)
    drop = threaded(Spaces.drop)
    status = threaded(Spaces.status)


class AsyncTenants(_AsyncGroup, AsyncTenantOperations):
    """`Tenants`, awaited."""

    create = threaded(Tenants.create)
    change = threaded(Tenants.change)
    suspend = threaded(Tenants.suspend)
    resume = threaded(Tenants.resume)
    set_quota = threaded(Tenants.set_quota)
    set_pii = threaded(Tenants.set_pii)
    export = threaded(Tenants.export)
    isolation = threaded(Tenants.isolation)


def _refining(
    function: Callable[Concatenate[View, P], View],
) -> Callable[Concatenate[AsyncView, P], AsyncView]:
    def view(self: AsyncView, /, *args: P.args, **kwargs: P.kwargs) -> AsyncView:
        """A view that differs from this one in what is named; see `View.view`. It asks the database nothing."""
        return AsyncView(function(self.view_of, *args, **kwargs), self._threads)

    return view


def _group(kind: Callable[[Any, Threads], R], of_view: object) -> R:
    """A group of the view, awaited: a property, which a type checker takes for what it gives."""
    inner = cast("property", of_view)

    def make(view: AsyncView) -> R:
        return kind(inner.__get__(view._inner), view._threads)

    make.__annotations__["return"] = cast("type", kind).__name__
    return cast("R", property(make, doc=inner.__doc__))


class AsyncView:
    """A `View` for asyncio programs: the same methods with the same arguments, awaited.

    Each runs in one of a bounded number of threads, with the context variables of whoever awaits it. Cancelled, a call
    that waits for a thread does not begin; one that runs is interrupted, its statement cancelled in the database, and
    the cancellation is raised when it has ended: nothing runs on and nothing stays locked. What had been stored stays
    stored, whole documents at a time.

    Args:
        view: The view.
        threads: Where its methods run.
    """

    def __init__(self, view: View, threads: Threads) -> None:
        self._inner = view
        self._threads = threads

    def __repr__(self) -> str:
        return f"Async{self._inner!r}"

    view = _refining(View.view)
    search = threaded(View.search)
    retrieve = threaded(View.retrieve)
    context = threaded(View.context)
    augment_context = threaded(View.augment_context)
    ask = threaded(View.ask)
    ask_stream = streamed(View.ask_stream)
    ask_events = streamed(View.ask_events)
    chat = threaded(View.chat)
    chat_events = streamed(View.chat_events)
    why_not = threaded(View.why_not)
    ingest = threaded(View.ingest)
    ingest_files = threaded(View.ingest_files)
    ingest_url = threaded(View.ingest_url)
    remember = threaded(View.remember)
    recall = threaded(View.recall)

    def default_options(self) -> RetrievalOptions:
        """The configured options of a search; not awaited."""
        return self._inner.default_options()

    async def in_thread(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run any function as the methods are run: a tool's ``execute``, or what needs several calls of the view.

        Args:
            function: What it calls of the view, or of another of the same pipeline, is interrupted as the methods are.
            *args: Its arguments.
            **kwargs: Those by name.
        """
        return await self._threads.run(function, *args, **kwargs)

    @property
    def view_of(self) -> View:
        """The view itself, whose methods block."""
        return self._inner

    audit = _group(AsyncAudit, View.audit)
    collections = _group(AsyncCollections, View.collections)
    contents = _group(AsyncContents, View.contents)
    documents = _group(AsyncDocuments, View.documents)
    facts = _group(AsyncFacts, View.facts)
    feedback = _group(AsyncFeedback, View.feedback)
    files = _group(AsyncFiles, View.files)
    grants = _group(AsyncGrants, View.grants)
    jobs = _group(AsyncJobs, View.jobs)
    keys = _group(AsyncKeys, View.keys)
    logins = _group(AsyncLogins, View.logins)
    maintenance = _group(AsyncMaintenance, View.maintenance)
    memory = _group(AsyncConversationMemory, View.memory)
    sources = _group(AsyncSources, View.sources)
    sessions = _group(AsyncSessions, View.sessions)
    spaces = _group(AsyncSpaces, View.spaces)
    tenants = _group(AsyncTenants, View.tenants)


class AsyncRAGPipeline(AsyncView):
    """A `RAGPipeline` for asyncio programs: an asynchronous context manager, and the view of the defaults.

    Args:
        pipeline: The pipeline, which its owner closes, or the settings of one that this object opens and closes; None:
            the default settings.
        max_threads: How many calls run at a time, the others waiting for their turn; None: as many as there may be
            connections to the store (``[rag.storage] max_connections``).

    Raises:
        UsageError: ``max_threads`` is less than 1.

    Example:
        >>> from recollect import AsyncRAGPipeline
        >>> async def main():
        ...     async with AsyncRAGPipeline() as rag:
        ...         await rag.ingest("Annual leave is 30 days.")
        ...         async for piece in rag.ask_stream("How long is annual leave?"):
        ...             print(piece)
    """

    def __init__(self, pipeline: RAGPipeline | RAGConfig | None = None, *, max_threads: int | None = None) -> None:
        if max_threads is not None and max_threads < 1:
            raise UsageError(f"max_threads must be at least 1, not {max_threads}.")
        self._owns = not isinstance(pipeline, RAGPipeline)
        self.pipeline = pipeline if isinstance(pipeline, RAGPipeline) else RAGPipeline(pipeline)
        super().__init__(self.pipeline, Threads(max_threads or self.pipeline.config.storage.max_connections))

    async def __aenter__(self) -> AsyncRAGPipeline:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Wait for the calls that run, and close the pipeline where this object opened it.

        The next call opens it again.
        """
        await self._threads.close(self.pipeline.close if self._owns else None)


if TYPE_CHECKING:

    async def _types(view: AsyncView) -> None:
        # What the type checker knows of the awaited methods is held by the type checker.
        assert_type(view.view(as_of="7d"), AsyncView)
        assert_type(await view.search("leave"), SearchReply)
        assert_type(await view.documents.list(limit=5), Page[DocumentRecord])
        assert_type(await view.ingest("A text.", force=True), IngestResult)
        assert_type(await view.ingest([Path("docs")], sync=True), IngestReport)
        async for piece in view.ask_stream("leave"):
            assert_type(piece, str | Answer)
        await view.search(5)  # type: ignore[arg-type]
        await view.documents.list(limit="5")  # type: ignore[arg-type]
