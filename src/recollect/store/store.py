"""One open store: its server, its connections, and everything that reads and writes them."""

from __future__ import annotations

from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.errors import ConfigurationError
from recollect.forking import computes_properties
from recollect.model.document import ExpiryPolicy
from recollect.model.principal import DefaultPermissions
from recollect.store.catalogue import require_isolation
from recollect.store.connections import application_dsn as application_login_of
from recollect.store.database import Database
from recollect.store.dense_index import INDEX_THRESHOLD_CHUNKS, DenseIndexer
from recollect.store.embedded import EmbeddedServer
from recollect.store.migrate import migrate
from recollect.store.tuning import this_machine

if TYPE_CHECKING:
    from recollect.store.access import AccessRepository
    from recollect.store.access_log import AccessLogRepository
    from recollect.store.activity import ActivityRepository, SearchHealthRepository
    from recollect.store.admission import IdempotencyRepository, LimitRepository
    from recollect.store.changes import ChangeRepository
    from recollect.store.closing import AttachmentRepository, ExpiryRepository
    from recollect.store.collections import CollectionNoteRepository, CollectionRepository
    from recollect.store.contents import ContentRepository
    from recollect.store.document_sessions import DocumentSessionRepository
    from recollect.store.documents import DocumentRepository
    from recollect.store.erasure import ErasureRepository, QuoteRepository
    from recollect.store.export import ExportRepository
    from recollect.store.facts import FactRepository
    from recollect.store.files import FileRepository, UploadRepository
    from recollect.store.history import HistoryIndexer, HistoryRepository
    from recollect.store.job_queue import UpkeepRepository
    from recollect.store.jobs import JobRepository
    from recollect.store.keys import KeyRepository
    from recollect.store.listing import DuplicateRepository, ListingRepository
    from recollect.store.logins import LoginRepository
    from recollect.store.logs import AuditRepository, RequestLogRepository
    from recollect.store.memory import (
        ConversationRepository,
        FeedbackRepository,
        ForgettingRepository,
        MemoryRepository,
    )
    from recollect.store.past import PastRepository, StalenessRepository
    from recollect.store.recall import RecallRepository
    from recollect.store.replica import Replica
    from recollect.store.resident import ResidentRepository
    from recollect.store.saved_cases import SavedCaseRepository
    from recollect.store.scrub import Scrubber
    from recollect.store.search import (
        AcronymRepository,
        ReadableTermRepository,
        SearchRepository,
        TokenVectorRepository,
    )
    from recollect.store.sources import SourceItemRepository, SourceRepository
    from recollect.store.spaces import SpaceRepository
    from recollect.store.status import StatusRepository
    from recollect.store.tenants import ShareRepository, TenantDirectory
    from recollect.store.why_not import StandingRepository
    from recollect.store.writer import DocumentWriter

_CARETAKERS = 4


def _made_on_use(module: str, kind: str) -> Any:  # noqa: ANN401 - the annotation beside it says which
    """A repository whose module is imported when somebody uses it: a query from a cold process needs few of them."""

    def make(store: Store) -> Any:  # noqa: ANN401 - see above
        return getattr(import_module(f"recollect.store.{module}"), kind)(store.database)

    return cached_property(make)


@computes_properties
class Store:
    """Opens the embedded server, or a given database, brings its schema up to date, and holds the repositories.

    Args:
        data_dir: Where the embedded server keeps its data; unused with ``dsn``.
        dsn: A libpq connection string of another server, for the schema's owner; None: the embedded one.
        application_dsn: The same for a role that owns nothing, which all but maintenance is done as; None: the owner,
            who changes to the application's role where it may.
        read_dsn: Of a streaming replica of ``dsn``, which searches and texts are read from while it has what they must
            see; None: there is none.
        max_connections: Connections that this process opens at most, and as many to a replica.
        index_threshold: Chunks from which on a collection's vectors get an approximate index.
        expiry: When documents expire that are stored; None: when they say so themselves.
        default_permissions: Who may read documents that are given no permissions; None: whoever the collection names.

    Raises:
        StoreUnavailableError: The server cannot be started or reached.
        SchemaVersionError: The store was written by a newer recollect, or by one from before the first release.
        IsolationError: It has several tenants, and the database does not keep them apart.
        ConfigurationError: ``read_dsn`` names no replica of ``dsn``, or is given without it.
    """

    collections: CollectionRepository = _made_on_use("collections", "CollectionRepository")
    tenants: TenantDirectory = _made_on_use("tenants", "TenantDirectory")
    shares: ShareRepository = _made_on_use("tenants", "ShareRepository")
    contents: ContentRepository = _made_on_use("contents", "ContentRepository")
    documents: DocumentRepository = _made_on_use("documents", "DocumentRepository")
    document_sessions: DocumentSessionRepository = _made_on_use("document_sessions", "DocumentSessionRepository")
    changes: ChangeRepository = _made_on_use("changes", "ChangeRepository")
    expiry: ExpiryRepository = _made_on_use("closing", "ExpiryRepository")
    audit: AuditRepository = _made_on_use("logs", "AuditRepository")
    uploads: UploadRepository = _made_on_use("files", "UploadRepository")
    files: FileRepository = _made_on_use("files", "FileRepository")
    collection_notes: CollectionNoteRepository = _made_on_use("collections", "CollectionNoteRepository")
    upkeep: UpkeepRepository = _made_on_use("job_queue", "UpkeepRepository")
    quotes: QuoteRepository = _made_on_use("erasure", "QuoteRepository")
    access: AccessRepository = _made_on_use("access", "AccessRepository")
    access_log: AccessLogRepository = _made_on_use("access_log", "AccessLogRepository")
    activity: ActivityRepository = _made_on_use("activity", "ActivityRepository")
    acronyms: AcronymRepository = _made_on_use("search", "AcronymRepository")
    token_vectors: TokenVectorRepository = _made_on_use("search", "TokenVectorRepository")
    spaces: SpaceRepository = _made_on_use("spaces", "SpaceRepository")
    search: SearchRepository = _made_on_use("search", "SearchRepository")
    readable_terms: ReadableTermRepository = _made_on_use("search", "ReadableTermRepository")
    search_health: SearchHealthRepository = _made_on_use("activity", "SearchHealthRepository")
    status: StatusRepository = _made_on_use("status", "StatusRepository")
    standings: StandingRepository = _made_on_use("why_not", "StandingRepository")
    exports: ExportRepository = _made_on_use("export", "ExportRepository")
    jobs: JobRepository = _made_on_use("jobs", "JobRepository")
    idempotency: IdempotencyRepository = _made_on_use("admission", "IdempotencyRepository")
    keys: KeyRepository = _made_on_use("keys", "KeyRepository")
    limits: LimitRepository = _made_on_use("admission", "LimitRepository")
    listing: ListingRepository = _made_on_use("listing", "ListingRepository")
    logins: LoginRepository = _made_on_use("logins", "LoginRepository")
    conversations: ConversationRepository = _made_on_use("memory", "ConversationRepository")
    memory: MemoryRepository = _made_on_use("memory", "MemoryRepository")
    recalls: RecallRepository = _made_on_use("recall", "RecallRepository")
    facts: FactRepository = _made_on_use("facts", "FactRepository")
    feedback: FeedbackRepository = _made_on_use("memory", "FeedbackRepository")
    forgetting: ForgettingRepository = _made_on_use("memory", "ForgettingRepository")
    past: PastRepository = _made_on_use("past", "PastRepository")
    resident: ResidentRepository = _made_on_use("resident", "ResidentRepository")
    requests: RequestLogRepository = _made_on_use("logs", "RequestLogRepository")
    attachments: AttachmentRepository = _made_on_use("closing", "AttachmentRepository")
    source_items: SourceItemRepository = _made_on_use("sources", "SourceItemRepository")
    sources: SourceRepository = _made_on_use("sources", "SourceRepository")
    staleness: StalenessRepository = _made_on_use("past", "StalenessRepository")
    saved_cases: SavedCaseRepository = _made_on_use("saved_cases", "SavedCaseRepository")

    def __init__(
        self,
        *,
        data_dir: Path,
        dsn: str | None = None,
        application_dsn: str | None = None,
        read_dsn: str | None = None,
        max_connections: int = 10,
        index_threshold: int = INDEX_THRESHOLD_CHUNKS,
        expiry: ExpiryPolicy | None = None,
        default_permissions: DefaultPermissions | None = None,
    ) -> None:
        if read_dsn is not None and dsn is None:
            raise ConfigurationError("read_dsn needs dsn: the embedded server of a data directory has no replicas.")
        self.replica: Replica | None = None
        self._server = None if dsn else EmbeddedServer(data_dir)
        try:
            self.dsn: str = dsn or (self._server.start() if self._server else "")
            report = migrate(self.dsn, own_server=self._server is not None)
            self.schema_version, self.put_back = report.schema_version, report.put_back
            application = application_login_of(self.dsn) if self._server else application_dsn
            self.database = Database(
                self.dsn,
                max_connections=max_connections,
                application_dsn=application,
                ensure_server=self._server.ensure_running if self._server else None,
            )
            if report.several_tenants:
                require_isolation(self.database)
            if read_dsn is not None:
                self._open_replica(read_dsn, max_connections, several_tenants=report.several_tenants)
        except BaseException:
            self._stop_server()
            raise
        self._expiry_policy, self._default_permissions = expiry, default_permissions
        self._index_threshold = index_threshold

    @cached_property
    def writer(self) -> DocumentWriter:
        """Writes documents."""
        from recollect.store.writer import DocumentWriter

        return DocumentWriter(self.database, expiry=self._expiry_policy, default_permissions=self._default_permissions)

    @cached_property
    def history(self) -> HistoryRepository:
        """Reads and writes the versions of documents."""
        from recollect.store.history import HistoryRepository

        return HistoryRepository(self.database, expiry=self._expiry_policy)

    @cached_property
    def erasure(self) -> ErasureRepository:
        """Removes documents for good."""
        from recollect.store.erasure import ErasureRepository

        return ErasureRepository(self.database)

    @cached_property
    def duplicates(self) -> DuplicateRepository:
        """Documents that say the same."""
        from recollect.store.listing import DuplicateRepository

        return DuplicateRepository(self.database)

    @cached_property
    def dense_indexer(self) -> DenseIndexer:
        """Builds the approximate indexes of collections."""
        host = this_machine() if self._server else None
        return DenseIndexer(self.database, self.collections, threshold=self._index_threshold, machine=host)

    @cached_property
    def history_indexer(self) -> HistoryIndexer:
        """Builds the approximate indexes of the past."""
        from recollect.store.history import HistoryIndexer

        host = this_machine() if self._server else None
        return HistoryIndexer(self.database, self.collections, threshold=self._index_threshold, machine=host)

    @cached_property
    def scrubber(self) -> Scrubber:
        """Takes what was erased out of the database's files."""
        from recollect.store.scrub import Scrubber

        return Scrubber(self.database, self.audit, self._server.data_dir if self._server else None)

    @cached_property
    def caretaking(self) -> Database:
        """Connections for those who look after tenants: what suspended ones have can be read and written over them."""
        return self.database.separate(max_connections=_CARETAKERS, even_suspended=True)

    def close(self) -> None:
        """Close the connections and let go of the embedded server; idempotent."""
        if "caretaking" in self.__dict__:
            self.caretaking.close()
        self.database.close()
        self._stop_server()

    def _open_replica(self, dsn: str, max_connections: int, *, several_tenants: bool) -> None:
        from recollect.store.replica import Replica

        self.replica = self.database.replica = Replica(self.database, dsn, max_connections=max_connections)
        try:
            self.replica.open(several_tenants=several_tenants)
        except BaseException:
            self.database.close()
            raise

    def _stop_server(self) -> None:
        if self._server:
            self._server.stop()
