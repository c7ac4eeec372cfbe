"""One open store: its server, its connections, and everything that reads and writes them."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from recollect.forking import computes_properties
from recollect.model.principal import DefaultPermissions
from recollect.model.time_to_live import ExpiryPolicy
from recollect.store.access import AccessRepository
from recollect.store.acronyms import AcronymRepository
from recollect.store.audit import AuditRepository
from recollect.store.collections import CollectionRepository
from recollect.store.database import Database
from recollect.store.dense_index import INDEX_THRESHOLD_CHUNKS, DenseIndexer
from recollect.store.document_sessions import DocumentSessionRepository
from recollect.store.documents import DocumentRepository
from recollect.store.dsn import application_dsn as application_login_of
from recollect.store.embedded import EmbeddedServer
from recollect.store.erasure import ErasureRepository
from recollect.store.expiry import ExpiryRepository
from recollect.store.export import ExportRepository
from recollect.store.facts import FactRepository
from recollect.store.feedback import FeedbackRepository
from recollect.store.forgetting import ForgettingRepository
from recollect.store.history import HistoryRepository
from recollect.store.history_index import HistoryIndexer
from recollect.store.isolation import require_isolation
from recollect.store.memory import MemoryRepository
from recollect.store.migrate import migrate
from recollect.store.past import PastRepository
from recollect.store.quotes import QuoteRepository
from recollect.store.recall import RecallRepository
from recollect.store.scrub import Scrubber
from recollect.store.search import SearchRepository
from recollect.store.search_health import SearchHealthRepository
from recollect.store.staleness import StalenessRepository
from recollect.store.status import StatusRepository
from recollect.store.tenants import ShareRepository, TenantDirectory
from recollect.store.token_vectors import TokenVectorRepository
from recollect.store.tuning import this_machine
from recollect.store.upkeep import UpkeepRepository
from recollect.store.why_not import StandingRepository
from recollect.store.writer import DocumentWriter

_CARETAKERS = 4


@computes_properties
class Store:
    """Opens the embedded server, or a given database, brings its schema up to date, and holds the repositories.

    Args:
        data_dir: Where the embedded server keeps its data; unused with ``dsn``.
        dsn: A libpq connection string of another server, for the schema's owner; None: the embedded one.
        application_dsn: The same for a role that owns nothing, which all but maintenance is done as; None: the owner,
            who changes to the application's role where it may.
        max_connections: Connections that this process opens at most.
        index_threshold: Chunks from which on a collection's vectors get an approximate index.
        expiry: When documents expire that are stored; None: when they say so themselves.
        default_permissions: Who may read documents that are given no permissions; None: whoever the collection names.

    Raises:
        StoreUnavailableError: The server cannot be started or reached.
        SchemaVersionError: The store was written by a newer recollect, or by one from before the first release.
        IsolationError: It has several tenants, and the database does not keep them apart.
    """

    def __init__(
        self,
        *,
        data_dir: Path,
        dsn: str | None = None,
        application_dsn: str | None = None,
        max_connections: int = 10,
        index_threshold: int = INDEX_THRESHOLD_CHUNKS,
        expiry: ExpiryPolicy | None = None,
        default_permissions: DefaultPermissions | None = None,
    ) -> None:
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
        except BaseException:
            self._stop_server()
            raise
        self.collections = CollectionRepository(self.database)
        self.tenants = TenantDirectory(self.database)
        self.shares = ShareRepository(self.database)
        self.documents = DocumentRepository(self.database)
        self.document_sessions = DocumentSessionRepository(self.database)
        self.writer = DocumentWriter(self.database, expiry=expiry, default_permissions=default_permissions)
        self.expiry = ExpiryRepository(self.database)
        self.history = HistoryRepository(self.database, expiry=expiry)
        self.audit = AuditRepository(self.database)
        self.upkeep = UpkeepRepository(self.database)
        self.erasure = ErasureRepository(self.database, self.audit)
        self.quotes = QuoteRepository(self.database)
        self.access = AccessRepository(self.database)
        self.acronyms = AcronymRepository(self.database)
        self.token_vectors = TokenVectorRepository(self.database)
        self.search = SearchRepository(self.database)
        self.search_health = SearchHealthRepository(self.database)
        self.status = StatusRepository(self.database)
        self.standings = StandingRepository(self.database)
        self.exports = ExportRepository(self.database)
        self.memory = MemoryRepository(self.database)
        self.recalls = RecallRepository(self.database)
        self.facts = FactRepository(self.database)
        self.feedback = FeedbackRepository(self.database)
        self.forgetting = ForgettingRepository(self.database)
        self.past = PastRepository(self.database)
        self.staleness = StalenessRepository(self.database)
        host = this_machine() if self._server else None
        self.dense_indexer = DenseIndexer(self.database, self.collections, threshold=index_threshold, machine=host)
        self.history_indexer = HistoryIndexer(self.database, self.collections, threshold=index_threshold, machine=host)

    @cached_property
    def scrubber(self) -> Scrubber:
        """Takes what was erased out of the database's files."""
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

    def _stop_server(self) -> None:
        if self._server:
            self._server.stop()
