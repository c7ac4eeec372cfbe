"""Sessions with documents of their own, which nobody else sees and which vanish with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from recollect.config import DEFAULT_COLLECTION, RAGConfig
from recollect.errors import NotFoundError, StoreError, StoreUnavailableError
from recollect.model import Answer, Document, RetrievalOptions, RetrievedContext, SearchReply
from recollect.model.arguments import checked
from recollect.model.document_session import DocumentSession, SessionConfig
from recollect.model.scope import Guest, Target
from recollect.pipeline.ingesting import ingest_documents_into, ingest_paths_into
from recollect.pipeline.rag import RAGPipeline

if TYPE_CHECKING:
    from recollect.context import AssembledContext
    from recollect.ingest.report import IngestReport, IngestResult, ProgressCallback
    from recollect.model import Principal, Scope
    from recollect.model.time import Moment
    from recollect.store.collections import Collection
    from recollect.store.document_sessions import DocumentSessionRepository, SessionPlace
    from recollect.store.documents import DocumentRecord


#: Stands for every collection of the tenant that the caller may read.
EVERY_COLLECTION = "*"


@checked
class SessionRAG:
    """Sessions with documents of their own, beside the collections of a `RAGPipeline`. Safe to share between threads.

    What is put into a session is found in that session alone, and is gone with it: its text, its vectors, its words.
    A session's time runs from its creation; an expired one can be neither searched nor written, and is removed by
    whoever comes across it or by the clean-up.

    Args:
        pipeline: The pipeline, or the settings of one that this object opens and closes; None: the default settings.
        tenant_id: Whose sessions; None: the default tenant's.
        principal: Who begins and reads them, where permissions are enforced: he alone sees what he has begun. None: an
            unrestricted caller, such as a server that keeps the ids of its users' sessions apart itself.

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
        self._owns = not isinstance(pipeline, RAGPipeline)
        self._rag = pipeline if isinstance(pipeline, RAGPipeline) else RAGPipeline(pipeline)
        self._parts = self._rag._parts
        self._tenant_id = tenant_id
        self._principal = principal

    def __enter__(self) -> SessionRAG:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the pipeline, where this object opened it."""
        if self._owns:
            self._rag.close()

    # Their life

    def create_session(self, session_id: str, config: SessionConfig | None = None) -> DocumentSession:
        """Begin a session.

        Args:
            session_id: Your id of it, unique among the principal's: up to 200 characters of any kind but NUL, without
                white space around them.
            config: How long it lives and what it holds; None: as configured (``[rag.session]``).

        Raises:
            ConflictError: There is one of that id, which may have expired without being removed.
            UsageError: The id or the configuration is not valid.
        """
        name = _checked(session_id)
        scope = self._scope()
        self._sessions.end_in_passing(scope)
        self._sessions.end_in_passing(scope, name)
        settings = self._parts.collection_settings()
        return self._sessions.create(
            scope,
            name,
            config or self.default_config(),
            embedding_model=settings.embedding_model,
            embedding_dimension=settings.embedding_dimension,
            language=settings.language,
            chunking=settings.chunking,
            token_vectors=settings.token_vectors,
        ).session

    def default_config(self) -> SessionConfig:
        """The configured life of a session (``[rag.session]``)."""
        given = self._rag.config.session
        return SessionConfig(
            ttl=given.ttl,
            max_documents=given.max_documents,
            auto_cleanup=given.auto_cleanup,
            when_full=given.when_full,
        )

    def get_session(self, session_id: str) -> DocumentSession:
        """A session, expired or not.

        Raises:
            NotFoundError: There is none of that id.
        """
        return self._sessions.get(self._scope(), _checked(session_id)).session

    def list_sessions(self, *, limit: int = 100, offset: int = 0) -> list[DocumentSession]:
        """Sessions, those first that expire first; what has expired and asks for it is removed before."""
        scope = self._scope()
        self._sessions.end_in_passing(scope)
        return self._sessions.list_all(scope, limit=limit, offset=offset)

    def renew_session(self, session_id: str) -> DocumentSession:
        """Begin the time of a session anew.

        Raises:
            NotFoundError: There is none of that id.
            SessionExpiredError: Its time is over.
        """
        scope = self._scope()
        return self._sessions.renew(scope, self._living(scope, session_id).session.session_id)

    def end_session(self, session_id: str) -> int:
        """Remove a session with all its documents, physically.

        Returns:
            How many documents it held.

        Raises:
            NotFoundError: There is none of that id.
        """
        return self._sessions.end(self._scope(), _checked(session_id))

    def cleanup_expired(self) -> int:
        """Remove every session of the tenant whose time is over, with its documents; returns how many."""
        return self._sessions.end_expired(self._scope())

    # Its documents

    def ingest_to_session(self, session_id: str, document: Document | str, *, force: bool = False) -> IngestResult:
        """Store a document that only this session finds.

        A document of the same ``source`` becomes a new version of the one that the session holds.

        Args:
            session_id: The session's.
            document: The document, or its text.
            force: Store it anew even if it is unchanged.

        Raises:
            NotFoundError: There is no such session, or it was ended meanwhile.
            SessionExpiredError: Its time is over.
            SessionFullError: It holds as many documents as it may, and is configured to refuse more.
            UsageError: The document holds no text.
        """
        return self.ingest_many_to_session(session_id, [document], force=force)[0]

    def ingest_many_to_session(
        self, session_id: str, documents: Iterable[Document | str], *, force: bool = False
    ) -> list[IngestResult]:
        """Store documents, as `ingest_to_session` does each, in batches that are transactions.

        Where the session is full, the batches before the one that has no room are stored.
        """
        with self._written(session_id) as (scope, place):
            return ingest_documents_into(self._parts, scope, place, documents, force=force)

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
        """Store files and folders that only this session finds; see `RAGPipeline.ingest_paths`.

        Returns:
            What became of the files. One for which there was no room is among the errors.

        Raises:
            NotFoundError: There is no such session or path, or it was ended meanwhile.
            SessionExpiredError: Its time is over.
        """
        with self._written(session_id) as (scope, place):
            return ingest_paths_into(
                self._parts,
                scope,
                place,
                paths,
                settings=self._rag.config.ingest,
                force=force,
                follow_links=follow_links,
                tags=tags,
                on_progress=on_progress,
            )

    def session_documents(self, session_id: str, *, after: int = 0, limit: int = 100) -> list[DocumentRecord]:
        """The documents of a session by id, without their contents; ``after`` is the last id of the page before.

        Raises:
            NotFoundError: There is no such session.
            SessionExpiredError: Its time is over.
        """
        with self._read(session_id) as (scope, place):
            found = self._parts.store.documents.list_page(scope, place, after=after, limit=limit)
        return [replace(record, collection=_label(session_id)) for record in found]

    # Searches and answers

    def search_session(
        self,
        session_id: str,
        query: str,
        options: RetrievalOptions | None = None,
        *,
        collections: Sequence[str] | str = (),
        as_of: Moment | None = None,
    ) -> SearchReply:
        """Find the passages that answer a query, of a session's documents alone or of collections too.

        Together they are searched as if they were one: words weigh as much as they are rare in all of them.

        Args:
            session_id: The session's.
            query: In plain words.
            options: How to search; None: the configured defaults. Replies are not kept for equal searches.
            collections: Searched together with the session: names, or ``"*"`` for every collection of the tenant that
                the caller may read and that is embedded with the configured model.
            as_of: Search what was known at this time (without a zone: UTC); None: now.

        Returns:
            A reply whose ``collection`` is ``session:`` and the id, then the collections; where there are any, each
            passage names its own.

        Raises:
            NotFoundError: There is no such session or collection. The default collection is empty rather than missing.
            SessionExpiredError: Its time is over.
            UsageError: The query or an option is not valid.
        """
        return self.session(session_id, collections=collections).search(query, options, as_of=as_of)

    def ask_session(
        self,
        session_id: str,
        question: str,
        options: RetrievalOptions | None = None,
        *,
        collections: Sequence[str] | str = (),
        as_of: Moment | None = None,
    ) -> Answer:
        """Answer a question from what `search_session` finds, with citations, or refuse; the arguments are the same.

        Raises:
            ProviderError: The language model failed.
        """
        return self.session(session_id, collections=collections).ask(question, options, as_of=as_of)

    def session(self, session_id: str, *, collections: Sequence[str] | str = ()) -> SessionSearch:
        """What searches one session, alone or with collections, by the methods that `RAGPipeline` has for it."""
        return SessionSearch(self, session_id, collections=collections)

    @property
    def _sessions(self) -> DocumentSessionRepository:
        return self._parts.store.document_sessions

    def _scope(self, as_of: Moment | None = None) -> Scope:
        return self._parts.scope(self._tenant_id, as_of, principal=self._principal)

    def _living(self, scope: Scope, session_id: str) -> SessionPlace:
        """A session whose time is not over; one whose time is is removed, where it asks for it."""
        from recollect.store.document_sessions import expired

        found = self._sessions.get(scope, _checked(session_id))
        if found.session.expired:
            self._sessions.end_in_passing(scope, found.session.session_id)
            raise expired(found.session.session_id)
        return found

    @contextmanager
    def _written(self, session_id: str) -> Iterator[tuple[Scope, Collection]]:
        """The scope and the collection that a session is written in."""
        with self._read(session_id) as (scope, place):
            self._parts.store.collections.require_writer(scope, place)
            yield replace(scope, ranked_for=None), place

    @contextmanager
    def _read(self, session_id: str, as_of: Moment | None = None) -> Iterator[tuple[Scope, Collection]]:
        """The scope and the collection of a session; whatever ends it meanwhile is told as what it is."""
        scope = self._scope(as_of)
        found = self._living(scope, session_id)
        try:
            own = found.scope(scope)
            yield own, self._parts.store.collections.get(own, found.collection)
        except StoreUnavailableError:
            raise
        except (NotFoundError, StoreError):
            # A row that should belong to it finds no collection any more, which the database has other words for.
            self._living(scope, session_id)
            raise


@checked
class SessionSearch:
    """Searches one session, alone or with collections, as `RAGPipeline` searches one of these.

    Args:
        sessions: Finds the session, anew for every search.
        session_id: The session's.
        collections: As `SessionRAG.search_session` takes them.
    """

    def __init__(self, sessions: SessionRAG, session_id: str, *, collections: Sequence[str] | str = ()) -> None:
        self._sessions = sessions
        self._session_id = session_id
        self._collections = collections

    def search(
        self, query: str, options: RetrievalOptions | None = None, *, as_of: Moment | None = None
    ) -> SearchReply:
        """Find the passages that answer a query; see `SessionRAG.search_session`."""
        return self._found(query, options or self._rag.default_options(), as_of)[0]

    def retrieve(
        self, query: str, options: RetrievalOptions | None = None, *, as_of: Moment | None = None
    ) -> list[RetrievedContext]:
        """The passages that answer a query, best first."""
        return list(self.search(query, options, as_of=as_of).results)

    def context(
        self,
        query: str,
        options: RetrievalOptions | None = None,
        *,
        token_budget: int | None = None,
        max_context_length: int | None = None,
        count_tokens: Callable[[str], int] | None = None,
        as_of: Moment | None = None,
    ) -> AssembledContext:
        """What a language model should read to answer a query; the limits are those of `RAGPipeline.context`."""
        from recollect.pipeline.answering import assembled_context

        given = replace(options or self._rag.default_options(), outline=True)
        reply, place = self._found(query, given, as_of)
        return assembled_context(
            self._rag._parts,
            self._rag.config,
            reply,
            place,
            token_budget=token_budget,
            max_context_length=max_context_length,
            count_tokens=count_tokens,
        )

    def ask(self, question: str, options: RetrievalOptions | None = None, *, as_of: Moment | None = None) -> Answer:
        """Answer a question from the session's documents, with citations, or refuse."""
        *_, answer = self.ask_stream(question, options, as_of=as_of)
        assert isinstance(answer, Answer), "a stream ends with the answer"
        return answer

    def ask_stream(
        self, question: str, options: RetrievalOptions | None = None, *, as_of: Moment | None = None
    ) -> Iterator[str | Answer]:
        """As `ask`, but yields the answer's pieces as they come, and the whole `Answer` at the end."""
        from recollect.pipeline.answering import answer_stream

        given = options or replace(self._rag.default_options(), top_k=self._rag.config.answer.passages)
        reply, place = self._found(question, replace(given, outline=True), as_of)
        yield from answer_stream(self._rag._parts, self._rag.config, question, reply, place)

    @property
    def _rag(self) -> RAGPipeline:
        return self._sessions._rag

    def _found(self, query: str, options: RetrievalOptions, as_of: Moment | None) -> tuple[SearchReply, Collection]:
        with self._sessions._read(self._session_id, as_of) as (scope, place):
            session = Guest(scope=scope, collection=place.name, label=_label(self._session_id))
            target = Target(collections=self._others(), optional=frozenset({DEFAULT_COLLECTION}), session=session)
            return self._rag._parts.searcher.search(scope, query, options, target), place

    def _others(self) -> tuple[str, ...] | None:
        """The collections that are searched too; None: all."""
        if self._collections == EVERY_COLLECTION:
            return None
        return (self._collections,) if isinstance(self._collections, str) else tuple(self._collections)


def _checked(session_id: str) -> str:
    from recollect.memory.validation import checked_name

    return checked_name("The session id", session_id)


def _label(session_id: str) -> str:
    """What stands where a collection is named."""
    return f"session:{_checked(session_id)}"
