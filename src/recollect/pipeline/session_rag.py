"""Sessions with documents of their own behind one object, each named by its id."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.config import RAGConfig
from recollect.model import Answer, Document, RetrievalOptions, SearchReply
from recollect.model.arguments import checked
from recollect.model.document_session import DocumentSession, SessionConfig
from recollect.pipeline.owned import OwnedPipeline
from recollect.pipeline.rag import RAGPipeline

if TYPE_CHECKING:
    from typing import Unpack

    from recollect.ingest.report import IngestReport, ProgressCallback
    from recollect.model import IngestResult, Principal
    from recollect.model.document_record import DocumentRecord
    from recollect.model.keywords import SearchKeywords
    from recollect.model.page import Page
    from recollect.model.time import Moment
    from recollect.pipeline.view import View


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
        """Answer a question from what `search_session` finds, with citations, or refuse; see `View.ask`."""
        return self.session(session_id, collections=collections).view(as_of=as_of).ask(question, options, **keywords)

    def session(self, session_id: str, *, collections: Sequence[str] | str = ()) -> View:
        """The view of one session, alone or with collections."""
        return self._view.view(session=session_id, collections=collections or None)
