"""The groups of methods of a client that awaits, each method one line: what it asks stands in `calls`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from recollect.client.calls.base import Calls, asked
from recollect.client.calls.collections import CollectionCalls, ModelCalls, SpaceCalls
from recollect.client.calls.conversations import ConfiguredSessionCalls, FactCalls, FeedbackCalls, MemoryCalls
from recollect.client.calls.documents import ContentCalls, DocumentCalls, VersionCalls
from recollect.client.calls.ingesting import UploadCalls
from recollect.client.calls.jobs import SourceCalls
from recollect.client.calls.people import AuditCalls, GrantCalls, KeyCalls, TenantCalls
from recollect.client.methods import awaited, downloaded_awaited, followed_awaited, group, lined_awaited, paged_awaited
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

if TYPE_CHECKING:
    from recollect.client.async_connection import AsyncConnection


class _Group:
    """Methods on one subject.

    Args:
        calls: What they ask.
        connection: The way to the server.
    """

    def __init__(self, calls: Any, connection: AsyncConnection) -> None:  # noqa: ANN401 - each class names its own
        self._calls = calls
        self._connection = connection

    def __init_subclass__(cls) -> None:
        bind(cls, lambda declared: awaited(asked(declared)))


class AsyncAudit(_Group, AsyncAuditOperations, AsyncRequestOperations):
    """What was done, by whom and when. Awaited."""

    export = lined_awaited(AuditCalls.export)


class AsyncCollections(_Group, AsyncCollectionOperations):
    """Collections: made, listed, described and removed. Awaited."""

    ensure = awaited(CollectionCalls.ensure)
    update = awaited(CollectionCalls.update)
    import_file = awaited(CollectionCalls.import_file)
    export_lines = lined_awaited(CollectionCalls.export_lines)


class AsyncDocuments(_Group):
    """Documents, their versions, and what becomes of them. Awaited."""

    get = awaited(DocumentCalls.get)
    resolve = awaited(DocumentCalls.resolve)
    duplicates = awaited(DocumentCalls.duplicates)
    filter_hints = awaited(DocumentCalls.filter_hints)
    history = awaited(DocumentCalls.history)
    diff = awaited(DocumentCalls.diff)
    diff_evidence = awaited(DocumentCalls.diff_evidence)
    restore = awaited(VersionCalls.restore)
    set_ttl = awaited(VersionCalls.set_ttl)
    list_duplicates = awaited(VersionCalls.list_duplicates)
    reread = awaited(DocumentCalls.reread)
    update = awaited(DocumentCalls.update)
    delete = awaited(DocumentCalls.delete)
    erase = awaited(DocumentCalls.erase)
    each = paged_awaited(DocumentCalls.each)
    list = awaited(DocumentCalls.list)


class AsyncFacts(_Group, AsyncFactOperations):
    """Facts drawn from conversations. Awaited."""

    search = awaited(FactCalls.search)


class AsyncFeedback(_Group, AsyncFeedbackOperations):
    """Whether what contexts showed has helped. Awaited."""

    give = awaited(FeedbackCalls.give)
    weights = awaited(FeedbackCalls.weights)


class AsyncGrants(_Group):
    """Who may read what. Awaited."""

    add = awaited(GrantCalls.add)
    deny = awaited(GrantCalls.deny)
    remove = awaited(GrantCalls.remove)
    of_documents = awaited(GrantCalls.of_documents)
    of_collection = awaited(GrantCalls.of_collection)
    set_collection = awaited(GrantCalls.set_collection)


class AsyncJobs(_Group, AsyncJobOperations):
    """Work in the background: looked at, waited for, stopped and tried again. Awaited."""

    upload = awaited(UploadCalls.upload)
    ingest = awaited(UploadCalls.ingest)
    refresh = awaited(UploadCalls.refresh)
    reembed = awaited(ModelCalls.reembed)
    rollback = awaited(ModelCalls.rollback)
    contextualise = awaited(ModelCalls.contextualise)
    wait = awaited(UploadCalls.wait)
    events = followed_awaited(UploadCalls.events)


class AsyncKeys(_Group, AsyncKeyOperations):
    """What programs present to a server. Awaited."""

    create = awaited(KeyCalls.create)
    create_widget = awaited(KeyCalls.create_widget)
    rotate = awaited(KeyCalls.rotate)


class AsyncLogins(_Group, AsyncLoginOperations):
    """Browsers that are logged in. Awaited."""


class AsyncMaintenance(_Group, AsyncMaintenanceOperations):
    """The store as a whole: what it holds, and how searches fare. Awaited."""

    estimate_contexts = awaited(ModelCalls.estimate_contexts)


class AsyncConversationMemory(_Group):
    """Conversations. Awaited."""

    get = awaited(MemoryCalls.get)
    turns = awaited(MemoryCalls.turns)
    delete = awaited(MemoryCalls.delete)
    forget = awaited(MemoryCalls.forget)
    rename = awaited(MemoryCalls.rename)
    assemble = awaited(MemoryCalls.assemble)
    each_turn = paged_awaited(MemoryCalls.each_turn)
    list = awaited(MemoryCalls.list)


class AsyncSessions(_Group):
    """Sessions with documents of their own. Awaited."""

    create = awaited(ConfiguredSessionCalls.create)
    default_config = awaited(ConfiguredSessionCalls.default_config)
    get = awaited(ConfiguredSessionCalls.get)
    documents = awaited(ConfiguredSessionCalls.documents)
    renew = awaited(ConfiguredSessionCalls.renew)
    end = awaited(ConfiguredSessionCalls.end)
    list = awaited(ConfiguredSessionCalls.list)


class AsyncSources(_Group, AsyncSourceOperations):
    """Where documents come from."""

    add = awaited(SourceCalls.add)
    get = awaited(SourceCalls.get)
    refresh = awaited(SourceCalls.refresh)


class AsyncSpaces(_Group):
    """The vectors of a collection, by the models that made them. Awaited."""

    status = awaited(SpaceCalls.status)
    drop = awaited(SpaceCalls.drop)


class AsyncTenants(_Group, AsyncTenantOperations):
    """The tenants of the store. Awaited."""

    create = awaited(TenantCalls.create)
    suspend = awaited(TenantCalls.suspend)
    resume = awaited(TenantCalls.resume)
    set_quota = awaited(TenantCalls.set_quota)
    set_pii = awaited(TenantCalls.set_pii)


class AsyncContents(_Group):
    """What documents say: outlined, read in parts, cut into chunks, and as they came. Awaited."""

    grep = awaited(ContentCalls.grep)
    outline = awaited(ContentCalls.outline)
    read = awaited(ContentCalls.read)
    chunks = awaited(ContentCalls.chunks)
    each_chunk = paged_awaited(ContentCalls.each_chunk)
    download = downloaded_awaited(ContentCalls.original)
    list = awaited(ContentCalls.list)


class Groups:
    """The groups of a client."""

    audit = group(AsyncAudit, AuditCalls)
    collections = group(AsyncCollections, CollectionCalls)
    contents = group(AsyncContents, ContentCalls)
    documents = group(AsyncDocuments, DocumentCalls)
    facts = group(AsyncFacts, FactCalls)
    feedback = group(AsyncFeedback, FeedbackCalls)
    grants = group(AsyncGrants, GrantCalls)
    jobs = group(AsyncJobs, UploadCalls)
    keys = group(AsyncKeys, KeyCalls)
    logins = group(AsyncLogins, Calls)
    maintenance = group(AsyncMaintenance, Calls)
    memory = group(AsyncConversationMemory, MemoryCalls)
    sessions = group(AsyncSessions, ConfiguredSessionCalls)
    sources = group(AsyncSources, SourceCalls)
    spaces = group(AsyncSpaces, SpaceCalls)
    tenants = group(AsyncTenants, TenantCalls)
