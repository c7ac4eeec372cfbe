"""The groups of methods of a client that waits, each method one line: what it asks stands in `calls`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from recollect.client.calls.base import Calls, asked
from recollect.client.calls.collections import CollectionCalls, ModelCalls, SpaceCalls
from recollect.client.calls.conversations import ConfiguredSessionCalls, FactCalls, FeedbackCalls, MemoryCalls
from recollect.client.calls.documents import ContentCalls, DocumentCalls, VersionCalls
from recollect.client.calls.ingesting import UploadCalls
from recollect.client.calls.jobs import SourceCalls
from recollect.client.calls.people import AuditCalls, GrantCalls, KeyCalls, TenantCalls
from recollect.client.methods import downloaded, followed, group, lined, paged, sent
from recollect.client.streams import original_of
from recollect.operations.collections import CollectionOperations, SourceOperations
from recollect.operations.conversations import FactOperations, FeedbackOperations
from recollect.operations.declaring import bind
from recollect.operations.jobs import JobOperations, MaintenanceOperations
from recollect.operations.people import (
    AuditOperations,
    KeyOperations,
    LoginOperations,
    RequestOperations,
    TenantOperations,
)

if TYPE_CHECKING:
    from recollect.client.connection import Connection
    from recollect.model.original import Original


class _Group:
    """Methods on one subject.

    Args:
        calls: What they ask.
        connection: The way to the server.
    """

    def __init__(self, calls: Any, connection: Connection) -> None:  # noqa: ANN401 - each class names its own
        self._calls = calls
        self._connection = connection

    def __init_subclass__(cls) -> None:
        bind(cls, lambda declared: sent(asked(declared)))


class Audit(_Group, AuditOperations, RequestOperations):
    """What was done, by whom and when."""

    export = lined(AuditCalls.export)


class Collections(_Group, CollectionOperations):
    """Collections: made, listed, described and removed."""

    ensure = sent(CollectionCalls.ensure)
    update = sent(CollectionCalls.update)
    import_file = sent(CollectionCalls.import_file)
    export_lines = lined(CollectionCalls.export_lines)


class Documents(_Group):
    """Documents, their versions, and what becomes of them."""

    get = sent(DocumentCalls.get)
    resolve = sent(DocumentCalls.resolve)
    duplicates = sent(DocumentCalls.duplicates)
    filter_hints = sent(DocumentCalls.filter_hints)
    history = sent(DocumentCalls.history)
    diff = sent(DocumentCalls.diff)
    diff_evidence = sent(DocumentCalls.diff_evidence)
    restore = sent(VersionCalls.restore)
    set_ttl = sent(VersionCalls.set_ttl)
    list_duplicates = sent(VersionCalls.list_duplicates)
    reread = sent(DocumentCalls.reread)
    update = sent(DocumentCalls.update)
    delete = sent(DocumentCalls.delete)
    erase = sent(DocumentCalls.erase)
    each = paged(DocumentCalls.each)
    list = sent(DocumentCalls.list)


class Facts(_Group, FactOperations):
    """Facts drawn from conversations."""

    search = sent(FactCalls.search)


class Feedback(_Group, FeedbackOperations):
    """Whether what contexts showed has helped."""

    give = sent(FeedbackCalls.give)
    weights = sent(FeedbackCalls.weights)


class Grants(_Group):
    """Who may read what."""

    add = sent(GrantCalls.add)
    deny = sent(GrantCalls.deny)
    remove = sent(GrantCalls.remove)
    of_documents = sent(GrantCalls.of_documents)
    of_collection = sent(GrantCalls.of_collection)
    set_collection = sent(GrantCalls.set_collection)


class Jobs(_Group, JobOperations):
    """Work in the background: looked at, waited for, stopped and tried again."""

    upload = sent(UploadCalls.upload)
    ingest = sent(UploadCalls.ingest)
    refresh = sent(UploadCalls.refresh)
    reembed = sent(ModelCalls.reembed)
    rollback = sent(ModelCalls.rollback)
    contextualise = sent(ModelCalls.contextualise)
    wait = sent(UploadCalls.wait)
    events = followed(UploadCalls.events)


class Keys(_Group, KeyOperations):
    """What programs present to a server."""

    create = sent(KeyCalls.create)
    create_widget = sent(KeyCalls.create_widget)
    rotate = sent(KeyCalls.rotate)


class Logins(_Group, LoginOperations):
    """Browsers that are logged in."""


class Maintenance(_Group, MaintenanceOperations):
    """The store as a whole: what it holds, and how searches fare."""

    estimate_contexts = sent(ModelCalls.estimate_contexts)


class ConversationMemory(_Group):
    """Conversations."""

    get = sent(MemoryCalls.get)
    turns = sent(MemoryCalls.turns)
    delete = sent(MemoryCalls.delete)
    forget = sent(MemoryCalls.forget)
    rename = sent(MemoryCalls.rename)
    assemble = sent(MemoryCalls.assemble)
    each_turn = paged(MemoryCalls.each_turn)
    list = sent(MemoryCalls.list)


class Sessions(_Group):
    """Sessions with documents of their own."""

    create = sent(ConfiguredSessionCalls.create)
    default_config = sent(ConfiguredSessionCalls.default_config)
    get = sent(ConfiguredSessionCalls.get)
    documents = sent(ConfiguredSessionCalls.documents)
    renew = sent(ConfiguredSessionCalls.renew)
    end = sent(ConfiguredSessionCalls.end)
    list = sent(ConfiguredSessionCalls.list)


class Sources(_Group, SourceOperations):
    """Where documents come from."""

    add = sent(SourceCalls.add)
    get = sent(SourceCalls.get)
    refresh = sent(SourceCalls.refresh)


class Spaces(_Group):
    """The vectors of a collection, by the models that made them."""

    status = sent(SpaceCalls.status)
    drop = sent(SpaceCalls.drop)


class Tenants(_Group, TenantOperations):
    """The tenants of the store."""

    create = sent(TenantCalls.create)
    suspend = sent(TenantCalls.suspend)
    resume = sent(TenantCalls.resume)
    set_quota = sent(TenantCalls.set_quota)
    set_pii = sent(TenantCalls.set_pii)


class Contents(_Group):
    """What documents say: outlined, read in parts, cut into chunks, and as they came."""

    grep = sent(ContentCalls.grep)
    outline = sent(ContentCalls.outline)
    read = sent(ContentCalls.read)
    chunks = sent(ContentCalls.chunks)
    each_chunk = paged(ContentCalls.each_chunk)
    download = downloaded(ContentCalls.original)
    list = sent(ContentCalls.list)

    def original(self, document_id: int) -> Original:
        """The file that a document was read from; its bytes are fetched when they are read.

        Raises:
            NotFoundError: There is none, or it was not kept.
        """
        call = self._calls.original(document_id)
        return original_of(self._connection.head(call), lambda: self._connection.download(call))


class Groups:
    """The groups of a client."""

    audit = group(Audit, AuditCalls)
    collections = group(Collections, CollectionCalls)
    contents = group(Contents, ContentCalls)
    documents = group(Documents, DocumentCalls)
    facts = group(Facts, FactCalls)
    feedback = group(Feedback, FeedbackCalls)
    grants = group(Grants, GrantCalls)
    jobs = group(Jobs, UploadCalls)
    keys = group(Keys, KeyCalls)
    logins = group(Logins, Calls)
    maintenance = group(Maintenance, Calls)
    memory = group(ConversationMemory, MemoryCalls)
    sessions = group(Sessions, ConfiguredSessionCalls)
    sources = group(Sources, SourceCalls)
    spaces = group(Spaces, SpaceCalls)
    tenants = group(Tenants, TenantCalls)
